"""Pipelines on a node whose GPU is cut into slices: three components, each a kernel task, on whatever slices are free."""

import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import threading
import time

import pytest

from conftest import BUILD, MISBEHAVE, ROOT, eventually

A100 = {"SOFTGPU_PROFILE": "a100-80"}
P1 = "4g.40gb,2g.20gb,1g.10gb"
N = 256
KERNELS = (ROOT / "src/runtime/device_server/testing/kernels.ptx").read_text()
GIB = 1024


def vector(role, n, **more):
    return {"role": role, "type": "f32", "shape": [n], **more}


def launch(kernel, *arguments, block=N, grid=1):
    return {"module": "kernels.ptx", "kernel": kernel, "grid": [grid], "block": [block], "arguments": list(arguments)}


def affine(k, n=N):
    """y = k x + w, w a constant"""
    return {"buffers": {"x": vector("input", n), "w": vector("constant", n, file="w.bin"), "y": vector("output", n)},
            "kernels": [launch("scale", {"buffer": "x"}, {"buffer": "y"}, {"f32": k}, grid=n // N),
                        launch("accumulate", {"buffer": "w"}, {"buffer": "y"}, grid=n // N)]}


def port(name, n=N):
    return {"name": name, "type": "f32", "shape": [n]}


def component(name, source, ms, memory_gib, n=N, when=None):
    made = {"name": name, "task": name, "inputs": {"x": source}, "outputs": [port("y", n)],
            "profile": {"memory_mib": {"weights": memory_gib * GIB, "peak": memory_gib * GIB},
                        "ms": {slice_: [ms / divided, 0, 1] for slice_, divided in (("1g", 1), ("2g", 1.9), ("4g", 3.6))}}}
    if when:
        made["when"] = when
    return made


@pytest.fixture
def folder(tmp_path):
    """folder(name, components, outputs=..., factors={component: k}) writes a pipeline's folder."""
    def write(name, components, output, factors, n=N, **more):
        made = tmp_path / name
        made.mkdir()
        document = {"version": 1, "inputs": [port("image", n)], "outputs": [{"name": "out", "from": output}],
                    "components": components, **more}
        (made / "pipeline.json").write_text(json.dumps(document))
        for task, k in factors.items():
            (made / task).mkdir()
            (made / task / "task.json").write_text(json.dumps(affine(k, n)))
            (made / task / "kernels.ptx").write_text(KERNELS)
            (made / task / "w.bin").write_bytes(struct.pack(f"<{n}f", *[k] * n))
        return made
    return write


CHAIN = {"deblur": 2.0, "sr": 3.0, "depth": 5.0}


def chain(folder, name="chain", memory_gib=9, **more):
    """out = 5 (3 (2 x + 2) + 3) + 5 = 30 x + 50"""
    n = more.get("n", N)
    components = [component("deblur", "input.image", 20, memory_gib, n), component("sr", "deblur.y", 30, memory_gib, n),
                  component("depth", "sr.y", 20, memory_gib, n)]
    return folder(name, components, "depth.y", CHAIN, **more)


def call(x):
    return json.dumps({"inputs": {"image": x}, "outputs": {}})


def out(reply):
    status, headers, body = reply
    assert status == 200 and "X-Amz-Function-Error" not in headers, (status, body)
    return json.loads(body)["outputs"]["out"]["values"]


def expected(x):
    return [30 * value + 50 for value in x]


def numbers(first, n=N):
    return [float((first + i) % 17) for i in range(n)]


@pytest.fixture
def p1(start_node, softgpu):
    def start(profiles=P1, *options):
        softgpu("mig", "enable", **A100)
        softgpu("mig", "create", profiles, **A100)
        return start_node("--sharing", "mig", *options, gpu_environment=A100, keep_state=True)
    return start


def pipeline(node, name="chain"):
    return next((one for one in node.status()["pipelines"] if one["function"] == name), None)


def runs(node, name="chain"):
    return (pipeline(node, name) or {}).get("state") == "runs"


def slices(node, name="chain"):
    return [(stage["slice"], stage["components"]) for stage in pipeline(node, name)["stages"]]


def test_a_function_too_large_for_each_slice_runs_on_several(p1, folder):
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder))
    assert out(node.invoke("chain", call(numbers(3)))) == expected(numbers(3))
    assert pipeline(node)["state"] == "runs"
    placed = slices(node)
    assert sum((names for _, names in placed), []) == ["deblur", "sr", "depth"]
    assert {profile for profile, _ in placed} <= {"2g.20gb", "1g.10gb"} and len(placed) >= 1
    held = {stage["gpu"] for stage in pipeline(node)["stages"]}
    for gpu in node.status()["gpus"]:
        assert ("pipeline chain" in gpu["reason"]) == (gpu["id"] in held)
    text = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "status"], capture_output=True, text=True, check=True).stdout
    assert "PIPELINE" in text and "[" in text


