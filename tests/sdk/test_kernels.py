"""Every kernel of the built-in library against NumPy, at sizes that no tile or block divides."""

import math

import numpy
import pytest

from fairlead import ktask

RANDOM = numpy.random.default_rng(7)
NUMPY = {"f32": numpy.float32, "f64": numpy.float64, "c64": numpy.complex64}


def numbers(*shape, type="f32"):
    values = RANDOM.normal(size=shape)
    if type == "c64":
        values = values + 1j * RANDOM.normal(size=shape)
    return values.astype(NUMPY[type])


def run(build, *arrays):
    """build(task, *tensors) -> tensor, run on these inputs."""
    task = ktask.Task()
    names = [f"in{i}" for i in range(len(arrays))]
    inputs = [task.input(name, array.dtype, array.shape) for name, array in zip(names, arrays)]
    task.output("out", build(task, *inputs))
    return task.run(**dict(zip(names, arrays)))["out"]


def check(build, expected, *arrays, tolerance=1e-5):
    result = run(build, *arrays)
    assert result.shape == expected.shape
    numpy.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


# ---- products

TOLERANCE = {"f32": 2e-5, "f64": 1e-12, "c64": 5e-5}


@pytest.mark.parametrize("type", NUMPY)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_gemm_with_transposed_factors(type, transposed):
    a, b = numbers(37, 53, type=type), numbers(53, 41, type=type)
    stored = [numpy.ascontiguousarray(m.T) if t else m for m, t in zip((a, b), transposed)]
    check(lambda t, x, y: t.gemm(x, y, transpose_a=transposed[0], transpose_b=transposed[1]), a @ b, *stored,
          tolerance=TOLERANCE[type])


@pytest.mark.parametrize("type", NUMPY)
def test_gemm_of_many_tiles_takes_the_large_ones(type):
    a, b = numbers(65, 19, type=type), numbers(19, 64 * 64 + 3, type=type)
    task = ktask.Task()
    task.output("c", task.gemm(task.input("a", type, a.shape), task.input("b", type, b.shape)))
    assert task.launches[0].kernel == f"gemm_{type}"
    numpy.testing.assert_allclose(task.run(a=a, b=b)["c"], a @ b, rtol=TOLERANCE[type], atol=TOLERANCE[type])


@pytest.mark.parametrize("type", NUMPY)
def test_gemm_with_alpha_beta_and_bias(type):
    a, b, d, bias = numbers(5, 7, type=type), numbers(7, 9, type=type), numbers(5, 9, type=type), numbers(9, type=type)
    check(lambda t, *x: t.gemm(x[0], x[1], alpha=0.5, addend=x[2], beta=-2, bias=x[3]), 0.5 * (a @ b) - 2 * d + bias,
          a, b, d, bias, tolerance=TOLERANCE[type])


def test_gemm_of_complex_numbers_by_a_complex_factor():
    a, b = numbers(5, 7, type="c64"), numbers(7, 9, type="c64")
    check(lambda t, x, y: t.gemm(x, y, alpha=1 - 2j), (1 - 2j) * (a @ b), a, b, tolerance=5e-5)


def test_gemm_with_a_bias_for_each_row_and_an_activation():
    a, b, bias = numbers(5, 7), numbers(7, 9), numbers(5)
    check(lambda t, *x: t.gemm(x[0], x[1], bias=x[2], bias_axis=-2, activation="relu"),
          numpy.maximum(a @ b + bias[:, None], 0), a, b, bias)


@pytest.mark.parametrize("shapes", [((2, 3, 5, 7), (2, 3, 7, 4)), ((6, 5, 7), (7, 4)), ((5, 7), (6, 7, 4)),
                                    ((1, 5, 7), (6, 7, 4))])
def test_gemm_of_batches(shapes):
    a, b = (numbers(*shape) for shape in shapes)
    check(lambda t, x, y: t.gemm(x, y), a @ b, a, b)


def test_linear_adds_bias_and_residual():
    x, weight, bias, residual = numbers(2, 3, 17), numbers(11, 17), numbers(11), numbers(2, 3, 11)
    check(lambda t, *a: t.linear(a[0], a[1], a[2], addend=a[3]), x @ weight.T + bias + residual, x, weight, bias,
          residual)


