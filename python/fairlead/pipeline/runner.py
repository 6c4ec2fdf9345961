"""Run mode without a node: the plain reference of what a node answers for the same folder. Stages run one after the other,
each with tasks of its own; from stage to stage go only the tensors that cross, as bytes.

    with fairlead.pipeline.load("dir", stages=[["deblur", "sr"], ["depth"]]) as run:
        run(image=array)["depth"]
        run.ran                           # the components that ran for the last call
"""

import importlib.util
import itertools
import json
import pathlib

from fairlead.arrays import to_array
from fairlead.ktask.local import load as load_task
from fairlead.pipeline.bodies import call_program
from fairlead.pipeline.description import check, check_task, program_of, read, sources_of, tensors_of
from fairlead.pipeline.errors import PipelineError
from fairlead.pipeline.execution import execute, pick
from fairlead.pipeline.pipeline import given


def load(folder, stages=None):
    """The pipeline of a folder. stages: lists of component names, all together once each; None: one stage."""
    return LocalPipeline(pathlib.Path(folder), stages)


def partitions(names):
    """All consecutive partitions of a list, 2^(n-1): [[a, b]], [[a], [b]], ..."""
    for cuts in itertools.product((False, True), repeat=len(names) - 1):
        stages = [[names[0]]]
        for name, cut in zip(names[1:], cuts):
            if cut:
                stages.append([])
            stages[-1].append(name)
        yield stages


class LocalPipeline:
    """A context manager; calling it runs one request. Not thread-safe."""

    def __init__(self, folder, stages=None):
        self.description = read(folder)
        order = check(self.description)
        self.tensors, self.ran = tensors_of(self.description), []
        self._tasks, self._programs = {}, {}
        self.stages = [[next(c for c in order if c["name"] == name) for name in stage]
                       for stage in _checked_stages(stages, [c["name"] for c in order])]
        try:
            for component in order:
                self._load(component, folder)
        except Exception:
            self.close()
            raise

    def _load(self, component, folder):
        name = component["name"]
        if program_of(component):
            self._programs[name] = function_of(folder, component)
            return
        check_task(component, json.loads((folder / component["task"] / "task.json").read_text()), self.tensors)
        self._tasks[name] = load_task(folder / component["task"])

    def __call__(self, **inputs):
        """{output: array}"""
        crossing, self.ran = given(self.description, inputs), []
        for stage in self.stages:
            values = {name: value for name, value in crossing.items() if name in _needed(stage)}
            self.ran += execute(stage, values, self.tensors, self._call)
            crossing.update((name, self._as_bytes(name, value)) for name, value in values.items() if name not in crossing)
        return {entry["name"]: crossing[pick(entry["from"], crossing)] for entry in self.description["outputs"]}

    def _call(self, component, arrays):
        name = component["name"]
        if name in self._tasks:
            return self._tasks[name](**arrays)
        return call_program(self._programs[name], arrays, [(o["name"], o["type"], o["shape"]) for o in component["outputs"]])

    def _as_bytes(self, name, value):
        return to_array(bytes(memoryview(value).cast("B")), *self.tensors[name])

    def close(self):
        for task in self._tasks.values():
            task.close()
        self._tasks = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _needed(stage):
    """Names of the tensors that a stage's components may read."""
    names = {source for c in stage for said in c["inputs"].values() for source in sources_of(said)}
    return names | {c["when"]["value"] for c in stage if c.get("when")}


def _checked_stages(stages, order):
    if stages is None:
        return [order]
    flat = [name for stage in stages for name in stage]
    if sorted(flat) != sorted(order):
        raise PipelineError(f"stages have {flat}, the components are {order}: each once is wanted")
    return [sorted(stage, key=order.index) for stage in stages]


def function_of(folder, component):
    """The function of a program, from the file that was copied when the pipeline was built."""
    path, name = program_of(component)
    file = (folder / path).resolve()
    if folder.resolve() not in file.parents:
        raise PipelineError(f"component {component['name']}: {path} is not inside the pipeline's folder")
    spec = importlib.util.spec_from_file_location(f"fairlead_program_{component['name']}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise PipelineError(f"component {component['name']}: {path} has no function {name}")
    return function
