"""Element by element, and reductions: types as PyTorch promotes them, NaN as PyTorch passes it on."""

import math

import torch

from fairlead.torch.fusion import Pending
from fairlead.torch.operators import OPERATORS, aten, shape_of
from fairlead.types import element_count

NUMBERS = (int, float, complex, bool)
FLOATS = ("f32", "f64")
# ATen's name: the kernel's
FUNCTIONS = {"silu": "silu", "exp": "exp_precise", "log": "log_precise", "sqrt": "sqrt", "rsqrt": "rsqrt", "square": "square",
             **{name: name for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf",
                                        "expm1", "log1p", "log2", "log10", "reciprocal")}}
ROUNDINGS = ("floor", "ceil", "round", "trunc", "sign")


def _activation(name, kernel):
    def activate(c, x):
        if isinstance(x, Pending) and x.can_be_activated():
            return x.activated(name)
        return c.task.unary(kernel, c.as_type(x, "f32"))
    return activate


OPERATORS.update(relu=_activation("relu", "relu"), tanh=_activation("tanh", "tanh_precise"),
                 sigmoid=_activation("sigmoid", "sigmoid_precise"))
for _name, _kernel in FUNCTIONS.items():
    OPERATORS[_name] = lambda c, x, kernel=_kernel: c.task.unary(kernel, c.as_type(x, "f32"))


def _rounding(name):
    def rounded(c, x, *, decimals=0):
        if decimals:
            c.refuse(f"{name} to {decimals} decimals")
        x = c.tensor(x)
        return c.task.unary(name, x) if x.type.name == "f32" or name == "sign" else x  # a whole number is whole
    return rounded


for _name in ROUNDINGS:
    OPERATORS[_name] = _rounding(_name)


@aten("gelu")
def gelu(c, x, *, approximate="none"):
    if isinstance(x, Pending):
        return _activation("gelu_tanh" if approximate == "tanh" else "gelu", None)(c, x) if x.can_be_activated() else gelu(c, x.tensor())
    x = c.tensor(x)
    if approximate == "tanh":
        return c.task.unary("gelu_tanh", x)
    half = c.task.scale(c.task.unary("erf", c.task.scale(x, math.sqrt(0.5))), 0.5, 0.5)
    return c.task.binary("mul", x, half)


@aten("abs")
def abs_(c, x):
    x = c.tensor(x)
    return c.task.unary("abs", x) if x.type.name == "f32" else c.task.strided("max", x, neg(c, x))


@aten("neg")
def neg(c, x):
    x = c.tensor(x)
    return c.task.scale(x, -1) if x.type.name in FLOATS else c.task.strided("mul", x, c.filled(x.type.name, -1))


# ---- of two


def _pair(c, a, b):
    """Both as tensors of the type that PyTorch computes in."""
    type = c.common_type()
    return tuple(c.filled(type, x) if isinstance(x, NUMBERS) else c.as_type(x, type) for x in (a, b))


def _number(value):
    """A constant of one element without dimensions is a number."""
    return value.item() if isinstance(value, torch.Tensor) and value.dim() == 0 else value


def _binary(c, name, a, b):
    a, b = _number(a), _number(b)
    type = c.common_type()
    if type not in FLOATS:
        if type == "u8":
            c.refuse(f"{name} of truth values")
        return c.task.strided(name, *_pair(c, a, b))
    for one, other in ((a, b), (b, a)):
        if isinstance(other, (int, float)) and name in ("add", "mul"):
            return getattr(c.task, name)(c.as_type(one, type), float(other))
    if isinstance(a, (int, float)) and name == "sub":
        return c.task.scale(c.as_type(b, type), -1, float(a))
    if isinstance(b, (int, float)) and name == "sub":
        return c.task.scale(c.as_type(a, type), 1, -float(b))
    return c.task.binary(name, *_pair(c, a, b))


