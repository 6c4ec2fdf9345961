"""The kernels of fairlead:mathematics, fairlead:select and fairlead:picture against NumPy, edges and NaN among them."""

import math

import numpy
import pytest
from test_kernels import check, numbers, run

from fairlead import ktask
from fairlead.types import TaskError

RANDOM = numpy.random.default_rng(11)
NAN, INFINITY = float("nan"), float("inf")
EDGES = numpy.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1e-30, -1e-5, 2.5, 3.5, -2.5, 88, -88, 1e4, -1e4, INFINITY, -INFINITY, NAN], "f")


def sample():
    values = numpy.concatenate([RANDOM.normal(size=300), RANDOM.normal(size=300) * 30, RANDOM.normal(size=100) * 1e-3])
    return numpy.concatenate([EDGES, values.astype("f")])


REFERENCES = {"sin": numpy.sin, "cos": numpy.cos, "tan": numpy.tan, "asin": numpy.arcsin, "acos": numpy.arccos, "atan": numpy.arctan,
              "sinh": numpy.sinh, "cosh": numpy.cosh, "asinh": numpy.arcsinh, "acosh": numpy.arccosh, "atanh": numpy.arctanh,
              "erf": numpy.vectorize(math.erf), "expm1": numpy.expm1, "exp_precise": numpy.exp, "log_precise": numpy.log,
              "log1p": numpy.log1p, "log2": numpy.log2, "log10": numpy.log10, "sigmoid_precise": lambda x: 1 / (1 + numpy.exp(-x)),
              "tanh_precise": numpy.tanh, "floor": numpy.floor, "ceil": numpy.ceil, "round": numpy.rint, "trunc": numpy.trunc,
              "sign": numpy.sign, "reciprocal": lambda x: 1 / x}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_function_is_as_precise_as_a_float(name):
    x = sample()
    with numpy.errstate(all="ignore"):
        expected = REFERENCES[name](x.astype("d")).astype("f")
        near = numpy.abs(expected) < 1e30  # tan near a pole
    got = run(lambda t, x: t.unary(name, x), x)
    numpy.testing.assert_array_equal(numpy.isnan(got), numpy.isnan(expected))
    numpy.testing.assert_allclose(got[near], expected[near], rtol=3e-7, atol=1e-44)
    numpy.testing.assert_array_equal(got[numpy.isinf(expected)], expected[numpy.isinf(expected)])


PAIRS = {"pow": numpy.power, "atan2": numpy.arctan2, "fmod": numpy.fmod, "remainder": numpy.mod, "maximum": numpy.maximum,
         "minimum": numpy.minimum, "prelu": lambda x, y: numpy.where(x > 0, x, x * y)}


@pytest.mark.parametrize("name", PAIRS)
def test_a_function_of_two(name):
    edges = numpy.array([0, -0.0, 1, -1, 2, -3, 0.5, -2.5, 7, 1e-3, 40, -1e5, NAN, INFINITY, -INFINITY], "f")
    if name in ("prelu",):
        edges = edges[:12]
    x, y = numpy.meshgrid(edges, edges)
    with numpy.errstate(all="ignore"):
        expected = PAIRS[name](x.astype("d"), y.astype("d")).astype("f")
    got = run(lambda t, a, b: t.strided(name, a, b), edges[None, :].copy(), edges[:, None].copy())
    if name == "remainder":  # of an infinite divisor and another sign NumPy gives the divisor, as this does
        got, expected = got[:, :], expected[:, :]
    numpy.testing.assert_allclose(got, expected, rtol=3e-7, atol=1e-40)


@pytest.mark.parametrize("type", ["f4", "f8", "i4", "i8", "u1"])
@pytest.mark.parametrize("name, compare", [("eq", numpy.equal), ("ne", numpy.not_equal), ("lt", numpy.less), ("le", numpy.less_equal),
                                           ("gt", numpy.greater), ("ge", numpy.greater_equal)])
