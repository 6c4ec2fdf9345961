"""Build mode: exports each component into a kernel task of its own and writes pipeline.json beside them."""

import json
import math
import statistics
import time

from fairlead.arrays import checked
from fairlead.ktask.graph import buffer_bytes
from fairlead.pipeline.description import check, check_task, tensors_of
from fairlead.pipeline.errors import PipelineError, at
from fairlead.types import TYPES, TaskError, element_count

MIB = 1 << 20


def write_pipeline(pipeline, folder, measure, repeats):
    graph = json.loads(json.dumps(pipeline.graph()))  # what is added here is the folder's, not the pipeline's
    tensors = tensors_of(graph)
    folder.mkdir(parents=True, exist_ok=True)
    for component in graph["components"]:
        name = component["name"]
        body, line = pipeline._state["bodies"][name], pipeline._state["lines"][name]
        try:
            if not body.needs_gpu:
                component["program"] = body.save(folder / name)
                continue
            task = body.export(tensors)
            check_task(component, task.description(), tensors, line)
            task.save(folder / name)
            component["profile"] = {"memory_mib": memory_mib(task.description())}
            if measure:
                component["profile"]["ms"] = {measure: time_ms(task, repeats)}
        except PipelineError:
            raise
        except TaskError as error:
            raise PipelineError(f"component {name}: {error}{at(line)}") from error
    check(graph, pipeline._state["lines"])
    (folder / "pipeline.json").write_text(json.dumps(graph, indent=1) + "\n")
    return folder


def memory_mib(description):
    """{"weights", "peak"}: what a task's buffers take on a device; modules and the context come on top."""
    sizes = {name: buffer_bytes(name, spec) for name, spec in description["buffers"].items()}
    weights = sum(size for name, size in sizes.items() if description["buffers"][name]["role"] == "constant")
    return {"weights": math.ceil(weights / MIB * 1e6) / 1e6, "peak": math.ceil(sum(sizes.values()) / MIB * 1e6) / 1e6}


def time_ms(task, repeats):
    """[mean, standard deviation, runs] of a warm call with inputs of zeros."""
    if not 1 <= repeats <= 10_000:
        raise TaskError(f"repeats is {repeats}, 1 to 10000 is possible")
    with task.load() as loaded:
        inputs = {}
        for name, spec in loaded.buffers.items():
            if spec["role"] == "input":
                size = element_count(spec["shape"]) * TYPES[spec["type"]].bytes
                inputs[name] = checked(bytes(size), spec["type"], spec["shape"], name)
        loaded(**inputs)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            loaded(**inputs)
            times.append((time.perf_counter() - start) * 1e3)
    return [round(statistics.mean(times), 4), round(statistics.stdev(times) if repeats > 1 else 0.0, 4), repeats]
