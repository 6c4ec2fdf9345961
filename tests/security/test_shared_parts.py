"""What tenants share has parts: who takes all that can be had gets 429, and the tenant beside is served as before."""

import http.client
import json
import resource
import socket
import subprocess
import time

import pytest

from places import BUILD, MISBEHAVE, Node

CREATE = "/2015-03-31/functions"
PATIENCE_S = 60.0


class Tenant:
    """One with a key and a function of its own."""

    def __init__(self, node, name):
        self.node, self.name = node, name
        self.token = json.loads(operator(node, "--json", "tenant", "add", name))["token"]
        self.deploy(name)

    def deploy(self, function):
        operator(self.node, "deploy", function, MISBEHAVE, "--tag", f"gpu:tenant={self.name}")

    def call(self, method, path, body=None, **headers):
        """(status, body as text)"""
        connection = http.client.HTTPConnection(self.node.host, self.node.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {self.token}"}
                               | {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def invoke(self, event, function=None, **headers):
        return self.call("POST", f"{CREATE}/{function or self.name}/invocations", json.dumps(event), **headers)

    def ask_and_take_nothing(self, event, function=None):
        """A connection whose answer nobody reads."""
        body = json.dumps(event)
        asking = socket.socket()
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        asking.connect((self.node.host, self.node.port))
        asking.sendall(f"POST {CREATE}/{function or self.name}/invocations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        return asking


def operator(node, *arguments):
    return subprocess.run([BUILD / "bin/fairlead", "--endpoint", f"unix:{node.state}/operator.sock", *map(str, arguments)],
                          capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout


def start(home, *options):
    node = Node(BUILD, home, is_open=False, options=options)
    return node, Tenant(node, "victim"), Tenant(node, "flooder")


def completed(node):
    return json.loads(operator(node, "--json", "status"))["counters"]["completed"]


@pytest.fixture
def running(tmp_path):
    node, victim, flooder = start(tmp_path / "node", "--request-memory", "160MiB", "--queue-limit", "30")
    with node:
        yield node, victim, flooder


def test_who_takes_no_answers_stops_nobody_else(running):
    node, victim, flooder = running
    large, held = {"do": "large", "bytes": 5_900_000}, []
    before = completed(node)
    for number in range(60):
        held.append(flooder.ask_and_take_nothing(large))
        while completed(node) <= before + number:
            time.sleep(0.01)  # sleep: between two looks
        if number % 10 == 9:
            assert victim.invoke({"do": "echo"})[0] == 200
    status, text = flooder.invoke(large)
    assert status == 429 and "the request was carried out" in text, text[:200]
    assert victim.invoke(large)[0] == 200, "another's large answer finds room"
    assert flooder.invoke({"do": "echo"})[0] == 200, "a small one is not counted"
    for connection in held:
        connection.close()
    deadline = time.monotonic() + PATIENCE_S
    while flooder.invoke(large)[0] != 200:
        assert time.monotonic() < deadline, "what nobody waits for any more is given back"


def test_a_tenants_queued_calls_leave_places_free(running):
    node, victim, flooder = running
    assert victim.invoke({"do": "echo"})[0] == 200
    held = [flooder.ask_and_take_nothing({"do": "sleep", "seconds": 2}) for _ in range(60)]
    deadline = time.monotonic() + PATIENCE_S
    while flooder.invoke({"do": "echo"})[0] != 429:
        assert time.monotonic() < deadline
    status, text = flooder.invoke({"do": "echo"})
    if status == 429:
        assert "a tenant may have twice as many as are free" in text
    assert victim.invoke({"do": "echo"})[0] == 200
    for connection in held:
        connection.close()


def graph(tenant, run, event=None):
    return tenant.call("POST", "/v1/graphs", json.dumps({"run": run, "nodes": {"n": {"function": tenant.name, "payload": event or {}}}}))


def test_a_tenants_graphs_leave_places_free_and_others_results(running):
    node, victim, flooder = running
    assert graph(victim, "first")[0] == 202
    refused = [graph(flooder, f"r{number}", {"do": "sleep", "seconds": 60})[0] for number in range(200)].count(429)
    assert refused == 200 - 128
    assert graph(victim, "second")[0] == 202
    assert victim.call("GET", "/v1/graphs/first")[0] == 200


def test_events_that_wait_are_of_the_same_memory_as_bodies_and_answers(running):
    node, victim, flooder = running
    assert flooder.invoke({"do": "echo"})[0] == 200
    large = {"do": "large", "bytes": 5_900_000}
    assert flooder.invoke(large)[0] == 200
    operator(node, "--json", "status")
    status = flooder.call("PUT", f"/2017-10-31/functions/{flooder.name}/concurrency", json.dumps({"ReservedConcurrentExecutions": 0}))[0]
    assert status == 200, "nothing of it runs: events wait"
    event = json.dumps({"do": "echo", "filler": "x" * 900_000})
    statuses = []
    while not statuses or statuses[-1] == 202:
        assert len(statuses) < 200, "160 MiB in all"
        statuses.append(flooder.call("POST", f"{CREATE}/{flooder.name}/invocations", event, X_Amz_Invocation_Type="Event")[0])
    assert statuses[-1] == 429 and len(statuses) > 20
    assert victim.invoke(large)[0] == 200, "another's large answer finds room"
    body = json.dumps({"do": "echo", "filler": "x" * 5_000_000})
    assert flooder.invoke(json.loads(body))[0] == 429, "a body of who has so many events"


def test_a_neighbours_replies_push_no_reply_out(running):
    node, victim, flooder = running
    once = {"amz_sdk_invocation_id": "11111111-2222-4333-8444-555555555555"}
    assert victim.invoke({"do": "echo"}, **once)[0] == 200
    for number in range(5):
        assert flooder.invoke({"do": "large", "bytes": 5_900_000}, amz_sdk_invocation_id=f"flood-{number}")[0] == 200
    before = completed(node)
    assert victim.invoke({"do": "echo"}, **once)[0] == 200
    assert completed(node) == before, "the repeat was given the first one's reply"


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 12_000, reason="needs 10,000 connections here and in the node")
def test_who_waits_on_every_connection_keeps_nobody_out(running):
    node, victim, flooder = running
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    held = []
    try:
        assert graph(flooder, "long", {"do": "sleep", "seconds": 60})[0] == 202
        asks = f"GET /v1/graphs/long?wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {flooder.token}\r\n\r\n".encode()
        for _ in range(10_100):
            held.append(socket.create_connection((node.host, node.port)))
            held[-1].sendall(asks)
        for _ in range(20):
            assert victim.call("GET", CREATE)[0] == 200
    finally:
        for connection in held:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
