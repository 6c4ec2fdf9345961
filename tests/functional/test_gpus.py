"""Several GPUs behind one node: late binding to whichever is free, stickiness to where the warm instance is."""

import threading

from conftest import MISBEHAVE, eventually


def invoke_together(node, names, payload):
    """{name: device its call ran on}, all calls at once."""
    devices = {}

    def call(name):
        devices[name] = node.invoke(name, payload)[1]["X-Gpu-Device"]

    calls = [threading.Thread(target=call, args=(name,)) for name in names]
    for thread in calls:
        thread.start()
    for thread in calls:
        thread.join()
    return devices


def test_two_functions_take_two_gpus_and_stay_there(start_node):
    node = start_node("--tokens", "1", gpu_environment={"SOFTGPU_DEVICES": "2"})
    for name in ("left", "right"):
        node.deploy(name, MISBEHAVE)
    first = invoke_together(node, ["left", "right"], '{"do": "sleep", "seconds": 1}')
    assert len(set(first.values())) == 2
    for name in ("left", "right", "left", "right"):
        _, headers, _ = node.invoke(name)
        assert (headers["X-Gpu-Device"], headers["X-Gpu-Start"]) == (first[name], "warm")


def test_what_an_instance_allocates_lies_on_its_own_gpu(start_node):
    node = start_node("--tokens", "1", gpu_environment={"SOFTGPU_DEVICES": "2"})
    for name in ("left", "right"):
        node.deploy(name, MISBEHAVE)
    devices = invoke_together(node, ["left", "right"], '{"do": "sleep", "seconds": 1}')
    holder = threading.Thread(target=node.invoke, args=("right", '{"do": "hold", "bytes": 1073741824, "seconds": 2}'))
    holder.start()
    used = eventually(lambda: [index for index, gpu in enumerate(node.status()["gpus"], start=1)
                               if gpu["memory_used_bytes"] >= 1 << 30])
    holder.join()
    assert [str(index) for index in used] == [devices["right"]]
