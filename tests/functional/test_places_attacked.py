"""Quotas under attack, on live nodes: who is promised time of a device has it whatever becomes of the others. tests/pacing has the patterns of
launches (300 without a wait, many streams, graphs, captures, forks) and a process that is stopped, against the pacer alone."""

import json
import os
import random
import signal
import sys
import threading
import time

import pytest
from charges import computed_ms, do, function
from conftest import ROOT, eventually
from test_graphs import device_servers
from test_places import Callers, deploy, set_tags, share

sys.path.insert(0, str(ROOT))
from bench import shares_cut  # noqa: E402

CHARGE = {"SOFTGPU_MODE": "charge"}


def answers(node, name):
    """Whether a call is answered without an error."""
    status, headers, _ = node.invoke(name, json.dumps({"do": "nothing"}))
    return status == 200 and "X-Amz-Function-Error" not in headers


def on_the_device(node):
    """Processes that the software GPU knows, but for device servers."""
    return set(computed_ms(node)) - set(device_servers(node))


def goes_on(node, name):
    """Its instance computes more than it had."""
    before = function(node, name)["stats"]["service_seconds"]
    eventually(lambda: function(node, name)["stats"]["service_seconds"] > before + 0.05)


def test_any_of_eight_is_killed_at_any_instant(start_node):
    node = start_node("--slots", "8")
    names = [f"f{i}" for i in range(8)]
    for name in names:
        deploy(node, name, **{"quota-request": "10"})
    chance, stop = random.Random(3), threading.Event()

    def call(name):  # whose instance may be killed
        while not stop.is_set():
            node.invoke(name, json.dumps({"do": "wait", "kernels": 40, "rounds": 20_000}))

    callers = [threading.Thread(target=call, args=(name,)) for name in names]
    for caller in callers:
        caller.start()
    try:
        for _ in range(8):
            time.sleep(chance.uniform(0, 0.05))  # sleep: any instant
            victim = chance.choice(sorted(eventually(lambda: on_the_device(node))))
            os.kill(victim, signal.SIGKILL)
            eventually(lambda pid=victim: pid not in on_the_device(node))
    finally:
        stop.set()
        for caller in callers:
            caller.join()
    for name in names:
        eventually(lambda name=name: answers(node, name))
        goes_on_after = function(node, name)["stats"]["service_seconds"]
        do(node, name, "wait", kernels=20, rounds=20_000)
        assert function(node, name)["stats"]["service_seconds"] >= goes_on_after
    assert node.process.poll() is None
    assert all(share(node, name)["turns_evaded"]["stopped"] == 0 for name in names), "nobody was taken for an evader"


def test_an_instance_that_is_stopped_with_a_place_holds_nobody_up(start_node):
    """Its kernels are short, so that none of them stands still on the software GPU with it."""
    node = start_node("--slots", "4")
    deploy(node, "stopped", **{"quota-request": "30"})
    (pid,) = on_the_device(node)
    deploy(node, "reserved", **{"quota-request": "40"})
    with Callers(node, ["stopped", "reserved"], each=1):
        for _ in range(3):
            goes_on(node, "stopped")
            os.kill(pid, signal.SIGSTOP)
            try:
                waits = share(node, "reserved")["gate_waits"]
                eventually(lambda before=waits: share(node, "reserved")["gate_waits"] > before)
            finally:
                os.kill(pid, signal.SIGCONT)
            goes_on(node, "reserved")
    assert answers(node, "stopped")


def test_a_node_that_is_killed_under_load_keeps_quotas_afterwards(start_node):
    node = start_node("--slots", "4")
    deploy(node, "reserved", **{"quota-request": "50"})
    deploy(node, "flood")
    stop = threading.Event()

    def call(name):
        while not stop.is_set():
            try:
                node.invoke(name, json.dumps({"do": "wait", "kernels": 40, "rounds": 20_000}))
            except OSError:
                return  # the node is gone

    callers = [threading.Thread(target=call, args=(name,)) for name in ("reserved", "flood") for _ in range(2)]
    for caller in callers:
        caller.start()
    eventually(lambda: (share(node, "reserved").get("delivered_percent") or 0) > 20)
    node.kill()
    stop.set()
    for caller in callers:
        caller.join()
    node = start_node("--slots", "4", keep_state=True)
    with Callers(node, ["reserved", "flood"], each=2):
        eventually(lambda: (share(node, "reserved").get("delivered_percent") or 0) > 20)
    assert answers(node, "reserved") and answers(node, "flood")


