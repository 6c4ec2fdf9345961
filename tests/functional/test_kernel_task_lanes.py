"""How many calls of kernel tasks run, and load their constants, on a GPU at the same time: what the node was told, where
programs wait, and that nobody's load keeps others from theirs."""

import contextlib
import http.client
import json
import subprocess
import threading
import time

import pytest

from conftest import BUILD, ROOT, eventually
from test_kernel_tasks import N, RAMP, affine, bundle, buffer, call, floats, launch, metric, values, vector  # noqa: F401 bundle is a fixture

KERNELS = (ROOT / "src/runtime/device_server/testing/kernels.ptx").read_text()
SPIN = {"buffers": {"y": {"role": "output", "type": "f32", "shape": [256]}},
        "kernels": [{"module": "kernels.ptx", "kernel": "spin", "grid": [1], "block": [1], "arguments": [{"buffer": "y"}]}]}


def gpu(node):
    return node.status()["gpus"][0]


def call_in_background(node, name, payload="{}"):
    def call():
        with contextlib.suppress(OSError, http.client.HTTPException):  # the node is killed before it answers
            node.invoke(name, payload)
    threading.Thread(target=call, daemon=True).start()


@pytest.fixture
def spinning(tmp_path):
    """spinning(node, count): so many kernel tasks, each of which has two calls that do not end within the test."""
    folder = tmp_path / "spin"
    folder.mkdir()
    (folder / "task.json").write_text(json.dumps(SPIN))
    (folder / "kernels.ptx").write_text(KERNELS)

    def start(node, count):
        for number in range(count):
            node.deploy(f"spin-{number}", folder, Timeout=60)
            for _ in range(2):
                call_in_background(node, f"spin-{number}")
    return start


@pytest.mark.parametrize("options, lanes", [((), 2), (("--slots", "3"), 3), (("--task-lanes", "5"), 5), (("--task-lanes", "1"), 1),
                                            (("--slots", "3", "--task-lanes", "auto"), 3)])
def test_lanes_are_what_serve_was_told_and_start_at_the_slots(start_node, options, lanes):
    node = start_node(*options)
    assert gpu(node)["task_lanes"] == lanes
    metrics = node.call("GET", "/metrics")[2].decode()
    assert [line for line in metrics.splitlines() if line.startswith("fairlead_gpu_task_lanes{")][0].endswith(f" {lanes}")


def test_more_calls_of_kernel_tasks_run_at_once_than_programs_may(start_node, spinning):
    node = start_node("--slots", "1", "--task-lanes", "3")
    spinning(node, 4)
    eventually(lambda: gpu(node)["slots_in_use"] == 3)
    node.deploy("add", BUILD / "functions/hello-cpp")
    call_in_background(node, "add", json.dumps({"n": 8}))
    eventually(lambda: gpu(node)["task_lanes"] == 1)  # a program waits
    assert gpu(node)["slots_in_use"] == 3
    node.kill()


@pytest.mark.parametrize("value", ["0", "65", "many"])
def test_a_bad_number_of_lanes_is_refused_with_its_bounds(value):
    done = subprocess.run([BUILD / "bin/fairlead", "serve", "--task-lanes", value], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert f"--task-lanes is '{value}' (command line): it must be auto, or a whole number from 1 to 64" in done.stderr


def given_up(node):
    text = node.call("GET", "/metrics")[2].decode()
    return [line for line in text.splitlines() if line.startswith("fairlead_task_loads_given_up_total")][0].endswith(" 1")


def test_a_call_whose_constants_have_come_loads_no_more(start_node, bundle):
    node = start_node("--task-memory", "3KiB")  # for constants of one of the two
    endless = {"buffers": {"w": vector("constant", file="w.bin"), "y": vector("output")},
               "kernels": [launch("accumulate", buffer("w"), buffer("y")), launch("spin", buffer("y"), block=1)]}
    node.deploy("endless", bundle("endless", endless, w_bin=floats([1] * N)), Timeout=60)
    node.deploy("other", bundle("other", affine(1, {"file": "w.bin"}), w_bin=floats([2] * N)))
    assert values(node.invoke("other", call(RAMP))) == [x + 2 for x in RAMP]
    assert metric(node, "fairlead_object_evictions_total") == 1, "what endless needs had been there"
    call_in_background(node, "endless")
    eventually(lambda: gpu(node)["slots_in_use"] == 1 and gpu(node)["task_loads"] == 0)
    assert not given_up(node), "its device server said so"
    node.kill()


def test_a_load_that_waits_for_what_never_comes_does_not_hold_up_other_tenants(start_node, bundle):
    """The attacker's call has to load constants, and its input is an output of a call that never ends. While it loads nobody
    else on the GPU may, and it would for as long as its timeout."""
    node = start_node("--task-memory", "4KiB")
    for tenant in ("attacker", "victim"):
        for k in (1, 2, 3):
            node.deploy(f"{tenant}-{k}", bundle(f"{tenant}-{k}", affine(1, {"file": "w.bin"}), w_bin=floats([k] * N)), Timeout=100,
                        Tags={"gpu:tenant": tenant})
        for k in (1, 2, 3):
            assert values(node.invoke(f"{tenant}-{k}", call(RAMP))) == [x + k for x in RAMP]
    endless = bundle("endless", {"buffers": {"y": vector("output")}, "kernels": [launch("spin", buffer("y"), block=1)]})
    node.deploy("endless", endless, Timeout=100, Tags={"gpu:tenant": "attacker"})
    call_in_background(node, "endless", json.dumps({"outputs": {"y": {"key": "never"}}}))
    eventually(lambda: gpu(node)["slots_in_use"] == 1)
    call_in_background(node, "attacker-1", json.dumps({"inputs": {"x": {"key": "never"}}}))
    eventually(lambda: gpu(node)["slots_in_use"] == 2)
    began = time.monotonic()
    assert values(node.invoke("victim-1", call(RAMP))) == [x + 1 for x in RAMP]
    print(f"the victim's call took {time.monotonic() - began:.2f} s")
    assert gpu(node)["slots_in_use"] == 2, "the attacker's calls go on"
    assert given_up(node)
    node.kill()