@pytest.mark.parametrize("profiles, stages", [("7g.80gb", 1), ("2g.20gb,1g.10gb", 2), ("1g.10gb,1g.10gb,1g.10gb", 3)])
def test_every_partition_gives_the_same(p1, folder, profiles, stages):
    node = p1(profiles)
    node.deploy("chain", chain(folder, memory_gib=6 if stages == 3 else 8))
    for first in range(3):
        assert out(node.invoke("chain", call(numbers(first)))) == expected(numbers(first))
    assert len(slices(node)) == stages, pipeline(node)


@pytest.mark.parametrize("profiles", ["4g.40gb", "2g.20gb,1g.10gb", "1g.10gb,1g.10gb,1g.10gb"])
def test_a_branch_runs_where_its_condition_holds(p1, folder, profiles):
    """deblur says whether the first number is not 0; only then sr runs, and depth reads what ran last."""
    deblur = component("deblur", "input.image", 20, 4)
    deblur["outputs"].append({"name": "is_low", "type": "f32", "shape": [1]})
    sr = component("sr", "deblur.y", 30, 4, when={"value": "deblur.is_low", "is": True})
    depth = component("depth", ["sr.y", "deblur.y"], 20, 4)
    made = folder("chain", [deblur, sr, depth], "depth.y", CHAIN)
    task = affine(2.0)
    task["buffers"]["is_low"] = vector("output", 1)
    task["kernels"].append(launch("scale", {"buffer": "x"}, {"buffer": "is_low"}, {"f32": 1.0}, block=1))
    (made / "deblur/task.json").write_text(json.dumps(task))
    node = p1(profiles)
    node.deploy("chain", made)
    for first in (0, 1, 0, 2, 17):
        x = numbers(first)
        assert out(node.invoke("chain", call(x))) == (expected(x) if x[0] != 0 else [10 * value + 15 for value in x])


class Load:
    """Clients that call one after the other, and remember every answer that was not as it should be."""

    def __init__(self, node, name="chain", clients=3):
        self.node, self.name = node, name
        self.wrong, self.latencies, self.done = [], [], threading.Event()
        self.threads = [threading.Thread(target=self._client, args=(number,)) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def _client(self, number):
        while not self.done.is_set():
            number += 1
            begin = time.monotonic()
            try:
                reply = self.node.invoke(self.name, call(numbers(number)))
                self.latencies.append(time.monotonic() - begin)
                assert out(reply) == expected(numbers(number))
            except OSError as problem:  # the node is gone: nobody answers any more
                self.wrong.append((number, repr(problem)))
                return
            except (AssertionError, KeyError) as problem:
                self.wrong.append((number, str(problem)[:300]))

    def served(self, more):
        """So many more answers."""
        wanted = len(self.latencies) + more
        eventually(lambda: len(self.latencies) >= wanted)

    def stop(self):
        self.done.set()
        for thread in self.threads:
            thread.join()


def rings_of(pid):
    """Memory between stages that the process has mapped."""
    return [line for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if "fairlead-ring" in line]


def exists(pid):
    return pathlib.Path(f"/proc/{pid}").exists()


def test_a_killed_stage_loses_no_request(p1, folder):
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder, memory_gib=8))
    out(node.invoke("chain", call(numbers(0))))
    rings = len(rings_of(node.process.pid))
    assert rings > 0
    load = Load(node)
    for kill in range(4):
        load.served(10)
        stage = pipeline(node)["stages"][kill % 2]
        os.kill(stage["pid"], signal.SIGKILL)
        eventually(lambda: pipeline(node)["stages"][kill % 2]["pid"] not in (0, stage["pid"]))
        eventually(lambda: pipeline(node)["stages"][kill % 2]["ready"])
    load.served(10)
    load.stop()
    assert load.wrong == []
    assert sum(stage["restarts"] for stage in pipeline(node)["stages"]) == 4
    assert len(rings_of(node.process.pid)) == rings