def test_comparisons_give_bytes(name, compare, type):
    a, b = RANDOM.integers(0, 4, (3, 1, 7)).astype(type), RANDOM.integers(0, 4, (5, 7)).astype(type)
    result = run(lambda t, x, y: t.strided(name, x, y), a, b)
    assert result.dtype == numpy.uint8
    numpy.testing.assert_array_equal(result, compare(a, b))


@pytest.mark.parametrize("type", ["i4", "i8"])
@pytest.mark.parametrize("name, function", [("add", numpy.add), ("sub", numpy.subtract), ("mul", numpy.multiply),
                                            ("max", numpy.maximum), ("min", numpy.minimum), ("and", numpy.bitwise_and),
                                            ("or", numpy.bitwise_or), ("xor", numpy.bitwise_xor), ("remainder", numpy.remainder),
                                            ("quotient", numpy.floor_divide)])
def test_whole_numbers(name, function, type):
    a, b = RANDOM.integers(-99, 99, (3, 5)).astype(type), RANDOM.integers(-99, 99, (5,)).astype(type)
    b[b == 0] = 7
    numpy.testing.assert_array_equal(run(lambda t, x, y: t.strided(name, x, y), a, b), function(a, b))


@pytest.mark.parametrize("type", ["u1", "f2", "f4", "f8"])
def test_where_chooses(type):
    c, a, b = RANDOM.integers(0, 2, (4, 1)).astype("u1"), RANDOM.integers(0, 99, (4, 5)).astype(type), numpy.ones(5, type)
    numpy.testing.assert_array_equal(run(lambda t, *x: t.where(*x), c, a, b), numpy.where(c, a, b))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("type", ["u1", "f2", "f4", "i8"])
def test_gather_and_scatter(axis, type):
    x = RANDOM.integers(0, 99, (4, 5, 6)).astype(type)
    index = numpy.argsort(RANDOM.random((4, 5, 6)), axis)
    numpy.testing.assert_array_equal(run(lambda t, a, i: t.gather(a, axis, i), x, index), numpy.take_along_axis(x, index, axis))
    source, expected = RANDOM.integers(0, 99, x.shape).astype(type), x.copy()
    numpy.put_along_axis(expected, index, source, axis)
    numpy.testing.assert_array_equal(run(lambda t, a, i, s: t.scatter(a, axis, i, s), x, index, source), expected)


@pytest.mark.parametrize("reduce, function, start", [("sum", numpy.add, 0), ("prod", numpy.multiply, 1), ("amax", numpy.maximum, -9e9),
                                                     ("amin", numpy.minimum, 9e9)])
@pytest.mark.parametrize("include", [True, False])
def test_scatter_puts_together(reduce, function, start, include):
    x, source = numbers(4, 3), numbers(6, 3)
    index = RANDOM.integers(0, 3, (6, 3))  # row 3 is named by none
    expected = x.astype("d")
    if not include:
        expected[[[j in index[:, c] for c in range(3)] for j in range(4)]] = start
    function.at(expected, (index, numpy.arange(3)[None]), source)
    check(lambda t, a, i, s: t.scatter(a, 0, i, s, reduce, include), expected, x, index, source)


def test_flip_and_views_with_strides():
    x = numbers(3, 4, 5)
    check(lambda t, a: t.flip(a, (0, 2)), x[::-1, :, ::-1], x)
    check(lambda t, a: t.strided_view(a, (3,), (26,), 2), x.ravel()[2::26][:3], x)
    with pytest.raises(TaskError, match="elements 0 to 63 of 60"):
        run(lambda t, a: t.strided_view(a, (4,), (21,)), x)


