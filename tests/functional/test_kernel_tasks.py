"""Kernel tasks on a node: deployed and invoked as functions, run by device servers that may die."""

import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import threading

import pytest

from conftest import BUILD, ROOT, eventually

EXAMPLE = ROOT / "examples/ktask/vector-add"
N = 256

KERNELS = (ROOT / "src/runtime/device_server/testing/kernels.ptx").read_text()


def vector(role, **more):
    return {"role": role, "type": "f32", "shape": [N], **more}


def launch(kernel, *arguments, block=N):
    return {"module": "kernels.ptx", "kernel": kernel, "grid": [1], "block": [block], "arguments": list(arguments)}


def buffer(name):
    return {"buffer": name}


def affine(k, constant):
    """y = k x + w"""
    return {"buffers": {"x": vector("input"), "w": vector("constant", **constant), "y": vector("output")},
            "kernels": [launch("scale", buffer("x"), buffer("y"), {"f32": k}),
                        launch("accumulate", buffer("w"), buffer("y"))]}


def only(kernel):
    return {"buffers": {"y": vector("output")}, "kernels": [launch(kernel, buffer("y"), block=1)]}


@pytest.fixture
def bundle(tmp_path):
    def write(name, task, kernels=KERNELS, **files):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "task.json").write_text(json.dumps(task))
        (folder / "kernels.ptx").write_text(kernels)
        for file, content in files.items():
            (folder / file.replace("_", ".")).write_bytes(content)
        return folder
    return write


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def call(x, **outputs):
    return json.dumps({"inputs": {"x": x}, "outputs": outputs})


def result(reply):
    status, headers, body = reply
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)


def values(reply):
    return result(reply)["outputs"]["y"]["values"]


def error(reply):
    status, headers, body = reply
    assert status == 200 and "X-Amz-Function-Error" in headers, (status, body)
    return json.loads(body)["errorMessage"]


def metric(node, name):
    text = node.call("GET", "/metrics")[2].decode()
    return sum(float(value) for value in re.findall(rf"^{name}\{{[^}}]*\}} ([0-9.e+]+)$", text, re.M))


