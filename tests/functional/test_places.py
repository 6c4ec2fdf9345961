"""Quotas live: functions whose processes compete for one device have what their tags say of its time, and a node that dies leaves them
running. The software GPU runs its kernels for real here; tests/pacing has the harder cases."""

import json
import os
import signal
import threading

import pytest
from charges import LAUNCHER, computed_ms, do, function
from conftest import ROOT, eventually
from test_charges import calls_in
from test_graphs import device_servers
from test_shares import cli

from bench import shares_cut

WORK = {"kernels": 40, "rounds": 20_000}


def share(node, name):
    return function(node, name)["share"]


class Callers:
    """Callers of each function without a pause, until the end of the block."""

    def __init__(self, node, names, each=3):
        self.stop, counts = threading.Event(), dict.fromkeys(names, 0)
        self.threads = [threading.Thread(target=calls_in, args=(node, name, self.stop, {"what": "wait", **WORK}, counts))
                        for name in names for _ in range(each)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def node(start_node):
    return start_node("--slots", "4")


def deploy(node, name, **tags):
    node.deploy(name, LAUNCHER, Timeout=60, Tags={f"gpu:{key}": value for key, value in tags.items()})
    do(node, name, "wait", kernels=1)


def test_who_is_promised_two_thirds_has_most_beside_one_that_takes_what_it_gets(node):
    deploy(node, "reserved", **{"quota-request": "66"})
    deploy(node, "flood")
    with Callers(node, ["reserved", "flood"]):
        def delivered():
            told = share(node, "reserved").get("delivered_percent")
            return told is not None and told >= 45  # the callers need the processor, too

        eventually(delivered, 60)
        eventually(lambda: (share(node, "flood").get("delivered_percent") or 0) > 2, 60)  # of its instances the least


def test_a_limit_holds_on_a_device_that_is_idle_otherwise(node):
    deploy(node, "limited", **{"quota-limit": "30"})
    with Callers(node, ["limited"]):
        eventually(lambda: (share(node, "limited").get("delivered_percent") or 0) > 20, 60)
        assert share(node, "limited")["delivered_percent"] <= 36
    assert sum(computed_ms(node).values()) > 0


def set_tags(node, name, **tags):
    status, _, body = node.call("POST", f"/2017-03-31/tags/arn:aws:lambda:us-east-1:000000000000:function:{name}",
                                json.dumps({"Tags": {f"gpu:{key}": value for key, value in tags.items()}}))
    assert status in (200, 204), body


def test_a_quota_that_changes_reaches_the_instance_that_runs(node):
    deploy(node, "changing", **{"quota-limit": "20"})
    starts = node.status()["counters"]["cold_starts"]
    with Callers(node, ["changing"], each=1):
        eventually(lambda: 5 < (share(node, "changing").get("delivered_percent") or 0) <= 26, 60)
        set_tags(node, "changing", **{"quota-limit": "70"})
        eventually(lambda: (share(node, "changing").get("delivered_percent") or 0) > 30, 60)
        set_tags(node, "changing", **{"quota-limit": "20"})
        eventually(lambda: 5 < (share(node, "changing").get("delivered_percent") or 0) <= 26, 60)
    assert node.status()["counters"]["cold_starts"] == starts, "no instance was replaced"


def test_a_request_that_is_taken_away_while_a_call_runs_by_it(node):
    """A seat stays, by replicas, and has no request any more."""
    deploy(node, "changing", **{"quota-request": "30", "replicas": "1"})
    caller = threading.Thread(target=lambda: do(node, "changing", "compute", seconds=3, **WORK))
    caller.start()
    eventually(lambda: function(node, "changing")["in_flight"] == 1)
    for request in ("0", "60", "0"):
        set_tags(node, "changing", **{"quota-request": request})
    caller.join()
    assert do(node, "changing", "nothing") < 10_000
    assert node.process.poll() is None


VECTOR_ADD = ROOT / "examples/ktask/vector-add"
INPUTS = json.dumps({"inputs": {"x": [1, 2, 3, 4, 5, 6, 7, 8], "y": [10] * 8}})


def add(node, name):
    status, headers, body = node.invoke(name, INPUTS)
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)["outputs"]


def test_calls_of_kernel_tasks_wait_for_their_turns_as_programs_do(node):
    node.deploy("task", VECTOR_ADD)
    expected = add(node, "task")
    node.deploy("timed", VECTOR_ADD, Tags={"gpu:quota-request": "40", "gpu:quota-limit": "60"})
    deploy(node, "flood")
    with Callers(node, ["flood"]):
        for _ in range(30):
            assert add(node, "timed") == add(node, "task") == expected
        eventually(lambda: share(node, "timed")["gate_waits"] >= 30)
        eventually(lambda: share(node, "task")["gate_waits"] >= 30)
        assert share(node, "timed")["turns_evaded"]["named"] == 0
    node.call("DELETE", "/2015-03-31/functions/timed")
    eventually(lambda: share(node, "task").get("delivered_percent") is None)
    waited = share(node, "task")["gate_waits"]
    assert add(node, "task") == expected
    assert share(node, "task")["gate_waits"] == waited, "nobody has a quota any more"