def convolution(x, weight, stride, padding, dilation, groups):
    """The definition, slowly."""
    images, channels, height, width = x.shape
    outputs, per_group, *kernel = weight.shape
    padded = numpy.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    out_height, out_width = ((size + 2 * pad - step * (k - 1) - 1) // s + 1 for size, pad, step, k, s in
                             zip((height, width), padding, dilation, kernel, stride))
    out = numpy.zeros((images, outputs, out_height, out_width), numpy.float64)
    for o in range(outputs):
        first = o // (outputs // groups) * per_group
        for ky in range(kernel[0]):
            for kx in range(kernel[1]):
                window = padded[:, first:first + per_group,
                                ky * dilation[0]:ky * dilation[0] + (out_height - 1) * stride[0] + 1:stride[0],
                                kx * dilation[1]:kx * dilation[1] + (out_width - 1) * stride[1] + 1:stride[1]]
                out[:, o] += numpy.einsum("nchw,c->nhw", window, weight[o, :, ky, kx])
    return out


@pytest.mark.parametrize("sizes, options", [
    (((2, 3, 9, 11), (5, 3, 3, 3)), {}),
    (((1, 4, 10, 7), (6, 4, 3, 5)), {"stride": (2, 1), "padding": (1, 2)}),
    (((2, 4, 13, 13), (6, 2, 3, 3)), {"groups": 2, "dilation": (2, 3), "padding": (2, 2)}),
    (((1, 6, 5, 5), (6, 1, 3, 3)), {"groups": 6, "padding": (1, 1)}),
    (((1, 3, 8, 8), (7, 3, 1, 1)), {})])
def test_conv2d(sizes, options):
    x, weight = (numbers(*size) for size in sizes)
    full = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, **options}
    check(lambda t, *a: t.conv2d(*a, **options), convolution(x, weight, **full), x, weight)


def test_conv2d_of_many_tiles_takes_the_large_ones():
    x, weight = numbers(1, 1, 92, 92), numbers(65, 1, 1, 1)
    task = ktask.Task()
    task.output("y", task.conv2d(task.input("x", "f32", x.shape), task.constant("w", weight)))
    assert task.launches[0].kernel == "conv2d_f32"
    numpy.testing.assert_allclose(task.run(x=x)["y"], x * weight[:, 0][None], rtol=1e-5, atol=1e-6)


def test_conv2d_adds_bias_and_residual_before_its_activation():
    x, weight, bias, residual = numbers(1, 3, 6, 6), numbers(4, 3, 3, 3), numbers(4), numbers(1, 4, 4, 4)
    expected = convolution(x, weight, (1, 1), (0, 0), (1, 1), 1) + bias[:, None, None] + residual
    check(lambda t, *a: t.conv2d(*a[:3], addend=a[3], activation="relu"), numpy.maximum(expected, 0), x, weight, bias,
          residual)


def softmax(x, axis=-1):
    powers = numpy.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def test_attention():
    query, key, value = (numbers(2, 3, 7, 5) for _ in range(3))
    mask = numpy.triu(numpy.full((7, 7), -1e9, numpy.float32), 1)
    expected = softmax(query @ key.swapaxes(-1, -2) / math.sqrt(5) + mask) @ value
    check(lambda t, *a: t.attention(*a[:3], mask=a[3]), expected, query, key, value, mask)


# ---- element by element

UNARY = {"relu": lambda x: numpy.maximum(x, 0), "tanh": numpy.tanh, "sigmoid": lambda x: 1 / (1 + numpy.exp(-x)),
         "gelu": lambda x: 0.5 * x * (1 + numpy.vectorize(math.erf)(x / math.sqrt(2))),
         "gelu_tanh": lambda x: 0.5 * x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
         "silu": lambda x: x / (1 + numpy.exp(-x)), "exp": numpy.exp, "abs": numpy.abs, "square": numpy.square}
UNARY_POSITIVE = {"log": numpy.log, "sqrt": numpy.sqrt, "rsqrt": lambda x: 1 / numpy.sqrt(x)}


@pytest.mark.parametrize("name", [*UNARY, *UNARY_POSITIVE])
def test_unary(name):
    x = 3 * numbers(3, 257)
    if name in UNARY_POSITIVE:
        x = numpy.abs(x) + 0.01
    expected = {**UNARY, **UNARY_POSITIVE}[name](x.astype(numpy.float64))
    check(lambda t, a: t.unary(name, a), expected, x)


BINARY = {"add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "div": numpy.divide, "max": numpy.maximum,
          "min": numpy.minimum}
BINARY_TYPES = [(name, type) for name in BINARY for type in NUMPY
                if not (name in ("max", "min") and type != "f32" or (name, type) == ("div", "c64"))]