def test_shares_that_change_without_end_while_everybody_computes(start_node):
    node = start_node("--slots", "4")
    names = ["a", "b", "c"]
    for name in names:
        deploy(node, name, **{"quota-request": "20"})
    chance = random.Random(5)
    with Callers(node, names, each=1):
        for _ in range(30):
            set_tags(node, chance.choice(names), **{"quota-request": str(chance.randint(0, 30)), "quota-limit": str(chance.randint(31, 100))})
        for name in names:
            goes_on(node, name)
    assert all(answers(node, name) for name in names)
    assert all(share(node, name)["turns_evaded"]["named"] == 0 for name in names)


# ---- kernel tasks whose calls are launched piece by piece


def long_task(folder, kernel_ms=60):
    return shares_cut.task(folder, kernel_ms, 1, 256_000)


def call_task(node, name):
    status, headers, body = node.invoke(name, "{}")
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)["outputs"]


@pytest.fixture
def beside_long(start_node, tmp_path):
    """A node whose device has a reserved task, and long ones that may be cut and may not; all were called once."""
    node = start_node("--slots", "4", gpu_environment=CHARGE)
    node.deploy("reserved", shares_cut.task(tmp_path / "reserved", 1, 4, 2560), Timeout=60,
                Tags={"gpu:quota-request": "34", "gpu:replicas": "1"})
    node.deploy("long", long_task(tmp_path / "long"), Timeout=60)
    node.deploy("whole", long_task(tmp_path / "whole"), Timeout=60, Tags={"gpu:cut-kernels": "false"})
    for name in ("reserved", "long", "whole"):
        call_task(node, name)
    return node


class Busy(shares_cut.Load):
    """The reserved task has a call all the time."""

    def __init__(self, node):
        super().__init__(node, ["reserved"])


def places_of_a_call(node, name):
    before = share(node, name)["gate_waits"]
    call_task(node, name)
    return share(node, name)["gate_waits"] - before


def test_a_long_kernel_gives_its_place_back_in_between_and_one_that_is_whole_does_not(beside_long):
    node = beside_long
    with Busy(node):
        eventually(lambda: places_of_a_call(node, "long") >= 4)
        assert places_of_a_call(node, "whole") <= 2
    set_tags(node, "reserved", **{"quota-request": "0"})
    waited = share(node, "long")["gate_waits"]
    call_task(node, "long")
    assert share(node, "long")["gate_waits"] == waited, "nobody has a quota any more"


def test_a_device_server_that_is_killed_between_two_pieces(beside_long):
    """A call that was alone on the device may be taken for the cause, and fails; what the next ones get is right, and in pieces again."""
    node = beside_long
    expected, chance = call_task(node, "long"), random.Random(9)
    with Busy(node):
        for _ in range(3):
            got = []
            caller = threading.Thread(target=lambda into=got: into.append(node.invoke("long", "{}")))
            before = share(node, "long")["gate_waits"]
            caller.start()
            eventually(lambda waits=before: share(node, "long")["gate_waits"] > waits)
            time.sleep(chance.uniform(0, 0.02))  # sleep: any instant
            for pid in device_servers(node):
                os.kill(pid, signal.SIGKILL)
            caller.join()
            assert got[0][0] == 200 and ("X-Amz-Function-Error" in got[0][1] or json.loads(got[0][2])["outputs"] == expected)
            assert call_task(node, "long") == expected
        eventually(lambda: places_of_a_call(node, "long") >= 4)


def test_a_long_function_that_is_deleted_in_the_middle_of_a_call(beside_long):
    node = beside_long
    with Busy(node) as busy:
        eventually(lambda: places_of_a_call(node, "long") >= 4)
        caller = threading.Thread(target=lambda: node.invoke("long", "{}"))
        before = share(node, "long")["gate_waits"]
        caller.start()
        eventually(lambda: share(node, "long")["gate_waits"] > before)
        node.call("DELETE", "/2015-03-31/functions/long")
        caller.join()
        calls = busy.calls["reserved"]
        eventually(lambda: busy.calls["reserved"] > calls + 3)
    assert not busy.failed
    call_task(node, "whole")
