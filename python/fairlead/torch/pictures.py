"""Convolutions, pooling, resizing and padding. What has one dimension is a picture of one line."""

from fairlead.torch.fusion import Pending
from fairlead.torch.operators import OPERATORS, aten, one, shape_of
from fairlead.types import element_count


def _many(value, count):
    value = one(value)
    return (value,) * count if isinstance(value, int) else tuple(value)


def _pair(value):
    return _many(value, 2)


def _same_padding(kernel, dilation):
    """PyTorch's "same": what is odd goes behind; so many in front and behind."""
    total = [step * (size - 1) for size, step in zip(kernel, dilation)]
    return [size // 2 for size in total], [size - size // 2 for size in total]


@aten("conv2d")
def conv2d(c, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    x = c.tensor(x)
    if len(x.shape) == 3:
        return c.tensor(conv2d(c, x.reshape(1, *x.shape), weight, bias, stride, padding, dilation, groups)).reshape(c.result_shape())
    stride, dilation, kernel = _pair(stride), _pair(dilation), shape_of(weight)[2:]
    if padding == "same":
        front, back = _same_padding(kernel, dilation)
        x, padding = (x, front) if front == back else (c.task.pad(x, front, back), (0, 0))
    padding = (0, 0) if padding == "valid" else _pair(padding)
    sides = [(size + 2 * pad - step * (side - 1) - 1) // by + 1 for size, pad, step, side, by in
             zip(x.shape[2:], padding, dilation, kernel, stride)]

    def emit(weight, bias, addend, activation):
        return c.task.conv2d(x, c.tensor(weight), None if bias is None else c.tensor(bias), stride=stride, padding=padding,
                             dilation=dilation, groups=groups, addend=addend, activation=activation)

    return Pending((x.shape[0], shape_of(weight)[0], *sides), emit, weight, bias)


def _line(c, x):
    """[...][length] as [...][1][length]."""
    x = c.tensor(x)
    return x.reshape((*x.shape[:-1], 1, x.shape[-1]))


def _without_line(x):
    return x.reshape((*x.shape[:-2], x.shape[-1]))


@aten("conv1d")
def conv1d(c, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    x = _line(c, x)
    x = x if len(x.shape) == 4 else x.reshape(1, *x.shape)
    stride, dilation = _many(stride, 1)[0], _many(dilation, 1)[0]
    if padding == "same":
        (front,), (back,) = _same_padding(shape_of(weight)[2:], (dilation,))
        x, padding = c.task.pad(x, (front,), (back,)), 0
    padding = 0 if padding == "valid" else _many(padding, 1)[0]
    out = c.task.conv2d(x, _line(c, weight), None if bias is None else c.tensor(bias), stride=(1, stride), padding=(0, padding),
                        dilation=(1, dilation), groups=groups)
    return out.reshape(c.result_shape())


@aten("conv3d")
def conv3d(c, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """A sum over the kernel's depth of convolutions of pictures."""
    x = c.tensor(x)
    stride, dilation, kernel = _many(stride, 3), _many(dilation, 3), shape_of(weight)[2:]
    if len(x.shape) != 5:
        c.refuse("a convolution in three dimensions without a batch")
    if padding == "same":
        front, back = _same_padding(kernel, dilation)
        x, padding = c.task.pad(x, front, back), (0, 0, 0)
    padding = (0, 0, 0) if padding == "valid" else _many(padding, 3)
    x = c.task.pad(x, (padding[0], 0, 0), (padding[0], 0, 0))
    images, _, depth = x.shape[:3]
    deep = (depth - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    total = None
    weight = c.tensor(weight)
    for k in range(kernel[0]):
        first = k * dilation[0]
        part = c.task.slice(x, 2, first, first + (deep - 1) * stride[0] + 1, stride[0])
        part = c.task.permute(part, (0, 2, 1, 3, 4)).reshape(images * deep, x.shape[1], *x.shape[3:])
        taps = c.task.slice(weight, 2, k, k + 1)
        total = c.task.conv2d(part, taps.reshape(*weight.shape[:2], *kernel[1:]), None if bias is None or total else c.tensor(bias),
                              stride=stride[1:], padding=padding[1:], dilation=dilation[1:], groups=groups, addend=total)
    total = total.reshape(images, deep, *total.shape[1:])
    return c.task.permute(total, (0, 2, 1, 3, 4))


@aten("conv_transpose2d")
def conv_transpose2d(c, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    x = c.tensor(x)
    x = x if len(x.shape) == 4 else x.reshape(1, *x.shape)
    out = c.task.conv_transpose2d(x, c.tensor(weight), None if bias is None else c.tensor(bias), stride=_pair(stride),
                                  padding=_pair(padding), output_padding=_pair(output_padding), dilation=_pair(dilation), groups=groups)
    return out.reshape(c.result_shape())


@aten("conv_transpose1d")
def conv_transpose1d(c, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    stride, padding, output_padding, dilation = (_many(value, 1)[0] for value in (stride, padding, output_padding, dilation))
    return conv_transpose2d(c, _line(c, x), _line(c, weight), bias, (1, stride), (0, padding), (0, output_padding), groups, (1, dilation))


@aten("convolution")
def convolution(c, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    name = ("conv_transpose" if transposed else "conv") + f"{len(shape_of(weight)) - 2}d"
    if name not in OPERATORS:
        c.refuse(f"a convolution that is {name}")
    if transposed:
        return OPERATORS[name](c, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return OPERATORS[name](c, x, weight, bias, stride, padding, dilation, groups)


# ---- pooling


def _four(x):
    """A picture without a batch has one."""
    return x if len(x.shape) == 4 else x.reshape(1, *x.shape)


def _max_pool(c, x, kernel_size, stride, padding, dilation, with_places):
    x, shape = _four(c.tensor(x)), c.result_shape()
    stride = _pair(stride or kernel_size)
    sides = shape[-2:]
    plain = [(x.shape[2 + i] + 2 * _pair(padding)[i] - _pair(kernel_size)[i]) // stride[i] + 1 for i in range(2)]
    if not with_places and _pair(dilation) == (1, 1) and tuple(plain) == tuple(sides):
        return c.task.max_pool2d(x, _pair(kernel_size), stride, _pair(padding)).reshape(shape), None
    both = c.task.max_pool2d_indices(x, _pair(kernel_size), stride, _pair(padding), _pair(dilation), sides)
    return tuple(part.reshape(shape) for part in both)


@aten("max_pool2d")
def max_pool2d(c, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return _max_pool(c, x, kernel_size, stride, padding, dilation, False)[0]


@aten("max_pool2d_with_indices")
def max_pool2d_with_indices(c, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    return _max_pool(c, x, kernel_size, stride, padding, dilation, c.is_read(1))


@aten("avg_pool2d")
def avg_pool2d(c, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    x, shape = _four(c.tensor(x)), c.result_shape()
    count = -1 if divisor_override else int(count_include_pad)
    out = c.task.avg_pool2d(x, _pair(kernel_size), _pair(stride or kernel_size), _pair(padding), count, shape[-2:]).reshape(shape)
    return c.task.scale(out, 1 / divisor_override) if divisor_override else out


def _deep(c, x, kernel, stride, padding, pool):
    """Over pictures, then over their depth: the largest of the largest, the mean of means (how many there are is a product, too)."""
    x, shape = c.tensor(x), c.result_shape()
    kernel, stride, padding = _many(kernel, 3), _many(stride or kernel, 3), _many(padding, 3)
    planes, depth = element_count(x.shape[:-3]), x.shape[-3]
    x = pool(x.reshape(1, planes * depth, *x.shape[-2:]), kernel[1:], stride[1:], padding[1:], shape[-2:])
    x = pool(x.reshape(1, planes, depth, element_count(shape[-2:])), (kernel[0], 1), (stride[0], 1), (padding[0], 0),
             (shape[-3], element_count(shape[-2:])))
    return x.reshape(shape)


@aten("avg_pool3d")
def avg_pool3d(c, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    count = -1 if divisor_override else int(count_include_pad)
    out = _deep(c, x, kernel_size, stride, padding,
                lambda x, kernel, step, pad, sides: c.task.avg_pool2d(x, kernel, step, pad, count, sides))
    return c.task.scale(out, 1 / divisor_override) if divisor_override else out


@aten("max_pool3d")
def max_pool3d(c, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    if _many(dilation, 3) != (1, 1, 1):
        c.refuse("max_pool3d with dilation")
    return _deep(c, x, kernel_size, stride, padding, lambda x, kernel, step, pad, sides: c.task.max_pool2d_indices(x, kernel, step, pad,
                                                                                                                   1, sides)[0])


@aten("max_pool3d_with_indices")
def max_pool3d_with_indices(c, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    if c.is_read(1):
        c.refuse("max_pool3d with places")
    return max_pool3d(c, x, kernel_size, stride, padding, dilation, ceil_mode), None


@aten("avg_pool1d")
def avg_pool1d(c, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    kernel, step, pad = (_many(value, 1)[0] for value in (kernel_size, stride or kernel_size, padding))
    shape = c.result_shape()
    return c.task.avg_pool2d(_four(_line(c, x)), (1, kernel), (1, step), (0, pad), count_include_pad, (1, shape[-1])).reshape(shape)


@aten("adaptive_avg_pool2d", "_adaptive_avg_pool2d")
def adaptive_avg_pool2d(c, x, output_size):
    shape = c.result_shape()
    return c.task.adaptive_avg_pool2d(_four(c.tensor(x)), shape[-2:]).reshape(shape)


@aten("adaptive_avg_pool1d")
def adaptive_avg_pool1d(c, x, output_size):
    shape = c.result_shape()
    return c.task.adaptive_avg_pool2d(_four(_line(c, x)), (1, shape[-1])).reshape(shape)


@aten("adaptive_avg_pool3d", "_adaptive_avg_pool3d")
def adaptive_avg_pool3d(c, x, output_size):
    """First over pictures, then over their depth."""
    x, shape = c.tensor(x), c.result_shape()
    depth, flat = x.shape[-3], shape[-2:]
    x = c.task.adaptive_avg_pool2d(x.reshape(1, element_count(x.shape[:-2]), *x.shape[-2:]), flat)
    x = c.task.adaptive_avg_pool2d(x.reshape(1, element_count(shape[:-3]), depth, element_count(flat)), (shape[-3], element_count(flat)))
    return x.reshape(shape)


# ---- resizing and padding


def _scales(scales, rank):
    """Of height and width; None where the sizes say it."""
    return tuple(scales) if scales else (None,) * rank


def _resize(c, x, mode, align_corners, scales):
    return c.task.resize(c.tensor(x), c.result_shape()[2:], mode, align_corners, scales)


@aten("upsample_bilinear2d")
def upsample_bilinear2d(c, x, output_size, align_corners, scales_h=None, scales_w=None, scale_factors=None):
    scales = scales_h if isinstance(scales_h, (list, tuple)) else scale_factors or (scales_h, scales_w)
    return _resize(c, x, "bilinear", align_corners, _scales(scales, 2))


@aten("upsample_nearest2d")
def upsample_nearest2d(c, x, output_size, scales_h=None, scales_w=None, scale_factors=None):
    scales = scales_h if isinstance(scales_h, (list, tuple)) else scale_factors or (scales_h, scales_w)
    return _resize(c, x, "nearest", False, _scales(scales, 2))


@aten("pixel_shuffle")
def pixel_shuffle(c, x, upscale_factor):
    x, shape = c.tensor(x), c.result_shape()
    return c.task.pixel_shuffle(x.reshape(element_count(x.shape[:-3]), *x.shape[-3:]), upscale_factor).reshape(shape)


def _pad(c, x, padding, mode, value=0):
    before, after = list(padding[0::2])[::-1], list(padding[1::2])[::-1]  # the last dimension comes first
    return c.task.pad(c.tensor(x), before, after, mode, value)


@aten("constant_pad_nd")
def constant_pad_nd(c, x, pad, value=0):
    return _pad(c, x, pad, "constant", value)


@aten("pad")
def pad_(c, x, pad, mode="constant", value=None):
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    if mode not in modes:
        c.refuse(f"padding of mode {mode}")
    return _pad(c, x, pad, modes[mode], value or 0)


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(c, x, padding):
    return _pad(c, x, padding, "reflect")


@aten("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(c, x, padding):
    return _pad(c, x, padding, "edge")