@aten("add")
def add(c, a, b, *, alpha=1):
    if alpha != 1:
        b = b * alpha if isinstance(b, NUMBERS) else _times(c, b, alpha)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Pending) and one.is_plain() and not isinstance(other, NUMBERS) \
                and tuple(one.shape) == shape_of(other) and c.common_type() == "f32":
            return one.plus(c.as_type(other, "f32"))
    return _binary(c, "add", a, b)


def _times(c, x, factor):
    x = c.as_type(x, c.common_type())
    if x.type.name in FLOATS:
        return c.task.scale(x, factor)
    return c.task.strided("mul", x, c.filled(x.type.name, factor))


@aten("sub")
def sub(c, a, b, *, alpha=1):
    if alpha != 1:
        b = b * alpha if isinstance(b, NUMBERS) else _times(c, b, alpha)
    return _binary(c, "sub", a, b)


@aten("rsub")
def rsub(c, a, b, *, alpha=1):
    return sub(c, b, a, alpha=alpha)


@aten("mul")
def mul(c, a, b):
    if c.common_type() == "u8":  # truth: both
        return c.task.strided("and", *_pair(c, a, b))
    return _binary(c, "mul", a, b)


@aten("div")
def div(c, a, b, *, rounding_mode=None):
    type = c.common_type()
    if type not in FLOATS:
        if rounding_mode == "floor":
            return c.task.strided("quotient", *_pair(c, _number(a), _number(b)))
        if rounding_mode:
            c.refuse(f"a division of whole numbers, rounded by {rounding_mode}")
        type = "f32"
    a, b = (c.filled(type, x) if isinstance(x, NUMBERS) else c.as_type(x, type) for x in map(_number, (a, b)))
    if rounding_mode == "floor":
        c.refuse("a division that is rounded down")
    out = c.task.binary("div", a, b)
    return c.task.unary("trunc", out) if rounding_mode == "trunc" else out


@aten("floor_divide")
def floor_divide(c, a, b):
    return div(c, a, b, rounding_mode="floor")


def _strided(name):
    return lambda c, a, b: c.task.strided(name, *_pair(c, _number(a), _number(b)))


for _name in ("eq", "ne", "lt", "le", "gt", "ge", "atan2", "fmod", "remainder"):
    OPERATORS[_name] = _strided(_name)


def _larger(float_name, whole_name):
    def choose(c, a, b):
        a, b = _pair(c, _number(a), _number(b))
        return c.task.strided(float_name if a.type.name == "f32" else whole_name, a, b)
    return choose


OPERATORS.update(maximum=_larger("maximum", "max"), minimum=_larger("minimum", "min"))


@aten("pow")
def power(c, x, exponent):
    exponent = _number(exponent)
    names = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if c.common_type() != "f32":
        c.refuse(f"a power of {c.common_type()}")
    if isinstance(exponent, (int, float)) and exponent in names:
        return c.task.unary(names[exponent], c.as_type(x, "f32"))
    return c.task.strided("pow", *_pair(c, _number(x), exponent))


@aten("clamp", "hardtanh", "clip")
def clamp(c, x, min=None, max=None, min_val=-1, max_val=1):
    if c.node_name() == "hardtanh" and min is None and max is None:
        min, max = min_val, max_val
    if not all(value is None or isinstance(value, (int, float)) for value in (min, max)):
        x = c.as_type(x, c.result_type())
        for value, choose in ((min, "maximum"), (max, "minimum")):
            if value is not None:
                if x.type.name != "f32":
                    c.refuse(f"clamp of {x.type} by tensors")
                x = c.task.strided(choose, x, c.as_type(value, "f32"))
        return x
    x = c.as_type(x, c.result_type())
    if x.type.name == "f32":
        return c.task.clamp_nan(x, -math.inf if min is None else min, math.inf if max is None else max)
    for value, choose in ((min, "max"), (max, "min")):
        x = x if value is None else c.task.strided(choose, x, c.filled(x.type.name, value))
    return x


@aten("relu6")
def relu6(c, x):
    return c.task.clamp_nan(c.tensor(x), 0, 6)


