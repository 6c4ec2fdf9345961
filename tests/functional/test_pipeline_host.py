"""Components that need no GPU on a node: where they sit, what they may, what they answer, and what is left when they die."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from conftest import ROOT, eventually
from test_pipelines import KERNELS, N, affine, call, component, error, exists, folder, numbers, out, p1, pipeline, port, refusal, rings_of, runs  # noqa: F401

STEPS = '''
import array, os, socket

def clean(x):
    """x, without what is below zero; says where it is."""
    import helper
    return array.array("f", [helper.floor(value) for value in x.tolist()])

def label(x, y):
    return array.array("f", [a + b for a, b in zip(x.tolist(), y.tolist())])

def look(x):
    seen = [os.environ.get("COLOUR", ""), str(os.getuid() != 0), str(os.path.exists("/dev/nvidia0"))]
    for name in ("NVIDIA_VISIBLE_DEVICES", "SOFTGPU_HOME", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"):
        seen.append(str(name in os.environ))
    try:
        socket.create_connection(("1.1.1.1", 53), timeout=1)
        seen.append("connected")
    except OSError:
        seen.append("alone")
    try:
        open("/var/task/steps.py", "a").close()
        seen.append("wrote")
    except OSError:
        seen.append("read-only")
    raise RuntimeError(" ".join(seen))
'''


def host(name, function, outputs=("y",), **inputs):
    return {"name": name, "program": f"steps.py:{function}", "inputs": inputs, "outputs": [port(output) for output in outputs],
            "profile": {"ms": {"host": [1, 0, 1]}}}


def written(folder, name, components, output, factors, steps=STEPS, **more):  # noqa: F811
    made = folder(name, components, output, factors, **more)
    (made / "steps.py").write_text(steps)
    (made / "helper.py").write_text("def floor(value):\n    return max(0.0, value)\n")
    return made


def mixed(folder, name="chain", memory_gib=8, **more):  # noqa: F811
    """clean (host) -> deblur -> label (host), which also reads the request -> depth -> finish (host)"""
    components = [host("clean", "clean", x="input.image"), component("deblur", "clean.y", 20, memory_gib),
                  host("label", "label", x="deblur.y", y="input.image"), component("depth", "label.y", 20, memory_gib),
                  host("finish", "clean", x="depth.y")]
    return written(folder, name, components, "finish.y", {"deblur": 2.0, "depth": 5.0}, **more)


def answer(x):
    return [max(0.0, 5 * (2 * max(0.0, value) + 2 + value) + 5) for value in x]


@pytest.mark.parametrize("profiles, slices", [("1g.10gb,1g.10gb", 2), ("2g.20gb", 1)])
def test_programs_get_no_slice_and_answer_as_they_should(p1, folder, profiles, slices):  # noqa: F811
    node = p1(profiles)
    node.deploy("chain", mixed(folder))
    for first in range(3):
        x = [value - 3 for value in numbers(first)]
        assert out(node.invoke("chain", call(x))) == answer(x)
    stages = pipeline(node)["stages"]
    on_host = [stage for stage in stages if stage["slice"] == "host"]
    assert len({stage["gpu"] for stage in stages if stage["gpu"] != 0}) == slices, stages
    assert all(stage["gpu"] == 0 and stage["gpu_seconds"] == 0 and stage["pid"] > 0 for stage in on_host)
    assert {"clean", "finish"} <= {name for stage in on_host for name in stage["components"]}
    assert "on the host" in pipeline(node)["why"]


def test_a_program_is_alone_has_its_environment_and_no_device(p1, folder):  # noqa: F811
    node = p1("2g.20gb")
    components = [host("look", "look", x="input.image"), component("depth", "look.y", 20, 8)]
    made = written(folder, "chain", components, "depth.y", {"depth": 5.0})
    node.deploy("chain", made, environment={"COLOUR": "red", "LD_PRELOAD": "/var/task/evil.so"})
    said = error(node.invoke("chain", call(numbers(0))))
    assert "component look: RuntimeError: red True False False False False False alone read-only" in said["errorMessage"], said


def test_a_program_that_is_no_python_is_executed(p1, folder):  # noqa: F811
    """A shell script that gives its input back: cat, with the byte that says that it worked."""
    node = p1("2g.20gb")
    echo = host("echo", "x", x="input.image") | {"program": "bin/echo:same"}
    made = written(folder, "chain", [echo, component("depth", "echo.y", 20, 8)], "depth.y", {"depth": 5.0})
    (made / "bin").mkdir()
    program = made / "bin/echo"
    program.write_text(f'#!/bin/sh\n[ "$1" = same ] || exit 1\nwhile true; do printf "\\000"; head -c {4 * N} || exit 0; done\n')
    program.chmod(0o755)
    node.deploy("chain", made)
    for first in range(3):
        assert out(node.invoke("chain", call(numbers(first)))) == [5 * value + 5 for value in numbers(first)]


def test_what_asks_for_a_gpu_or_is_no_program_is_refused_by_name(p1, folder):  # noqa: F811
    node = p1("1g.10gb")

    def said(name, **changes):
        components = [host("clean", "clean", x="input.image") | changes, component("depth", "clean.y", 20, 2)]
        return refusal(node, written(folder, name, components, "depth.y", {"depth": 5.0}))
    assert "component clean: needs_gpu is true, and it is a program" in said("asks", needs_gpu=True)
    assert "component clean: it needs no GPU and has a time of slice" in said("time", profile={"ms": {"1g": [1, 0, 1]}})
    assert "component clean: program's file is 'gone.py', which is no file of the code bundle" in said("gone", program="gone.py:f")
    assert "component clean: program's file is '../x.py', which is not in the code bundle" in said("outside", program="../x.py:f")
    assert "component clean: program's file is 'pipeline.json', which is neither Python" in said("data", program="pipeline.json:f")
    only = written(folder, "only", [host("clean", "clean", x="input.image")], "clean.y", {})
    assert "none of its 1 components needs a GPU, clean among them" in refusal(node, only)


def test_killed_programs_come_back_and_leave_nothing(p1, folder):  # noqa: F811
    node = p1("1g.10gb,1g.10gb")
    node.deploy("chain", mixed(folder))
    out(node.invoke("chain", call(numbers(0))))
    rings = len(rings_of(node.process.pid))
    for number in range(len(pipeline(node)["stages"])):
        os.kill(pipeline(node)["stages"][number]["pid"], signal.SIGKILL)
        assert out(node.invoke("chain", call(numbers(number)))) == answer(numbers(number))
    eventually(lambda: all(stage["ready"] for stage in pipeline(node)["stages"]))
    assert all(stage["ring"]["used"] == 0 for stage in pipeline(node)["stages"])
    assert len(rings_of(node.process.pid)) == rings
    pids = descendants(node.process.pid)
    assert {stage["pid"] for stage in pipeline(node)["stages"]} <= pids
    node.kill()
    eventually(lambda: not any(exists(pid) for pid in pids))


def test_who_crashes_a_program_is_told_why_and_the_others_wait_for_its_start_alone(p1, folder):  # noqa: F811
    node = p1("1g.10gb")
    crashes = "import array, os\n\n\ndef act(x):\n    if x[0] < 0:\n        os._exit(7)\n    return array.array('f', x.tolist())\n"
    components = [host("act", "act", x="input.image"), component("depth", "act.y", 20, 4)]
    node.deploy("chain", written(folder, "chain", components, "depth.y", {"depth": 5.0}, steps=crashes), Timeout=30)
    good, bad = numbers(0), [-1.0] + numbers(1)[1:]
    begin = time.monotonic()
    for _ in range(6):
        said = error(node.invoke("chain", call(bad)))
        assert said["errorType"] == "Pipeline.Failed" and "act" in said["errorMessage"] and "7" in said["errorMessage"], said
        assert out(node.invoke("chain", call(good))) == [5 * value + 5 for value in good]
    # 18 crashes. Each made everybody wait for twice as long as the one before, up to 10 s: 120 s in all, and calls of 30 s failed.
    assert time.monotonic() - begin < 60


def descendants(root):
    """Of the machine's processes those that it or another of them started; others may run pipelines beside it."""
    parents = {}
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit():
                parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended meanwhile
            continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return found - {root}


