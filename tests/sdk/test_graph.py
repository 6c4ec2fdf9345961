"""Graphs built in Python: what is sent, and what a run's answers become."""

import json

import pytest

import fairlead
from fairlead import Graph, GraphError
from fairlead.types import TaskError


class FakeClient:
    """Answers from a list; remembers what was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []
        self.objects = fairlead.Client().objects

    def request(self, method, path, body=None, headers=None):
        self.asked.append((method, path, body and json.loads(body)))
        return {}, json.dumps(self.answers.pop(0)).encode()


def status(state, **nodes):
    return {"run": "r1", "state": state, "nodes": nodes}


def sums():
    graph = Graph("sum", concurrency=4, deadline=60)
    made = graph.call("vectors", {"x": "{run}/x", "y": "{run}/y"}, writes=["{run}/x", "{run}/y"])
    added = graph.task("add", inputs={"x": made["{run}/x"], "y": [1, 2]}, outputs={"sum": "{run}/sum"}, retries=2)
    total = graph.call("total", {"all": [added["sum"], {"again": added.output}]}, reads=["weights"], after=[made])
    return graph, made, added, total


def test_references_become_keys_and_what_is_read():
    graph, *_ = sums()
    assert graph.description() == {
        "name": "sum", "concurrency": 4, "deadline_seconds": 60,
        "nodes": {
            "vectors": {"function": "vectors", "payload": {"x": "{run}/x", "y": "{run}/y"}, "writes": ["{run}/x", "{run}/y"]},
            "add": {"function": "add", "retries": 2,
                    "payload": {"inputs": {"x": {"key": "{run}/x"}, "y": {"values": [1, 2]}},
                                "outputs": {"sum": {"key": "{run}/sum"}}}},
            "total": {"function": "total", "payload": {"all": ["{run}/sum", {"again": "{run}/sum"}]},
                      "reads": ["{run}/sum", "weights"], "after": ["vectors"]}}}


def test_objects_that_are_there_already_are_inputs_too():
    client = FakeClient()
    graph = Graph()
    graph.call("f", [client.objects.ref("in/x")])
    graph.task("add", inputs={"x": client.objects.ref("in/y"), "y": b"\0\0\0\0"})
    nodes = graph.description()["nodes"]
    assert nodes["f"] == {"function": "f", "payload": ["in/x"], "reads": ["in/x"]}
    assert nodes["add"]["payload"]["inputs"] == {"x": {"key": "in/y"}, "y": {"base64": "AAAAAA=="}}


def test_names_are_found_and_mistakes_named():
    graph = Graph()
    steps = [graph.call("f", writes=["a", "b"]) for _ in range(3)]
    assert [step.name for step in steps] == ["f", "f-2", "f-3"]
    with pytest.raises(TaskError, match="two nodes are called f"):
        graph.call("g", name="f")
    with pytest.raises(KeyError, match="no output c; it has a, b"):
        steps[0]["c"]
    with pytest.raises(TaskError, match="2 outputs"):
        steps[0].output


def test_a_run_is_waited_for_and_read():
    graph, _, added, total = sums()
    client = FakeClient(status("running"), status("running"),
                        status("done", total={"state": "done", "result": {"total": 3}},
                               add={"state": "done", "result_base64": "/w=="}))
    run = graph.run(client, run="r1", resume=True)
    assert run.state == "running"
    assert run.wait() is run
    assert [(method, path) for method, path, _ in client.asked] == [
        ("POST", "/v1/graphs"), ("GET", "/v1/graphs/r1?wait=60"), ("GET", "/v1/graphs/r1?wait=60")]
    assert client.asked[0][2]["run"] == "r1" and client.asked[0][2]["resume"] is True
    assert run.result(total) == {"total": 3} and run.result("add") == b"\xff"
    assert run.ref(added["sum"]).key == "r1/sum"


def test_a_failed_run_says_what_failed():
    graph, _, added, _ = sums()
    failed = status("failed", add={"state": "failed", "error": "node add failed: boom"},
                    total={"state": "skipped", "error": "node total was not run: node add failed: boom"})
    run = graph.run(FakeClient(failed))
    with pytest.raises(GraphError, match="^run r1 failed: node add failed: boom$") as raised:
        run.wait()
    assert set(raised.value.failures) == {"add", "total"}
    with pytest.raises(fairlead.FunctionError, match="boom"):
        run.result(added)


def test_patience_ends():
    graph, *_ = sums()
    run = graph.run(FakeClient(status("running")))
    with pytest.raises(TimeoutError, match="r1 still runs after 0 s"):
        run.wait(timeout=0)


def test_checking_and_cancelling():
    graph, *_ = sums()
    client = FakeClient({"nodes": 3, "inputs": ["weights"]}, status("running"), status("cancelled"))
    assert graph.check(client)["inputs"] == ["weights"]
    run = graph.run(client)
    run.cancel()
    assert run.state == "cancelled"
    assert [method for method, *_ in client.asked] == ["POST", "POST", "DELETE"]
