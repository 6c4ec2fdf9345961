"""How many calls of kernel tasks run on a GPU at the same time: what the node was told, and where programs wait."""

import contextlib
import http.client
import json
import subprocess
import threading

import pytest

from conftest import BUILD, ROOT, eventually

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
