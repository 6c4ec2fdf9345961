"""What fairlead.ray decides, and what it reads: without Ray, a node or a clock."""

import json
import pickle
import subprocess
import sys

import numpy
import pytest
from sdk_paths import ROOT

from fairlead import FunctionError, RequestError, ktask
from fairlead.ktask import wire
from fairlead.ray import cluster_file, routing
from fairlead.ray.bundle import bundle_of, with_constants
from fairlead.ray.cluster_file import ClusterFileError
from fairlead.ray.device import DeviceRef
from fairlead.ray.plan import NodeView, Step, Tending, next_replacement
from fairlead.types import TaskError


# ---- where a call goes

def test_calls_of_a_task_stay_at_one_node_until_that_one_has_much_more_to_do():
    loads = dict.fromkeys("abcd", 10)
    home = routing.choose("task", loads)
    assert {routing.choose("task", {**loads, home: load}) for load in range(16)} == {home}
    assert routing.choose("task", {**loads, home: 60}) == routing.order_of("task", list("abcd"))[1]
    assert routing.choose("task", dict.fromkeys("abcd", 10_000)) == home


def test_tasks_are_spread_and_a_node_that_goes_moves_only_its_own():
    homes = {key: routing.choose(str(key), dict.fromkeys("abcd", 0)) for key in range(1000)}
    assert all(200 < list(homes.values()).count(node) < 300 for node in "abcd")
    without = {key: routing.choose(str(key), dict.fromkeys("abc", 0)) for key in range(1000)}
    assert all(without[key] == home for key, home in homes.items() if home != "d")


def test_an_input_draws_its_call_to_it_while_its_node_is_there():
    loads = {"a": 0, "b": 500}
    assert routing.choose("task", loads, "b") == "b"
    assert routing.choose("task", {"a": 0}, "b") == "a"


# ---- what a supervisor does

def test_a_node_that_lacks_is_started_at_once_and_then_ever_later():
    tending, starts = Tending(), []
    for now in range(100):
        if tending.step(now, False, "", False) is Step.START:
            starts.append(now)
    assert starts == [0, 1, 3, 7, 15, 31, 61, 91]
    assert tending.step(100, True, "ok", False) is Step.NOTHING
    assert tending.step(101, False, "", False) is Step.START, "one that served is started at once"


def test_a_node_is_killed_when_it_was_silent_three_times_in_a_row():
    tending = Tending()
    said = ["", "", "ok", "", "", "draining", "", "", ""]
    assert [tending.step(now, True, word, False) for now, word in enumerate(said)] == [Step.NOTHING] * 8 + [Step.KILL]
    assert tending.step(9, True, "", False) is Step.NOTHING, "the kill has its time"


def test_a_drained_node_is_not_started():
    tending = Tending()
    assert [tending.step(now, False, "", True) for now in range(5)] == [Step.NOTHING] * 5
    assert tending.step(5, False, "", False) is Step.START


# ---- which node is replaced

def view(name, state="serving", wants=False, peers=None):
    return NodeView(name, state, wants_replacement=wants, peers=peers)


def test_nodes_are_replaced_one_at_a_time_and_only_while_all_others_serve():
    assert next_replacement([view("a"), view("b", wants=True), view("c", wants=True)]) == "b"
    assert next_replacement([view("a"), view("b")]) is None
    for state in ("starting", "draining", "down", "silent", "unreachable", "no GPU serves"):
        assert next_replacement([view("a", state), view("b", wants=True)]) is None
        assert next_replacement([view("b", state, wants=True)]) is None
    assert next_replacement([view("a", "drained"), view("b", wants=True)]) == "b"
    assert next_replacement([view("a", "drained", wants=True)]) is None


def test_the_next_waits_until_all_have_heard_that_the_last_is_back():
    heard, not_heard = {"a": "alive", "b": "alive"}, {"a": "dead", "b": "alive"}
    assert next_replacement([view("a", peers=heard), view("b", wants=True, peers=heard)]) == "b"
    assert next_replacement([view("a", peers=heard), view("b", wants=True, peers=not_heard)]) is None
    stranger = {**heard, "z": "dead"}
    assert next_replacement([view("a", peers=stranger), view("b", wants=True, peers=stranger)]) == "b", "no node of the file"


# ---- cluster.toml

GOOD = {"cluster": {"key": "/k"}, "node": {"program": "/p", "state": "/s", "serve": {"slots": 4}},
        "nodes": {"a": {"address": "https://10.0.0.1:9001"}, "b": {"address": "http://b:1/", "start": "never", "serve": {"slots": 5}}}}


def test_a_file_becomes_nodes_that_know_each_other():
    places = cluster_file.of(GOOD).places
    assert [places[name].spec.settings["slots"] for name in "ab"] == [4, 5]
    assert places["a"].spec.settings["peer"] == ["https://10.0.0.1:9001", "http://b:1"]
    assert places["a"].spec.settings["listen"] == ["10.0.0.1:9001"] and places["b"].spec.start == "never"
    text = places["a"].spec.configuration()
    assert 'node-name = "a"\n' in text and 'state = "/s"\n' in text and 'cluster-key = "/k"\n' in text and "drain = 30\n" in text
    assert places["a"].spec.configuration_path() != cluster_file.of({**GOOD, "node": {"state": "/s"}}).places["a"].spec.configuration_path()
    alone = cluster_file.of({"nodes": {"a": {"address": "http://127.0.0.1:1"}}}).places["a"].spec
    assert "peer" not in alone.settings and alone.state == "/var/lib/fairlead"


