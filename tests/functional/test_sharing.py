"""How functions share a GPU: MPS shares and what a client's fault does, MIG slices, D that follows the load."""

import json
import os
import pathlib
import signal
import subprocess
import threading

import pytest
from conftest import MISBEHAVE, Gate, eventually

A100 = {"SOFTGPU_PROFILE": "a100-40"}


def ask(node, name, **event):
    """What the function answers."""
    status, headers, body = node.invoke(name, json.dumps(event))
    assert status == 200 and "X-Amz-Function-Error" not in headers, (status, body)
    return json.loads(body)


class Background:
    """Calls of one function that run at the same time; answers() waits for all."""

    def __init__(self, node, name, count=1, **event):
        self.results = []
        self.threads = [threading.Thread(target=self._call, args=(node, name, event)) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def _call(self, node, name, event):
        _, headers, body = node.invoke(name, json.dumps(event))
        self.results.append((headers, json.loads(body)))

    def answers(self):
        for thread in self.threads:
            thread.join()
        return self.results


def gpu(node, index=0):
    return node.status()["gpus"][index]


def busy(node):
    return [instance for instance in node.status()["instances"] if instance["state"] == "busy"]


def mps_processes(folder):
    """Pids of MPS daemons whose pipe directory lies below `folder`."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (process / "comm").read_text().startswith("nvidia-cuda-mps"):
                environment = (process / "environ").read_bytes().split(b"\0")
                if any(entry.startswith(f"CUDA_MPS_PIPE_DIRECTORY={folder}".encode()) for entry in environment):
                    found.append(int(process.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


# ---- MPS


def test_an_mps_client_gets_its_percentage_of_the_sms_and_its_memory(start_node):
    node = start_node("--sharing", "mps")
    tags = {"gpu:compute-percent": "30", "gpu:memory-mib": "512"}
    greedy = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100", "CUDA_MPS_PIPE_DIRECTORY": "/dev/null"}
    node.deploy("narrow", MISBEHAVE, environment=greedy, Tags=tags)
    node.deploy("wide", MISBEHAVE)
    assert ask(node, "narrow", do="attributes") == {"sms": 24, "mps": 1}, "30 % of a V100's 80"
    assert ask(node, "wide", do="attributes") == {"sms": 80, "mps": 1}
    assert ask(node, "narrow", do="allocate", bytes=1 << 30)["code"] == 2, "out of memory"
    assert ask(node, "wide", do="allocate", bytes=1 << 30)["code"] == 0
    assert node.status()["sharing"] == "mps"


def test_every_gpu_has_a_daemon_of_its_own(start_node):
    node = start_node("--sharing", "mps", "--slots", "1", gpu_environment={"SOFTGPU_DEVICES": "2"})
    node.deploy("f", MISBEHAVE)
    assert len(mps_processes(node.state)) == 2
    with Gate(node) as gate:
        calls = Background(node, "f", 2, **gate.event)
        eventually(lambda: len(busy(node)) == 2)
    calls = calls.answers()
    assert {headers["X-Gpu-Device"] for headers, _ in calls} == {"1", "2"}
    assert [body for _, body in Background(node, "f", 2, do="attributes").answers()] == [{"sms": 80, "mps": 1}] * 2


def test_a_clients_fault_hits_the_others_and_the_daemon_is_restarted(start_node):
    node = start_node("--sharing", "mps")
    for name in ("victim", "culprit"):
        node.deploy(name, MISBEHAVE, Timeout=600)
    before = mps_processes(node.state)
    waiting = Background(node, "victim", do="wait", gate="never")
    eventually(lambda: b"waiting" in node.call("GET", "/fairlead/v1/functions/victim/log")[2])  # it has its context
    assert ask(node, "culprit", do="fault")["code"] != 0
    (headers, body), = waiting.answers()
    assert body["code"] != 0 and "X-Amz-Function-Error" not in headers, "it answered with the error it got"
    eventually(lambda: gpu(node)["state"] == "serving" and gpu(node)["mps_restarts"] == 1)
    # The GPU drains for milliseconds only, once nothing runs on it.
    assert "GPU 1 gets no more work: a fault of an MPS client" in node.log_path.read_text()
    assert not set(before) & set(mps_processes(node.state))
    assert ask(node, "victim", do="wait") == {"code": 0}


def test_a_daemon_that_was_killed_is_replaced(start_node):
    node = start_node("--sharing", "mps")
    node.deploy("f", MISBEHAVE)
    ask(node, "f", do="attributes")
    pid, = mps_processes(node.state)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: gpu(node)["mps_restarts"] == 1 and gpu(node)["state"] == "serving")
    assert ask(node, "f", do="attributes")["mps"] == 1


def test_a_stopped_node_leaves_no_daemon(start_node):
    node = start_node("--sharing", "mps")
    assert mps_processes(node.state)
    assert node.stop() == 0
    assert not mps_processes(node.state)


@pytest.mark.parametrize("sharing", ["mps", "none"])
def test_the_next_start_ends_the_daemon_of_a_node_that_crashed(start_node, sharing):
    node = start_node("--sharing", "mps")
    left = mps_processes(node.state)
    node.kill()
    assert mps_processes(node.state) == left, "that is what is to be cleaned"
    node = start_node("--sharing", sharing, keep_state=True)
    after = mps_processes(node.state)
    assert not set(left) & set(after) and len(after) == (1 if sharing == "mps" else 0)


# ---- MIG


def test_mig_slices_are_devices_that_run_one_invocation_each(start_node, softgpu):
    softgpu("mig", "enable", **A100)
    softgpu("mig", "create", "3g.20gb,3g.20gb", **A100)
    node = start_node("--sharing", "mig", gpu_environment=A100, keep_state=True)
    assert [device["slots"] for device in node.status()["gpus"]] == [1, 1]
    assert all(device["uuid"].startswith("MIG-") for device in node.status()["gpus"])
    assert all(19 << 30 < device["memory_total_bytes"] < 20 << 30 for device in node.status()["gpus"])
    node.deploy("f", MISBEHAVE)
    with Gate(node) as gate:
        calls = Background(node, "f", 3, **gate.event)
        eventually(lambda: len(busy(node)) == 2)
        assert sorted(device["slots_in_use"] for device in node.status()["gpus"]) == [1, 1]
    assert {headers["X-Gpu-Device"] for headers, _ in calls.answers()} == {"1", "2"}
    uuids = {ask(node, "f", do="look")["environment"]["CUDA_VISIBLE_DEVICES"] for _ in range(2)}
    assert uuids <= {device["uuid"] for device in node.status()["gpus"]}
    assert ask(node, "f", do="attributes")["sms"] == 42


def destroyed_all(softgpu):
    """False while a process that is ending has a context on a slice."""
    try:
        softgpu("mig", "destroy", "all", **A100)
    except subprocess.CalledProcessError:
        return False
    return True


def test_slices_come_and_go_while_the_node_runs(start_node, softgpu):
    softgpu("mig", "enable", **A100)
    softgpu("mig", "create", "3g.20gb", **A100)
    node = start_node("--sharing", "mig", gpu_environment=A100, keep_state=True)
    node.deploy("f", MISBEHAVE)
    [first] = node.status()["gpus"]
    assert first["slice"] == {"profile": "3g.20gb", "start": 4, "size": 4} and first["gpu_uuid"].startswith("GPU-")
    with Gate(node) as gate:
        calls = Background(node, "f", 2, **gate.event)
        eventually(lambda: len(busy(node)) == 1)
        softgpu("mig", "create", "1g.5gb", **A100)
        eventually(lambda: len(busy(node)) == 2)  # the second call waited for a device
        assert [(device["id"], device["slice"]["profile"]) for device in node.status()["gpus"]] == [(1, "3g.20gb"), (2, "1g.5gb")]
    answers = calls.answers()
    assert {headers["X-Gpu-Device"] for headers, _ in answers} == {"1", "2"}
    assert all("X-Amz-Function-Error" not in headers for headers, _ in answers)

    # The other way round; a slice with a context on it cannot be taken away.
    node.call("DELETE", "/2015-03-31/functions/f")
    eventually(lambda: not node.status()["instances"])
    eventually(lambda: destroyed_all(softgpu))
    eventually(lambda: node.status()["gpus"] == [])
    assert node.call("GET", "/healthz")[0] == 503
    softgpu("mig", "create", "2g.10gb", **A100)
    eventually(lambda: [device["id"] for device in node.status()["gpus"]] == [3])
    node.deploy("f", MISBEHAVE)
    assert ask(node, "f", do="attributes")["sms"] == 28


def test_without_slices_mig_is_refused_with_advice(start_node):
    with pytest.raises(RuntimeError, match="no MIG slice: make some"):
        start_node("--sharing", "mig")


# ---- D that follows the load


def test_slots_grow_while_the_gpu_idles_and_shrink_when_it_is_full(start_node):
    # Whether a second instance is worth its start depends on how busy this machine is; here every slot gets one.
    node = start_node("--slots", "auto:3", "--cold-duplicates")
    node.deploy("f", MISBEHAVE)
    assert gpu(node)["slots"] == 1
    with Gate(node) as gate:
        idle = Background(node, "f", 12, **gate.event)
        eventually(lambda: gpu(node)["slots"] == 3)
    idle.answers()
    # One that fills the GPU beside two that do not use it: processes that take turns leave it idle in between where the
    # processor is busy, too.
    with Gate(node) as gate:
        full = Background(node, "f", 1, do="burn", gate=gate.path.name, rounds=20_000_000)
        others = Background(node, "f", 2, **gate.event)
        eventually(lambda: gpu(node)["slots"] < 3)
    full.answers()
    others.answers()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's daemon serves many users, and only root's node has instances of many")
def test_the_daemon_serves_instances_whoever_they_are(start_node):
    """NVIDIA's serves one user at a time otherwise, which the software GPU's does not."""
    node = start_node("--sharing", "mps")
    pipes = "CUDA_MPS_PIPE_DIRECTORY=" + str(node.state / "mps/1/pipe")

    def daemons():
        found = []
        for process in pathlib.Path("/proc").iterdir():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                if words[0].endswith(b"nvidia-cuda-mps-control") and pipes.encode() in (process / "environ").read_bytes():
                    found.append(words)
            except (OSError, ValueError):
                continue
        return found

    (words,) = eventually(daemons)
    assert b"-multiuser-server" in words
