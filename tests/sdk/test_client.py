"""The client against a node that a test made: what is sent, what is answered, what is left behind."""

import http.client
import json
import select

import numpy
import pytest
from fake_node import FakeNode

import fairlead
from fairlead import ktask
from fairlead.client import BUNDLE_LIMIT, INLINE_LIMIT, REQUEST_LIMIT
from fairlead.objects import MAPPED_FROM
from fairlead.types import TaskError


PATIENCE_S = 60


@pytest.fixture
def node(tmp_path):
    node = FakeNode(tmp_path)
    yield node
    node.stop()


@pytest.fixture
def client(node):
    with fairlead.Client(node.url, tenant="ann") as client:
        yield client


def doubling(count=6, constant=None):
    task = ktask.Task()
    x = task.input("x", "f32", (count,))
    factor = task.constant("a", numpy.full(count, 2, numpy.float32) if constant is None else constant)
    task.output("y", x * factor.part(0, count))
    return task


def ones(count=6):
    return numpy.ones(count, numpy.float32)


@pytest.mark.parametrize("upload", [False, True])
def test_a_task_is_deployed_called_and_replaced(node, client, upload):
    doubling().deploy(client, "twice", upload=upload, Timeout=7)
    numpy.testing.assert_array_equal(client.call("twice", x=ones())["y"], 2 * ones())
    doubling(constant=3 * ones()).deploy(client, "twice", upload=upload, Timeout=8)
    numpy.testing.assert_array_equal(client.call("twice", x=ones())["y"], 3 * ones())
    assert node.configurations["twice"]["Timeout"] == 8
    assert node.tenants == {"ann"}
    client.remove("twice")
    assert node.tasks == {}


def test_a_share_is_tags_also_of_a_function_that_exists(node, client):
    doubling().deploy(client, "twice", share=fairlead.Share(request=34, limit=50, replicas="1:3"), Tags={"team": "vision"})
    wanted = {"gpu:quota-request": "34", "gpu:quota-limit": "50", "gpu:compute-percent": "100", "gpu:replicas": "1:3"}
    assert node.configurations["twice"]["Tags"] == {**wanted, "team": "vision"}
    doubling().deploy(client, "twice", share=fairlead.Share(memory_mib=512))
    method, path, _, body = next(r for r in node.received if r[1].startswith("/2017-03-31/tags/"))
    assert method == "POST" and path.endswith("%3Afunction%3Atwice")
    assert json.loads(body)["Tags"] == {"gpu:quota-request": "0", "gpu:quota-limit": "100", "gpu:compute-percent": "100",
                                        "gpu:memory-mib": "512"}


def test_inputs_and_outputs_by_key(node, client):
    doubling().deploy(client, "twice")
    given = client.objects.put("in/x", ones())
    answer = client.call("twice", outputs={"y": "out/y"}, x=given)["y"]
    numpy.testing.assert_array_equal(answer.get("f32"), 2 * ones())
    numpy.testing.assert_array_equal(answer.get("f32", (2, 3)), (2 * ones()).reshape(2, 3))
    assert [entry["key"] for entry in client.objects.list("out/")] == ["out/y"]
    answer.delete()
    assert sorted(node.objects) == ["in/x"]


def test_large_arrays_travel_as_objects_which_are_gone_afterwards(node, client):
    count = INLINE_LIMIT // 4 + 1
    doubling(count).deploy(client, "twice")
    numpy.testing.assert_array_equal(client.call("twice", x=ones(count))["y"], 2 * ones(count))
    assert node.objects == {}


