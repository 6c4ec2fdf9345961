"""A task's operators, computed at once by NumPy: the reference of whole networks. In double precision where it can."""

import math

import numpy


def convolve(x, weight, stride, padding):
    pad, kernel = (padding, padding), weight.shape[2:]
    padded = numpy.pad(x, ((0, 0), (0, 0), pad, pad))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))[:, :, ::stride, ::stride]
    return numpy.einsum("nchwyx,ocyx->nohw", windows, weight, optimize=True)


ACTIVATIONS = {None: lambda x: x, "relu": lambda x: numpy.maximum(x, 0),
               "gelu": lambda x: 0.5 * x * (1 + numpy.vectorize(math.erf)(x / math.sqrt(2)))}


class NumpyTask:
    def __init__(self, inputs):
        self.inputs, self.outputs = inputs, {}

    def input(self, name, type, shape):
        value = self.inputs[name]
        assert value.shape == tuple(shape)
        return value if value.dtype.kind in "iu" else value.astype(complex if value.dtype.kind == "c" else float)

    def constant(self, name, value):
        return value

    def output(self, name, value):
        self.outputs[name] = value

    def gemm(self, a, b):
        return a @ b

    def add(self, a, b):
        return a + b

    def permute(self, x, axes):
        return x.transpose(axes)

    def mean(self, x, axis):
        return x.mean(axis)

    def linear(self, x, weight, bias, activation=None, addend=0):
        return ACTIVATIONS[activation](x @ weight.T + bias + addend)

    def conv2d(self, x, weight, bias, stride, padding, addend=0, activation=None):
        return ACTIVATIONS[activation](convolve(x, weight, stride, padding) + bias[:, None, None] + addend)

    def max_pool2d(self, x, kernel, stride, padding):
        pad = (padding, padding)
        padded = numpy.pad(x, ((0, 0), (0, 0), pad, pad), constant_values=-numpy.inf)
        windows = numpy.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
        return windows[:, :, ::stride, ::stride].max((-1, -2))

    def layer_norm(self, x, weight, bias):
        return (x - x.mean(-1, keepdims=True)) / numpy.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias

    def attention(self, query, key, value):
        scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
        powers = numpy.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ value

    def embedding(self, table, indices):
        return table[indices]