def frames(node):
    """Of the only device; of none before somebody has a quota."""
    told = json.loads(cli(node, "--json", "frames").stdout)
    return told[0] if told else {"instances": [], "places": []}


def most_at_once(device):
    """Per cent of the SMs that were held at any one time, at most, and by how many instances."""
    edges = sorted(edge for place in device["places"] for edge in
                   ((-place["begin_us_ago"], 1, place["compute_percent"]), (-place["end_us_ago"], 0, -place["compute_percent"])))
    held = count = 0
    most = (0, 0)
    for _, begins, width in edges:  # of two at one instant the end comes first
        held, count = held + width, count + (1 if begins else -1)
        most = max(most[0], held), max(most[1], count)
    return most


@pytest.mark.parametrize(("says", "width"), [({}, 10), ({"gpu:compute-percent": "100"}, 100)], ids=["fits", "alone"])
def test_kernel_tasks_are_as_wide_as_their_kernels_unless_they_say_otherwise(start_node, tmp_path, says, width):
    """Kernels of 8 blocks are on 8 of 80 SMs: on a device that is paced such tasks run beside each other."""
    node = start_node("--slots", "8", gpu_environment={"SOFTGPU_MODE": "charge"})
    names = [f"narrow-{i}" for i in range(4)]
    for name in names:
        node.deploy(name, shares_cut.task(tmp_path / name, 0.2, 10, 8), Timeout=60, Tags=says)  # 2 ms on its 8 SMs
    node.deploy("reserved", VECTOR_ADD, Tags={"gpu:quota-request": "5"})
    with shares_cut.Load(node, names) as load:
        def are_sized():
            sizes = {one["function"]: one["compute_percent"] for one in frames(node)["instances"]}
            return all(sizes.get(name) == width for name in names)

        eventually(are_sized, 60)
        before = dict(load.calls)
        eventually(lambda: all(load.calls[name] - before[name] > 20 for name in names), 60)
        if width < 100:
            eventually(lambda: most_at_once(frames(node))[1] >= 3, 60)
        held, together = most_at_once(frames(node))
        assert held <= 100
        assert together == 1 or width < 100, "who is alone on the device is beside nobody"
    assert not load.failed


def test_a_device_server_that_ends_gives_its_places_back(node):
    node.deploy("timed", VECTOR_ADD, Tags={"gpu:quota-request": "40"})
    expected = add(node, "timed")
    for _ in range(3):
        for pid in device_servers(node):
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: node.invoke("timed", INPUTS)[0] == 200)
        assert add(node, "timed") == expected


def evaded(node, name):
    return share(node, name)["turns_evaded"]


# A process that loads no shim, and one that writes in its page that it needs no places.
@pytest.mark.parametrize("way", ["go-round", "unpace"])
def test_who_goes_round_the_shim_is_named_and_then_stopped(node, way):
    deploy(node, "reserved", **{"quota-request": "50"})
    deploy(node, "evader")
    answers = []
    event = json.dumps({"do": way, "seconds": 55, **WORK})
    evader = threading.Thread(target=lambda: answers.append(node.invoke("evader", event)))
    evader.start()
    with Callers(node, ["reserved"]):
        eventually(lambda: evaded(node, "evader")["named"] == 1, 60)
        eventually(lambda: evaded(node, "evader")["stopped"] == 1, 60)
    evader.join(60)
    status, headers, body = answers[0]
    assert "X-Amz-Function-Error" in headers and b"outside of its turns" in body, body
    assert evaded(node, "reserved") == {"named": 0, "stopped": 0, "last": ""}
    assert "; it is stopped" in node.log_path.read_text()
    assert 'fairlead_turns_evaded_total{function="evader",what="stopped"} 1' in node.call("GET", "/metrics")[2].decode()
    assert "evader computes outside of its turns" in cli(node, "status").stdout
    assert do(node, "evader", "nothing") < 10_000, "and its next call has a new instance"


def test_without_quotas_nobody_is_paced(node):
    deploy(node, "plain")
    with Callers(node, ["plain"]):
        eventually(lambda: function(node, "plain")["stats"]["service_seconds"] > 0.5, 60)
        assert share(node, "plain").get("delivered_percent") is None
    metrics = node.call("GET", "/metrics")[2].decode()
    assert 'fairlead_gate_waits_total{function="plain"} 0' in metrics
