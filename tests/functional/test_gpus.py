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
        assert (headers["X-Gpu-Device"], headers["X-Gpu-Start"]) == (first[name], "device-warm")


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


# ---- a GPU that fails


def device_state(node, index):
    return node.status()["gpus"][index - 1]["state"]


def devices_used(node, names):
    return set(invoke_together(node, names, '{"do": "sleep", "seconds": 0.5}').values())


def test_a_lost_gpu_is_left_out_until_it_is_back(start_node, softgpu):
    node = start_node("--tokens", "1", gpu_environment={"SOFTGPU_DEVICES": "2"})
    names = ["left", "right"]
    for name in names:
        node.deploy(name, MISBEHAVE)
    assert devices_used(node, names) == {"1", "2"}
    softgpu("fault", "lost", "--gpu", "0")
    eventually(lambda: device_state(node, 1) != "serving")
    assert devices_used(node, names) == {"2"}
    softgpu("fault", "clear", "--gpu", "0")
    eventually(lambda: device_state(node, 1) == "serving")
    assert devices_used(node, names) == {"1", "2"}


def test_a_critical_xid_replaces_the_instances_of_its_gpu(start_node, softgpu):
    node = start_node("--tokens", "1")
    node.deploy("f", MISBEHAVE)
    running = threading.Thread(target=node.invoke, args=("f", '{"do": "wait", "seconds": 2}'))
    running.start()
    eventually(lambda: any(instance["state"] == "busy" for instance in node.status()["instances"]))
    first, = (instance["id"] for instance in node.status()["instances"])
    softgpu("fault", "xid", "48")
    eventually(lambda: device_state(node, 1) == "draining")
    assert [instance["id"] for instance in node.status()["instances"]] == [first], "drained, not killed"
    running.join()
    eventually(lambda: device_state(node, 1) == "serving")
    status, headers, body = node.invoke("f", '{"do": "wait", "seconds": 0}')
    assert (status, body, headers["X-Gpu-Start"]) == (200, b'{"code": 0}', "cold")
    node.invoke("f", "{}")
    softgpu("fault", "xid", "31")  # of one program: nothing follows
    status, headers, _ = node.invoke("f", "{}")
    assert (status, headers["X-Gpu-Start"]) == (200, "device-warm")