@pytest.mark.parametrize("name, type", BINARY_TYPES)
@pytest.mark.parametrize("shapes", [((3, 101), (3, 101)), ((3, 1, 5), (4, 1)), ((7,), (2, 3, 7))])
def test_binary_as_numpy_broadcasts(name, type, shapes):
    a, b = (numbers(*shape, type=type) for shape in shapes)
    if name == "div":
        b = numpy.sign(b) * (numpy.abs(b) + 0.1)
    check(lambda t, x, y: t.binary(name, x, y), BINARY[name](a, b), a, b)


@pytest.mark.parametrize("type", NUMPY)
def test_scale_and_axpy(type):
    x, y = numbers(301, type=type), numbers(301, type=type)
    check(lambda t, a, b: t.axpy(-1.5, t.scale(a, 2, 1), b), -1.5 * (2 * x + 1) + y, x, y)


def test_operators_of_tensors():
    x, y = numbers(4, 6), numbers(6)
    check(lambda t, a, b: (a * 2 - b) / 4 + a * b + 1, (x * 2 - y) / 4 + x * y + 1, x, y)


def test_clamp_and_bias_add():
    x, bias = numbers(2, 3, 5), numbers(3)
    check(lambda t, a, b: t.clamp(t.bias_add(a, b, axis=1), -0.5, 0.5),
          numpy.clip(x + bias[:, None], -0.5, 0.5), x, bias)


@pytest.mark.parametrize("start, end", [("f32", "f64"), ("f64", "f32"), ("s32", "f32"), ("s64", "s32"), ("s32", "s64")])
def test_convert(start, end):
    dtype = {"s32": numpy.int32, "s64": numpy.int64, **NUMPY}
    x = numpy.round(100 * RANDOM.normal(size=77)).astype(dtype[start])
    numpy.testing.assert_array_equal(run(lambda t, a: t.convert(a, end), x), x.astype(dtype[end]))


# ---- moves

MOVED = [numpy.uint8, numpy.int16, numpy.float32, numpy.complex64]


def integers(dtype, *shape):
    return numpy.arange(math.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", MOVED)
def test_moves(dtype):
    x = integers(dtype, 3, 37, 41)
    numpy.testing.assert_array_equal(run(lambda t, a: t.transpose(a), x), x.transpose(0, 2, 1))
    numpy.testing.assert_array_equal(run(lambda t, a: t.permute(a, (2, 0, 1)), x), x.transpose(2, 0, 1))
    numpy.testing.assert_array_equal(run(lambda t, a: t.copy(a), x), x)
    numpy.testing.assert_array_equal(run(lambda t, a: t.slice(a, 2, 5, -3, 4), x), x[:, :, 5:-3:4])
    numpy.testing.assert_array_equal(run(lambda t, a: t.concat([a, t.slice(a, 1, 30)], 1), x),
                                     numpy.concatenate([x, x[:, 30:]], 1))


def test_slices_of_the_first_dimension_are_views():
    x = integers(numpy.float32, 9, 4)
    task = ktask.Task()
    part = task.slice(task.input("x", "f32", (9, 4)), 0, 2, 5)
    assert task.launches == []
    task.output("y", task.concat([part, part.part(1, 2)]))
    numpy.testing.assert_array_equal(task.run(x=x)["y"], numpy.concatenate([x[2:5], x[3:5]]))


def test_expand_and_fill():
    x = integers(numpy.float32, 3, 1)
    numpy.testing.assert_array_equal(run(lambda t, a: t.expand(a, (2, 3, 5)), x), numpy.broadcast_to(x, (2, 3, 5)))
    for type, value in (("f32", -1.5), ("s32", -7), ("f64", 0.1), ("u8", 200), ("s16", -3)):
        task = ktask.Task()
        task.output("y", task.fill(type, (3, 100), value))
        assert (task.run()["y"] == numpy.array(value, task._named["y"].type.numpy)).all()


@pytest.mark.parametrize("dtype", [numpy.int32, numpy.int64])
def test_embedding_gives_nan_where_there_is_no_row(dtype):
    table, indices = numbers(11, 13), numpy.array([[3, 0], [10, 11], [-1, 5]], dtype)
    expected = numpy.where(((indices >= 0) & (indices < 11))[..., None], table[indices % 11], numpy.nan)
    numpy.testing.assert_array_equal(run(lambda t, a, b: t.embedding(a, b), table, indices), expected)


# ---- reductions and normalisations


@pytest.mark.parametrize("type", NUMPY)
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), (1, 2)])
def test_sum_and_mean(type, axis):
    x = numbers(3, 301, 5, type=type)
    check(lambda t, a: t.sum(a, axis).reshape(-1), x.sum(axis).reshape(-1), x, tolerance=2e-4)
    check(lambda t, a: t.mean(a, axis, keepdims=True), x.mean(axis, keepdims=True), x)


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_max(type):
    x = numbers(3, 301, 5, type=type) - 9  # all negative
    check(lambda t, a: t.max(a, 1), x.max(1), x)


