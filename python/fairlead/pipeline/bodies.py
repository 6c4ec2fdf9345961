"""What a component is made of: a kernel task, a program without a GPU, or a PyTorch module (module.py). A body says which
tensors it takes and gives, computes them here, and saves itself."""

import inspect
import pathlib
import shutil

from fairlead.arrays import checked, to_array
from fairlead.ktask import Task
from fairlead.types import TaskError, element_type, shape_of


class TaskBody:
    """A kernel task, built by hand or read from a folder."""

    needs_gpu = True

    def __init__(self, task):
        if not isinstance(task, Task):
            raise TaskError(f"a kernel task is wanted (fairlead.ktask.Task), not {type(task).__name__}")
        self.task, self.description = task, task.description()
        buffers = self.description["buffers"].items()
        self.takes = {name: (spec["type"], tuple(spec["shape"])) for name, spec in buffers if spec["role"] == "input"}
        self.inputs = list(self.takes)
        self.outputs = [(name, spec["type"], tuple(spec["shape"])) for name, spec in buffers if spec["role"] == "output"]

    def default_name(self):
        return "task"

    def trace(self, tensors):
        return self.outputs

    def call(self, inputs):
        return self.task.run(**inputs)

    def export(self, tensors):
        return self.task


class ProgramBody:
    """A Python function that needs no GPU: arrays in, an array or a tuple of them out."""

    needs_gpu = False
    takes = None

    def __init__(self, function, returns):
        if not inspect.isfunction(function) or function.__name__ == "<lambda>" or "<locals>" in function.__qualname__:
            raise TaskError(f"{function!r} is no function at the top of a file, which a node could find by its name")
        if "." in function.__qualname__:
            raise TaskError(f"{function.__qualname__} is a method; a function at the top of a file is wanted")
        self.function = function
        self.inputs = list(inspect.signature(function).parameters)
        self.outputs = [(name, element_type(type).name, shape_of(shape)) for name, (type, shape) in returns.items()]

    def default_name(self):
        return self.function.__name__

    def trace(self, tensors):
        return self.outputs

    def call(self, inputs):
        return call_program(self.function, inputs, self.outputs)

    def place(self, name):
        """What pipeline.json says of the program in the component of that name."""
        return {"file": f"{name}/{pathlib.Path(inspect.getsourcefile(self.function)).name}", "function": self.function.__name__}

    def save(self, folder):
        """Copies the function's file; as place()."""
        source = pathlib.Path(inspect.getsourcefile(self.function))
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / source.name
        if target.exists() and target.read_bytes() != source.read_bytes():
            raise TaskError(f"two files of programs are called {source.name}")
        shutil.copyfile(source, target)
        return self.place(folder.name)


def call_program(function, inputs, outputs):
    """{output: array} of a function called with {parameter: array}; `outputs`: [(name, type, shape)]."""
    answer = function(**inputs)
    answer = answer if isinstance(answer, tuple) else (answer,)
    if len(answer) != len(outputs):
        raise TaskError(f"{function.__name__} gave {len(answer)} outputs, {len(outputs)} are said")
    return {name: to_array(bytes(checked(value, type, shape, f"{function.__name__}'s {name}")), type, shape)
            for value, (name, type, shape) in zip(answer, outputs)}
