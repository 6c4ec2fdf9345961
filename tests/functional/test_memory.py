"""Device memory that follows the queues: functions that know nothing of it keep their memory between invocations, lose
none of it when it leaves the device, and hold no more than they may."""

import os
import pathlib
import signal
import threading

import pytest

from conftest import BUILD, ROOT, eventually
from hoard import HOARD, ask, function

MIB = 1 << 20
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
SMALL_GPU = {"SOFTGPU_PROFILE": "v100-16", "SOFTGPU_MEMORY_SCALE": "16"}  # 1 GiB

pytestmark = pytest.mark.skipif(not (BUILD / "lib/libfairlead-shim.so").exists(), reason="the shim is not built")


def gpu_used(node):
    return node.status()["gpus"][0]["memory_used_bytes"]


def shim_connections(node):
    """How many connections of shims the node has."""
    own = set()
    for descriptor in pathlib.Path(f"/proc/{node.process.pid}/fd").iterdir():
        try:
            own.add(os.readlink(descriptor))
        except OSError:
            continue
    rows = [line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]]
    return sum(len(row) > 7 and row[5] == "03" and row[7].endswith("shim.sock") and f"socket:[{row[6]}]" in own
               for row in rows)


def counters(node):
    return node.status()["counters"]


def test_a_function_knows_nothing_of_its_eviction(start_node):
    node = start_node("--slots", "1", gpu_environment={**SMALL_GPU, "SOFTGPU_MEMORY_SCALE": "64"})  # 256 MiB
    for name in ("first", "second"):
        node.deploy(name, HOARD, Tags={"gpu:memory-mib": "175"})
    held, start = ask(node, "first", do="hold", mib=150)
    assert start == "cold"
    ask(node, "second", do="hold", mib=150)
    for _ in range(3):
        for name in ("first", "second"):
            checked, start = ask(node, name, do="check")
            assert checked["lost"] == [] and checked["blocks"] == 1
            assert start == "host-warm"
    assert ask(node, "first", do="check")[0]["pid"] == held["pid"]
    assert counters(node)["cold_starts"] == 2
    assert counters(node)["memory"]["swap_failures"] == 0


def test_held_memory_is_reported_without_the_functions_help(start_node):
    node = start_node(gpu_environment=SMALL_GPU)
    node.deploy("hoard", HOARD)
    ask(node, "hoard", do="hold", mib=64)
    memory = function(node, "hoard")["memory"]
    assert memory["held_bytes"] == 64 * MIB
    assert memory["resident_bytes"] >= 64 * MIB
    ask(node, "hoard", do="free")
    assert function(node, "hoard")["memory"]["held_bytes"] == 0


def test_use_returns_to_zero_when_an_instance_is_killed(start_node):
    node = start_node(gpu_environment=SMALL_GPU)
    node.deploy("hoard", HOARD)
    ask(node, "hoard", do="hold", mib=256)
    eventually(lambda: gpu_used(node) >= 256 * MIB)
    os.kill(pid_of_function(node), signal.SIGKILL)
    eventually(lambda: function(node, "hoard")["memory"]["held_bytes"] == 0)
    eventually(lambda: gpu_used(node) < 64 * MIB)
    checked, start = ask(node, "hoard", do="check")
    assert (checked["blocks"], start) == (0, "cold")


def pid_of_function(node):
    """The one process below the node that runs the function's program."""
    for process in pathlib.Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
        except (OSError, ValueError):
            continue
        if b"/var/task/bootstrap" in command and os.fsencode(str(node.home)) in environment:
            return int(process.name)
    raise AssertionError("no process of the function")


def test_the_cap_is_the_drivers_own_out_of_memory(start_node):
    node = start_node(gpu_environment=SMALL_GPU)
    node.deploy("capped", HOARD, Tags={"gpu:memory-mib": "128"})
    info = ask(node, "capped", do="info")[0]
    assert info["total"] == 128 * MIB
    assert ask(node, "capped", do="allocate", mib=129)[0]["code"] == OUT_OF_MEMORY
    assert ask(node, "capped", do="allocate", mib=100)[0]["code"] == 0
    ask(node, "capped", do="hold", mib=100)
    assert ask(node, "capped", do="allocate", mib=29)[0]["code"] == OUT_OF_MEMORY
    assert ask(node, "capped", do="info")[0]["free"] == 28 * MIB


