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

WORK = {"kernels": 40, "rounds": 20_000}


def share(node, name):
    return function(node, name)["share"]


class Callers:
    """Three callers of each function without a pause, until the end of the block."""

    def __init__(self, node, names):
        self.stop, counts = threading.Event(), dict.fromkeys(names, 0)
        self.threads = [threading.Thread(target=calls_in, args=(node, name, self.stop, {"what": "wait", **WORK}, counts))
                        for name in names for _ in range(3)]

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