PACKAGED = '''
import sys
import fairlead, steps
from fairlead import ktask

def scale(factor):
    task = ktask.Task()
    task.output("y", task.scale(task.input("x", "f32", (2, 8)), factor))
    return task

class Sum(fairlead.Pipeline):
    inputs = {"picture": ("f32", (2, 8))}
    def dag(self, picture):
        grey = self.program(steps.half, picture, returns={"y": ("f32", (2, 8))})
        return {"out": self.program(steps.half, self.task(scale(8), grey, name="large"), returns={"y": ("f32", (2, 8))}, name="after")}

Sum().build(sys.argv[1], measure="1g", repeats=2)
'''


def test_what_the_package_builds_with_programs_runs_on_a_node(p1, tmp_path):  # noqa: F811
    (tmp_path / "steps.py").write_text("import array\n\ndef half(x):\n    rows = x.tolist()\n"
                                       "    return memoryview(array.array('f', [v / 2 for row in rows for v in row])).cast('B')\n")
    (tmp_path / "sum.py").write_text(PACKAGED)
    made = tmp_path / "sum"
    environment = {"PYTHONPATH": f"{ROOT / 'python'}:{tmp_path}", "PATH": "/usr/bin:/bin", "SOFTGPU_HOME": str(tmp_path / "gpu")}
    done = subprocess.run([sys.executable, tmp_path / "sum.py", made], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    said = json.loads((made / "pipeline.json").read_text())
    assert said["components"][0]["profile"]["ms"]["host"][2] == 2
    node = p1("1g.10gb")
    node.deploy("sum", made)
    picture = [[float(8 * row + column) for column in range(8)] for row in range(2)]
    reply = json.loads(node.invoke("sum", json.dumps({"inputs": {"picture": picture}}))[2])
    assert reply["outputs"]["out"]["values"] == [[2 * value for value in row] for row in picture]
