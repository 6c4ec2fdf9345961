"""The door to objects inside a sandbox: what a function pours into it, or does not take out of it, fills a part of the node's memory."""

import json
import os
import pathlib

import pytest

from places import BUILD, Node

MOST_BYTES = 256 << 20  # src/node/object_sockets.cc: of all doors
AROUND = 160 << 20  # what the node has beside

BOOTSTRAP = '''#!/usr/bin/python3
import http.client, json, os, socket
API = "/2018-06-01/runtime/invocation/"
runtime = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
kept = []
def flood(count, head, size):
    """Connections that send a request of so many bytes but for the last, and wait for nothing."""
    part = b"x" * (1 << 20)
    for _ in range(count):
        asking = socket.socket(socket.AF_UNIX)
        asking.settimeout(5)
        kept.append(asking)
        try:
            asking.connect(os.environ["FAIRLEAD_OBJECTS"] + "/socket")
            asking.sendall(head.encode())
            for _ in range(size >> 20):
                asking.sendall(part)
        except OSError:
            pass
    return len(kept)
while True:
    runtime.request("GET", API + "next")
    event = runtime.getresponse()
    answer = flood(**json.loads(event.read()))
    runtime.request("POST", API + event.headers["Lambda-Runtime-Aws-Request-Id"] + "/response", json.dumps(answer))
    runtime.getresponse().read()
'''
SIZE = 40 << 20
UPLOAD = f"POST /v1/objects/x?create=5 HTTP/1.1\r\nHost: x\r\nContent-Length: {SIZE + 1}\r\n\r\n"
DOWNLOAD = "GET /v1/objects/large HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def node(tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "bootstrap").write_text(BOOTSTRAP)
    (code / "bootstrap").chmod(0o755)
    with Node(BUILD, tmp_path / "node") as node:
        node.deploy("flood", code, Timeout=120)
        assert node.call("PUT", "/v1/objects/large", b"l" * SIZE)[0] == 201
        yield node


def private_bytes(node):
    """Without what is shared, such as the objects themselves."""
    for line in pathlib.Path(f"/proc/{node.process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no RssAnon")


@pytest.mark.parametrize("head, size", [(UPLOAD, SIZE), (DOWNLOAD, 0)], ids=["bodies", "answers"])
def test_a_function_fills_its_tenants_part_and_no_more(node, head, size):
    status, _, body = node.invoke("flood", json.dumps({"count": 20, "head": head, "size": size}))
    assert status == 200 and json.loads(body) == 20
    assert private_bytes(node) < MOST_BYTES / 2 + AROUND
    assert node.call("GET", "/v1/objects/large")[0] == 200, "others are served"


def test_a_function_has_so_many_connections_to_it(node):
    before = len(os.listdir(f"/proc/{node.process.pid}/fd"))
    node.invoke("flood", json.dumps({"count": 900, "head": "GET /v1/objects HTTP/1.1\r\n", "size": 0}))
    assert len(os.listdir(f"/proc/{node.process.pid}/fd")) - before < 400