def test_a_flow_is_charged_gpu_time_not_the_time_on_the_clock(start_node):
    node = start_node(gpu_environment=SMALL_GPU)
    node.deploy("sleeper", HOARD)
    ask(node, "sleeper", do="work", launches=1, seconds=0)
    before = function(node, "sleeper")["stats"]["service_seconds"]
    ask(node, "sleeper", do="work", launches=20, seconds=1.5)
    charged = function(node, "sleeper")["stats"]["service_seconds"] - before
    assert 0.1 < charged < 0.75  # at least a tenth of the wall time


def test_metrics_tell_what_the_shim_counts(start_node):
    node = start_node(gpu_environment=SMALL_GPU)
    node.deploy("worker", HOARD)
    ask(node, "worker", do="work", launches=20, seconds=0)
    metrics = node.call("GET", "/metrics")[2].decode()
    assert 'fairlead_kernel_launches_total{function="worker"} 20\n' in metrics
    assert 'fairlead_shim_doubts_total{function="worker",what="call"} 0\n' in metrics
    assert 'fairlead_shim_doubts_total{function="worker",what="entry_point"} 0\n' in metrics


def test_many_functions_share_memory_for_a_few(start_node, tmp_path):
    """24 functions, memory for 8: after its first call none starts cold again, and none loses a byte."""
    # Contexts cannot leave and are in nobody's books: small ones, and all made before memory is short.
    profile = (ROOT / "softgpu/profiles/v100-16.profile").read_text().replace("context_mib = 300", "context_mib = 32")
    (tmp_path / "small.profile").write_text(profile)
    gpu = {"SOFTGPU_PROFILE": str(tmp_path / "small.profile"), "SOFTGPU_MEMORY_SCALE": "32"}  # 512 MiB
    node = start_node("--slots", "2", gpu_environment=gpu)
    names = [f"f{number:02}" for number in range(24)]
    for name in names:
        node.deploy(name, HOARD, MemorySize=128, Tags={"gpu:memory-mib": "50"})
        ask(node, name, do="info")
    for name in names:
        ask(node, name, do="hold", mib=48)
    lost = []

    def check(some):
        for name in some:
            lost.append(ask(node, name, do="check")[0]["lost"])

    for _ in range(2):
        callers = [threading.Thread(target=check, args=(names[i::4],)) for i in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert lost == [[]] * 48
    assert counters(node)["cold_starts"] == len(names)
    assert sum(function(node, name)["memory"]["held_bytes"] for name in names) == 24 * 48 * MIB


def test_without_the_backend_memory_stays_and_is_still_counted(start_node):
    node = start_node("--memory-backend", "none", gpu_environment=SMALL_GPU)
    node.deploy("hoard", HOARD)
    ask(node, "hoard", do="hold", mib=64)
    memory = function(node, "hoard")["memory"]
    assert memory["held_bytes"] == memory["resident_bytes"] == memory["fixed_bytes"] == 64 * MIB


def test_a_cut_socket_neither_hangs_the_function_nor_loses_its_memory(start_node):
    # A function waits some seconds for room: little has to be moved for it, so that a busy machine moves it in time.
    node = start_node("--slots", "1", gpu_environment={**SMALL_GPU, "SOFTGPU_MEMORY_SCALE": "128"})  # 128 MiB
    for name in ("first", "second"):
        node.deploy(name, HOARD)
        ask(node, name, do="hold", mib=75)
    connected = shim_connections(node)
    assert ask(node, "first", do="cut")[0]["count"] == 1
    eventually(lambda: shim_connections(node) == connected)  # again; until then its memory cannot be moved, only stopped
    for name in ("second", "first", "second", "first"):
        assert ask(node, name, do="check")[0]["lost"] == []
    assert counters(node)["cold_starts"] == 2


@pytest.mark.parametrize("host_memory", ["0", "64MiB"])
def test_little_host_memory_loses_nothing(start_node, host_memory):
    """What does not fit into the node's host memory goes to the function's own, or stays where it is."""
    node = start_node("--slots", "1", "--host-memory", host_memory, gpu_environment=SMALL_GPU)
    for name in ("first", "second"):
        node.deploy(name, HOARD, MemorySize=2048)
        ask(node, name, do="hold", mib=300)
    for name in ("first", "second", "first"):
        assert ask(node, name, do="check")[0]["lost"] == []
