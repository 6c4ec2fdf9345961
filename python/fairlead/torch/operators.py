"""What each ATen operator is in a task. A function takes the converter `c` and the operator's arguments in ATen's order
and under ATen's names; tensors are values of the converter (convert.py)."""

import math

import torch

from fairlead.torch.fusion import Pending
from fairlead.types import element_count

OPERATORS = {}


def aten(*names):
    def register(function):
        OPERATORS.update((name, function) for name in names)
        return function
    return register


def shape_of(value):
    return tuple(value.shape)


def _one(values):
    """A list of one means that for every dimension."""
    return values[0] if isinstance(values, (list, tuple)) and len(values) == 1 else values


# ---- products


@aten("linear")
def linear(c, x, weight, bias=None):
    x = c.tensor(x)

    def emit(weight, bias, addend, activation):
        return c.task.linear(x, c.tensor(weight), None if bias is None else c.tensor(bias), activation, addend)

    return Pending((*x.shape[:-1], shape_of(weight)[0]), emit, weight, bias)


@aten("addmm")
def addmm(c, bias, a, b, beta=1, alpha=1):
    if (beta, alpha) != (1, 1) or len(shape_of(bias)) != 1:
        return add(c, matmul(c, a, b) if alpha == 1 else mul(c, matmul(c, a, b), alpha),
                   bias if beta == 1 else mul(c, bias, beta))
    return _product(c, a, b, bias)


@aten("mm", "bmm", "matmul")
def matmul(c, a, b):
    return _product(c, a, b, None)


def _product(c, a, b, bias):
    a, b = c.tensor(a), c.tensor(b)
    vectors = len(a.shape) == 1, len(b.shape) == 1
    a = a.reshape(1, *a.shape) if vectors[0] else a
    b = b.reshape(*b.shape, 1) if vectors[1] else b
    if a.shape[:-2] != b.shape[:-2] and min(element_count(a.shape[:-2]), element_count(b.shape[:-2])) > 1:
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (c.task.expand(x, (*batch, *x.shape[-2:])) for x in (a, b))
    if any(vectors):
        out = c.task.gemm(a, b)
        last = [size for size, gone in zip(out.shape[-2:], vectors) if not gone]
        return out.reshape(*out.shape[:-2], *last)

    def emit(_, bias, addend, activation):
        return c.task.gemm(a, b, bias=None if bias is None else c.tensor(bias), addend=addend, activation=activation)

    batch = max(a.shape[:-2], b.shape[:-2], key=lambda shape: (element_count(shape), len(shape)))
    return Pending((*batch, a.shape[-2], b.shape[-1]), emit, bias=bias)


