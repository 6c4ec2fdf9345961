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
import struct
import subprocess

from fairlead.arrays import as_array, to_array
from fairlead.ktask.local import load as load_task
from fairlead.pipeline.bodies import call_program
from fairlead.pipeline.description import check, check_task, program_of, read, sources_of, tensors_of
from fairlead.pipeline.errors import PipelineError
from fairlead.pipeline.execution import execute, pick
from fairlead.pipeline.pipeline import given
from fairlead.types import TYPES, element_count


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
        executables = [program for program in self._programs.values() if isinstance(program, Executable)]
        for one in [*self._tasks.values(), *executables]:
            one.close()
        self._tasks, self._programs = {}, {}

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


class Executable:
    """A program that is no Python: FILE FUNCTION, started at the first call. A request is the bytes of each input in the order of
    their names, to its input; it answers as __main__.py says."""

    def __init__(self, file, function, component):
        self.__name__, self._file, self._function, self._process = component["name"], file, function, None
        self._outputs = [(o["type"], o["shape"]) for o in component["outputs"]]

    def __call__(self, **inputs):
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen([self._file, self._function], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            for _, value in sorted(inputs.items()):
                self._process.stdin.write(memoryview(as_array(value).data))
            self._process.stdin.flush()
            failed = self._read(1) != b"\0"
            if failed:
                raise PipelineError(self._read(*struct.unpack("<I", self._read(4))).decode(errors="replace")[:2048])
            return tuple(to_array(self._read(element_count(shape) * TYPES[type_].bytes), type_, shape) for type_, shape in self._outputs)
        except OSError as error:
            raise PipelineError(f"{self._file.name} has ended: {error}") from error

    def _read(self, size):
        data = self._process.stdout.read(size)
        if len(data) != size:
            raise PipelineError(f"{self._file.name} ended after {len(data)} of {size} bytes of its answer")
        return data

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


def function_of(folder, component):
    """The function of a program, from the file that was copied when the pipeline was built."""
    path, name = program_of(component)
    file = (folder / path).resolve()
    if folder.resolve() not in file.parents:
        raise PipelineError(f"component {component['name']}: {path} is not inside the pipeline's folder")
    if file.suffix != ".py":
        return Executable(file, name, component)
    spec = importlib.util.spec_from_file_location(f"fairlead_program_{component['name']}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise PipelineError(f"component {component['name']}: {path} has no function {name}")
    return function
