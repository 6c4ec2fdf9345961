"""The node's status as server-sent events: GET /fairlead/v1/events."""

import contextlib
import http.client
import json
import socket

from conftest import PATIENCE_S, eventually

PATH = "/fairlead/v1/events"
MOST_STREAMS = 16


@contextlib.contextmanager
def events(node):
    """The answer, whose body has no end."""
    connection = http.client.HTTPConnection(node.host, node.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", PATH)
        yield connection.getresponse()
    finally:
        connection.close()


def read_event(lines):
    """The fields of the next event."""
    fields = {}
    for line in iter(lambda: lines.readline().decode().rstrip("\n"), ""):
        name, _, value = line.partition(": ")
        fields[name] = value
    return fields


def test_events_come_by_themselves_and_follow_the_node(start_node):
    node = start_node()
    with events(node) as answer:
        assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
        first = read_event(answer)
        assert first["event"] == "status" and json.loads(first["data"])["functions"] == []
        node.deploy("noop", node.sample("noop"))
        assert node.invoke("noop")[0] == 200
        seen = eventually(lambda: (event := read_event(answer)) and json.loads(event["data"])["functions"] and event)
        assert int(seen["id"]) > int(first["id"])
        assert json.loads(seen["data"])["functions"][0]["name"] == "noop"
        assert node.stop() == 0  # an open stream keeps no node from its end


def test_a_raw_client_of_http_10_reads_events_without_chunks(shared_node):
    with socket.create_connection((shared_node.host, shared_node.port), timeout=PATIENCE_S) as connection:
        connection.sendall(f"GET {PATH} HTTP/1.0\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            head = b"".join(iter(answer.readline, b"\r\n"))
            assert b"chunked" not in head and b"Content-Length" not in head
            assert [read_event(answer)["event"], read_event(answer)["event"]] == ["status", "status"]


def test_streams_have_a_bound_and_those_that_leave_make_room(start_node):
    node = start_node()
    with contextlib.ExitStack() as streams:
        for _ in range(MOST_STREAMS):
            assert streams.enter_context(events(node)).status == 200
        with events(node) as refused:
            assert refused.status == 429 and refused.headers["Retry-After"]
            assert f"{MOST_STREAMS} streams" in json.loads(refused.read())["Message"]
        assert node.call("GET", "/healthz")[0] == 200
    eventually(lambda: node_has_room(node))


def node_has_room(node):
    with events(node) as answer:
        return answer.status == 200


def test_a_client_that_reads_nothing_keeps_no_other_waiting(start_node):
    node = start_node()
    with socket.create_connection((node.host, node.port), timeout=PATIENCE_S) as silent:
        silent.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        with events(node) as answer:
            numbers = [int(read_event(answer)["id"]) for _ in range(3)]
    assert numbers == sorted(set(numbers))
