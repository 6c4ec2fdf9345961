"""From torch.export's graph to a task: walks its nodes in order and keeps, for each, the value it has in the task."""

import contextlib
import operator

import torch

from fairlead.ktask import Task
from fairlead.ktask.graph import Tensor
from fairlead.torch.fusion import Pending
from fairlead.torch.operators import OPERATORS
from fairlead.types import TaskError

TYPES = {torch.float32: "f32", torch.float64: "f64", torch.complex64: "c64", torch.int32: "s32", torch.int64: "s64"}
# Checks that export leaves in the graph; they hold for these shapes.
IGNORED = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range_for_size")


class UnsupportedOperator(TaskError):
    """The module uses what a task cannot do; the message names the operator and the line it comes from."""


def from_module(module, example_inputs, example_keywords=None, output_names=None):
    """The task of a module in evaluation mode. Inputs are called as the arguments of its forward(), outputs "output",
    or "output0", "output1", ... where there are several, unless `output_names` are given."""
    if module.training:
        raise TaskError("the module is in training mode: call its eval() first")
    with torch.no_grad(), _plain_attention():
        program = torch.export.export(module, tuple(example_inputs), example_keywords or {})
        program = program.run_decompositions({})  # nothing is taken apart, but nothing is done in place any more
        return Converter(program, output_names).convert()


@contextlib.contextmanager
def _plain_attention():
    """PyTorch's transformer layers would else be one operator each, known to PyTorch alone."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


class Converter:
    def __init__(self, program, output_names=None):
        self.program, self.task, self.output_names = program, Task(), output_names
        self.values = {}      # node: tensor of the task, Pending, torch tensor (a constant), number, list
        self.constants = {}   # id of a torch tensor: (it, its tensor in the task)
        self.names = {}       # id of a parameter: its name in the module
        self.node = None

    def convert(self):
        if self.program.graph_signature.buffers_to_mutate:
            names = ", ".join(sorted(set(self.program.graph_signature.buffers_to_mutate.values())))
            raise UnsupportedOperator(f"the module changes its own state ({names}); a task has none")
        known = self._constants_by_placeholder()
        for node in self.program.graph.nodes:
            self.node = node
            if node.op == "placeholder":
                self.values[node] = known[node.name] if node.name in known else self._input(node)
            elif node.op == "call_function":
                self.values[node] = self._call(node)
            elif node.op == "output":
                self._outputs(node)
            else:
                self.refuse(f"{node.op} {node.target}")
        return self.task

    def _constants_by_placeholder(self):
        signature, program = self.program.graph_signature, self.program
        targets = {**signature.inputs_to_parameters, **signature.inputs_to_buffers,
                   **signature.inputs_to_lifted_tensor_constants}
        found = {}
        for name, target in targets.items():
            found[name] = (program.state_dict if target in program.state_dict else program.constants)[target].detach()
            self.names[id(found[name])] = target
        return found

    def _input(self, node):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return value  # a number, which export has made part of the graph
        return self.task.input(node.name, self._type(value.dtype), tuple(value.shape))

    def _type(self, dtype):
        if dtype not in TYPES:
            self.refuse(f"a tensor of {dtype}; possible are {', '.join(map(str, TYPES))}")
        return TYPES[dtype]

    # ---- one operator

    def _call(self, node):
        args = torch.fx.map_arg(node.args, self.values.__getitem__)
        keywords = torch.fx.map_arg(node.kwargs, self.values.__getitem__)
        if node.target is operator.getitem:
            return args[0][args[1]]
        if any(name in str(node.target) for name in IGNORED):
            return None
        if not _has_tensors((args, keywords)):
            return node.target(*args, **keywords)  # constants alone
        convert = OPERATORS.get(_name(node.target))
        if convert is None:
            self.refuse(_name(node.target))
        try:
            value = convert(self, *args, **keywords)
        except TypeError as error:  # an argument that the operator's function does not take
            self.refuse(f"{_name(node.target)} with these arguments: {error}")
        if isinstance(value, Pending) and len(node.users) > 1:
            return value.tensor()  # several read it: nothing of theirs can become part of it
        return value

    def tensor(self, value):
        """Of the task, whatever the value is."""
        if isinstance(value, Pending):
            return value.tensor()
        if isinstance(value, Tensor):
            return value
        if isinstance(value, torch.Tensor):
            return self._constant(value)
        self.refuse(f"{_name(self.node.target)} of {value!r}")

    def _constant(self, value):
        if id(value) not in self.constants:
            self._type(value.dtype)
            name = f"constant/{self.names.get(id(value), len(self.constants))}"
            tensor = self.task.constant(name, value, shape=tuple(value.shape) or (1,))
            self.constants[id(value)] = (value, tensor)  # kept: an id is of one object as long as that lives
        return self.constants[id(value)][1]

    def _outputs(self, node):
        results = [value for value in node.args[0] if value is not None]
        names = self.output_names or (["output"] if len(results) == 1 else [f"output{i}" for i in range(len(results))])
        for name, result in zip(names, results):
            self.task.output(name, self.tensor(self.values[result]))

    def refuse(self, what):
        raise UnsupportedOperator(f"{what} is not supported; it comes from {_origin(self.node)}")


def _name(target):
    """aten.conv2d.default is "conv2d"; overloads differ in their arguments' types only."""
    name = getattr(target, "_opname", None) or getattr(getattr(target, "_schema", None), "name", "").split("::")[-1]
    return name or str(target)


def _has_tensors(value):
    if isinstance(value, (list, tuple)):
        return any(map(_has_tensors, value))
    if isinstance(value, dict):
        return any(map(_has_tensors, value.values()))
    return isinstance(value, (Tensor, Pending))


def _origin(node):
    """The last line of the stack of the module's author, and the module's path."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
    files = [index for index, line in enumerate(lines) if line.startswith("File ")]
    where = " ".join(lines[files[-1]:files[-1] + 2]) if files else f"node {node.name}"
    modules = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values() if path]
    return f"{where}, module {modules[-1]}" if modules else where
