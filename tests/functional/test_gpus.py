"""Several GPUs behind one node: late binding to whichever is free, stickiness to where the warm instance is."""

import threading

from conftest import MISBEHAVE, Gate, eventually


def invoke_together(node, names):
    """{name: device its call ran on}, as many calls at once as there are GPUs that serve."""
    devices, gate = {}, Gate(node)

    def call(name):
        devices[name] = node.invoke(name, gate.payload)[1]["X-Gpu-Device"]

    def running(status):
        return sum(instance["state"] == "busy" for instance in status["instances"])

    def serving(status):
        return sum(gpu["state"] == "serving" for gpu in status["gpus"])

    calls = [threading.Thread(target=call, args=(name,)) for name in names]
    for thread in calls:
        thread.start()
    eventually(lambda: (lambda status: running(status) == min(len(names), serving(status)))(node.status()))
    gate.open()
    for thread in calls:
        thread.join()
    return devices


def test_two_functions_take_two_gpus_and_stay_there(start_node):
    node = start_node("--slots", "1", gpu_environment={"SOFTGPU_DEVICES": "2"})
    for name in ("left", "right"):
        node.deploy(name, MISBEHAVE)
    first = invoke_together(node, ["left", "right"])
    assert len(set(first.values())) == 2
    for name in ("left", "right", "left", "right"):
        _, headers, _ = node.invoke(name)
        assert (headers["X-Gpu-Device"], headers["X-Gpu-Start"]) == (first[name], "device-warm")


def test_what_an_instance_allocates_lies_on_its_own_gpu(start_node):
    node = start_node("--slots", "1", gpu_environment={"SOFTGPU_DEVICES": "2"})
    for name in ("left", "right"):
        node.deploy(name, MISBEHAVE)
    devices = invoke_together(node, ["left", "right"])
    holder = threading.Thread(target=node.invoke, args=("right", '{"do": "hold", "bytes": 1073741824, "gate": "seen"}'))
    holder.start()
    used = eventually(lambda: [index for index, gpu in enumerate(node.status()["gpus"], start=1)
                               if gpu["memory_used_bytes"] >= 1 << 30])
    (node.home / "gpu/seen").touch()
    holder.join()
    assert [str(index) for index in used] == [devices["right"]]


# ---- a GPU that fails


def device_state(node, index):
    return node.status()["gpus"][index - 1]["state"]


def devices_used(node, names):
    return set(invoke_together(node, names).values())


def test_a_lost_gpu_is_left_out_until_it_is_back(start_node, softgpu):
    node = start_node("--slots", "1", gpu_environment={"SOFTGPU_DEVICES": "2"})
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
    node = start_node("--slots", "1")
    node.deploy("f", MISBEHAVE)
    gate = Gate(node)
    running = threading.Thread(target=node.invoke, args=("f", gate.payload))
    running.start()
    eventually(lambda: any(instance["state"] == "busy" for instance in node.status()["instances"]))
    first, = (instance["id"] for instance in node.status()["instances"])
    softgpu("fault", "xid", "48")
    eventually(lambda: device_state(node, 1) == "draining")
    assert [instance["id"] for instance in node.status()["instances"]] == [first], "drained, not killed"
    gate.open()
    running.join()
    eventually(lambda: device_state(node, 1) == "serving")
    status, headers, body = node.invoke("f", '{"do": "wait"}')
    assert (status, body, headers["X-Gpu-Start"]) == (200, b'{"code": 0}', "cold")
    node.invoke("f", "{}")
    softgpu("fault", "xid", "31")  # of one program: nothing follows
    status, headers, _ = node.invoke("f", "{}")
    assert (status, headers["X-Gpu-Start"]) == (200, "device-warm")
