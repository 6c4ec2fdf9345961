"""Policies that choose the GPU too, on a live node: functions and kernel tasks on two GPUs."""

import threading

import pytest

from conftest import MISBEHAVE
from test_kernel_tasks import N, RAMP, affine, bundle, call, floats, values  # noqa: F401 bundle is a fixture

TWO_GPUS = {"SOFTGPU_DEVICES": "2"}


@pytest.mark.parametrize("policy", ["resident-window", "cfs-affinity", "exclusive"])
def test_kernel_tasks_and_functions_are_served(start_node, bundle, policy):
    # 8 KiB: constants of one task go when the next one's come.
    node = start_node("--policy", policy, "--over-run", "0.1", "--slots", "2", "--task-memory", "8KiB", gpu_environment=TWO_GPUS)
    for k in range(1, 7):
        node.deploy(f"task-{k}", bundle(f"task-{k}", affine(k, {"file": "w.bin"}), w_bin=floats([k] * N)))
    node.deploy("function", MISBEHAVE)
    wrong = []

    def call_task(k):
        for _ in range(10):
            if values(node.invoke(f"task-{k}", call(RAMP))) != [k * x + k for x in RAMP]:
                wrong.append(k)

    def call_function():
        for _ in range(10):
            if node.invoke("function")[0] != 200:
                wrong.append("function")

    clients = [threading.Thread(target=call_task, args=(k,)) for k in range(1, 7)] + [threading.Thread(target=call_function)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(120)
    assert not any(client.is_alive() for client in clients) and not wrong


def test_exclusive_gives_a_gpu_to_one_function_at_a_time(start_node):
    node = start_node("--policy", "exclusive")
    for name in ("left", "right"):
        node.deploy(name, MISBEHAVE)
    starts = [node.invoke(name)[1]["X-Gpu-Start"] for name in ("left", "left", "right", "right", "left")]
    assert starts == ["cold", "device-warm", "cold", "device-warm", "cold"]
