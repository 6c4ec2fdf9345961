"""The graph of the KaaS paper's Figure 1, CPU function, kernels, CPU function, as Ray code, and beside it the same graph of plain Ray tasks.

    python examples/ray/figure1.py [RUNS]     on a Ray cluster that `python -m fairlead.ray up cluster.toml` has been run on

Kernel tasks: the two kernel steps are calls of Fairlead. What is between them stays on the GPU, and the weights are there since the first call.
Plain: each kernel step is a Ray task, so a process of its own, with a CUDA context, modules and weights of its own; what is between them
comes to the host, goes into Ray's object store, and back."""

import statistics
import sys
import time

import numpy
import ray

import fairlead.ray as fr
from fairlead import ktask

ROWS, WIDTH, CLASSES = 32, 256, 10


def weights(seed, *shape):
    return (numpy.random.default_rng(seed).standard_normal(shape) / numpy.sqrt(shape[0])).astype("f4")


def features():
    task = ktask.Task()
    x = task.input("x", "f32", (ROWS, WIDTH))
    task.output("y", task.relu(x @ task.constant("w", weights(1, WIDTH, WIDTH))))
    return task


def scores():
    task = ktask.Task()
    x = task.input("x", "f32", (ROWS, WIDTH))
    task.output("y", task.softmax(x @ task.constant("w", weights(2, WIDTH, CLASSES))))
    return task


# ---- the two ends, which are ordinary Ray tasks in both

@ray.remote(num_cpus=0)
def prepare(seed):
    picture = numpy.random.default_rng(seed).integers(0, 256, (ROWS, WIDTH))
    return ((picture - 127.5) / 127.5).astype("f4")


@ray.remote(num_cpus=0)
def best(score):
    return [int(row) for row in fr.get(score).argmax(axis=1)] if isinstance(score, fr.DeviceRef) else [int(row) for row in score.argmax(axis=1)]


# ---- with kernel tasks

def graph_of_kernel_tasks(seed, first, second):
    return best.remote(second.remote(x=first.remote(x=prepare.remote(seed))))


# ---- with plain Ray tasks

LOADED = {}  # of one worker


@ray.remote(num_cpus=0)
def on_a_gpu_of_its_own(which, x):
    if which not in LOADED:
        LOADED[which] = {"features": features, "scores": scores}[which]().load()
    return LOADED[which](x=x)["y"]


def graph_of_plain_tasks(seed):
    return best.remote(on_a_gpu_of_its_own.remote("scores", on_a_gpu_of_its_own.remote("features", prepare.remote(seed))))


def timed(run, count):
    """(the first in ms, the median of the others in ms, answers)"""
    times, answers = [], []
    for seed in range(count):
        start = time.perf_counter()
        answers.append(ray.get(run(seed)))
        times.append((time.perf_counter() - start) * 1e3)
    return times[0], statistics.median(times[1:]), answers


def main():
    count = max(2, int(sys.argv[1])) if len(sys.argv) > 1 else 10
    if not ray.is_initialized():
        ray.init(address="auto", log_to_driver=False)
    first, second = fr.ktask(features(), keep="device"), fr.ktask(scores())
    kernel = timed(lambda seed: graph_of_kernel_tasks(seed, first, second), count)
    plain = timed(graph_of_plain_tasks, count)
    assert kernel[2] == plain[2], "both compute the same"
    print(f"{'':24}{'first':>10}{'median':>10}")
    print(f"{'kernel tasks':24}{kernel[0]:7.1f} ms{kernel[1]:7.1f} ms")
    print(f"{'plain Ray tasks':24}{plain[0]:7.1f} ms{plain[1]:7.1f} ms")


if __name__ == "__main__":
    main()
