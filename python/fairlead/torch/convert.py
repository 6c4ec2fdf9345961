"""From torch.export's graph to a task: walks its nodes in order and keeps, for each, the value it has in the task."""

import contextlib
import operator

import torch
from torch._export.utils import _get_decomp_for_cia

from fairlead.ktask import Task
from fairlead.ktask.graph import Tensor
from fairlead.ktask.library import KERNELS
from fairlead.torch import arithmetic, pictures  # noqa: F401  they register their operators
from fairlead.torch.fusion import Pending
from fairlead.torch.operators import OPERATORS
from fairlead.torch.places import MOVES
from fairlead.types import TaskError

TYPES = {torch.float32: "f32", torch.float64: "f64", torch.complex64: "c64", torch.int32: "s32", torch.int64: "s64",
         torch.float16: "f16", torch.bfloat16: "bf16", torch.bool: "u8"}
DTYPES = {name: dtype for dtype, name in TYPES.items()}
HALVES = {"f16": torch.float16, "bf16": torch.bfloat16}
# Checks that export leaves in the graph; they hold for these shapes.
IGNORED = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range_for_size")
MOST_DECOMPOSITIONS = 20
# Random by their tags: these refuse to be, or are when their dropout is, which then is refused where they are taken apart.
CHECKED = ("dropout", "native_dropout", "scaled_dot_product_attention")
# PyTorch computes these in f32 and rounds once; their parts would round many times in f16 and bf16.
ROUNDED_ONCE = ("grid_sampler", "grid_sampler_2d", "upsample_bicubic2d", "upsample_linear1d", "upsample_trilinear3d")
RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


class UnsupportedOperator(TaskError):
    """The module uses what a task cannot do; the message names the operator and the line it comes from. `target`: it."""

    target = None


def from_module(module, example_inputs, example_keywords=None, output_names=None):
    """The task of a module in evaluation mode. Inputs are called as the arguments of its forward(), outputs "output",
    or "output0", "output1", ... where there are several, unless `output_names` are given.

    An operator without kernels is taken apart by PyTorch's own decomposition of it, and again, until all have kernels; what
    cannot be taken apart is refused by name. f16 and bf16 are computed with in f32 and rounded once for each operator."""
    if module.training:
        raise TaskError("the module is in training mode: call its eval() first")
    with torch.no_grad(), _plain_attention():
        program = torch.export.export(module, tuple(example_inputs), example_keywords or {})
        program = program.run_decompositions({})  # nothing is taken apart, but nothing is done in place any more
        return _converted(program, output_names)


def _converted(program, output_names):
    apart, first = {}, None
    for _ in range(MOST_DECOMPOSITIONS):
        targets = _targets(program)
        missing = {target for target in targets if _name(target) not in OPERATORS and target not in apart}
        _refuse_many_roundings(program, missing)
        found = {target: decomposition for target in missing if (decomposition := _decomposition(target))}
        if not found:
            try:
                return Converter(program, output_names).convert()
            except UnsupportedOperator as error:
                decomposition = _decomposition(error.target)
                first = first or error  # what its parts lack would name operators that nobody wrote
                if decomposition is None or error.target in apart:
                    raise first from None
                found = {error.target: decomposition}
        apart.update(found)
        try:
            program = _apart(program, apart, found)
        except UnsupportedOperator:
            if first:
                raise first from None
            raise
    raise UnsupportedOperator(f"{', '.join(sorted(map(_name, apart)))}: taken apart {MOST_DECOMPOSITIONS} times, and not done")


def _refuse_many_roundings(program, targets):
    for node in program.graph.nodes:
        if node.target in targets and _name(node.target) in ROUNDED_ONCE:
            inputs = [source.meta.get("val") for source in node.all_input_nodes]
            if any(isinstance(val, torch.Tensor) and val.dtype in (torch.float16, torch.bfloat16) for val in inputs):
                error = UnsupportedOperator(f"{_name(node.target)} in f16 or bf16 is not supported; it comes from {_origin(node)}")
                error.target = node.target
                raise error


def _targets(program):
    """The operators of what inputs go into; what depends on constants alone is computed here."""
    signature, moving = program.graph_signature, set()
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in signature.user_inputs or any(n in moving for n in node.all_input_nodes):
            moving.add(node)
    return {node.target for node in moving if node.op == "call_function"}


def _apart(program, apart, found):
    try:
        return program.run_decompositions(dict(apart))
    except Exception as failure:  # PyTorch's decompositions raise what they like
        node = next((n for n in program.graph.nodes if n.target in found), None)
        where = f"; it comes from {_origin(node)}" if node else ""
        names = ", ".join(sorted(map(_name, found)))
        raise UnsupportedOperator(f"{names} is not supported, and PyTorch cannot take it apart here "
                                  f"({str(failure).strip().splitlines()[0][:120] if str(failure).strip() else type(failure).__name__})"
                                  f"{where}") from failure