@aten("hardsigmoid")
def hardsigmoid(c, x):
    x = c.tensor(x)
    return c.task.scale(c.task.clamp_nan(c.task.scale(x, 1, 3), 0, 6), 1 / 6)


@aten("hardswish")
def hardswish(c, x):
    x = c.tensor(x)
    return c.task.binary("mul", x, hardsigmoid(c, x))


@aten("leaky_relu")
def leaky_relu(c, x, negative_slope=0.01):
    return c.task.leaky_relu(c.tensor(x), negative_slope)


@aten("elu")
def elu(c, x, alpha=1, scale=1, input_scale=1):
    return c.task.elu(c.tensor(x), alpha, scale, input_scale)


@aten("prelu", "_prelu_kernel")
def prelu(c, x, weight):
    x, weight = c.tensor(x), c.tensor(weight)
    if c.node_name() == "_prelu_kernel" or weight.count == 1:
        return c.task.strided("prelu", x, weight)
    return c.task.prelu(x, weight)


# ---- truth


def truth(c, x):
    """A byte, 0 or 1, of each element."""
    x = c.tensor(x)
    return x if x.type.name == "u8" else c.task.strided("ne", x, c.filled(x.type.name, 0))


@aten("logical_not")
def logical_not(c, x):
    return c.task.strided("xor", truth(c, x), c.filled("u8", 1))


for _name, _kernel in (("logical_and", "and"), ("logical_or", "or"), ("logical_xor", "xor")):
    OPERATORS[_name] = lambda c, a, b, kernel=_kernel: c.task.strided(kernel, truth(c, a), truth(c, b))
for _name, _kernel in (("bitwise_and", "and"), ("bitwise_or", "or"), ("bitwise_xor", "xor")):
    OPERATORS[_name] = _strided(_kernel)
    OPERATORS[f"__{_kernel}__"] = _strided(_kernel)


@aten("bitwise_not")
def bitwise_not(c, x):
    x = c.tensor(x)
    return c.task.strided("xor", x, c.filled(x.type.name, 1 if x.type.name == "u8" else -1))


@aten("isnan")
def isnan(c, x):
    x = c.tensor(x)
    return c.task.strided("ne", x, x)


@aten("isinf")
def isinf(c, x):
    x = c.as_type(x, "f32")
    return c.task.strided("eq", c.task.unary("abs", x), c.filled("f32", math.inf))


# ---- over dimensions


def axes_of(x, dim):
    """A list of dimensions from 0; none said is all."""
    rank = len(x.shape)
    dims = range(rank) if dim is None or dim == [] or dim == () else [dim] if isinstance(dim, int) else dim
    return sorted({d % max(rank, 1) for d in dims})


def _reduce(c, x, dim, keepdim, one):
    """`one(x, axis)` keeps the dimension, with size 1; over each in turn."""
    shape = x.shape
    if not shape:
        return one(x.reshape(1), 0).reshape(())
    axes = axes_of(x, dim)
    for axis in axes:
        x = one(x, axis)
    return x if keepdim else x.reshape(tuple(size for i, size in enumerate(shape) if i not in axes))


def _total(c, x, dim, keepdim, scale=None):
    x = c.as_type(x, c.result_type())
    if x.type.name == "s64":
        return _reduce(c, x, dim, keepdim, lambda x, axis: c.task.slice(c.task.cumsum(x, axis), axis, x.shape[axis] - 1, x.shape[axis]))
    if not x.shape:
        return x if scale in (None, 1) else c.task.scale(x, scale)
    out = c.task.sum(x, axes_of(x, dim), keepdim)
    return out if scale is None else c.task.scale(out, scale)


@aten("sum")
def sum_(c, x, dim=None, keepdim=False, *, dtype=None):
    return _total(c, x, dim, keepdim)


@aten("mean")
def mean(c, x, dim=None, keepdim=False, *, dtype=None):
    x = c.as_type(x, c.result_type())
    return c.task.mean(x, axes_of(x, dim), keepdim) if x.shape else x


