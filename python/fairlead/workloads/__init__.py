"""The workloads of the Kernel-as-a-Service paper as kernel tasks, of any size.

    python3 -m fairlead.workloads resnet50 --factor 0.1 --seed 3 DIR      writes a bundle
    task, inputs = workloads.make("resnet50", factor=0.1)                 task.run(**inputs)

factor 1 is the paper's size, smaller ones scale every dimension. Different seeds make different constants: replicas of
one function that share nothing, as tenants do. Needs NumPy.
"""

import math

import numpy

from fairlead.ktask import Task


def scaled(size, factor, multiple=1):
    """`size` by the factor, at least one `multiple`, and a multiple of it."""
    return max(1, round(size * factor / multiple)) * multiple


class Maker:
    """What a workload is built from: `t` is the task, or anything with a task's operators (the tests give NumPy's)."""

    def __init__(self, t, factor, seed):
        self.t, self.factor = t, factor
        self.random = numpy.random.default_rng(seed)
        self.constants = 0

    def normal(self, *shape):
        return self.random.standard_normal(shape, numpy.float32)

    def constant(self, value):
        self.constants += 1
        return self.t.constant(f"c{self.constants}", numpy.ascontiguousarray(value))

    def weight(self, *shape, inputs=None):
        """Scaled so that what comes out is as large as what goes in."""
        return self.constant(self.normal(*shape) / math.sqrt(inputs or shape[0]))


def microbenchmark(make):
    """Three chained products of 1024 x 1024 matrices with constant right sides."""
    n = scaled(1024, make.factor)
    x = make.t.input("x", "f32", (n, n))
    for _ in range(3):
        x = make.t.gemm(x, make.weight(n, n))
    make.t.output("y", x)
    return {"x": make.normal(n, n)}


def cgemm(make):
    """100 x 10000 by a constant 10000 x 25000, complex: 2.0 GB of constant."""
    m, k, n = (scaled(size, make.factor) for size in (100, 10000, 25000))

    def matrix(rows, columns):
        return (make.normal(rows, columns) + 1j * make.normal(rows, columns)).astype(numpy.complex64)

    x = make.t.input("x", "c64", (m, k))
    make.t.output("y", make.t.gemm(x, make.constant(matrix(k, n) / numpy.float32(math.sqrt(k)))))
    return {"x": matrix(m, k)}


JACOBI_STEPS = 3000


def jacobi(make):
    """A x = b by Jacobi's method, A 512 x 512 in single precision, 3000 steps, two of them an iteration of the task."""
    n = scaled(512, make.factor)
    a = make.t.input("a", "f32", (n, n))
    b = make.t.input("b", "f64", (n,))
    x = make.t.output("x", type="f64", shape=(n,), zeroed=True)
    between = make.t.temporary("f64", (n,))
    make.t.jacobi_step(a, b, x, out=between)
    make.t.jacobi_step(a, b, between, out=x)
    matrix = make.normal(n, n) / n + 2 * numpy.eye(n, dtype=numpy.float32)  # the diagonal dominates: it converges
    return {"a": matrix, "b": make.random.standard_normal(n)}


def resnet50(make):
    """ResNet-50 with its batch normalisations folded into the convolutions: one picture, 1000 classes."""
    t, side = make.t, scaled(224, make.factor, 32)
    width, classes = scaled(64, make.factor, 4), scaled(1000, make.factor)

    def convolve(x, outputs, kernel, stride=1, **more):
        inputs = x.shape[1]
        weight = make.weight(outputs, inputs, kernel, kernel, inputs=inputs * kernel * kernel / 2)
        return t.conv2d(x, weight, make.constant(make.normal(outputs) / 10), stride=stride, padding=kernel // 2, **more)

    def bottleneck(x, inner, stride):
        outputs = 4 * inner
        plain = stride == 1 and x.shape[1] == outputs
        shortcut = x if plain else convolve(x, outputs, 1, stride)
        x = convolve(x, inner, 1, activation="relu")
        x = convolve(x, inner, 3, stride, activation="relu")
        return convolve(x, outputs, 1, addend=shortcut, activation="relu")

    x = convolve(t.input("x", "f32", (1, 3, side, side)), width, 7, 2, activation="relu")
    x = t.max_pool2d(x, 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            x = bottleneck(x, width << stage, 2 if stage and not block else 1)
    x = t.mean(x, axis=(2, 3))
    scores = t.linear(x, make.weight(classes, x.shape[1], inputs=x.shape[1]), make.constant(make.normal(classes)))
    t.output("scores", scores)
    return {"x": make.normal(1, 3, side, side)}


def bert(make):
    """BERT-large, an encoder of 24 layers of width 1024, 384 tokens: 1.3 GB of constants."""
    t, head = make.t, 64 if make.factor >= 0.25 else 16
    heads = scaled(16, make.factor)
    width, layers = heads * head, scaled(24, make.factor)
    tokens, vocabulary = scaled(384, make.factor), scaled(30522, make.factor)

    def linear(x, outputs, **more):
        return t.linear(x, make.weight(outputs, x.shape[-1], inputs=x.shape[-1]),
                        make.constant(make.normal(outputs) / 10), **more)

    def norm(x):
        return t.layer_norm(x, make.constant(1 + make.normal(width) / 10), make.constant(make.normal(width) / 10))

    def split(x):
        return t.permute(x.reshape(tokens, heads, head), (1, 0, 2))

    def layer(x):
        query, key, value = (split(linear(x, width)) for _ in range(3))
        mixed = t.permute(t.attention(query, key, value), (1, 0, 2)).reshape(tokens, width)
        x = norm(linear(mixed, width, addend=x))
        return norm(linear(linear(x, 4 * width, activation="gelu"), width, addend=x))

    words = t.input("tokens", "s32", (tokens,))
    x = t.embedding(make.constant(make.normal(vocabulary, width)), words)
    x = norm(t.add(x, make.constant(make.normal(tokens, width))))
    for _ in range(layers):
        x = layer(x)
    t.output("hidden", x)
    return {"tokens": make.random.integers(0, vocabulary, tokens, dtype=numpy.int32)}


WORKLOADS = {"microbenchmark": microbenchmark, "resnet50": resnet50, "bert": bert, "cgemm": cgemm, "jacobi": jacobi}


def make(name, factor=1, seed=0):
    """(task, {input: array}) of the workload."""
    task = Task(iterations=max(1, round(JACOBI_STEPS * factor / 2)) if name == "jacobi" else 1)
    return task, WORKLOADS[name](Maker(task, factor, seed))
