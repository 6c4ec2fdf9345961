"""Device memory that leaves with the whole process, by the driver's checkpoints: functions lose nothing, start cold once, and
their contexts leave, too."""

import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest

from conftest import BUILD, ROOT, eventually
from hoard import HOARD, ask, function

MIB = 1 << 20
GPU = {"SOFTGPU_PROFILE": "v100-16", "SOFTGPU_MEMORY_SCALE": "32"}  # 512 MiB, a context is 10
FUNCTIONS, MIB_EACH = 4, 384  # three times the device

pytestmark = pytest.mark.skipif(not (BUILD / "lib/libfairlead-shim.so").exists(), reason="the shim is not built")


@pytest.fixture
def node(start_node):
    return start_node("--slots", "1", "--memory-backend", "checkpoint", gpu_environment=GPU)


def memory(node):
    return node.status()["counters"]["memory"]


def gpu_used(node):
    return node.status()["gpus"][0]["memory_used_bytes"]


def fill(node, count=FUNCTIONS):
    """Functions that hold MIB_EACH each; {name: pid}."""
    pids = {}
    for number in range(count):
        name = f"f{number}"
        node.deploy(name, HOARD, MemorySize=1024, Tags={"gpu:memory-mib": str(MIB_EACH)})
        answer, start = ask(node, name, do="hold", mib=MIB_EACH)
        assert start == "cold"
        pids[name] = answer["pid"]
    return pids


def pids_of_functions(node):
    """The processes below the node that run a function's program, as this namespace numbers them."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
        except (OSError, ValueError):
            continue
        if b"/var/task/bootstrap" in command and os.fsencode(str(node.home)) in environment:
            found.append(int(process.name))
    return found


def test_functions_share_a_device_for_a_third_of_them(node):
    pids = fill(node)
    for _ in range(2):
        for name, pid in pids.items():
            checked, start = ask(node, name, do="check")
            assert (checked["lost"], checked["blocks"], checked["pid"], start) == ([], 1, pid, "host-warm")
    assert node.status()["counters"]["cold_starts"] == FUNCTIONS
    assert memory(node)["swap_failures"] == 0
    assert sum(function(node, name)["memory"]["held_bytes"] for name in pids) == FUNCTIONS * MIB_EACH * MIB


def test_a_restore_is_not_tried_where_another_program_leaves_no_room(node):
    """What functions hold would fit, their contexts do not. A restore that finds the device full would be its process's last."""
    gpu = {**os.environ, **node.gpu_environment, "LD_LIBRARY_PATH": str(BUILD / "lib/softgpu")}
    ballast = [sys.executable, ROOT / "harness/hardware/device.py", "ballast", str(320 * MIB)]
    with subprocess.Popen(ballast, env=gpu, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline().strip() == "ready"
        names = ("f0", "f1")
        for name in names:
            node.deploy(name, HOARD, MemorySize=1024, Tags={"gpu:memory-mib": "190"})
            assert ask(node, name, do="hold", mib=182)[1] == "cold"
        for _ in range(3):
            for name in names:
                assert ask(node, name, do="check")[0]["lost"] == []
        assert node.status()["counters"]["cold_starts"] == len(names)
        assert "is not known" not in node.log_path.read_text()
        other.stdin.close()


def test_callers_at_the_same_time_lose_nothing(node):
    pids = fill(node)
    wrong = []

    def call(name):
        for _ in range(3):
            checked, _ = ask(node, name, do="check")
            if checked["lost"] or checked["pid"] != pids[name]:
                wrong.append(checked)

    callers = [threading.Thread(target=call, args=(name,)) for name in pids]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
    assert node.status()["counters"]["cold_starts"] == FUNCTIONS


def test_a_process_leaves_whole(node):
    fill(node, 2)
    first = function(node, "f0")["memory"]
    assert first["resident_bytes"] == 0
    assert first["away_bytes"] > MIB_EACH * MIB  # its context, too
    eventually(lambda: gpu_used(node) < (MIB_EACH + 16) * MIB)  # the second's alone


def test_kill_while_checkpointed(node):
    pids = fill(node, 2)
    before = pids_of_functions(node)
    assert len(before) == 2
    ask(node, "f1", do="check")
    for pid in before:  # of two, the one that is away: the other is killed on the device
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: gpu_used(node) < 16 * MIB)
    eventually(lambda: function(node, "f0")["memory"]["held_bytes"] == 0)
    for name in pids:
        checked, start = ask(node, name, do="check")
        assert (checked["blocks"], start) == (0, "cold")
        ask(node, name, do="hold", mib=MIB_EACH)
    before = node.status()["counters"]["memory"]["swap_ins"]
    for name in pids:  # one of them is away; memory that is called often may be back before its call
        checked, start = ask(node, name, do="check")
        assert (checked["lost"], checked["blocks"]) == ([], 1)
        assert start in ("host-warm", "device-warm")
    assert node.status()["counters"]["memory"]["swap_ins"] > before


def test_memory_that_is_shared_stays_and_its_instance_makes_room(node):
    """The driver does not checkpoint who shares memory; nobody waits for it."""
    fill(node, 1)
    ask(node, "f0", do="export")
    node.deploy("other", HOARD, MemorySize=1024, Tags={"gpu:memory-mib": str(MIB_EACH)})
    ask(node, "other", do="hold", mib=MIB_EACH)
    assert memory(node)["swap_failures"] >= 1
    checked, start = ask(node, "other", do="check")
    assert (checked["lost"], checked["blocks"], start) == ([], 1, "device-warm")
    assert ask(node, "f0", do="check")[1] == "cold"


def test_a_call_of_the_driver_waits_for_what_is_away(node):
    """cuMemGetInfo, which no shim holds back: the process stands still, and goes on with its invocation."""
    fill(node, 2)
    assert ask(node, "f0", do="info")[0]["total"] > 0
    assert ask(node, "f0", do="check")[0]["lost"] == []
