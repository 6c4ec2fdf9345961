"""What a call from Ray costs: python bench/ray_bench.py [--build build], run by a Python that has Ray (tests/requirements-ray.txt).

Three raylets and three nodes of one machine, or --nodes. Each comparison is made in turns in the same run, because the machine is never quiet:

    ktask_over_actor          a kernel task with 1 KB in and out, beside an actor of asyncio that gives back its argument; of the medians
    ktask_over_actor_10mb     the same with 10 MB
    chain_moved_bytes         of a chain of six kernel tasks with device references, 10 MB each: beyond the first input
    mib                       PSS of everything that belongs to the cluster: Ray's processes, fairlead.ray's actors, the nodes
    prints one JSON object"""

import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import numpy  # noqa: E402
import ray  # noqa: E402

import fairlead.ray as fr  # noqa: E402
from fairlead import ktask  # noqa: E402
from fairlead.ray.ray_library import named_actor  # noqa: E402
from harness.ray_cluster import RayCluster  # noqa: E402

TURNS = 6


class Bare:
    async def call(self, order, bundle, value):
        return value


def doubling(count):
    task = ktask.Task()
    task.output("y", task.scale(task.input("x", "f32", (count,)), 2.0))
    return task


def median_ms(call, count):
    times = []
    for _ in range(count):
        start = time.perf_counter()
        ray.get(call())
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def in_turns(first, second, count):
    """(median of first, of second, median of the ratios) over TURNS turns."""
    for call in (first, second):
        median_ms(call, count)
    pairs = [(median_ms(first, count), median_ms(second, count)) for _ in range(TURNS)]
    return (statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs),
            statistics.median(pair[1] / pair[0] for pair in pairs))


def measure(cluster):
    head = next(node["NodeID"] for node in ray.nodes() if node["Labels"].get("fairlead-node") == "a")
    pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(head, soft=False)
    bare = ray.remote(Bare).options(num_cpus=0, max_concurrency=1000, scheduling_strategy=pinned).remote()
    said = {}
    memory = cluster.memory_bytes()
    said["nodes"] = len(cluster.names)
    said["mib"] = round(sum(memory.values()) / (1 << 20))
    said["memory_mib"] = {name: round(size / (1 << 20), 1) for name, size in sorted(memory.items(), key=lambda one: -one[1])}
    for name, elements, count in (("", 256, 30), ("_10mb", 2_500_000, 3)):
        task, array = fr.ktask(doubling(elements), node="a"), numpy.ones(elements, "f4")
        actor, kernel, ratio = in_turns(lambda array=array: bare.call.remote(None, None, array), lambda task=task, array=array: task.remote(x=array),
                                        count)
        said[f"actor{name}_ms"], said[f"ktask{name}_ms"], said[f"ktask_over_actor{name}"] = round(actor, 3), round(kernel, 3), round(ratio, 3)
    task, array = fr.ktask(doubling(2_500_000), node="a", keep="device"), numpy.ones(2_500_000, "f4")
    before = ray.get(named_actor("executor/a").look.remote())
    ref = task.remote(x=array)
    for _ in range(5):
        ref = task.remote(x=ref)
    ray.get(ref)
    after = ray.get(named_actor("executor/a").look.remote())
    said["chain_moved_bytes"] = sum(after["moved"].values()) - sum(before["moved"].values()) - array.nbytes
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--nodes", type=int, choices=(1, 2, 3), default=3, help="Ray nodes; with fewer the machine has less to do beside the calls")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fr-", dir="/tmp"))
    cluster = RayCluster(folder, options.build, ("a", "b", "c")[:options.nodes])
    try:
        cluster.start()
        cluster.fairlead_ray("up", cluster.write_file())
        import os
        os.environ.update({name: value for name, value in cluster.environment.items() if name.startswith(("RAY_", "PYTHONPATH"))})
        ray.init(address=cluster.address, log_to_driver=False)
        print(json.dumps(measure(cluster), indent=1))
    finally:
        ray.shutdown()
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