def family(pid):
    """It and what it started: a stage's server may be in a jail, whose outer process is what the node knows."""
    found = [pid]
    for one in found:
        for task in pathlib.Path(f"/proc/{one}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


def test_a_stage_that_hangs_is_ended_and_starts_again(p1, folder):
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder, memory_gib=8), Timeout=5)
    out(node.invoke("chain", call(numbers(0))))
    stage = pipeline(node)["stages"][0]
    for pid in family(stage["pid"]):
        os.kill(pid, signal.SIGSTOP)
    status, headers, body = node.invoke("chain", call(numbers(1)))
    assert status == 200 and "X-Amz-Function-Error" in headers, body  # its deadline is the stage's too
    eventually(lambda: not exists(stage["pid"]) and runs(node) and pipeline(node)["stages"][0]["ready"])
    assert out(node.invoke("chain", call(numbers(2)))) == expected(numbers(2))
    assert [one["restarts"] for one in pipeline(node)["stages"]] == [1, 0]


def answers(node, name):
    reply = node.invoke(name, call(numbers(1)))
    return "X-Amz-Function-Error" not in reply[1] and out(reply) == expected(numbers(1))


def test_an_idle_pipeline_makes_room_for_one_that_waits_and_comes_back(p1, folder):
    """Each needs both slices. The second is deployed while the first has them; then the first is called."""
    node = p1("2g.20gb,1g.10gb", "--pipeline-idle", "1")
    node.deploy("chain", chain(folder, memory_gib=8))
    out(node.invoke("chain", call(numbers(0))))
    node.deploy("other", chain(folder, name="other", memory_gib=8))
    eventually(lambda: runs(node, "other"))
    assert pipeline(node)["state"] == "warm" and pipeline(node)["stages"] == []
    assert answers(node, "other")
    eventually(lambda: answers(node, "chain"))
    assert pipeline(node, "other")["state"] == "warm"


def test_a_deleted_pipeline_leaves_nothing(p1, folder):
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder, memory_gib=8))
    out(node.invoke("chain", call(numbers(0))))
    pids = [stage["pid"] for stage in pipeline(node)["stages"]]
    assert node.call("DELETE", "/2015-03-31/functions/chain")[0] == 204
    eventually(lambda: pipeline(node) is None and not any(exists(pid) for pid in pids))
    eventually(lambda: all(gpu["reason"] == "" for gpu in node.status()["gpus"]))  # once its servers are reaped
    assert rings_of(node.process.pid) == []
    node.deploy("f", MISBEHAVE)
    assert node.invoke("f", "{}")[0] == 200  # on what it gave back


def destroyed(softgpu, *what):
    try:
        softgpu("mig", "destroy", *what, **A100)
    except subprocess.CalledProcessError:
        return False
    return True


def test_a_killed_node_leaves_no_server_and_no_slice_in_use(p1, folder, softgpu):
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder, memory_gib=8))
    load = Load(node, clients=1)
    load.served(3)
    pids = [stage["pid"] for stage in pipeline(node)["stages"]]
    load.done.set()
    node.kill()
    eventually(lambda: not any(exists(pid) for pid in pids))
    eventually(lambda: destroyed(softgpu, "all"))


def test_moves_to_one_slice_under_load_and_drops_nothing(p1, folder, softgpu):
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder, memory_gib=8))
    out(node.invoke("chain", call(numbers(0))))
    assert len(slices(node)) == 2
    load = Load(node)
    load.served(20)
    softgpu("mig", "create", "4g.40gb", **A100)
    eventually(lambda: [profile for profile, _ in slices(node)] == ["4g.40gb"] and runs(node))
    load.served(20)
    eventually(lambda: pipeline(node)["draining"] == 0)
    load.stop()
    assert load.wrong == []
    assert pipeline(node)["moves"] == 1
    assert sorted(gpu["reason"] != "" for gpu in node.status()["gpus"]) == [False, False, True]


