"""Operators of a task: each works out shapes, geometry and temporaries and appends kernels of the built-in library."""

import math

from fairlead.ktask.graph import Scalar
from fairlead.ktask.layout import six, slices
from fairlead.ktask.library import ACTIVATIONS, COMPARISONS, MAX_GRID_YZ, ceil
from fairlead.types import TaskError, broadcast_shapes, broadcast_strides, element_count, strides_of

# Below so many tiles of 64 x 64 a product is cut into tiles of 32 x 32: a large GPU has 100 to 150 multiprocessors.
TILES_THAT_FILL_A_DEVICE = 128
DOT_BLOCKS = 128
REDUCTIONS = ("sum", "prod", "amax", "amin", "mean")  # as scatter_reduce numbers them


def _require(condition, message):
    if not condition:
        raise TaskError(message)


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def _axes(axis, rank):
    """Sorted, from 0; None is all."""
    axes = range(rank) if axis is None else [axis] if isinstance(axis, int) else axis
    for one in axes:
        _require(-rank <= one < rank, f"axis is {one}, -{rank} to {rank - 1} is possible")
    return sorted({one % rank for one in axes})


class Elementwise:
    """Of each element alone."""

    def unary(self, name, x):
        """relu, gelu, gelu_tanh, tanh, sigmoid, silu, exp, log, sqrt, rsqrt, abs, square, and those of fairlead:mathematics (sin,
        erf, floor, ...); of f32."""
        out = self.temporary(x.type, x.shape)
        self._typed(name, x)
        self.library_kernel(f"{name}_{x.type}", out=out, count=x.count, **{"in": x})
        return out

    def relu(self, x):
        return self.unary("relu", x)

    def gelu(self, x, approximate=False):
        return self.unary("gelu_tanh" if approximate else "gelu", x)

    def tanh(self, x):
        return self.unary("tanh", x)

    def sigmoid(self, x):
        return self.unary("sigmoid", x)

    def binary(self, name, a, b):
        """add, sub, mul, div, max, min; shapes as NumPy broadcasts them."""
        _require(a.type == b.type, f"{name}: types {a.type} and {b.type} differ")
        shape = broadcast_shapes(a.shape, b.shape)
        out = self.temporary(a.type, shape)
        if a.shape == b.shape:
            self.library_kernel(f"{name}_{a.type}", out=out, a=a, b=b, count=out.count)
            return out
        sizes, (of_a, of_b) = six(shape, broadcast_strides(a.shape, shape), broadcast_strides(b.shape, shape))
        self.library_kernel(f"{name}_{a.type}_strided", out=out, a=a, b=b, shape=sizes, a_strides=of_a,
                            b_strides=of_b, count=out.count)
        return out

    def strided(self, name, a, b, out_type=None):
        """A kernel NAME_strided of two tensors of one type, shapes as NumPy broadcasts them: pow, atan2, fmod, remainder, prelu,
        maximum and minimum (NaN if one is); eq, ne, lt, le, gt, ge (u8); of whole numbers add, sub, mul, max, min, and, or, xor."""
        _require(a.type == b.type, f"{name}: types {a.type} and {b.type} differ")
        shape = broadcast_shapes(a.shape, b.shape)
        out = self.temporary(out_type or ("u8" if name in COMPARISONS else a.type), shape)
        sizes, (of_a, of_b) = six(shape, broadcast_strides(a.shape, shape), broadcast_strides(b.shape, shape))
        self.library_kernel(f"{name}_{a.type}_strided", out=out, a=a, b=b, shape=sizes, a_strides=of_a, b_strides=of_b,
                            count=out.count)
        return out

    def where(self, condition, a, b):
        """a where the byte of `condition` is not 0, else b; shapes as NumPy broadcasts them."""
        _require(a.type == b.type and condition.type.bytes == 1, f"where: {condition}, {a} and {b} do not fit together")
        shape = broadcast_shapes(condition.shape, broadcast_shapes(a.shape, b.shape))
        out = self.temporary(a.type, shape)
        sizes, strides = six(shape, *(broadcast_strides(x.shape, shape) for x in (condition, a, b)))
        self.library_kernel(f"where_b{a.type.bytes}", out=out, condition=condition, a=a, b=b, shape=sizes, c_strides=strides[0],
                            a_strides=strides[1], b_strides=strides[2], count=out.count)
        return out

    def leaky_relu(self, x, slope=0.01):
        return self._with_factors("leaky_relu", x, slope=slope)

    def elu(self, x, alpha=1, scale=1, input_scale=1):
        return self._with_factors("elu", x, alpha=alpha, scale=scale, input_scale=input_scale)

    def prelu(self, x, weight, axis=1):
        """One slope, or one for each index of `axis`."""
        if weight.count > 1:
            axis, = _axes(axis, len(x.shape))
            _require(weight.count == x.shape[axis], f"prelu: {weight.count} slopes for {x.shape[axis]} channels")
            weight = weight.reshape(weight.count, *(1,) * (len(x.shape) - axis - 1))
        return self.strided("prelu", x, weight)

    def clamp_nan(self, x, low=-math.inf, high=math.inf):
        """clamp, but NaN stays."""
        return self._with_factors("clamp_nan", x, low=low, high=high)

    def _with_factors(self, name, x, **factors):
        self._typed(name, x)
        out = self.temporary(x.type, x.shape)
        self.library_kernel(f"{name}_f32", out=out, count=x.count, **{"in": x}, **factors)
        return out

    def channel_affine(self, x, weight=None, bias=None, axis=1):
        """x weight + bias, one of each for each index of `axis`."""
        self._typed("channel_affine", x)
        axis, = _axes(axis, len(x.shape))
        for what in (weight, bias):
            _require(what is None or what.count == x.shape[axis], f"channel_affine: {what} for {x.shape[axis]} channels")
        out = self.temporary(x.type, x.shape)
        self.library_kernel("channel_affine_f32", out=out, weight=weight, bias=bias, channels=x.shape[axis],
                            inner=element_count(x.shape[axis + 1:]), count=x.count, **{"in": x})
        return out

    def add(self, a, b):
        return self.scale(a, 1, b) if isinstance(b, (int, float, complex)) else self.binary("add", a, b)

    def sub(self, a, b):
        return self.scale(a, 1, -b) if isinstance(b, (int, float, complex)) else self.binary("sub", a, b)

    def mul(self, a, b):
        return self.scale(a, b) if isinstance(b, (int, float, complex)) else self.binary("mul", a, b)

    def div(self, a, b):
        return self.scale(a, 1 / b) if isinstance(b, (int, float, complex)) else self.binary("div", a, b)

    def scale(self, x, alpha, beta=0):
        """alpha x + beta"""
        out = self.temporary(x.type, x.shape)
        self.library_kernel(f"scale_{x.type}", out=out, x=x, alpha=alpha, beta=beta, count=x.count)
        return out

    def axpy(self, alpha, x, y):
        """alpha x + y"""
        _require((x.type, x.shape) == (y.type, y.shape), f"axpy: {x} and {y} differ")
        out = self.temporary(x.type, x.shape)
        self.library_kernel(f"axpy_{x.type}", out=out, x=x, y=y, alpha=alpha, count=x.count)
        return out

    def clamp(self, x, low=-math.inf, high=math.inf):
        out = self.temporary(x.type, x.shape)
        self._typed("clamp", x)
        self.library_kernel("clamp_f32", out=out, x=x, low=low, high=high, count=x.count)
        return out

    def bias_add(self, x, bias, axis=-1):
        """One of `bias` for each index of `axis`."""
        axis, = _axes(axis, len(x.shape))
        _require(bias.count == x.shape[axis], f"bias_add: {bias.count} biases for {x.shape[axis]} channels")
        out = self.temporary(x.type, x.shape)
        self.library_kernel("bias_add_f32", out=out, x=x, bias=bias, channels=x.shape[axis],
                            inner=element_count(x.shape[axis + 1:]), count=x.count)
        return out

    def convert(self, x, type):
        out = self.temporary(type, x.shape)
        if out.type == x.type:
            return x
        self.library_kernel(f"convert_{x.type}_{out.type}", out=out, count=x.count, **{"in": x})
        return out

    def _typed(self, name, x, wanted="f32"):
        _require(x.type.name == wanted, f"{name} is for {wanted}, not {x.type}")