def test_argmax_takes_the_first_of_equals():
    x = numpy.round(3 * numbers(4, 300, 3))
    numpy.testing.assert_array_equal(run(lambda t, a: t.argmax(a, 1), x), x.argmax(1))
    short = numbers(5, 7)
    numpy.testing.assert_array_equal(run(lambda t, a: t.argmax(a), short), short.argmax(-1))


@pytest.mark.parametrize("type", NUMPY)
@pytest.mark.parametrize("count", [1, 1000, 70001])
def test_dot(type, count):
    x, y = numbers(count, type=type), numbers(count, type=type)
    check(lambda t, a, b: t.dot(a, b), numpy.array([(x * y).sum()]), x, y,
          tolerance=2e-3)


@pytest.mark.parametrize("length", [1, 31, 1000])
def test_softmax_and_layer_norm(length):
    x, weight, bias = 5 * numbers(6, length), numbers(length), numbers(length)
    check(lambda t, a: t.softmax(a), softmax(x), x)
    wide = x.astype(numpy.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / numpy.sqrt(wide.var(1, keepdims=True) + 1e-3) * weight + bias
    check(lambda t, *a: t.layer_norm(*a, epsilon=1e-3), expected, x, weight, bias, tolerance=1e-4)


def test_softmax_over_another_axis_and_layer_norm_without_weights():
    x = numbers(3, 7, 5)
    check(lambda t, a: t.softmax(a, axis=1), softmax(x, 1), x)
    centred = x - x.mean(-1, keepdims=True)
    check(lambda t, a: t.layer_norm(a), centred / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5), x, tolerance=1e-4)


def test_batch_norm():
    x, weight, bias, mean, variance = numbers(2, 5, 3, 7), *(numbers(5) for _ in range(3)), numbers(5) ** 2
    shape = (1, 5, 1, 1)
    expected = (x - mean.reshape(shape)) / numpy.sqrt(variance.reshape(shape) + 1e-5)
    expected = numpy.maximum(expected * weight.reshape(shape) + bias.reshape(shape), 0)
    check(lambda t, *a: t.batch_norm(*a, activation="relu"), expected, x, weight, bias, mean, variance, tolerance=1e-4)


# ---- pooling


def windows(x, kernel, stride, padding, fill):
    padded = numpy.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2), constant_values=fill)
    return numpy.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))[:, :, ::stride[0], ::stride[1]]


@pytest.mark.parametrize("kernel, stride, padding", [((2, 2), (2, 2), (0, 0)), ((3, 3), (2, 2), (1, 1)),
                                                     ((3, 2), (1, 3), (1, 0))])
def test_pooling(kernel, stride, padding):
    x = numbers(2, 3, 11, 9)
    check(lambda t, a: t.max_pool2d(a, kernel, stride, padding),
          windows(x, kernel, stride, padding, -numpy.inf).max((-1, -2)), x)
    total = windows(x, kernel, stride, padding, 0).sum((-1, -2))
    check(lambda t, a: t.avg_pool2d(a, kernel, stride, padding), total / math.prod(kernel), x)
    pixels = windows(numpy.ones_like(x), kernel, stride, padding, 0).sum((-1, -2))
    check(lambda t, a: t.avg_pool2d(a, kernel, stride, padding, count_padding=False), total / pixels, x)


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (7, 4)])
def test_adaptive_pooling(size):
    x = numbers(1, 2, 7, 10)
    expected = numpy.empty((1, 2, *size))
    for y in range(size[0]):
        for z in range(size[1]):
            rows = slice(y * 7 // size[0], -(-(y + 1) * 7 // size[0]))
            columns = slice(z * 10 // size[1], -(-(z + 1) * 10 // size[1]))
            expected[:, :, y, z] = x[:, :, rows, columns].mean((2, 3))
    check(lambda t, a: t.adaptive_avg_pool2d(a, size), expected, x)


def test_jacobi_step():
    n = 37
    a, b, x = numbers(n, n), numbers(n, type="f64"), numbers(n, type="f64")
    wide = a.astype(numpy.float64)
    diagonal = numpy.diag(wide)
    check(lambda t, *v: t.jacobi_step(*v), (b - (wide @ x - diagonal * x)) / diagonal, a, b, x, tolerance=1e-10)