@pytest.mark.parametrize("change, said", [
    ({"nodes": {}}, "nodes has 0 nodes, 1 to 64"),
    ({"cluster": {}}, "cluster.key is missing"),
    ({"clutser": {}}, "the file has 'clutser', which is not known; known are cluster, node, nodes"),
    ({"cluster": {"key": 3}}, "cluster.key is 3, str is wanted"),
    ({"node": {"address": "x"}}, "node has 'address'"),
    ({"node": {"drain": True}}, "node.drain is True"),
    ({"nodes": {"a": {}}}, "nodes.a.address is missing"),
    ({"nodes": {"a": {"address": "10.0.0.1:9001"}}}, "nodes.a.address is '10.0.0.1:9001', one like"),
    ({"nodes": {"a": {"address": "http://u:p@h:1"}}}, "nodes.a.address"),
    ({"nodes": {"a": {"address": "http://h:99999"}}}, "nodes.a.address"),
    ({"nodes": {"a/b": {"address": "http://h:1"}}}, "nodes has 'a/b'"),
    ({"nodes": {"a": {"address": "http://h:1", "start": "maybe"}}}, "nodes.a.start is 'maybe', one of detached, systemd, never"),
    ({"nodes": {"a": {"address": "http://h:1", "drain": -1}}}, "nodes.a.drain is -1, 0 to 3600"),
    ({"nodes": {"a": {"address": "http://h:1", "state": "s"}}}, "nodes.a.state is 's', an absolute path of at most 93 bytes"),
    ({"nodes": {"a": {"address": "http://h:1", "state": "/" + "s" * 93}}}, "nodes.a.state"),
    ({"nodes": {"a": {"address": "http://h:1", "serve": {"peer": []}}}}, "nodes.a.serve has 'peer', which follows"),
    ({"nodes": {"a": {"address": "http://h:1", "serve": {"x": {}}}}}, "nodes.a.serve.x is {}"),
    ({"nodes": {"a": {"address": "http://h:1", "environment": {"X": 1}}}}, "nodes.a.environment.X is 1"),
    ({"nodes": {"a": {"address": "http://h:1"}, "b": {"address": "http://h:1/"}}}, "the same address"),
    ({"nodes": {"a": {"address": "http://h:1"}, "b": {"address": "http://h:2"}}}, "nodes.a and nodes.b of h have the same state folder, /s"),
])
def test_what_is_wrong_in_the_file_is_named(change, said):
    with pytest.raises(ClusterFileError) as refused:
        cluster_file.of({**GOOD, **change})
    assert said in str(refused.value)


def test_the_example_is_such_a_file(tmp_path):
    assert list(cluster_file.read(ROOT / "examples/ray/cluster.toml").places) == ["a", "b", "c"]
    (tmp_path / "x.toml").write_text("[cluster\n")
    with pytest.raises(ClusterFileError, match="x.toml"):
        cluster_file.read(tmp_path / "x.toml")


# ---- what travels

def a_task(weight=1):
    task = ktask.Task()
    x, w = task.input("x", "f32", (4,)), task.constant("w", numpy.full(4, weight, "f4"))
    task.output("y", task.add(x, w))
    return task


def test_a_bundle_is_the_same_from_a_task_and_from_its_folder(tmp_path):
    made, read = bundle_of(a_task()), bundle_of(a_task().save(tmp_path / "task"))
    assert made.digest == read.digest and list(made.inputs) == ["x"] and made.outputs["y"].bytes == 16
    assert pickle.loads(pickle.dumps(made)).digest == made.digest
    other = a_task()
    other.constant("unused", numpy.ones(1, "f4"))
    assert bundle_of(other).digest != made.digest
    assert bundle_of(a_task(2)).digest != made.digest, "other contents are another task"


def test_a_constant_that_is_an_object_becomes_one_that_travels():
    task = ktask.Task()
    x, w = task.input("x", "f32", (4,)), task.constant("w", key="weights", type="f32", shape=(4,))
    task.output("y", task.add(x, w))
    whole = with_constants(bundle_of(task), {"w": b"\0" * 16})
    assert whole.description["buffers"]["w"]["file"] in whole.constants and "key" not in whole.description["buffers"]["w"]


@pytest.mark.parametrize("description", [{"buffers": {"w": {"role": "constant", "file": "../secret"}}, "kernels": []},
                                         {"buffers": {}, "kernels": [{"module": "/etc/passwd"}]}])
def test_a_folder_gives_no_file_from_outside_of_it(tmp_path, description):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "task").mkdir()
    (tmp_path / "task/task.json").write_text(json.dumps(description))
    with pytest.raises(TaskError, match="which is not in the folder"):
        bundle_of(tmp_path / "task")


def test_a_request_in_two_parts_is_the_request():
    files, call = {"m.ptx": b"code", "c.bin": numpy.ones(300, "u1")}, b"c" * 200
    assert wire.encode_request("{}", files, call, 7) == wire.with_call(wire.request_head("{}", files, 7), call)


def test_errors_and_references_come_back_as_they_were():
    for error in (RequestError(404, "NotFound", "no such"), FunctionError(b"\xff")):
        back = pickle.loads(pickle.dumps(error))
        assert str(back) == str(error) and vars(back) == vars(error)
    ref = DeviceRef("a", "f" * 56, "/var/lib/fairlead", "default", "ray/x", "f32", (1000, 1000))
    assert len(pickle.dumps(ref)) < 400 and ref.bytes == 4_000_000 and pickle.loads(pickle.dumps(ref)) == ref


def test_ray_is_imported_when_it_is_used_and_its_lack_is_said():
    program = ("import sys; sys.modules['ray'] = None; import fairlead, fairlead.ray as fr, fairlead.ray.calls, fairlead.ray.controller\n"
               "try: fr.function('f').remote(b'')\nexcept ImportError as error: print(error)")
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True)
    assert "pip install 'fairlead[ray]'" in done.stdout, done.stderr

