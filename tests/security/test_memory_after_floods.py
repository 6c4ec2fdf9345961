"""What a flood leaves in the node's memory once it is over: at most half as much again as before."""

import base64
import http.client
import io
import json
import os
import pathlib
import socket
import threading
import time
import zipfile

import pytest

from places import BUILD, MISBEHAVE, Node

PATIENCE_S = 120.0
MOST_GROWTH = 1.5
CREATE = "/2015-03-31/functions"


def resident_bytes(node):
    for line in pathlib.Path(f"/proc/{node.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


def wait_until(condition):
    """Whether it came true in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not (is_true := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)  # sleep: between two looks
    return is_true


@pytest.fixture
def node(tmp_path):
    with Node(BUILD, tmp_path / "node") as node:
        yield node


def post(node, path, body, headers=None):
    connection = http.client.HTTPConnection(node.host, node.port, timeout=PATIENCE_S)
    try:
        connection.request("POST", path, body=body, headers=headers or {})
        return connection.getresponse().read()
    except OSError:
        return b""  # it was refused before all of it was sent
    finally:
        connection.close()


def wide_document(node):
    """67 MB of JSON whose tree would be 60 times as large."""
    post(node, CREATE, b'{"FunctionName": "f", "Code": {"ZipFile": [' + b"1," * 33_000_000 + b"1]}}")


def deep_document(node):
    post(node, "/v1/ktasks", b"[" * 200_000 + b"]" * 200_000, {"Content-Type": "application/json"})


def large_package(node):
    """Forty megabytes that no compression makes smaller, thrice."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("data", os.urandom(36 << 20))
    document = json.dumps({"FunctionName": "large", "Role": "r", "Code": {"ZipFile": base64.b64encode(packed.getvalue()).decode()}})
    for _ in range(3):
        post(node, CREATE, document.encode())


def large_calls(node):
    senders = [threading.Thread(target=post, args=(node, f"{CREATE}/misbehave/invocations", b'"' + b"x" * 5_000_000 + b'"'))
               for _ in range(60)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


def many_connections(node):
    held = []
    for _ in range(2000):
        held.append(socket.create_connection((node.host, node.port), timeout=PATIENCE_S))
        held[-1].sendall(b"POST /2015-03-31/functions/misbehave/invocations HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"x" * 2000)
    for connection in held:
        connection.close()


def pipelined_metrics(node):
    with socket.create_connection((node.host, node.port), timeout=PATIENCE_S) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 2000)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass


def large_events(node):
    """A thousand events of 200 kB, each run and forgotten."""
    def send():
        for _ in range(125):
            post(node, f"{CREATE}/misbehave/invocations", b'{"pad": "' + b"x" * 200_000 + b'"}', {"X-Amz-Invocation-Type": "Event"})
    senders = [threading.Thread(target=send) for _ in range(8)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    wait_until(lambda: (events := node.status()["events"])["waiting"] + events["running"] == 0)


@pytest.mark.parametrize("flood", [wide_document, deep_document, large_package, large_calls, many_connections, pipelined_metrics,
                                   large_events], ids=lambda flood: flood.__name__)
def test_what_it_took_is_given_back(node, flood):
    node.deploy("misbehave", MISBEHAVE)
    assert node.invoke("misbehave")[0] == 200
    node.call("GET", "/metrics")
    before = resident_bytes(node)
    flood(node)
    assert node.invoke("misbehave")[0] == 200
    is_given_back = wait_until(lambda: resident_bytes(node) <= MOST_GROWTH * before)
    print(f"\n{flood.__name__}: {before / 2**20:.0f} MiB before, {resident_bytes(node) / before:.2f} times as much after")
    assert is_given_back