class Products:
    """Matrix products and convolutions."""

    def gemm(self, a, b, *, transpose_a=False, transpose_b=False, alpha=1, addend=None, beta=1, bias=None,
             bias_axis=-1, activation=None):
        """activation(alpha A x B + beta addend + bias) over the last two dimensions; the others are a batch, the same
        for both or absent from one. bias_axis -1: one bias for each column of the result, -2: for each row."""
        _require(a.type == b.type, f"gemm: types {a.type} and {b.type} differ")
        _require(len(a.shape) >= 2 and len(b.shape) >= 2, f"gemm: shapes {a.shape} and {b.shape}, at least two "
                 "dimensions each are wanted")
        _require(activation is None or a.type.name == "f32", f"gemm: activations are for f32, not {a.type}")
        (m, k), (a_row, a_column) = _matrix(a, transpose_a)
        (k_of_b, n), (b_row, b_column) = _matrix(b, transpose_b)
        _require(k == k_of_b, f"gemm: {a.shape} by {b.shape}: {k} columns beside {k_of_b} rows")
        shape = (*_batch(a, b), m, n)
        batch, a_batch, b_batch = element_count(shape[:-2]), _batch_stride(a), _batch_stride(b)
        if b_batch == 0 and not transpose_a:  # one right side for all: a single product of many rows
            m, batch = m * batch, 1
        out = self.temporary(a.type, shape)
        _require(addend is None or (addend.type, addend.shape) == (out.type, shape),
                 f"gemm: the addend is {addend}, the result has shape {shape} of {out.type}")
        _require(bias is None or bias.count == shape[bias_axis],
                 f"gemm: {bias and bias.count} biases for {shape[bias_axis]}")
        _require(bias is None or bias_axis == -1 or m == shape[-2], "gemm: a bias for each row of one matrix only")
        self.library_kernel(_sized(f"gemm_{a.type}", m, n, batch), c=out, a=a, b=b, d=addend, bias=bias, m=m, n=n, k=k,
                            a_row=a_row, a_column=a_column, a_batch=a_batch, b_row=b_row, b_column=b_column,
                            b_batch=b_batch, c_row=n, c_batch=m * n, alpha=alpha,
                            beta=0 if addend is None else beta, bias_axis=2 + bias_axis,
                            activation=ACTIVATIONS[activation], batch=batch)
        return out

    def linear(self, x, weight, bias=None, activation=None, addend=None):
        """x by the transpose of `weight`, [outputs][inputs]."""
        rows = x.reshape(-1, x.shape[-1])
        if addend is not None:
            addend = addend.reshape(rows.shape[0], weight.shape[0])
        out = self.gemm(rows, weight, transpose_b=True, bias=bias, activation=activation, addend=addend)
        return out.reshape(*x.shape[:-1], weight.shape[0])

    def conv2d(self, x, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1, addend=None, activation=None):
        """activation(convolution + bias + addend); x [image][channel][y][x], weight [out][in / groups][y][x]."""
        self._typed("conv2d", x)
        _require(len(x.shape) == 4 and len(weight.shape) == 4, f"conv2d: shapes {x.shape} and {weight.shape}, four "
                 "dimensions each are wanted")
        images, channels, height, width = x.shape
        outputs, per_group, kernel_height, kernel_width = weight.shape
        _require(channels % groups == 0 and outputs % groups == 0 and per_group == channels // groups,
                 f"conv2d: {channels} channels, weights {weight.shape} and {groups} groups do not fit together")
        (stride_y, stride_x), (pad_y, pad_x), (dilation_y, dilation_x) = map(_pair, (stride, padding, dilation))
        out_height = (height + 2 * pad_y - dilation_y * (kernel_height - 1) - 1) // stride_y + 1
        out_width = (width + 2 * pad_x - dilation_x * (kernel_width - 1) - 1) // stride_x + 1
        _require(out_height > 0 and out_width > 0, f"conv2d: the kernel {weight.shape[2:]} is larger than the picture "
                 f"{x.shape[2:]} with its padding")
        out = self.temporary("f32", (images, outputs, out_height, out_width))
        _require(addend is None or addend.shape == out.shape, "conv2d: the addend's shape is "
                 f"{addend and addend.shape}, the result's {out.shape}")
        _require(bias is None or bias.count == outputs, f"conv2d: {bias and bias.count} biases for {outputs} channels")
        name = _sized("conv2d_f32", outputs // groups, out_height * out_width, images * groups)
        self.library_kernel(name, out=out, weights=weight, bias=bias, addend=addend, channels=channels, height=height,
                            width=width, out_channels=outputs, out_height=out_height, out_width=out_width,
                            kernel_height=kernel_height, kernel_width=kernel_width, stride_y=stride_y,
                            stride_x=stride_x, pad_y=pad_y, pad_x=pad_x, dilation_y=dilation_y, dilation_x=dilation_x,
                            groups=groups, activation=ACTIVATIONS[activation], images=images, **{"in": x})
        return out

    def conv_transpose2d(self, x, weight, bias=None, *, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
        """x [image][channel][y][x], weight [channel][out / groups][y][x]; PyTorch's conv_transpose2d."""
        self._typed("conv_transpose2d", x)
        _require(len(x.shape) == 4 and len(weight.shape) == 4, f"conv_transpose2d: shapes {x.shape} and {weight.shape}, four "
                 "dimensions each are wanted")
        images, channels = x.shape[:2]
        _require(weight.shape[0] == channels and channels % groups == 0,
                 f"conv_transpose2d: {channels} channels, weights {weight.shape} and {groups} groups do not fit together")
        outputs = weight.shape[1] * groups
        _require(bias is None or bias.count == outputs, f"conv_transpose2d: {bias and bias.count} biases for {outputs} channels")
        stride, padding, more, dilation = map(_pair, (stride, padding, output_padding, dilation))
        sides = [(x.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (weight.shape[2 + i] - 1) + more[i] + 1
                 for i in range(2)]
        out = self.temporary("f32", (images, outputs, *sides))
        self.library_kernel("conv_transpose2d_f32", out=out, weights=weight, bias=bias, channels=channels, height=x.shape[2],
                            width=x.shape[3], out_channels=outputs, out_height=sides[0], out_width=sides[1],
                            kernel_height=weight.shape[2], kernel_width=weight.shape[3], stride_y=stride[0], stride_x=stride[1],
                            pad_y=padding[0], pad_x=padding[1], dilation_y=dilation[0], dilation_x=dilation[1], groups=groups,
                            count=out.count, **{"in": x})
        return out

    def attention(self, query, key, value, scale=None, mask=None):
        """softmax(scale Q K^T + mask) V over the last two dimensions; scale: 1 / sqrt of their last, if not said."""
        scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
        scores = self.gemm(query, key, transpose_b=True, alpha=scale)
        if mask is not None:
            scores = self.add(scores, mask)
        return self.gemm(self.softmax(scores), value)


def _matrix(x, transposed):
    """(rows, columns), (stride of rows, of columns) of the last two dimensions."""
    rows, columns = x.shape[-2:]
    return ((columns, rows), (1, columns)) if transposed else ((rows, columns), (columns, 1))


def _batch(a, b):
    first, second = a.shape[:-2], b.shape[:-2]
    one_first, one_second = element_count(first) == 1, element_count(second) == 1
    _require(first == second or one_first or one_second,
             f"gemm: batches {first} and {second} differ; broadcast one of them first")
    return max((first, second), key=lambda shape: (element_count(shape), len(shape)))


def _batch_stride(x):
    return x.shape[-2] * x.shape[-1] if element_count(x.shape[:-2]) > 1 else 0


def _sized(name, rows, columns, batch):
    """The kernel of small tiles where large ones would not fill a device."""
    _require(batch <= MAX_GRID_YZ, f"{name}: a batch of {batch}, {MAX_GRID_YZ} are possible")
    return name if ceil(rows, 64) * ceil(columns, 64) * batch >= TILES_THAT_FILL_A_DEVICE else name + "_small"


class Reductions:
    """Over dimensions, and normalisations along them."""

    def sum(self, x, axis=None, keepdims=False):
        return self._reduce("sum", x, axis, keepdims, scale=1)

    def mean(self, x, axis=None, keepdims=False):
        count = element_count([x.shape[i] for i in _axes(axis, len(x.shape))])
        return self._reduce("sum", x, axis, keepdims, scale=1 / count)

    def max(self, x, axis=None, keepdims=False):
        return self._reduce("max_reduce", x, axis, keepdims)

    def argmax(self, x, axis=-1, keepdims=False):
        """s32; of equal ones the first."""
        axes = _axes(axis, len(x.shape))
        _require(len(axes) == 1 or len(axes) == len(x.shape), "argmax: one axis, or None for all")
        return self._reduce("argmax", x, axis, keepdims, type="s32")

    def _reduce(self, name, x, axis, keepdims, type=None, scale=None):
        axes = _axes(axis, len(x.shape))
        kept = tuple(1 if i in axes else size for i, size in enumerate(x.shape))
        out = x
        for first, last in reversed(_runs(axes)):  # neighbouring dimensions at once
            shape = out.shape
            length, inner = element_count(shape[first:last + 1]), element_count(shape[last + 1:])
            target = (*shape[:first], *(1,) * (last + 1 - first), *shape[last + 1:])
            result = self.temporary(type or x.type, target)
            more = {} if scale is None else {"scale": scale}
            self.library_kernel(f"{name}_{x.type}", out=result, length=length, inner=inner,
                                outer=element_count(shape[:first]), **{"in": out}, **more)
            out, scale = result, None if scale is None else 1
        return out.reshape(kept if keepdims else tuple(size for i, size in enumerate(kept) if i not in axes))

    def dot(self, x, y):
        """The sum of x[i] y[i], shape (1,)."""
        _require((x.type, x.count) == (y.type, y.count), f"dot: {x} and {y} differ")
        blocks = min(DOT_BLOCKS, ceil(x.count, 256))
        parts = self.temporary(x.type, (blocks,))
        self.library_kernel(f"dot_{x.type}", out=parts, x=x, y=y, count=x.count, blocks=blocks)
        return self.sum(parts, keepdims=True)

    def softmax(self, x, axis=-1):
        self._typed("softmax", x)
        axis, = _axes(axis, len(x.shape))
        if axis != len(x.shape) - 1:
            order = [i for i in range(len(x.shape)) if i != axis] + [axis]
            back = [order.index(i) for i in range(len(x.shape))]
            return self.permute(self.softmax(self.permute(x, order)), back)
        out = self.temporary(x.type, x.shape)
        self.library_kernel("softmax_f32", out=out, length=x.shape[-1], rows=x.count // x.shape[-1], **{"in": x})
        return out

    def layer_norm(self, x, weight=None, bias=None, epsilon=1e-5, length=None):
        """Over the last dimension, or over the last `length` elements."""
        self._typed("layer_norm", x)
        length = length or x.shape[-1]
        for what in (weight, bias):
            _require(what is None or what.count == length, f"layer_norm: {what} for rows of {length}")
        out = self.temporary(x.type, x.shape)
        self.library_kernel("layer_norm_f32", out=out, weight=weight, bias=bias, length=length, epsilon=epsilon,
                            rows=x.count // length, **{"in": x})
        return out

    def batch_norm(self, x, weight, bias, mean, variance, epsilon=1e-5, activation=None):
        """Inference, channels in dimension 1."""
        self._typed("batch_norm", x)
        for what in (weight, bias, mean, variance):
            _require(what.count == x.shape[1], f"batch_norm: {what} for {x.shape[1]} channels")
        out = self.temporary(x.type, x.shape)
        self.library_kernel("batch_norm_f32", out=out, weight=weight, bias=bias, mean=mean, variance=variance,
                            epsilon=epsilon, channels=x.shape[1], inner=element_count(x.shape[2:]),
                            activation=ACTIVATIONS[activation], count=x.count, **{"in": x})
        return out


    def group_norm(self, x, groups, weight=None, bias=None, epsilon=1e-5):
        """Channels in dimension 1; each group of them in each picture to mean 0 and variance 1, times weight, plus bias of the
        channel. groups = channels is instance normalisation."""
        _require(len(x.shape) >= 2 and x.shape[1] % groups == 0, f"group_norm: shape {x.shape} and {groups} groups do not fit together")
        out = self.layer_norm(x, None, None, epsilon, length=element_count(x.shape[1:]) // groups)
        return out if weight is None and bias is None else self.channel_affine(out, weight, bias)

    def product(self, x, axis=-1, keepdims=False):
        """Of one dimension."""
        self._typed("product", x)
        axis, = _axes(axis, len(x.shape))
        kept, inner, count = _line(x, axis)
        out = self.temporary("f32", kept)
        self.library_kernel("product_f32", out=out, length=x.shape[axis], inner=inner, count=count, **{"in": x})
        return out if keepdims else out.reshape((*kept[:axis], *kept[axis + 1:]))

    def extreme(self, x, axis, sign=1, keepdims=False):
        """(the largest, its index as s64) of one dimension; sign=-1: the smallest. NaN wins, of equal ones the first."""
        self._typed("extreme", x)
        axis, = _axes(axis, len(x.shape))
        kept, inner, count = _line(x, axis)
        out, indices = self.temporary("f32", kept), self.temporary("s64", kept)
        self.library_kernel("extreme_f32", out=out, indices=indices, length=x.shape[axis], inner=inner, sign=sign, count=count,
                            **{"in": x})
        shape = kept if keepdims else (*kept[:axis], *kept[axis + 1:])
        return out.reshape(shape), indices.reshape(shape)

    def any(self, x, axis, keepdims=False):
        """Whether one byte along the dimension is not 0 (u8)."""
        self._typed("any", x, "u8")
        axis, = _axes(axis, len(x.shape))
        kept, inner, count = _line(x, axis)
        out = self.temporary("u8", kept)
        self.library_kernel("any_u8", out=out, length=x.shape[axis], inner=inner, count=count, **{"in": x})
        return out if keepdims else out.reshape((*kept[:axis], *kept[axis + 1:]))

    def cumsum(self, x, axis=-1):
        _require(x.type.name in ("f32", "s64"), f"cumsum is for f32 and s64, not {x.type}")
        axis, = _axes(axis, len(x.shape))
        _, inner, count = _line(x, axis)
        out = self.temporary(x.type, x.shape)
        self.library_kernel(f"cumsum_{x.type}", out=out, length=x.shape[axis], inner=inner, count=count, **{"in": x})
        return out

    def sort(self, x, descending=False):
        """(sorted, indices as s64) of the last dimension, stable; NaN is the largest. Costs length^2."""
        self._typed("sort", x)
        out, indices = self.temporary("f32", x.shape), self.temporary("s64", x.shape)
        self.library_kernel("sort_f32", out=out, indices=indices, length=x.shape[-1], descending=int(descending), count=x.count,
                            **{"in": x})
        return out, indices


def _line(x, axis):
    """(the shape with size 1 at the axis, elements behind the axis, how many lines)."""
    return (*x.shape[:axis], 1, *x.shape[axis + 1:]), element_count(x.shape[axis + 1:]), x.count // x.shape[axis]


def _runs(axes):
    """[(first, last)] of neighbours in an ascending list."""
    runs = []
    for axis in axes:
        if runs and runs[-1][1] == axis - 1:
            runs[-1] = (runs[-1][0], axis)
        else:
            runs.append((axis, axis))
    return runs


class Pooling:
    def max_pool2d(self, x, kernel, stride=None, padding=0):
        return self._pool("max_pool2d_f32", x, kernel, stride, padding)

    def max_pool2d_indices(self, x, kernel, stride=None, padding=0, dilation=1, sides=None):
        """(the largest, its place y width + x as s64). sides: the result's, where its last windows may leave the picture."""
        kernel, padding, dilation = _pair(kernel), _pair(padding), _pair(dilation)
        stride = _pair(stride or kernel)
        self._typed("max_pool2d_indices", x)
        _require(len(x.shape) == 4, f"max_pool2d_indices: shape {x.shape}, four dimensions are wanted")
        sides = sides or [(x.shape[2 + i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
        out, indices = (self.temporary(type, (*x.shape[:2], *sides)) for type in ("f32", "s64"))
        self.library_kernel("max_pool2d_indices_f32", out=out, indices=indices, height=x.shape[2], width=x.shape[3],
                            out_height=sides[0], out_width=sides[1], kernel_height=kernel[0], kernel_width=kernel[1],
                            stride_y=stride[0], stride_x=stride[1], pad_y=padding[0], pad_x=padding[1], dilation_y=dilation[0],
                            dilation_x=dilation[1], count=out.count, **{"in": x})
        return out, indices

    def avg_pool2d(self, x, kernel, stride=None, padding=0, count_padding=True, sides=None):
        """count_padding: pixels outside count as zeros; -n divides by n instead. sides: the result's, where its last windows may
        leave the picture."""
        return self._pool("avg_pool2d_f32", x, kernel, stride, padding, sides, count_padding=int(count_padding))

    def _pool(self, name, x, kernel, stride, padding, sides=None, **more):
        self._typed(name, x)
        _require(len(x.shape) == 4, f"{name}: shape {x.shape}, four dimensions are wanted")
        kernel, padding = _pair(kernel), _pair(padding)
        stride = _pair(stride or kernel)
        for size, pad in zip(kernel, padding):
            _require(2 * pad <= size, f"{name}: padding {padding}, at most half of the kernel {kernel} is possible")
        sides = sides or [(x.shape[2 + i] + 2 * padding[i] - kernel[i]) // stride[i] + 1 for i in range(2)]
        _require(min(sides) > 0, f"{name}: the kernel {kernel} is larger than the picture {x.shape[2:]} with its "
                 "padding")
        out = self.temporary(x.type, (*x.shape[:2], *sides))
        self.library_kernel(name, out=out, height=x.shape[2], width=x.shape[3], out_height=sides[0],
                            out_width=sides[1], kernel_height=kernel[0], kernel_width=kernel[1], stride_y=stride[0],
                            stride_x=stride[1], pad_y=padding[0], pad_x=padding[1], count=out.count,
                            **{"in": x}, **more)
        return out

    def adaptive_avg_pool2d(self, x, size):
        self._typed("adaptive_avg_pool2d", x)
        height, width = _pair(size)
        out = self.temporary(x.type, (*x.shape[:2], height, width))
        self.library_kernel("adaptive_avg_pool2d_f32", out=out, height=x.shape[2], width=x.shape[3],
                            out_height=height, out_width=width, count=out.count, **{"in": x})
        return out


    def resize(self, x, size, mode="bilinear", align_corners=False, scales=(None, None)):
        """PyTorch's interpolate of [image][channel][y][x], "bilinear" or "nearest"; scales: where said, the result's pixels for one
        of the picture, instead of what the sizes say."""
        self._typed("resize", x)
        _require(len(x.shape) == 4 and mode in ("bilinear", "nearest"), f"resize: shape {x.shape} and mode {mode}: four dimensions, "
                 "and bilinear or nearest are possible")
        size = _pair(size)
        corners = align_corners and mode == "bilinear"
        steps = [(have - 1) / (want - 1) if corners and want > 1 else 0 if corners else 1 / scale if scale else have / want
                 for have, want, scale in zip(x.shape[2:], size, scales)]
        out = self.temporary("f32", (*x.shape[:2], *size))
        more = {"align_corners": int(align_corners)} if mode == "bilinear" else {}
        self.library_kernel(f"resize_{mode}_f32", out=out, height=x.shape[2], width=x.shape[3], out_height=size[0], out_width=size[1],
                            scale_y=steps[0], scale_x=steps[1], count=out.count, **{"in": x}, **more)
        return out

    def pixel_shuffle(self, x, factor):
        """[image][channel factor factor][y][x] to [image][channel][y factor][x factor]."""
        images, channels, height, width = x.shape
        _require(channels % (factor * factor) == 0, f"pixel_shuffle: {channels} channels are no multiple of {factor * factor}")
        parts = x.reshape(images, channels // factor ** 2, factor, factor, height, width)
        return self.permute(parts, (0, 1, 4, 2, 5, 3)).reshape(images, channels // factor ** 2, height * factor, width * factor)

    def pad(self, x, before, after, mode="constant", value=0):
        """`before` and `after`: elements for each of the last dimensions, first the outer ones; mode constant, reflect or edge."""
        _require(len(before) == len(after) <= len(x.shape) and mode in ("constant", "reflect", "edge"),
                 f"pad: {before}, {after} of shape {x.shape}, mode {mode}")
        for axis, front, back in zip(range(len(x.shape) - len(before), len(x.shape)), before, after):
            if front or back:
                x = self._pad_axis(x, axis, front, back, mode, value)
        return x

    def _pad_axis(self, x, axis, front, back, mode, value):
        size = x.shape[axis]
        if mode == "constant":
            x = self.slice(x, axis, max(0, -front), size + min(0, back))
            parts = [self.fill(x.type, (*x.shape[:axis], count, *x.shape[axis + 1:]), value) if count > 0 else None
                     for count in (front, back)]
            kept = [part for part in (parts[0], x, parts[1]) if part is not None]
            return self.concat(kept, axis) if len(kept) > 1 else x
        limit = size - 1 if mode == "reflect" else math.inf
        _require(0 <= front <= limit and 0 <= back <= limit, f"pad: {front} and {back} of {size} elements, 0 to {limit} are possible")
        out = self.temporary(x.type, (*x.shape[:axis], size + front + back, *x.shape[axis + 1:]))
        self.library_kernel(f"pad_mirror_b{x.type.bytes}", out=out, length=size, out_length=out.shape[axis],
                            inner=element_count(x.shape[axis + 1:]), before=front, reflect=int(mode == "reflect"), count=out.count,
                            **{"in": x})
        return out


class Moves:
    """Elements of any type that change their place."""

    def copy(self, x):
        out = self.temporary(x.type, x.shape)
        self._copy(out, x)
        return out

    def assign(self, target, tensor):
        """Writes what an operator gave into `target`: an inout, an output of one's own, a temporary, or a part of one. So
        iterations go on from each other's results. Kernels before it read the old contents, those after it the new."""
        _require(target.buffer.role not in ("input", "constant"),
                 f"assign: {target} is {target.buffer.role}, it must be an inout, an output or a temporary")
        _require((target.type, target.shape) == (tensor.type, tensor.shape),
                 f"assign: {target} and {tensor} differ in type or shape")
        overlap = target.buffer is tensor.buffer and abs(target.offset - tensor.offset) < target.bytes
        _require(not overlap, f"assign: {tensor} overlaps {target}, into which it would be copied")
        self._copy(target, tensor)
        return target

    def _copy(self, out, x):
        _require(x.type.bytes <= 8, f"elements of {x.type} cannot be moved")
        self.library_kernel(f"copy_b{x.type.bytes}", out=out, count=x.count, **{"in": x})

    def _strided(self, out, x, shape, to, start):
        _require(x.type.bytes <= 8, f"elements of {x.type} cannot be moved")
        sizes, (out_stride, in_stride) = six(shape, to, start)
        self.library_kernel(f"copy_strided_b{x.type.bytes}", out=out, size=sizes, out_stride=out_stride,
                            in_stride=in_stride, count=element_count(shape), **{"in": x})

    def permute(self, x, axes):
        """Dimension i of the result is dimension axes[i] of x."""
        rank = len(x.shape)
        axes = [axis % rank for axis in axes]
        _require(sorted(axes) == list(range(rank)), f"permute: {axes} is no order of {rank} dimensions")
        shape = tuple(x.shape[axis] for axis in axes)
        if [axis for axis in axes if x.shape[axis] > 1] == sorted(axis for axis in axes if x.shape[axis] > 1):
            return x.reshape(shape)
        out = self.temporary(x.type, shape)
        batch = element_count(x.shape[:-2])
        if axes == [*range(rank - 2), rank - 1, rank - 2] and batch <= MAX_GRID_YZ and x.type.bytes <= 8:
            self.library_kernel(f"transpose_b{x.type.bytes}", out=out, rows=x.shape[-2], columns=x.shape[-1],
                                batch=batch, **{"in": x})
        else:
            self._strided(out, x, shape, strides_of(shape), [x.strides[axis] for axis in axes])
        return out

    def transpose(self, x, first=-2, second=-1):
        axes = list(range(len(x.shape)))
        axes[first], axes[second] = axes[second], axes[first]
        return self.permute(x, axes)

    def expand(self, x, shape):
        """NumPy's broadcast_to."""
        shape = tuple(shape)
        _require(broadcast_shapes(x.shape, shape) == shape, f"expand: {x.shape} cannot become {shape}")
        if element_count(shape) == x.count:
            return x.reshape(shape)
        out = self.temporary(x.type, shape)
        self._strided(out, x, shape, strides_of(shape), broadcast_strides(x.shape, shape))
        return out

    def slice(self, x, axis, start=0, stop=None, step=1):
        """x[..., start:stop:step, ...]; negative ends count from the back."""
        axis, = _axes(axis, len(x.shape))
        start, stop, step = slices(x.shape[axis], start, stop, step)
        size = len(range(start, stop, step))
        shape = (*x.shape[:axis], size, *x.shape[axis + 1:])
        first = type(x)(self, x.buffer, x.type, shape, x.offset + start * x.strides[axis] * x.type.bytes)
        if step == 1 and element_count(x.shape[:axis]) == 1 or shape == x.shape:
            return first  # in one piece already
        out = self.temporary(x.type, shape)
        strides = list(x.strides)
        strides[axis] *= step
        self._strided(out, first, shape, strides_of(shape), strides)
        return out

    def concat(self, tensors, axis=0):
        first = tensors[0]
        axis, = _axes(axis, len(first.shape))
        for other in tensors[1:]:
            _require(other.type == first.type and len(other.shape) == len(first.shape) and
                     all(i == axis or a == b for i, (a, b) in enumerate(zip(first.shape, other.shape))),
                     f"concat: {first} and {other} differ in more than dimension {axis}")
        shape = (*first.shape[:axis], sum(t.shape[axis] for t in tensors), *first.shape[axis + 1:])
        out = self.temporary(first.type, shape)
        at = 0
        for tensor in tensors:
            place = type(out)(self, out.buffer, out.type, tensor.shape, at * out.strides[axis] * out.type.bytes)
            if element_count(shape[:axis]) == 1:
                self._copy(place, tensor)
            else:
                self._strided(place, tensor, tensor.shape, out.strides, tensor.strides)
            at += tensor.shape[axis]
        return out

    def gather(self, x, axis, index):
        """x along one dimension by `index` (s64), which has x's rank and in the other dimensions no larger sizes; an index that is
        not there gives 0."""
        axis, = _axes(axis, len(x.shape))
        self._indexed("gather", x, axis, index)
        out = self.temporary(x.type, index.shape)
        strides = [0 if i == axis else stride for i, stride in enumerate(x.strides)]
        sizes, (strides,) = six(index.shape, strides)
        self.library_kernel(f"gather_b{x.type.bytes}", out=out, index=index, shape=sizes, in_strides=strides, limit=x.shape[axis],
                            stride=x.strides[axis], count=out.count, **{"in": x})
        return out

    def scatter(self, x, axis, index, source, reduce=None, include=True):
        """x with `source` (of index's shape) at the places of `index` along one dimension; of several the last. reduce: sum, prod,
        amax, amin or mean of them, and with `include` of what x has there. In other dimensions index has x's sizes."""
        axis, = _axes(axis, len(x.shape))
        self._indexed("scatter", x, axis, index)
        others = all(i == axis or a == b for i, (a, b) in enumerate(zip(index.shape, x.shape)))
        _require(source.type == x.type and source.shape == index.shape and others,
                 f"scatter: {source}, indices {index} and {x} do not fit together")
        out = self.temporary(x.type, x.shape)
        values = {"out": out, "in": x, "index": index, "source": source, "length": index.shape[axis], "limit": x.shape[axis],
                  "inner": element_count(x.shape[axis + 1:]), "count": x.count}
        if reduce is None:
            self.library_kernel(f"scatter_b{x.type.bytes}", **values)
        else:
            self._typed("scatter with a reduction", x)
            self.library_kernel("scatter_reduce_f32", mode=REDUCTIONS.index(reduce), include=int(include), **values)
        return out

    def flip(self, x, axes):
        """The other way round along these dimensions."""
        axes = _axes(axes, len(x.shape))
        steps = [-stride if i in axes else stride for i, stride in enumerate(x.strides)]
        return self.strided_view(x, x.shape, steps, sum((x.shape[i] - 1) * x.strides[i] for i in axes))

    def strided_view(self, x, shape, strides, first=0):
        """A copy of the elements `first` + index * strides of x, which all must be there."""
        shape = tuple(shape)
        ends = [(size - 1) * stride for size, stride in zip(shape, strides)]
        low, high = first + sum(min(0, end) for end in ends), first + sum(max(0, end) for end in ends)
        _require(0 <= low and high < x.count, f"strided_view: elements {low} to {high} of {x.count}")
        out = self.temporary(x.type, shape)
        place = type(x)(self, x.buffer, x.type, shape, x.offset + first * x.type.bytes)
        self._strided(out, place, shape, strides_of(shape), strides)
        return out

    def put(self, x, part, strides, first=0):
        """A copy of x with `part` at the elements `first` + index * strides."""
        out = self.copy(x)
        place = type(out)(self, out.buffer, out.type, part.shape, first * out.type.bytes)
        self._strided(place, part, part.shape, strides, part.strides)
        self.launches[-1].arguments[0].access = None  # what is not named there stays
        return out

    def _indexed(self, what, x, axis, index):
        _require(index.type.name == "s64", f"{what}: indices are s64, not {index.type}")
        fits = len(index.shape) == len(x.shape) and all(i == axis or a <= b for i, (a, b) in enumerate(zip(index.shape, x.shape)))
        _require(fits, f"{what}: indices of shape {index.shape} for {x.shape}")

    def embedding(self, table, indices):
        """Rows of `table` by index (s32 or s64); NaN where there is no such row."""
        self._typed("embedding", table)
        _require(indices.type.name in ("s32", "s64"), f"embedding: indices are s32 or s64, not {indices.type}")
        rows, width = table.shape
        out = self.temporary("f32", (*indices.shape, width))
        self.library_kernel(f"embedding_f32_{indices.type}", out=out, table=table, indices=indices, rows=rows,
                            width=width, count=out.count)
        return out

    def fill(self, type, shape, value):
        out = self.temporary(type, shape)
        _require(out.type.bytes <= 8, f"elements of {out.type} cannot be moved")
        bits = int.from_bytes(Scalar(out.type, value).pack(), "little")
        self.library_kernel(f"fill_b{out.type.bytes}", out=out, value=bits, count=out.count)
        return out

    def jacobi_step(self, a, b, x, out=None):
        """One step of Jacobi's method for A x = b; A f32 [n][n], the vectors f64."""
        n = b.count
        _require(a.shape == (n, n) and x.count == n, f"jacobi_step: {a}, {b} and {x} do not fit together")
        self._typed("jacobi_step's matrix", a)
        for vector in (b, x):
            self._typed("jacobi_step's vectors", vector, "f64")
        out = out or self.temporary("f64", b.shape)
        self.library_kernel("jacobi_step_f64", next=out, a=a, b=b, x=x, n=n)
        return out


class Operators(Elementwise, Products, Reductions, Pooling, Moves):
    pass
