"""The kernels of triton_kernels.py as kernels of a task.

usage: fairlead_triton.py NAME [COMPUTE_CAPABILITY]
"""

import contextlib
import sys

import numpy
import triton_kernels
from triton_kernels import floats

from fairlead import ktask
from fairlead import triton as fairlead_triton
from fairlead.types import TaskError


def add(target):
    """The example of the documentation."""
    t = ktask.Task()
    x, y = t.input("x", "f32", (1000,)), t.input("y", "f32", (1000,))
    out = t.output("out", type="f32", shape=(1000,))
    kernel = fairlead_triton.compile(triton_kernels.add_kernel, "*f32, *f32, *f32, s32", target, BLOCK=256)
    kernel(t, grid=4, out=ktask.write(out), x=x, y=y, n=1000)
    a, b = floats(1000), floats(1000)
    numpy.testing.assert_array_equal(t.run(x=a, y=b)["out"], a + b)


def softmax(target):
    """Beside kernels of the library."""
    t = ktask.Task()
    x = t.input("x", "f32", (16, 1000)) * 2
    out = t.temporary("f32", (16, 1000))
    kernel = fairlead_triton.compile(triton_kernels.softmax_kernel, ["*f32", "*f32", "i32"], target, BLOCK=1024)
    kernel(t, 16, out=ktask.write(out), x=ktask.read(x), n=1000)
    t.output("y", t.sum(out, axis=1))
    numpy.testing.assert_allclose(t.run(x=floats(16, 1000))["y"], numpy.ones(16), rtol=1e-5)


def matmul(target):
    a, b = floats(128, 96, dtype=numpy.float16), floats(96, 128, dtype=numpy.float16)
    t = ktask.Task()
    c = t.output("c", type="f32", shape=(128, 128))
    kernel = fairlead_triton.compile(triton_kernels.matmul_kernel, "*f32, *f16, *f16, s32, s32", target, BM=64, BN=64,
                                     BK=32)
    kernel(t, (2, 2), c=ktask.write(c), a=t.input("a", "f16", a.shape), b=t.constant("b", b), n=128, k=96)
    numpy.testing.assert_allclose(t.run(a=a)["c"], a.astype("f") @ b.astype("f"), rtol=1e-4, atol=1e-4)


def attention(target):
    q, k, v = (floats(128, 64, dtype=numpy.float16) for _ in range(3))
    t = ktask.Task()
    out = t.output("out", type="f32", shape=(128, 64))
    kernel = fairlead_triton.compile(triton_kernels.attention_kernel, "*f32, *f16, *f16, *f16, s32, f32", target,
                                     num_warps=8, BM=64, BN=32, D=64)
    kernel(t, 2, out=ktask.write(out), q=t.input("q", "f16", q.shape), k=t.input("k", "f16", k.shape),
           v=t.input("v", "f16", v.shape), n=128, scale=0.125)
    expected = triton_kernels.numpy.exp((q.astype("f") @ k.astype("f").T) / 8)
    expected = expected / expected.sum(1, keepdims=True) @ v.astype("f")
    numpy.testing.assert_allclose(t.run(q=q, k=k, v=v)["out"], expected, rtol=5e-3, atol=5e-3)


def sort(target):
    x = numpy.random.default_rng(1).integers(-1000, 1000, 256, dtype=numpy.int32)
    t = ktask.Task()
    out = t.output("out", type="s32", shape=(256,))
    kernel = fairlead_triton.compile(triton_kernels.sort_kernel, "*s32, *s32", target, BLOCK=256)
    kernel(t, 1, out=ktask.write(out), x=t.input("x", "s32", (256,)))
    numpy.testing.assert_array_equal(t.run(x=x)["out"], numpy.sort(x))


@contextlib.contextmanager
def refused(message):
    try:
        yield
    except TaskError as error:
        assert message in str(error), error
    else:
        raise AssertionError(f"not refused: {message}")


def refusals(_):
    kernel = triton_kernels.add_kernel
    with refused("the signature has 2 types, wanted are those of out, x, y, n"):
        fairlead_triton.compile(kernel, "*f32, s32", BLOCK=256)
    with refused("constant BLOCK has no value"):
        fairlead_triton.compile(kernel, "*f32, *f32, *f32, s32")
    with refused("has no argument BLOK"):
        fairlead_triton.compile(kernel, "*f32, *f32, *f32, s32", BLOCK=256, BLOK=1)
    with refused("argument n is of type int"):
        fairlead_triton.compile(kernel, "*f32, *f32, *f32, int", BLOCK=256)
    compiled = fairlead_triton.compile(kernel, "*f32, *f32, *f32, s32", BLOCK=256)
    t = ktask.Task()
    x, wide = t.input("x", "f32", (8,)), t.input("wide", "f64", (8,))
    with refused("wanted: out, x, y, n"):
        compiled(t, 1, out=x)
    with refused("argument y is a tensor of f64, a pointer to f32 is wanted"):
        compiled(t, 1, out=x, x=x, y=wide, n=8)
    with refused("argument y is 5, a tensor is wanted"):
        compiled(t, 1, out=x, x=x, y=5, n=8)


CASES = {case.__name__: case for case in (add, softmax, matmul, attention, sort, refusals)}

if __name__ == "__main__":
    CASES[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 80)