def server_pids(node):
    """Processes of this node that are device servers."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        # In a jail the one outside has it among its arguments, too.
        if command[1:2] == [b"device-server"] and b"--try-modules" not in command and str(node.home).encode() in environment:
            found.append(int(entry.name))
    return found


RAMP = [float(i) for i in range(N)]


def test_the_example_adds(start_node):
    node = start_node()
    node.deploy("add", EXAMPLE)
    reply = node.invoke("add", json.dumps({"inputs": {"x": [1, 2, 3, 4, 5, 6, 7, 8], "y": [10] * 8}}))
    answer = result(reply)
    assert answer["outputs"]["sum"]["values"] == [11, 12, 13, 14, 15, 16, 17, 18]
    assert answer["phases_us"]["kernel_run"] > 0


def test_a_task_written_in_cpp_runs(start_node, tmp_path):
    subprocess.run([BUILD / "examples/ktask-scale", tmp_path / "scale"], check=True)
    run = subprocess.run([BUILD / "bin/fairlead", "--endpoint", start_node().endpoint, "ktask", "run",
                          tmp_path / "scale", "-d", '{"inputs": {"x": [1, 2, 3, 4, 5, 6, 7, 8]}}'],
                         check=True, capture_output=True, timeout=60)
    assert json.loads(run.stdout)["outputs"]["y"]["values"] == [2, 4, 6, 8, 10, 12, 14, 16]


def test_a_deployed_task_has_its_memory_before_its_first_call(start_node):
    node = start_node(gpu_environment={"SOFTGPU_PROFILE": "v100-16", "SOFTGPU_MEMORY_SCALE": "16"})  # a context has 22 MiB
    node.deploy("add", EXAMPLE)
    eventually(lambda: metric(node, "fairlead_gpu_memory_used_bytes") >= 64 << 20)  # which device servers take at a time
    assert metric(node, "fairlead_kernel_task_calls_total") == 0


def test_constants_come_with_the_code_or_by_key(start_node, bundle):
    node = start_node()
    node.deploy("file", bundle("file", affine(2, {"file": "w.bin"}), w_bin=floats([1] * N)))
    assert values(node.invoke("file", call(RAMP))) == [2 * x + 1 for x in RAMP]
    node.deploy("key", bundle("key", affine(2, {"key": "weights/w"})))
    assert "weights/w" in node.invoke("key", call(RAMP))[2].decode()
    assert node.call("PUT", "/v1/objects/weights/w", floats([5] * N))[0] == 201
    assert values(node.invoke("key", call(RAMP))) == [2 * x + 5 for x in RAMP]


def test_a_keyed_output_is_an_object_and_the_next_calls_input(start_node, bundle):
    node = start_node()
    node.deploy("f", bundle("f", affine(2, {"file": "w.bin"}), w_bin=floats([0] * N)))
    answer = result(node.invoke("f", call(RAMP, y={"key": "results/a"})))
    assert answer["outputs"]["y"]["key"] == "results/a"
    assert values(node.invoke("f", call({"key": "results/a"}))) == [4 * x for x in RAMP]
    status, _, body = node.call("GET", "/v1/objects/results/a")
    assert status == 200 and body == floats([2 * x for x in RAMP])
    assert "results/a" in error(node.invoke("f", call(RAMP, y={"key": "results/a"})))


def test_what_is_wrong_is_said_at_deployment_or_by_the_call(start_node, bundle):
    node = start_node()
    unknown = only("spin")
    unknown["kernels"][0]["kernel"] = "missing"
    with pytest.raises(RuntimeError, match="missing"):
        node.deploy("unknown", bundle("unknown", unknown))
    wide = only("spin")
    wide["kernels"][0]["block"] = [4096]
    with pytest.raises(RuntimeError, match="4096"):
        node.deploy("wide", bundle("wide", wide))
    node.deploy("f", bundle("f", affine(1, {"file": "w.bin"}), w_bin=floats([0] * N)))
    assert "x" in error(node.invoke("f", call([1, 2, 3])))
    assert "nowhere" in error(node.invoke("f", call({"key": "nowhere"})))
    assert values(node.invoke("f", call(RAMP))) == RAMP


def test_larger_than_the_device_server_is_an_error(start_node, bundle):
    node = start_node("--task-memory", "2KiB")
    node.deploy("f", bundle("f", affine(1, {"file": "w.bin"}), w_bin=floats([0] * N)))
    assert "3072" in error(node.invoke("f", call(RAMP)))


def test_a_faulting_kernel_fails_alone(start_node, bundle):
    node = start_node()
    node.deploy("bad", bundle("bad", only("wild")))
    node.deploy("good", bundle("good", affine(3, {"file": "w.bin"}), w_bin=floats([0] * N)))
    wrong, stop = [], threading.Event()

    def use():
        while not stop.is_set():
            if values(node.invoke("good", call(RAMP))) != [3 * x for x in RAMP]:
                wrong.append("good")

    user = threading.Thread(target=use)
    user.start()
    for _ in range(3):
        assert "700" in error(node.invoke("bad", "{}"))
    stop.set()
    user.join()
    assert not wrong
    assert metric(node, "fairlead_device_server_restarts_total") >= 3


def test_a_kernel_that_does_not_end_times_out_and_frees_the_gpu(start_node, bundle):
    node = start_node()
    node.deploy("spin", bundle("spin", only("spin")), Timeout=1)
    node.deploy("good", bundle("good", affine(3, {"file": "w.bin"}), w_bin=floats([0] * N)))
    assert "timed out" in error(node.invoke("spin", "{}"))
    assert values(node.invoke("good", call(RAMP))) == [3 * x for x in RAMP]


def test_a_killed_server_gives_no_wrong_result_and_other_tenants_do_not_notice(start_node, bundle):
    node = start_node()
    folder = bundle("f", affine(2, {"file": "w.bin"}), w_bin=floats([7] * N))
    node.deploy("a", folder, Tags={"gpu:tenant": "a"})
    node.deploy("b", folder, Tags={"gpu:tenant": "b"})
    for name in "ab":
        assert values(node.invoke(name, call(RAMP))) == [2 * x + 7 for x in RAMP]
    victim = server_pids(node)[0]
    done = {"a": 0, "b": 0}
    failures, stop = [], threading.Event()

    def use(name, start):
        x = [start + i for i in RAMP]
        while not stop.is_set():
            reply = node.invoke(name, call(x))
            if "X-Amz-Function-Error" in reply[1] or values(reply) != [2 * v + 7 for v in x]:
                failures.append((name, reply[2]))
            done[name] += 1

    users = [threading.Thread(target=use, args=(name, float(i))) for i, name in enumerate("aabb")]
    for user in users:
        user.start()
    eventually(lambda: min(done.values()) >= 5)
    os.kill(victim, signal.SIGKILL)
    before = dict(done)
    eventually(lambda: all(done[name] >= before[name] + 10 for name in done))
    stop.set()
    for user in users:
        user.join()
    assert not failures
    assert metric(node, "fairlead_device_server_restarts_total") == 1


def test_two_tenants_modules_of_one_name_are_two(start_node, bundle):
    node = start_node()
    task = affine(2, {"key": "w"})
    other = KERNELS.replace("mul.f32", "add.f32")
    for tenant in "ab":
        node.call("PUT", "/v1/objects/w", floats([0] * N), {"X-Fairlead-Tenant": tenant})
    node.deploy("a", bundle("a", task), Tags={"gpu:tenant": "a"})
    node.deploy("b", bundle("b", task, kernels=other), Tags={"gpu:tenant": "b"})
    assert values(node.invoke("a", call(RAMP))) == [2 * x for x in RAMP]
    assert values(node.invoke("b", call(RAMP))) == [x + 2 for x in RAMP]


@pytest.mark.parametrize("eviction", ["single-use", "lru", "cost"])
def test_contents_survive_eviction(start_node, bundle, eviction):
    node = start_node("--task-memory", "8KiB", "--task-eviction", eviction)
    node.deploy("f", bundle("f", affine(1, {"file": "w.bin"}), w_bin=floats([7] * N)))
    for i in range(12):
        result(node.invoke("f", call([i] * N, y={"key": f"out/{i}"})))
    for i in range(12):
        assert values(node.invoke("f", call({"key": f"out/{i}"}))) == [i + 14] * N
    for i in range(12):
        assert node.call("GET", f"/v1/objects/out/{i}")[2] == floats([i + 7] * N)
    assert metric(node, "fairlead_object_evictions_total") > 0


def test_a_killed_node_leaves_no_device_server_and_no_device_memory(start_node, bundle):
    node = start_node()
    node.deploy("spin", bundle("spin", only("spin")))
    threading.Thread(target=lambda: pytest.raises(OSError, node.invoke, "spin", "{}"), daemon=True).start()
    eventually(lambda: server_pids(node))
    eventually(lambda: node.status()["gpus"][0]["memory_used_bytes"] > 0)
    node.kill()
    eventually(lambda: not server_pids(node))
    again = start_node(keep_state=True)
    eventually(lambda: again.status()["gpus"][0]["memory_used_bytes"] == 0)


def test_a_task_of_the_builtin_library_written_in_python(start_node, monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2] / "python"))
    numpy = pytest.importorskip("numpy")
    from fairlead import Client, ktask
    task = ktask.Task()
    x = task.input("x", "f32", (5, 7))
    w = task.constant("w", numpy.arange(21, dtype="f").reshape(7, 3) - 10)
    task.output("y", task.relu(x @ w))
    given = numpy.arange(35, dtype="f").reshape(5, 7) - 17
    node = start_node()
    with Client(f"http://127.0.0.1:{node.port}") as client:
        task.deploy(client, "product")
        answer = client.call("product", x=given)["y"]
    assert numpy.array_equal(answer, numpy.maximum(given @ (numpy.arange(21, dtype="f").reshape(7, 3) - 10), 0))


def test_an_unknown_module_of_the_library_is_named(start_node, bundle):
    node = start_node()
    task = only("wild")
    task["kernels"][0]["module"] = "fairlead:nonsense"
    with pytest.raises(Exception, match="fairlead:nonsense"):
        node.deploy("f", bundle("f", task))