def test_pooling_with_places():
    x = numbers(1, 2, 6, 7)
    x[0, 0, 1, 1] = NAN
    out = run(lambda t, a: t.max_pool2d_indices(a, 2, 1, 0, dilation=2)[1], x)
    windows = numpy.stack([x[:, :, y:y + 4, z:z + 5] for y in (0, 2) for z in (0, 2)])
    places = numpy.argmax(numpy.where(numpy.isnan(windows), INFINITY, windows), 0)
    y, z = numpy.mgrid[0:4, 0:5]
    numpy.testing.assert_array_equal(out, (y + places // 2 * 2) * 7 + z + places % 2 * 2)
    assert numpy.isnan(run(lambda t, a: t.max_pool2d(a, 2, 1), x)[0, 0, 1, 1])


def test_an_index_from_the_back_and_one_that_is_not_there():
    got = run(lambda t, a, i: t.gather(a, 0, i), numpy.arange(3, dtype="f") + 1, numpy.array([-1, 3, -4, 0]))
    numpy.testing.assert_array_equal(got, [3, 0, 0, 1])


@pytest.mark.parametrize("axis", [0, 1])
def test_sums_products_and_extremes_of_a_line(axis):
    x = numbers(7, 9)
    check(lambda t, a: t.cumsum(a, axis), numpy.cumsum(x, axis), x)
    check(lambda t, a: t.product(a, axis), numpy.prod(x, axis), x)
    check(lambda t, a: t.extreme(a, axis)[1], numpy.argmax(x, axis), x)
    check(lambda t, a: t.extreme(a, axis, -1)[0], numpy.min(x, axis), x)
    whole = RANDOM.integers(-9, 9, (7, 9))
    numpy.testing.assert_array_equal(run(lambda t, a: t.cumsum(a, axis), whole), numpy.cumsum(whole, axis))
    bits = (x > 1).astype("u1")
    numpy.testing.assert_array_equal(run(lambda t, a: t.any(a, axis), bits), bits.any(axis))


def test_nan_wins_and_equal_ones_keep_their_order():
    x = numpy.array([[1, NAN, 3, NAN], [2, 5, 5, 1]], "f")
    numpy.testing.assert_array_equal(run(lambda t, a: t.extreme(a, 1)[1], x), [1, 1])
    numpy.testing.assert_array_equal(run(lambda t, a: t.sort(a)[1], x), [[0, 2, 1, 3], [3, 0, 1, 2]])
    numpy.testing.assert_array_equal(run(lambda t, a: t.sort(a, True)[1], x), [[1, 3, 2, 0], [1, 2, 0, 3]])


@pytest.mark.parametrize("type", ["f2"])
def test_halves_are_rounded_as_numpy_rounds(type):
    x = numpy.concatenate([EDGES, RANDOM.normal(size=2000).astype("f") * 100, RANDOM.normal(size=500).astype("f") * 1e-6,
                           numpy.array([65519, 65520, 1e6], "f")])
    with numpy.errstate(all="ignore"):
        half = x.astype(type)
    numpy.testing.assert_array_equal(run(lambda t, a: t.convert(a, "f16"), x), half)
    numpy.testing.assert_array_equal(run(lambda t, a: t.convert(a, "f32"), half), half.astype("f"))


def test_bf16_is_the_nearest_upper_half_of_a_float():
    x = numpy.array([1, 1.00390625, 1.01171875, -3.1415927, 1e38, INFINITY, 3.4e38], "f")  # the second and third are ties
    bits = run(lambda t, a: t.convert(a, "bf16"), x)
    numpy.testing.assert_array_equal(bits, [0x3f80, 0x3f80, 0x3f82, 0xc049, 0x7e96, 0x7f80, 0x7f80])
    assert run(lambda t, a: t.convert(a, "bf16"), numpy.array([NAN], "f"))[0] & 0x7fff > 0x7f80


def transposed(x, weight, stride, padding, more, dilation, groups):
    """The definition, slowly: every pixel of the picture is spread."""
    images, channels, height, width = x.shape
    outs, kernel = weight.shape[1], weight.shape[2:]
    sides = [(x.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + more[i] + 1 for i in range(2)]
    out = numpy.zeros((images, outs * groups, *sides))
    for n, c, y, xx, o, ky, kx in numpy.ndindex(images, channels, height, width, outs, *kernel):
        to_y, to_x = y * stride[0] + ky * dilation[0] - padding[0], xx * stride[1] + kx * dilation[1] - padding[1]
        if 0 <= to_y < sides[0] and 0 <= to_x < sides[1]:
            out[n, c // (channels // groups) * outs + o, to_y, to_x] += x[n, c, y, xx] * weight[c, o, ky, kx]
    return out


@pytest.mark.parametrize("stride, padding, more, dilation, groups", [((1, 1), (0, 0), (0, 0), (1, 1), 1), ((2, 3), (1, 0), (1, 2), (1, 1), 1),
                                                                     ((2, 2), (1, 1), (0, 0), (2, 1), 2)])
def test_transposed_convolution(stride, padding, more, dilation, groups):
    x, weight, bias = numbers(2, 4, 3, 5), numbers(4, 3, 3, 2), numbers(3 * groups)
    expected = transposed(x, weight, stride, padding, more, dilation, groups) + bias[:, None, None]
    check(lambda t, *a: t.conv_transpose2d(*a, stride=stride, padding=padding, output_padding=more, dilation=dilation, groups=groups),
          expected, x, weight, bias, tolerance=2e-5)


def test_resize_and_shuffle():
    x = numbers(1, 2, 3, 4)
    check(lambda t, a: t.resize(a, (6, 8), "nearest"), x.repeat(2, 2).repeat(2, 3), x)
    line = numpy.array([0, 4, 8], "f").reshape(1, 1, 1, 3)
    check(lambda t, a: t.resize(a, (1, 6)), numpy.array([0, 1, 3, 5, 7, 8], "f").reshape(1, 1, 1, 6), line)
    check(lambda t, a: t.resize(a, (1, 5), align_corners=True), numpy.array([0, 2, 4, 6, 8], "f").reshape(1, 1, 1, 5), line)
    channels = numbers(2, 12, 3, 5)
    expected = channels.reshape(2, 3, 2, 2, 3, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 6, 10)
    check(lambda t, a: t.pixel_shuffle(a, 2), expected, channels)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_padding(mode):
    x = numbers(2, 4, 5)
    expected = numpy.pad(x, ((0, 0), (1, 3), (2, 0)), mode, **({"constant_values": 1.5} if mode == "constant" else {}))
    check(lambda t, a: t.pad(a, (1, 2), (3, 0), mode, 1.5), expected, x)


def test_padding_that_cannot_be():
    task = ktask.Task()
    x = task.input("x", "f32", (2, 4))
    with pytest.raises(TaskError, match="4 and 0 of 4 elements, 0 to 3"):
        task.pad(x, (4,), (0,), "reflect")


def test_normalisations_of_groups():
    x, weight, bias = numbers(2, 6, 4, 5), numbers(6), numbers(6)
    for groups in (1, 3, 6):
        parts = x.reshape(2, groups, -1)
        normal = (parts - parts.mean(-1, keepdims=True)) / numpy.sqrt(parts.var(-1, keepdims=True) + 1e-5)
        expected = normal.reshape(x.shape) * weight[:, None, None] + bias[:, None, None]
        check(lambda t, a, w, b: t.group_norm(a, groups, w, b), expected, x, weight, bias, tolerance=2e-5)


def test_activations_with_a_parameter():
    x, slopes = numbers(2, 3, 4), numbers(3)
    check(lambda t, a: t.leaky_relu(a, 0.2), numpy.where(x > 0, x, 0.2 * x), x)
    check(lambda t, a, w: t.prelu(a, w), numpy.where(x > 0, x, x * slopes[:, None]), x, slopes)
    check(lambda t, a: t.elu(a, 1.5, 2, 0.5), numpy.where(x > 0, 2 * x, 3 * numpy.expm1(x * 0.5)), x)
    check(lambda t, a: t.clamp_nan(a, -0.5, 0.5), numpy.clip(x, -0.5, 0.5), x)
    assert numpy.isnan(run(lambda t, a: t.clamp_nan(a, -1, 1), numpy.array([NAN], "f")))