@pytest.mark.parametrize("shared", [True, False])
def test_a_local_client_maps_what_is_large_if_it_can(node, client, shared):
    node.memory_is_shared = shared
    data = numpy.arange(MAPPED_FROM // 8, dtype=numpy.float64)
    client.objects.put("large", data)
    client.objects.put("small", b"1")
    numpy.testing.assert_array_equal(client.objects.get("large", "f64"), data)
    assert client.objects.get("small") == b"1"
    assert node.sent == (["small"] if shared else ["large", "small"])
    assert node.objects["large"] == data.tobytes()


def test_a_list_is_whole_though_it_comes_in_pages(node, client):
    for i in range(5):
        client.objects.put(f"a/{i}", b"")
    assert [entry["key"] for entry in client.objects.list("a/")] == [f"a/{i}" for i in range(5)]


def test_a_task_runs_without_being_deployed(node, client):
    for i in range(2):
        numpy.testing.assert_array_equal(client.run_task(doubling(), x=(1 + i) * ones())["y"], 2 * (1 + i) * ones())
    assert node.requested[0] == node.requested[1], "the node knows the task again by these bytes"
    made = client.run_task(doubling(), outputs={"y": "out/y"}, timeout_seconds=7, x=client.objects.put("x", ones()))["y"]
    numpy.testing.assert_array_equal(made.get("f32"), 2 * ones())
    assert node.timeouts == [60, 60, 7] and node.tasks == {} and node.tenants == {"ann"}
    assert sorted(node.objects) == ["out/y", "x"]
    with pytest.raises(TaskError, match="wanted: x"):
        client.run_task(doubling())
    with pytest.raises(fairlead.FunctionError, match="nothing"):
        client.run_task(doubling(), x=client.objects.ref("nothing"))


def test_large_arrays_of_a_request_travel_as_objects_and_large_constants_not_at_all(node, client):
    count = INLINE_LIMIT // 4 + 1
    numpy.testing.assert_array_equal(client.run_task(doubling(count), x=ones(count))["y"], 2 * ones(count))
    assert node.objects == {}
    with pytest.raises(TaskError, match="a request takes 33554432"):
        client.run_task(doubling(constant=numpy.zeros(REQUEST_LIMIT // 4 + 1, numpy.float32)), x=ones())


def test_large_constants_become_objects(node, client):
    doubling(constant=numpy.full(BUNDLE_LIMIT // 4 + 1, 5, numpy.float32)).deploy(client, "five")
    assert list(node.objects) == ["five/constants/a.bin"]
    numpy.testing.assert_array_equal(client.call("five", x=ones())["y"], 5 * ones())


def test_a_task_of_somebody_else_is_called_by_json_or_with_its_description(node, client):
    doubling().deploy(client, "twice")
    with fairlead.Client(node.url) as other:
        assert other.call("twice", x=ones())["y"] == [2] * 6
        assert other.call("twice", outputs={"y": "y"}, x=client.objects.put("x", ones()))["y"].key == "y"
        answer = other.call("twice", task=doubling().description(), x=ones())["y"]
        numpy.testing.assert_array_equal(answer, 2 * ones())


def test_errors_say_what_the_node_said(node, client):
    with pytest.raises(fairlead.RequestError, match="404 ResourceNotFoundException: there is no function nothing"):
        client.invoke("nothing")
    with pytest.raises(fairlead.RequestError, match="409"):
        client.objects.put("k", b"1")
        client.objects.put("k", b"2")
    assert client.objects.put("k", b"3", replace=True).get() == b"3"
    client.objects.delete("none", missing_ok=True)
    doubling().deploy(client, "twice")
    with pytest.raises(fairlead.FunctionError, match="wanted: x"):
        client.invoke("twice", b'{"inputs": {}, "outputs": {}}')
    with pytest.raises(TaskError, match="wanted: x"):
        client.call("twice", z=ones())
    with pytest.raises(TaskError, match="w is no output"):
        client.call("twice", outputs={"w": "k"}, x=ones())


def test_an_event_is_accepted_and_a_closed_connection_reopened(node, client):
    node.close_after_answer = True
    for _ in range(3):
        assert client.invoke("anything", b"{}", event=True) == b""
        assert select.select([*client.pool.idle()], [], [], PATIENCE_S)[0], "the node did not close"


def test_a_timeout_costs_one_call(node, client):
    node.answer_gate.clear()
    client.pool.timeout = 0.05
    with pytest.raises(TimeoutError):
        client.invoke("anything", b"{}", event=True)
    node.answer_gate.set()
    client.pool.timeout = PATIENCE_S
    assert client.invoke("anything", b"{}", event=True) == b""


def test_a_payload_is_bytes_text_or_json_and_another_costs_one_call(node, client):
    for payload in ({"n": 1}, '{"n": 1}', b'{"n": 1}', bytearray(b'{"n": 1}')):
        client.invoke("anything", payload, event=True)
        assert node.received[-1][3] == b'{"n": 1}'
    for wrong in ({"n": {1}}, object()):
        with pytest.raises(TypeError):
            client.invoke("anything", wrong, event=True)
    with pytest.raises(TypeError):
        client.request("POST", "/v1/anything", {"a": "dict"})  # below, where only bytes travel
    assert client.invoke("anything", b"{}", event=True) == b""


def reused(node, client):
    """A connection that has carried a request, and a node that takes the next one and dies with it."""
    client.invoke("anything", b"{}", event=True)
    node.received.clear()
    node.swallow = 1


def test_what_may_run_twice_is_not_sent_twice(node, client):
    for send in (lambda: client.request("POST", "/v1/graphs", b"{}"), lambda: client.request("DELETE", "/v1/objects/x"),
                 lambda: client.invoke("anything", b"{}", event=True)):
        reused(node, client)
        with pytest.raises(http.client.RemoteDisconnected):
            send()
        assert len(node.received) == 1
        node.swallow = 0


def test_an_invocation_is_repeated_under_one_id(node, client):
    ids = []
    for _ in range(2):
        reused(node, client)
        with pytest.raises(fairlead.RequestError, match="404"):  # of the second, which is answered
            client.invoke("nothing", b"{}")
        first, second = (headers["amz-sdk-invocation-id"] for _, _, headers, _ in node.received)
        assert first and first == second
        ids.append(first)
    assert ids[0] != ids[1], "another call is another id"


def test_a_read_is_repeated(node, client):
    client.objects.put("x", ones())
    reused(node, client)
    assert client.objects.list("x")
    assert len(node.received) == 2


def test_a_url_must_be_one_of_http():
    for url in ("ftp://host", "http://"):
        with pytest.raises(ValueError, match=url):
            fairlead.Client(url)
    assert not fairlead.Client("https://host").is_local
    assert fairlead.Client("127.0.0.1:80").is_local and not fairlead.Client("http://10.0.0.9:80").is_local