def _decomposition(target):
    """PyTorch's own, or None. What is random stays whole, to be refused by its name."""
    if not isinstance(target, torch._ops.OpOverload):
        return None
    if torch.Tag.nondeterministic_seeded in target.tags and _name(target) not in RECURRENT:
        return None
    table = torch._decomp.decomposition_table
    if target in table:
        return table[target]
    if target.namespace != "aten" or not target._can_decompose():
        return None
    return _get_decomp_for_cia(target)


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
        self.floats = {}      # id of a torch tensor of f16 or bf16: (it, the same in f32)
        self.fills = {}       # (type, value): torch tensor of one element
        self.node, self.computes = None, True

    def convert(self):
        signature = self.program.graph_signature
        changed = [*signature.buffers_to_mutate.values(), *getattr(signature, "user_inputs_to_mutate", {}).values(),
                   *getattr(signature, "parameters_to_mutate", {}).values()]
        if changed:
            raise UnsupportedOperator(f"the module changes its own state ({', '.join(sorted(set(changed)))}); a task has none")
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
        if value.dtype == torch.uint8:  # bytes, which the module makes numbers of
            return self.task.input(node.name, "u8", tuple(value.shape))
        return self.task.input(node.name, self._type(value.dtype), tuple(value.shape) or (1,)).reshape(tuple(value.shape))

    def _type(self, dtype):
        if dtype not in TYPES:
            self.refuse(f"a tensor of {dtype}; possible are {', '.join(map(str, TYPES))}")
        return TYPES[dtype]

    # ---- one operator

    def _call(self, node):
        args = torch.fx.map_arg(node.args, self.values.__getitem__)
        keywords = torch.fx.map_arg(node.kwargs, self.values.__getitem__)
        if node.target is operator.getitem:
            if args[0][args[1]] is None:
                self.refuse(f"output {args[1]} of {_name(node.args[0].target)}")
            return args[0][args[1]]
        name = _name(node.target)
        if any(ignored in name for ignored in IGNORED):
            return None
        if isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags \
                and name not in CHECKED:
            self.refuse(f"{name}, which is random,")
        if not _has_tensors((args, keywords)):
            return node.target(*args, **keywords)  # constants alone
        convert = OPERATORS.get(name)
        if convert is None:
            self.refuse(name)
        moves = name in MOVES
        self.computes = not moves
        self._check_bytes(node, name, moves)
        if not moves:
            args, keywords = self._in_floats(args), self._in_floats(keywords)
        try:
            value = convert(self, *args, **keywords)
        except UnsupportedOperator:
            raise
        except TaskError as error:
            self.refuse(f"{name}: {error}:")
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:  # arguments that its function does not take
            self.refuse(f"{name} with these arguments: {error}:")
        value = self._as_said(name, value, node.meta.get("val"))
        if isinstance(value, Pending) and len(node.users) > 1:
            return value.tensor()  # several read it: nothing of theirs can become part of it
        return value

    def _check_bytes(self, node, name, moves):
        """uint8 is for moving and for making numbers of; truth values have the same bytes and other rules."""
        dtypes = [val.dtype for source in node.all_input_nodes if isinstance(val := source.meta.get("val"), torch.Tensor)]
        result = node.meta.get("val")
        gives = isinstance(result, torch.Tensor) and result.dtype == torch.uint8
        to_number = name in ("to", "_to_copy", "prims::convert_element_type") and isinstance(result, torch.Tensor) \
            and result.dtype.is_floating_point
        if not moves and (torch.uint8 in dtypes and not to_number or gives):
            self.refuse(f"{name} of torch.uint8")

    def _in_floats(self, value):
        """f16 and bf16 as f32."""
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._in_floats, value)) if isinstance(value, (list, tuple)) and type(value) in (list, tuple) \
                else [self._in_floats(one) for one in value]
        if isinstance(value, dict):
            return {name: self._in_floats(one) for name, one in value.items()}
        if isinstance(value, Tensor) and value.type.name in HALVES:
            return self.task.convert(value, "f32")
        if isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16):
            return self._float_constant(value)
        return value

    def _float_constant(self, value):
        if id(value) not in self.floats:
            wide = value.float()
            self.names[id(wide)] = self.names.get(id(value), f"half{len(self.floats)}")
            self.floats[id(value)] = (value, wide)
        return self.floats[id(value)][1]

    def _as_said(self, name, value, meta):
        """What the operator gave, in the type and of the shape that export says; anything else is refused."""
        if isinstance(meta, (list, tuple)):
            if not isinstance(value, (list, tuple)):
                self.refuse(f"{name} with several results")
            return [None if one is None else self._as_said(name, one, said) for one, said in zip(value, meta)]
        if not isinstance(meta, torch.Tensor) or value is None:
            return value
        if isinstance(value, torch.Tensor):
            value = value.to(meta.dtype) if value.dtype == torch.float32 and TYPES.get(meta.dtype) in HALVES else value
            if (value.dtype, value.shape) != (meta.dtype, meta.shape):
                self.refuse(f"{name} that gives {value.dtype}{list(value.shape)}")
            return value
        if tuple(value.shape) != tuple(meta.shape):
            self.refuse(f"{name}, which gives {tuple(value.shape)} where PyTorch gives {tuple(meta.shape)},")
        wanted = "u8" if meta.dtype == torch.uint8 else self._type(meta.dtype)
        if isinstance(value, Pending):
            if wanted not in HALVES:
                return value
            value = value.tensor()
        if value.type.name == wanted:
            return value
        if value.type.name == "f32" and wanted in HALVES:
            return self.task.convert(value, wanted)
        self.refuse(f"{name}, which gives {value.type} where PyTorch gives {meta.dtype},")

    # ---- what operators ask

    def node_name(self):
        return _name(self.node.target)

    def meta(self, index):
        return self.node.args[index].meta["val"]

    def dtype_of(self, index, name):
        """Of an argument, or None where that is no tensor of the graph."""
        said = self.node.args[index] if len(self.node.args) > index else self.node.kwargs.get(name)
        value = said.meta.get("val") if isinstance(said, torch.fx.Node) else None
        return value.dtype if isinstance(value, torch.Tensor) else None

    def is_bool(self, value):
        return value.dtype == torch.bool if isinstance(value, torch.Tensor) else value.type.name == "u8"

    def is_read(self, index):
        """Whether somebody reads result `index` of this operator."""
        return any(user.target is operator.getitem and user.args[1] == index for user in self.node.users)

    def epsilon(self):
        """The smallest step at 1, of the type of the operator's first argument."""
        return torch.finfo(self.meta(0).dtype).eps

    def result_dtype(self):
        said = self.node.meta["val"]
        dtype = (said[0] if isinstance(said, (list, tuple)) else said).dtype
        return torch.float32 if self.computes and dtype in (torch.float16, torch.bfloat16) else dtype

    def result_type(self):
        """The type in which the result is computed: f32 for f16 and bf16, unless the operator moves only."""
        return self._type(self.result_dtype())

    def result_shape(self):
        said = self.node.meta["val"]
        return tuple((said[0] if isinstance(said, (list, tuple)) else said).shape)

    def common_type(self):
        """The type in which PyTorch computes with the first two arguments."""
        both = [said.meta["val"] if isinstance(said, torch.fx.Node) else said for said in self.node.args[:2]]
        both = [said for said in both if isinstance(said, (torch.Tensor, int, float, complex))]
        name = self._type(torch.result_type(*both) if len(both) == 2 else both[0].dtype)
        return "f32" if name in HALVES else name

    def filled(self, type, value):
        """A constant without dimensions."""
        key = (type, repr(value))
        if key not in self.fills:
            self.fills[key] = torch.full((), value, dtype=DTYPES[type])
        return self._constant(self.fills[key])

    def as_type(self, value, type, keep_halves=False):
        """The tensor, converted as PyTorch converts."""
        x = self.tensor(value)
        if x.type.name == type:
            return x
        if type == "u8":
            return self.task.strided("ne", x, self.filled(x.type.name, 0))
        if f"convert_{x.type.name}_{type}" in KERNELS:
            return self.task.convert(x, type)
        if x.type.name in ("u8", "s32", "f16", "bf16") and f"convert_f32_{type}" in KERNELS and x.type.name != type:
            return self.task.convert(self.task.convert(x, "f32"), type) if x.type.name != "s32" else self.refuse(f"{x.type} as {type}")
        self.refuse(f"a conversion from {x.type} to {type}")

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
            type = self._type(value.dtype)
            name = f"constant/{self.names.get(id(value), len(self.constants))}"
            name = name if name not in self.task._named else f"{name}#{len(self.constants)}"
            data = value.view(torch.int16) if type == "bf16" else value
            tensor = self.task.constant(name, data, type=type, shape=tuple(value.shape) or (1,)).reshape(tuple(value.shape))
            self.constants[id(value)] = (value, tensor)  # kept: an id is of one object as long as that lives
        return self.constants[id(value)][1]

    def _outputs(self, node):
        results = [value for value in node.args[0] if value is not None]
        names = self.output_names or (["output"] if len(results) == 1 else [f"output{i}" for i in range(len(results))])
        for name, result in zip(names, results):
            if not isinstance(result, torch.fx.Node) or not isinstance(result.meta.get("val"), torch.Tensor):
                self.refuse(f"an output that is no tensor ({result})")
            self.task.output(name, self.tensor(self.values[result]))

    def refuse(self, what):
        error = UnsupportedOperator(f"{what} is not supported; it comes from {_origin(self.node)}")
        error.target = self.node.target
        raise error


def _name(target):
    """aten.conv2d.default is "conv2d"; overloads differ in their arguments' types only. Of others with their namespace."""
    if isinstance(target, torch._ops.OpOverload):
        return target._opname if target.namespace == "aten" else f"{target.namespace}::{target._opname}"
    return getattr(target, "__name__", str(target))


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
