"""What a pipeline costs: one of one stage beside the plain kernel task; a tensor's way from slice to slice."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from bench.ktask_bench import Client  # noqa: E402
from bench.measure import BUILD, report  # noqa: E402
from harness.node import Node  # noqa: E402

KERNELS = pathlib.Path(__file__).resolve().parents[1] / "src/runtime/device_server/testing/kernels.ptx"
ELEMENTS = 256
A100 = {"SOFTGPU_PROFILE": "a100-80"}
LINK_GB_S = 25  # of that profile
SIZES = {"1kb": 1 << 10, "10mb": 10 << 20}


def buffer(role, elements):
    return {"role": role, "type": "f32", "shape": [elements]}


def task(folder, x, y):
    """The first numbers of y are those of x."""
    folder.mkdir(parents=True)
    document = {"buffers": {"x": buffer("input", x), "y": buffer("output", y)},
                "kernels": [{"module": "kernels.ptx", "kernel": "scale", "grid": [1], "block": [ELEMENTS],
                             "arguments": [{"buffer": "x"}, {"buffer": "y"}, {"f32": 2.0}]}]}
    (folder / "task.json").write_text(json.dumps(document))
    (folder / "kernels.ptx").write_bytes(KERNELS.read_bytes())
    return folder


def port(name, elements):
    return {"name": name, "type": "f32", "shape": [elements]}


def component(name, source, elements, memory_gib):
    memory = memory_gib * 1024
    return {"name": name, "task": name, "inputs": {"x": source}, "outputs": [port("y", elements)],
            "profile": {"memory_mib": {"weights": memory, "peak": memory}, "ms": {"1g": [1, 0, 1], "2g": [0.6, 0, 1]}}}


def pipeline(folder, middle, memory_gib):
    """Two components, between which a tensor of so many bytes passes."""
    task(folder / "first", ELEMENTS, middle // 4)
    task(folder / "last", middle // 4, ELEMENTS)
    document = {"version": 1, "inputs": [port("x", ELEMENTS)], "outputs": [{"name": "y", "from": "last.y"}],
                "components": [component("first", "input.x", middle // 4, memory_gib), component("last", "first.y", ELEMENTS, memory_gib)]}
    (folder / "pipeline.json").write_text(json.dumps(document))
    return folder


def alone(folder):
    task(folder / "first", ELEMENTS, ELEMENTS)
    document = {"version": 1, "inputs": [port("x", ELEMENTS)], "outputs": [{"name": "y", "from": "first.y"}],
                "components": [component("first", "input.x", ELEMENTS, 1)]}
    (folder / "pipeline.json").write_text(json.dumps(document))
    return folder


CALL = json.dumps({"inputs": {"x": [1.0] * ELEMENTS}})


class Sliced:
    """A node whose GPU is cut so, with these environment variables of the software GPU."""

    def __init__(self, home, profiles, **environment):
        self.home, self.environment = home, {**A100, **environment}
        gpu = home / "node/gpu"
        gpu.mkdir(parents=True)
        for words in (("enable",), ("create", profiles)):
            subprocess.run([BUILD / "bin/softgpu", "mig", *words], check=True, stdout=subprocess.DEVNULL,
                           env={"SOFTGPU_HOME": str(gpu), "PATH": "/usr/bin:/bin", **self.environment})
        self.node = Node(BUILD, home / "node", options=("--sharing", "mig"), gpu_environment=self.environment, keep_state=True)
        self.client = Client(self.node)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.node.stop()

    def deploy(self, name, folder, stages):
        self.node.deploy(name, folder)
        self.client.invoke(name, CALL)
        placed = next((one for one in self.node.status()["pipelines"] if one["function"] == name), {"stages": []})
        if len(placed["stages"]) != stages:
            sys.exit(f"{name}: {placed}")

    def seconds(self, name):
        return self.client.invoke(name, CALL)[0]


def overhead(home):
    with Sliced(home, "1g.10gb,1g.10gb") as on:
        on.deploy("plain", task(home / "plain", ELEMENTS, ELEMENTS), 0)
        on.deploy("piped", alone(home / "piped"), 1)
        pairs = [(on.seconds("piped"), on.seconds("plain")) for _ in range(1500)][200:]
        piped, plain = (statistics.median(times) for times in zip(*pairs))
        report("pipeline_of_one_stage", piped * 1e6, "us", baseline=plain * 1e6, bound=1.02,
               note="a warm call, in turns; baseline: the same kernel task as a function of its own")


def median_call(home, mode, profiles, name, make, stages):
    """`make(folder)` writes the pipeline."""
    with Sliced(home, profiles, SOFTGPU_MODE=mode) as on:
        on.deploy(name, make(home / name), stages)
        return statistics.median([on.seconds(name) for _ in range(400)][50:])


def hops(home, mode):
    """Two components on two slices beside the first alone: the hop, and the second component's kernel. That two components on one slice
    take as long as on two would say nothing: they cost a round trip through the node, too."""
    one = median_call(home / "one", mode, "1g.10gb", "one", alone, 1)
    for name, middle in SIZES.items():
        split = median_call(home / name, mode, "1g.10gb,1g.10gb", "split", lambda folder, size=middle: pipeline(folder, size, 6), 2)
        hop = split - one
        link = middle / LINK_GB_S / 1e9
        bound = 1.3 * link + 1e-4 if name == "10mb" else 60e-6
        report(f"pipeline_hop_{name}_{mode}", hop * 1e6, "us", baseline=link * 1e6, bound=round(bound / link, 2),
               note=f"p50 of two components on two slices less p50 of one alone, so with the second one's kernel; baseline: bytes / "
                    f"{LINK_GB_S} GB/s of the modelled link; in mode fast a copy takes what this machine's memory takes")


def main():
    with tempfile.TemporaryDirectory(prefix="fairlead-pipeline-") as home:
        overhead(pathlib.Path(home) / "overhead")
        for mode in ("fast", "model"):
            hops(pathlib.Path(home) / mode, mode)


if __name__ == "__main__":
    main()