def test_a_slice_that_is_removed_rebuilds_the_pipeline_on_what_is_left(p1, folder, softgpu):
    node = p1()
    node.deploy("chain", chain(folder, memory_gib=5))
    out(node.invoke("chain", call(numbers(0))))
    stage = pipeline(node)["stages"][-1]
    listed = re.findall(r"GPU instance +(\d+)[^\n]*\n *compute instance[^\n]*(MIG-\S+)", softgpu("mig", "list", **A100))
    gone = next(gpu for gpu in node.status()["gpus"] if gpu["id"] == stage["gpu"])
    load = Load(node)
    load.served(10)

    def remove():  # while a process has a context the tool refuses
        pid = next((one["pid"] for one in pipeline(node)["stages"] if one["gpu"] == stage["gpu"]), 0)
        if pid:
            os.kill(pid, signal.SIGKILL)
        return destroyed(softgpu, next(instance for instance, uuid in listed if uuid == gone["uuid"]))
    eventually(remove)
    eventually(lambda: runs(node) and pipeline(node)["rebuilt"] == 1)
    load.served(10)
    load.stop()
    assert load.wrong == []
    assert gone["id"] not in {one["gpu"] for one in pipeline(node)["stages"]}


def test_other_functions_go_on_beside_it(p1, folder):
    node = p1()
    names = [f"f{number}" for number in range(20)]
    for name in names:
        node.deploy(name, MISBEHAVE)
    node.deploy("chain", chain(folder, memory_gib=8))
    load = Load(node, clients=2)
    for name in names:
        assert node.invoke(name, "{}")[0] == 200
    load.served(5)
    load.stop()
    assert load.wrong == []
    held = {stage["gpu"] for stage in pipeline(node)["stages"]}
    assert len(held) < 3 and not held & {instance["gpu"] for instance in node.status()["instances"]}


def refusal(node, folder_):
    document = {"FunctionName": "bad", "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap",
                "Code": {"Folder": str(folder_)}}
    status, _, body = node.call("POST", "/2015-03-31/functions", json.dumps(document))
    assert status == 400, body
    return json.loads(body)["message"] if b"message" in body else body.decode()


def test_what_does_not_fit_is_refused_with_component_and_port(p1, folder):
    node = p1("1g.10gb")
    one = [component("deblur", "input.image", 20, 2)]
    assert "deblur" in refusal(node, folder("no-task", one, "deblur.y", {})) 
    wrong = [component("deblur", "input.image", 20, 2)]
    wrong[0]["inputs"] = {"z": "input.image"}
    assert "no buffer z" in refusal(node, folder("no-port", wrong, "deblur.y", {"deblur": 2.0}))
    outside = [component("deblur", "input.image", 20, 2)]
    outside[0]["task"] = "../no-port/deblur"
    assert "it must be a folder beside pipeline.json" in refusal(node, folder("outside", outside, "deblur.y", {}))
    cycle = [component("deblur", "sr.y", 20, 2), component("sr", "deblur.y", 20, 2)]
    assert "sr" in refusal(node, folder("cycle", cycle, "sr.y", {"deblur": 2.0, "sr": 3.0}))


def error(reply):
    status, headers, body = reply
    assert status == 200 and "X-Amz-Function-Error" in headers, (status, body)
    return json.loads(body)


def test_what_fits_nowhere_says_why(p1, folder):
    node = p1("1g.10gb")
    node.deploy("chain", chain(folder, memory_gib=30))
    assert "no plan fits" in json.dumps(error(node.invoke("chain", call(numbers(0)))))
    assert pipeline(node)["state"] == "no slices" and "no plan fits" in pipeline(node)["why"]


def test_bad_calls_are_answered_and_change_nothing(p1, folder):
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder, memory_gib=8))
    for bad in ("{}", "[]", '{"inputs": {"image": [1]}}', '{"inputs": {"image": {"key": "a/b"}}}',
                json.dumps({"inputs": {"image": numbers(0), "other": [1]}})):
        assert error(node.invoke("chain", bad))["errorType"] == "Pipeline.InvalidCall"
    assert out(node.invoke("chain", call(numbers(1)))) == expected(numbers(1))


def test_large_tensors_pass_in_chunks(p1, folder):
    n = 3 << 18  # 3 MiB
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder, memory_gib=8, n=n))
    image = struct.pack(f"<{n}f", *(float(i % 251) for i in range(n)))
    import base64
    status, headers, body = node.invoke("chain", json.dumps({"inputs": {"image": {"base64": base64.b64encode(image).decode()}}}))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body[:300]
    answer = json.loads(body)["outputs"]["out"]
    got = answer.get("values") or struct.unpack(f"<{n}f", base64.b64decode(answer["base64"]))
    assert all(got[i] == 30 * (i % 251) + 50 for i in range(n))