@aten("conv2d")
def conv2d(c, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    x = c.tensor(x)
    stride, dilation = _pair(stride), _pair(dilation)
    padding = _padding(padding, shape_of(weight)[2:], dilation)
    sides = [(size + 2 * pad - step * (kernel - 1) - 1) // by + 1 for size, pad, step, kernel, by in
             zip(x.shape[2:], padding, dilation, shape_of(weight)[2:], stride)]

    def emit(weight, bias, addend, activation):
        return c.task.conv2d(x, c.tensor(weight), None if bias is None else c.tensor(bias), stride=stride,
                             padding=padding, dilation=dilation, groups=groups, addend=addend, activation=activation)

    return Pending((x.shape[0], shape_of(weight)[0], *sides), emit, weight, bias)


def _pair(value):
    value = _one(value)
    return (value, value) if isinstance(value, int) else tuple(value)


def _padding(padding, kernel, dilation):
    if padding == "same":
        return tuple(step * (size - 1) // 2 for size, step in zip(kernel, dilation))
    return (0, 0) if padding == "valid" else _pair(padding)


@aten("convolution")
def convolution(c, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if transposed or len(stride) != 2:
        c.refuse("a convolution that is transposed or not two-dimensional")
    return conv2d(c, x, weight, bias, stride, padding, dilation, groups)


@aten("scaled_dot_product_attention")
def attention(c, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    if enable_gqa:
        c.refuse("grouped attention")
    query, key, value = map(c.tensor, (query, key, value))
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    if isinstance(attn_mask, torch.Tensor) and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros(attn_mask.shape).masked_fill(~attn_mask, -math.inf)
    return c.task.attention(query, key, value, scale, None if attn_mask is None else c.tensor(attn_mask))


# ---- normalisations and reductions


@aten("batch_norm")
def batch_norm(c, x, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False):
    if training or running_mean is None:
        c.refuse("batch normalisation with the batch's own statistics")
    weight = torch.ones_like(running_mean) if weight is None else weight
    bias = torch.zeros_like(running_mean) if bias is None else bias
    folded = x.normalised(weight, bias, running_mean, running_var, eps) if isinstance(x, Pending) else None
    if folded:
        return folded
    return c.task.batch_norm(c.tensor(x), *map(c.tensor, (weight, bias, running_mean, running_var)), epsilon=eps)


@aten("_native_batch_norm_legit_no_training")
def native_batch_norm(c, x, weight, bias, running_mean, running_var, momentum, eps):
    return (batch_norm(c, x, weight, bias, running_mean, running_var, False, momentum, eps),)


@aten("layer_norm")
def layer_norm(c, x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    weight, bias = (None if value is None else c.tensor(value) for value in (weight, bias))
    return c.task.layer_norm(c.tensor(x), weight, bias, eps, element_count(normalized_shape))


@aten("native_layer_norm")
def native_layer_norm(c, x, normalized_shape, weight, bias, eps):
    return (layer_norm(c, x, normalized_shape, weight, bias, eps),)


@aten("softmax", "_softmax")
def softmax(c, x, dim, dtype=None):
    return c.task.softmax(c.tensor(x), dim)


@aten("mean")
def mean(c, x, dim=None, keepdim=False, *, dtype=None):
    return c.task.mean(c.tensor(x), dim or None, keepdim)


@aten("sum")
def sum_(c, x, dim=None, keepdim=False, *, dtype=None):
    return c.task.sum(c.tensor(x), dim or None, keepdim)


@aten("amax")
def amax(c, x, dim=(), keepdim=False):
    return c.task.max(c.tensor(x), list(dim) or None, keepdim)


# ---- element by element


def _activation(name, alone=None):
    def activate(c, x):
        if isinstance(x, Pending) and x.can_be_activated():
            return x.activated(name)
        return c.task.unary(name, c.tensor(x))
    return activate


for _name in ("relu", "tanh", "sigmoid"):
    OPERATORS[_name] = _activation(_name)
for _name in ("silu", "exp", "log", "sqrt", "rsqrt", "abs", "square"):
    OPERATORS[_name] = lambda c, x, name=_name: c.task.unary(name, c.tensor(x))


@aten("gelu")
def gelu(c, x, *, approximate="none"):
    return _activation("gelu_tanh" if approximate == "tanh" else "gelu")(c, x)


@aten("add")
def add(c, a, b, *, alpha=1):
    if alpha != 1:
        b = mul(c, b, alpha) if not isinstance(b, (int, float)) else b * alpha
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Pending) and one.is_plain() and not isinstance(other, (int, float)) \
                and tuple(one.shape) == shape_of(other):
            return one.plus(c.tensor(other))
    return _binary(c, "add", a, b)


@aten("sub")
def sub(c, a, b, *, alpha=1):
    if alpha != 1:
        b = mul(c, b, alpha)
    return _binary(c, "sub", a, b)


@aten("rsub")
def rsub(c, a, b, *, alpha=1):
    return sub(c, b, a, alpha=alpha)


@aten("mul")
def mul(c, a, b):
    return _binary(c, "mul", a, b)


@aten("div")
def div(c, a, b, *, rounding_mode=None):
    if rounding_mode:
        c.refuse(f"a division rounded by {rounding_mode}")
    return _binary(c, "div", a, b)


@aten("maximum")
def maximum(c, a, b):
    return _binary(c, "max", a, b)


@aten("minimum")
def minimum(c, a, b):
    return _binary(c, "min", a, b)


def _binary(c, name, a, b):
    a, b = _number(a), _number(b)
    if isinstance(b, (int, float, complex)):
        return getattr(c.task, name)(c.tensor(a), b)
    if isinstance(a, (int, float, complex)):
        b = c.tensor(b)
        if name in ("add", "mul"):
            return getattr(c.task, name)(b, a)
        if name == "sub":
            return c.task.scale(b, -1, a)
        a = torch.full((1,), a, dtype=torch.float32)
    return c.task.binary(name, c.tensor(a), c.tensor(b))


def _number(value):
    """A constant of one element without dimensions is a number."""
    return value.item() if isinstance(value, torch.Tensor) and value.dim() == 0 else value


@aten("neg")
def neg(c, x):
    return c.task.scale(c.tensor(x), -1)


@aten("pow")
def power(c, x, exponent):
    names = {2: "square", 0.5: "sqrt", -0.5: "rsqrt"}
    if exponent not in names:
        c.refuse(f"the power {exponent}; possible are {', '.join(map(str, names))}")
    return c.task.unary(names[exponent], c.tensor(x))


@aten("clamp", "hardtanh")
def clamp(c, x, min=-math.inf, max=math.inf):
    return c.task.clamp(c.tensor(x), -math.inf if min is None else min, math.inf if max is None else max)


@aten("relu6")
def relu6(c, x):
    return c.task.clamp(c.tensor(x), 0, 6)


# ---- places


@aten("view", "reshape", "_unsafe_view")
def view(c, x, shape):
    return c.tensor(x).reshape(tuple(shape))


@aten("flatten")
def flatten(c, x, start_dim=0, end_dim=-1):
    x = c.tensor(x)
    first, last = start_dim % len(x.shape), end_dim % len(x.shape)
    return x.reshape(*x.shape[:first], element_count(x.shape[first:last + 1]), *x.shape[last + 1:])


@aten("unflatten")
def unflatten(c, x, dim, sizes):
    x = c.tensor(x)
    dim = dim % len(x.shape)
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1:])


@aten("unsqueeze")
def unsqueeze(c, x, dim):
    x = c.tensor(x)
    at = dim % (len(x.shape) + 1)
    return x.reshape(*x.shape[:at], 1, *x.shape[at:])


@aten("squeeze")
def squeeze(c, x, dim=None):
    x = c.tensor(x)
    dims = range(len(x.shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d % len(x.shape) for d in dims}
    return x.reshape(tuple(size for i, size in enumerate(x.shape) if i not in gone or size != 1))


@aten("permute")
def permute(c, x, dims):
    return c.task.permute(c.tensor(x), dims)


@aten("transpose")
def transpose(c, x, dim0, dim1):
    return c.task.transpose(c.tensor(x), dim0, dim1)


@aten("t")
def t(c, x):
    return c.task.transpose(c.tensor(x)) if len(shape_of(x)) > 1 else c.tensor(x)


@aten("contiguous", "clone", "alias", "detach", "dropout", "lift_fresh_copy")
def same(c, x, *_, **__):
    return x


@aten("to", "_to_copy", "type_as")
def to(c, x, *args, dtype=None, **_):
    dtype = next((a for a in args if isinstance(a, torch.dtype)), dtype)
    names = {torch.float32: "f32", torch.float64: "f64", torch.int32: "s32", torch.int64: "s64", None: None}
    if dtype not in names:
        c.refuse(f"a tensor of {dtype}")
    x = c.tensor(x)
    return x if names[dtype] in (None, x.type.name) else c.task.convert(x, names[dtype])


@aten("expand")
def expand(c, x, size, implicit=False):
    x = c.tensor(x)
    padded = (1,) * (len(size) - len(x.shape)) + x.shape
    return c.task.expand(x, tuple(old if new == -1 else new for old, new in zip(padded, size)))


@aten("cat")
def cat(c, tensors, dim=0):
    return c.task.concat([c.tensor(x) for x in tensors], dim)


@aten("stack")
def stack(c, tensors, dim=0):
    return cat(c, [unsqueeze(c, x, dim) for x in tensors], dim)


@aten("slice")
def slice_(c, x, dim=0, start=None, end=None, step=1):
    return c.task.slice(c.tensor(x), dim, start or 0, end, step)


@aten("select")
def select(c, x, dim, index):
    x = c.tensor(x)
    dim = dim % len(x.shape)
    index = index % x.shape[dim]
    return c.task.slice(x, dim, index, index + 1).reshape(x.shape[:dim] + x.shape[dim + 1:])


@aten("split", "split_with_sizes")
def split(c, x, sizes, dim=0):
    x = c.tensor(x)
    whole = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, whole - first) for first in range(0, whole, sizes)]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [c.task.slice(x, dim, start, start + size) for start, size in zip(starts, sizes)]


@aten("chunk")
def chunk(c, x, chunks, dim=0):
    return split(c, x, -(-shape_of(x)[dim] // chunks), dim)


@aten("unbind")
def unbind(c, x, dim=0):
    return [select(c, x, dim, index) for index in range(shape_of(x)[dim])]


@aten("embedding")
def embedding(c, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return c.task.embedding(c.tensor(weight), c.tensor(indices))


# ---- pooling


@aten("max_pool2d")
def max_pool2d(c, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    if ceil_mode or _pair(dilation) != (1, 1):
        c.refuse("max_pool2d with dilation or ceil_mode")
    return c.task.max_pool2d(c.tensor(x), _pair(kernel_size), _pair(stride or kernel_size), _pair(padding))


@aten("max_pool2d_with_indices")
def max_pool2d_with_indices(c, *args, **keywords):
    return (max_pool2d(c, *args, **keywords),)


@aten("avg_pool2d")
def avg_pool2d(c, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    if ceil_mode or divisor_override:
        c.refuse("avg_pool2d with ceil_mode or a divisor")
    return c.task.avg_pool2d(c.tensor(x), _pair(kernel_size), _pair(stride or kernel_size), _pair(padding),
                             count_include_pad)


@aten("adaptive_avg_pool2d", "_adaptive_avg_pool2d")
def adaptive_avg_pool2d(c, x, output_size):
    return c.task.adaptive_avg_pool2d(c.tensor(x), _pair(output_size))