@aten("var")
def var(c, x, dim=None, unbiased=None, correction=None, keepdim=False):
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if isinstance(correction, bool):  # var(x, dim, unbiased, keepdim)
        correction, keepdim = None, correction
    x = c.tensor(x)
    if not x.shape:
        c.refuse("the variance of one number")
    correction = (1 if unbiased in (None, True) else 0) if correction is None else correction
    axes = axes_of(x, dim)
    free = element_count([x.shape[i] for i in axes]) - correction
    squares = c.task.unary("square", c.task.binary("sub", x, c.task.mean(x, axes, keepdims=True)))
    return c.task.scale(c.task.sum(squares, axes, keepdim), 1 / free if free > 0 else math.inf)


def _extremes(name, sign):
    @aten(f"a{name}")
    def over_dimensions(c, x, dim=(), keepdim=False):
        return _reduce(c, c.as_type(x, "f32"), dim, keepdim, lambda x, axis: c.task.extreme(x, axis, sign, True)[0])

    @aten(name)
    def with_places(c, x, dim=None, keepdim=False):
        if dim is not None and not isinstance(dim, int):
            return OPERATORS["maximum" if sign > 0 else "minimum"](c, x, dim)
        x = c.as_type(x, "f32")
        if dim is None:
            return c.task.extreme(x.reshape(x.count), 0, sign)[0].reshape(())
        return _of_one(c, x, dim, lambda x, axis: c.task.extreme(x, axis, sign, keepdim))

    @aten(f"arg{name}")
    def place(c, x, dim=None, keepdim=False):
        x = c.as_type(x, "f32")
        if dim is None:
            out = c.task.extreme(x.reshape(x.count), 0, sign)[1]
            return out.reshape((1,) * len(x.shape) if keepdim else ())
        return _of_one(c, x, dim, lambda x, axis: c.task.extreme(x, axis, sign, keepdim))[1]


def _of_one(c, x, dim, both):
    return both(x, dim) if x.shape else tuple(part.reshape(()) for part in both(x.reshape(1), 0))


_extremes("max", 1)
_extremes("min", -1)


@aten("prod")
def prod(c, x, dim=None, keepdim=False, *, dtype=None):
    x = c.as_type(x, c.result_type())
    if dim is None:
        return c.task.product(x.reshape(x.count), 0).reshape(())
    return _reduce(c, x, dim, keepdim, lambda x, axis: c.task.product(x, axis, True))


@aten("any")
def any_(c, x, dim=None, keepdim=False):
    return _reduce(c, truth(c, x), dim, keepdim, lambda x, axis: c.task.any(x, axis, True))


@aten("all")
def all_(c, x, dim=None, keepdim=False):
    false = c.task.strided("xor", truth(c, x), c.filled("u8", 1))
    some = _reduce(c, false, dim, keepdim, lambda x, axis: c.task.any(x, axis, True))
    return c.task.strided("xor", some, c.filled("u8", 1))


@aten("cumsum")
def cumsum(c, x, dim, *, dtype=None):
    x = c.as_type(x, c.result_type())
    return c.task.cumsum(x, dim) if x.shape else x


@aten("_cdist_forward")
def cdist(c, a, b, p, compute_mode=None):
    """The p-norm of every row of a minus every row of b."""
    a, b = c.tensor(a), c.tensor(b)
    apart = c.task.binary("sub", a.reshape((*a.shape[:-1], 1, a.shape[-1])), b.reshape((*b.shape[:-2], 1, *b.shape[-2:])))
    if p == 2:
        return c.task.unary("sqrt", c.task.sum(c.task.unary("square", apart), -1))
    apart = c.task.unary("abs", apart)
    if p == math.inf:
        return c.task.max(apart, -1)
    if p == 1:
        return c.task.sum(apart, -1)
    if p <= 0:
        c.refuse(f"distances of norm {p}")
    return c.task.strided("pow", c.task.sum(c.task.strided("pow", apart, c.filled("f32", p)), -1), c.filled("f32", 1 / p))
