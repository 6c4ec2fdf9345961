"""Requests that cannot be served get the right error, at once, and harm nobody else."""

import errno
import json
import socket
import threading

import pytest

from conftest import MISBEHAVE, PATIENCE_S, Gate, eventually

INVOKE = "/2015-03-31/functions/misbehave/invocations"


def raw(node, data):
    """What the node answers to these bytes; nothing when it closed while they were still under way."""
    with socket.create_connection((node.host, node.port), timeout=PATIENCE_S) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))
        except ConnectionError:
            return b""
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                raise
            return b""


def test_unknown_function(shared_node):
    status, headers, body = shared_node.invoke("nobody")
    assert status == 404 and headers["x-amzn-ErrorType"] == "ResourceNotFoundException"
    assert "nobody" in json.loads(body)["Message"]


@pytest.mark.parametrize("kind, limit", [("RequestResponse", 6 << 20), ("Event", 1 << 20)])
def test_oversized_payload(misbehave, kind, limit):
    node, name = misbehave
    status, headers, body = node.invoke(name, b" " * (limit + 1), {"X-Amz-Invocation-Type": kind})
    assert status == 413 and headers["x-amzn-ErrorType"] == "RequestTooLargeException"
    assert str(limit) in json.loads(body)["Message"]


def test_a_payload_of_exactly_the_limit_passes(misbehave):
    node, name = misbehave
    assert node.invoke(name, b"{}" + b" " * ((6 << 20) - 2))[0] == 200


def test_unknown_invocation_type(misbehave):
    node, name = misbehave
    status, headers, _ = node.invoke(name, "{}", {"X-Amz-Invocation-Type": "Maybe"})
    assert status == 400 and headers["x-amzn-ErrorType"] == "InvalidParameterValueException"


@pytest.mark.parametrize("data", [
    b"\0\1\2\3\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /x HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 100_000 + b"\r\n\r\n",
], ids=["binary", "no-target", "version", "negative-length", "huge-length", "bad-escape", "huge-header"])
def test_malformed_http(misbehave, data):
    node, name = misbehave
    answer = raw(node, data)
    assert answer == b"" or 400 <= int(answer.split()[1]) < 500
    assert node.invoke(name)[0] == 200


def test_a_request_cut_short_leaves_nothing(misbehave):
    node, name = misbehave
    raw(node, f"POST {INVOKE} HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf".encode())
    assert node.status()["queued"] == 0
    assert node.invoke(name)[0] == 200


def test_a_client_that_leaves_takes_its_queued_call_along(start_node):
    node = start_node("--slots", "1")
    node.deploy("misbehave", MISBEHAVE)
    gate = Gate(node)
    blocker = threading.Thread(target=node.invoke, args=("misbehave", gate.payload))
    blocker.start()
    eventually(lambda: node.status()["functions"][0]["in_flight"] == 1)
    connection = socket.create_connection((node.host, node.port))
    connection.sendall(f"POST {INVOKE} HTTP/1.1\r\nContent-Length: 2\r\n\r\n{{}}".encode())
    eventually(lambda: node.status()["queued"] == 1)
    connection.close()
    eventually(lambda: node.status()["queued"] == 0)
    gate.open()
    blocker.join()
    assert node.invoke("misbehave")[0] == 200


def test_a_full_queue_says_when_to_come_back(start_node):
    node = start_node("--slots", "1", "--queue-limit", "1")
    node.deploy("misbehave", MISBEHAVE)
    gate = Gate(node)
    calls = [threading.Thread(target=node.invoke, args=("misbehave", gate.payload)) for _ in range(2)]
    for count, call in enumerate(calls):
        call.start()
        eventually(lambda count=count: node.status()["counters"]["arrived"] == count + 1)
        eventually(lambda: node.status()["functions"][0]["in_flight"] == 1)  # while its instance starts it is queued
    status, headers, body = node.invoke("misbehave")
    assert status == 429 and headers["x-amzn-ErrorType"] == "TooManyRequestsException"
    assert int(headers["Retry-After"]) >= 1 and "limit" in json.loads(body)["Message"]
    gate.open()
    for call in calls:
        call.join()


def test_a_repeated_invocation_id_attaches_to_the_first_call(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    answers = []
    headers = {"amz-sdk-invocation-id": "11111111-2222-4333-8444-555555555555"}

    def call():
        answers.append(node.invoke("misbehave", '{"do": "sleep", "seconds": 1}', headers)[1]["x-amzn-RequestId"])

    calls = [threading.Thread(target=call) for _ in range(3)]
    for thread in calls:
        thread.start()
    for thread in calls:
        thread.join()
    call()  # and once more, after the end
    assert len(set(answers)) == 1 and len(answers) == 4
    assert node.status()["counters"]["completed"] == 1


def test_unknown_paths_and_methods(shared_node):
    assert shared_node.call("GET", "/nothing")[0] == 404
    assert shared_node.call("PATCH", "/2015-03-31/functions")[0] in (404, 405)
    assert shared_node.call("GET", "/healthz")[0] == 200


def test_metrics_are_prometheus_text(misbehave):
    node, name = misbehave
    node.invoke(name)
    status, headers, body = node.call("GET", "/metrics")
    text = body.decode()
    assert status == 200 and headers["Content-Type"].startswith("text/plain")
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2 and float(line.rsplit(" ", 1)[1]) is not None
    assert f'function="{name}"' in text
