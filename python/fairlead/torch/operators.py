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


def one(values):
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
    if (beta, alpha) == (1, 1) and len(shape_of(bias)) == 1 and shape_of(bias)[0] == shape_of(b)[1]:
        return _product(c, a, b, bias)
    product = c.tensor(matmul(c, a, b))
    product = product if alpha == 1 else c.task.mul(product, alpha)
    bias = c.tensor(bias)
    return c.task.binary("add", product, bias if beta == 1 else c.task.mul(bias, beta))


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


@aten("scaled_dot_product_attention")
def attention(c, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    if dropout_p:
        c.refuse("attention with dropout")
    query, key, value = map(c.tensor, (query, key, value))
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        key, value = (_repeat_heads(c, x, query.shape[-3] // key.shape[-3]) for x in (key, value))
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        c.refuse(f"attention of batches {query.shape[:-2]}, {key.shape[:-2]} and {value.shape[:-2]}")
    if is_causal:
        attn_mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    if isinstance(attn_mask, torch.Tensor) and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros(attn_mask.shape).masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None and c.dtype_of(3, "attn_mask") == torch.bool:
        attn_mask = c.task.where(c.tensor(attn_mask), c.filled("f32", 0.0), c.filled("f32", -math.inf))
    if attn_mask is None or isinstance(attn_mask, torch.Tensor) and not (attn_mask == -math.inf).all(-1).any():
        return c.task.attention(query, key, value, scale, None if attn_mask is None else c.tensor(attn_mask))
    return _attention_of_some(c, query, key, value, c.tensor(attn_mask), scale)


def _attention_of_some(c, query, key, value, mask, scale):
    """With a mask that may leave a row nothing: PyTorch then gives zeros, the softmax of nothing would be NaN."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = c.task.binary("add", c.task.gemm(query, key, transpose_b=True, alpha=scale), mask)
    nothing = c.task.strided("eq", c.task.max(scores, -1, keepdims=True), c.filled("f32", -math.inf))
    return c.task.gemm(c.task.where(nothing, c.filled("f32", 0.0), c.task.softmax(scores)), value)


def _repeat_heads(c, x, times):
    whole = (*x.shape[:-2], times, *x.shape[-2:])
    x = c.task.expand(x.reshape(*x.shape[:-2], 1, *x.shape[-2:]), whole)
    return x.reshape(*whole[:-4], whole[-4] * times, *whole[-2:])


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
    return (batch_norm(c, x, weight, bias, running_mean, running_var, False, momentum, eps), None, None)


@aten("layer_norm")
def layer_norm(c, x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    weight, bias = (None if value is None else c.tensor(value) for value in (weight, bias))
    return c.task.layer_norm(c.tensor(x), weight, bias, eps, element_count(normalized_shape))


@aten("native_layer_norm")
def native_layer_norm(c, x, normalized_shape, weight, bias, eps):
    out = layer_norm(c, x, normalized_shape, weight, bias, eps)
    return (out, *_statistics(c, x, [-i - 1 for i in range(len(normalized_shape))], eps))


def _statistics(c, x, axes, eps):
    """Mean and 1 / sqrt(variance + eps), where somebody reads them."""
    if not c.is_read(1) and not c.is_read(2):
        return None, None
    x = c.tensor(x)
    middle = c.task.mean(x, axes, keepdims=True)
    variance = c.task.mean(c.task.unary("square", c.task.binary("sub", x, middle)), axes, keepdims=True)
    return middle, c.task.unary("rsqrt", c.task.scale(variance, 1, eps))


@aten("group_norm")
def group_norm(c, x, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    weight, bias = (None if value is None else c.tensor(value) for value in (weight, bias))
    return c.task.group_norm(c.tensor(x), num_groups, weight, bias, eps)


@aten("native_group_norm")
def native_group_norm(c, x, weight, bias, N, C, HxW, group, eps):
    out = group_norm(c, x, group, weight, bias, eps)
    parts = _statistics(c, c.tensor(x).reshape(N, group, -1), [-1], eps)
    return (out, *(None if part is None else part.reshape(N, group) for part in parts))


@aten("instance_norm")
def instance_norm(c, x, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    if not use_input_stats:
        return batch_norm(c, x, weight, bias, running_mean, running_var, False, momentum, eps)
    return group_norm(c, x, shape_of(x)[1], weight, bias, eps)


@aten("rms_norm")
def rms_norm(c, x, normalized_shape, weight=None, eps=None):
    x = c.tensor(x)
    axes = [-i - 1 for i in range(len(normalized_shape))]
    squares = c.task.mean(c.task.unary("square", x), axes, keepdims=True)
    out = c.task.binary("mul", x, c.task.unary("rsqrt", c.task.scale(squares, 1, c.epsilon() if eps is None else eps)))
    return out if weight is None else c.task.binary("mul", out, c.tensor(weight))


@aten("softmax", "_softmax")
def softmax(c, x, dim, dtype=None):
    x = c.tensor(x)
    return c.task.softmax(x.reshape(1), 0).reshape(()) if not x.shape else c.task.softmax(x, dim)


@aten("log_softmax", "_log_softmax")
def log_softmax(c, x, dim, dtype=None):
    x = c.tensor(x)
    if not x.shape:
        c.refuse("log_softmax of a tensor without dimensions")
    x = c.task.binary("sub", x, c.task.max(x, dim, keepdims=True))
    total = c.task.unary("log_precise", c.task.sum(c.task.unary("exp_precise", x), dim, keepdims=True))
    return c.task.binary("sub", x, total)
