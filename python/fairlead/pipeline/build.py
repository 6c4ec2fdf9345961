"""Build mode: exports each component into a kernel task of its own and writes pipeline.json beside them."""

import json
import math
import statistics
import time

from fairlead.arrays import checked, to_array
from fairlead.ktask.graph import buffer_bytes
from fairlead.pipeline.description import check, check_task, sources_of, tensors_of
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
                if measure:
                    component["profile"] = {"ms": {"host": time_program_ms(body, component, tensors, repeats)}}
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
    with task.load() as loaded:
        inputs = {name: checked(_zeros(spec["type"], spec["shape"]), spec["type"], spec["shape"], name)
                  for name, spec in loaded.buffers.items() if spec["role"] == "input"}
        return _timed(lambda: loaded(**inputs), repeats)


def time_program_ms(body, component, tensors, repeats):
    """The same of a program, on the processor of this machine."""
    of = {target: tensors[sources_of(said)[0]] for target, said in component["inputs"].items()}
    inputs = {target: to_array(_zeros(type_, shape), type_, shape) for target, (type_, shape) in of.items()}
    return _timed(lambda: body.call(inputs), repeats)


def _zeros(type_, shape):
    return bytes(element_count(shape) * TYPES[type_].bytes)


def _timed(call, repeats):
    if not 1 <= repeats <= 10_000:
        raise TaskError(f"repeats is {repeats}, 1 to 10000 is possible")
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return [round(statistics.mean(times), 4), round(statistics.stdev(times) if repeats > 1 else 0.0, 4), repeats]
