"""Objects in a cluster: put at one node, used at all (docs/how-to/cluster.md#objects)."""

import concurrent.futures
import hashlib
import json
import os
import signal
import struct

import pytest

from conftest import ROOT, eventually
from test_peers import make_cluster, ok  # noqa: F401, a fixture

EXAMPLE = ROOT / "examples/ktask/vector-add"
N = 8


def put(node, key, data, query=""):
    status, _, body = node.call("PUT", f"/v1/objects/{key}{query}", data)
    assert status == 201, body


def get(node, key, query=""):
    return node.call("GET", f"/v1/objects/{key}{query}")


@pytest.fixture
def nodes(make_cluster):  # noqa: F811
    return make_cluster().start_all().nodes


def test_an_object_of_one_node_is_read_at_all(nodes):
    data = os.urandom((5 << 20) + 3)
    put(nodes["a"], "weights/w", data)
    status, headers, _ = nodes["b"].call("HEAD", "/v1/objects/weights/w")
    assert status == 200 and headers["X-Fairlead-Object-Node"] == "a"
    assert json.loads(get(nodes["b"], "weights/w", "?info")[2])["node"] == "a"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # one copy for all of them
        assert all(answer[2] == data for answer in pool.map(lambda _: get(nodes["b"], "weights/w"), range(8)))
    copied = nodes["b"].call("GET", "/metrics")[2].decode()
    assert "fairlead_peer_objects_copied_total 1\n" in copied and f"fairlead_peer_object_bytes_total {len(data)}\n" in copied
    assert "X-Fairlead-Object-Node" not in nodes["b"].call("HEAD", "/v1/objects/weights/w")[1]
    part = nodes["c"].call("GET", "/v1/objects/weights/w", headers={"Range": "bytes=1048570-1048589"})
    assert part[0] == 206 and part[2] == data[1048570:1048590]
    assert nodes["c"].call("DELETE", "/v1/objects/weights/w")[0] == 204
    for node in nodes.values():
        status, _, body = get(node, "weights/w")
        assert status == 404 and "nor on the 2 others" in json.loads(body)["Message"]


def test_a_call_finds_its_inputs_whichever_node_runs_it(nodes):
    nodes["a"].deploy("add", EXAMPLE)
    for name, value in (("a", 1.0), ("b", 2.0), ("c", 3.0)):
        put(nodes[name], f"in/{name}", struct.pack(f"<{N}f", *[value] * N))
    for number, (x, y, gateway) in enumerate([("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")]):
        call = {"inputs": {"x": {"key": f"in/{x}"}, "y": {"key": f"in/{y}"}}, "outputs": {"sum": {"key": f"out/{number}"}}}
        ok(nodes[gateway].invoke("add", json.dumps(call)))
    for number, wanted in enumerate((3.0, 5.0, 4.0)):
        for node in nodes.values():  # on a device at the function's home, wherever that is
            status, _, body = get(node, f"out/{number}")
            assert status == 200 and struct.unpack(f"<{N}f", body) == (wanted,) * N
    missing = {"inputs": {"x": {"key": "in/a"}, "y": {"key": "in/nowhere"}}}
    _, headers, body = nodes["b"].invoke("add", json.dumps(missing))
    assert "X-Amz-Function-Error" in headers and "there is no object 'in/nowhere'" in body.decode()


def test_tenants_have_each_their_own(nodes):
    put(nodes["a"], "k", b"default's")
    nodes["a"].call("PUT", "/v1/objects/k", b"acme's", {"X-Fairlead-Tenant": "acme"})
    assert nodes["b"].call("GET", "/v1/objects/k", headers={"X-Fairlead-Tenant": "acme"})[2] == b"acme's"
    assert get(nodes["b"], "k")[2] == b"default's"
    assert nodes["b"].call("GET", "/v1/objects/k", headers={"X-Fairlead-Tenant": "other"})[0] == 404


def test_a_function_reads_what_another_node_has(nodes):
    put(nodes["b"], "for/programs", b"hello")
    nodes["a"].deploy("reader", ROOT / "tests/functions/objects")
    answer = json.loads(ok(nodes["c"].invoke("reader", json.dumps({"read": "for/programs", "write": "made/there"}))))
    assert answer["status"] == 201 and answer["mapped"] == "hello"
    assert all(get(node, "made/there")[2] == b"HELLO" for node in nodes.values())


def test_who_waits_for_an_object_that_is_being_written_gets_it(nodes):
    status, _, body = nodes["a"].call("POST", "/v1/objects/late?create=4")
    assert status == 201, body
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waits = pool.submit(get, nodes["b"], "late", "?wait=60")
        with open(json.loads(body)["path"], "r+b") as file:
            file.write(b"late")
        assert nodes["a"].call("POST", "/v1/objects/late?seal")[0] == 200
        assert waits.result()[2] == b"late"


# A node that hangs or dies is named, and others that have the object go on.
def test_a_node_that_goes_takes_only_its_own_objects(nodes):
    data = os.urandom(48 << 20)
    digest = hashlib.sha256(data).digest()
    put(nodes["a"], "big", data)
    put(nodes["a"], "only", b"a's")
    assert hashlib.sha256(get(nodes["b"], "big")[2]).digest() == digest
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reading = pool.submit(get, nodes["c"], "big")
        os.kill(nodes["a"].process.pid, signal.SIGKILL)
        status, _, body = reading.result()
    # It came from a before the end, or from b.
    assert status == 200 and hashlib.sha256(body).digest() == digest
    eventually(lambda: get(nodes["c"], "only")[0] == 404)
    put(nodes["c"], "only", b"c's")
    assert get(nodes["b"], "only")[2] == b"c's"


def test_a_flood_of_questions_keeps_no_other_tenant_waiting(nodes):
    put(nodes["a"], "k", b"mine")
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        flood = [pool.submit(nodes["b"].call, "GET", f"/v1/objects/none/{i}", None, {"X-Fairlead-Tenant": "flooder"})
                 for i in range(600)]
        assert get(nodes["b"], "k")[2] == b"mine"
        statuses = {one.result()[0] for one in flood}
    assert statuses <= {404, 429, 503}, statuses
    assert all(member["state"] in ("alive",) for member in json.loads(nodes["b"].call("GET", "/fairlead/v1/cluster")[2])["members"]
               if member["name"])
