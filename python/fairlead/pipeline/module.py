"""fairlead.Module: a PyTorch module that can be registered in a pipeline's DAG (the FluidFaaS paper's Figure 7).

    class Deblur(fairlead.Module):      # was: nn.Module; nothing else changes
        ...
    y = Deblur.reg(self, x)             # in a DAG method: made here, or
    y = self.deblur.reg(self, x)        # one that the pipeline has made, or
    y = self.deblur(x)                  # the same, written as before
"""

import functools
import inspect

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from fairlead.arrays import to_array
from fairlead.pipeline.pipeline import Value, snake_case
from fairlead.torch import from_module
from fairlead.torch.convert import TYPES as TYPE_NAMES
from fairlead.types import TaskError

DTYPES = {name: dtype for dtype, name in TYPE_NAMES.items()}


class _Register:
    """`reg`, of a class as well as of an object."""

    def __get__(self, module, owner):
        return functools.partial(_register, owner if module is None else module)


def _register(module, pipeline, *values, name=None, **keywords):
    made = module() if isinstance(module, type) else module
    return pipeline.module(made, *values, name=name, **keywords)


class Module(torch.nn.Module):
    """reg(pipeline, *values, name=None) registers the module with its inputs; types and shapes of its outputs are worked out
    from theirs. Returns a value, or a tuple of them. `outputs` may name them; else they are y, or y0, y1, ..."""

    outputs = None
    reg = _Register()

    def __call__(self, *arguments, **keywords):
        """With values of a pipeline: registers itself, so that a DAG method may read like the program that it was."""
        value = next((one for one in (*arguments, *keywords.values()) if isinstance(one, Value)), None)
        if value is not None:
            return value.pipeline.module(self, *arguments, **keywords)
        return super().__call__(*arguments, **keywords)


class ModuleBody:
    """A module as a component. It is put into evaluation mode."""

    needs_gpu = True
    takes = None

    def __init__(self, module):
        if not isinstance(module, torch.nn.Module):
            raise TaskError(f"a PyTorch module is wanted, not {type(module).__name__}")
        self.module = module.eval()
        self.inputs = [p.name for p in inspect.signature(module.forward).parameters.values()
                       if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self.outputs = None

    def default_name(self):
        return snake_case(type(self.module).__name__)

    def trace(self, tensors):
        """[(output, type, shape)], without computing anything: PyTorch's fake tensors have shapes and no elements."""
        self.tensors = tensors
        with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True):
            answer = self.module(**{name: torch.empty(shape, dtype=_dtype(type)) for name, (type, shape) in tensors.items()})
        results = list(answer) if isinstance(answer, (tuple, list)) else [answer]
        names = getattr(self.module, "outputs", None)
        names = list(names) if names else ["y"] if len(results) == 1 else [f"y{i}" for i in range(len(results))]
        if len(names) != len(results):
            raise TaskError(f"outputs names {len(names)}, forward() returns {len(results)} tensors")
        if not all(isinstance(result, torch.Tensor) for result in results):
            raise TaskError("forward() returns something that is no tensor")
        if set(names) & set(tensors):
            raise TaskError(f"outputs {names}: an input has the same name; a component's tensors need names of their own")
        for result in results:
            if result.dtype not in TYPE_NAMES:
                raise TaskError(f"forward() returns {result.dtype}, possible are {', '.join(map(str, TYPE_NAMES))}")
        self.outputs = [(name, TYPE_NAMES[r.dtype], tuple(r.shape) or (1,)) for name, r in zip(names, results)]
        return self.outputs

    def call(self, inputs):
        """In PyTorch on the CPU."""
        with torch.no_grad():
            answer = self.module(**{name: _tensor(value, self.tensors[name]) for name, value in inputs.items()})
        results = list(answer) if isinstance(answer, (tuple, list)) else [answer]
        return {name: to_array(_bytes(result), type, shape) for (name, type, shape), result in zip(self.outputs, results)}

    def export(self, tensors):
        """The kernel task."""
        examples = {name: torch.zeros(shape, dtype=_dtype(type)) for name, (type, shape) in self.tensors.items()}
        return from_module(self.module, (), examples, output_names=[name for name, _, _ in self.outputs])


def _dtype(type):
    if type not in DTYPES:
        raise TaskError(f"a module's input is {type}, possible are {', '.join(DTYPES)}")
    return DTYPES[type]


def _tensor(array, tensor):
    type, shape = tensor
    return torch.frombuffer(bytearray(memoryview(array).cast("B")), dtype=_dtype(type)).reshape(shape)


def _bytes(tensor):
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()) if tensor.dim() or tensor.numel() else b""
