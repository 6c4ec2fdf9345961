"""Kernels written in Triton, compiled to PTX by the LLVM that Triton brings, run and compared with numpy.

usage: triton_kernels.py KERNEL [COMPUTE_CAPABILITY]    one of CASES; exit status 0 when the result is right
"""

import sys

import numpy
import triton
import triton.language as tl
from gpu import ADDRESS, FLOAT, INT, Gpu
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile as triton_compile

RANDOM = numpy.random.default_rng(7)


def stop_at_ptx(backend=None, stages=None, *_):
    """Triton asks NVIDIA's assembler for machine code last; here the driver takes the PTX itself."""
    if stages is None:
        return "ptx", "ptx"
    stages["cubin"] = lambda ptx, metadata: ptx.encode()


@triton.jit
def add_kernel(out, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax_kernel(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * n + i, powers / tl.sum(powers, axis=0), mask=i < n)


@triton.jit
def layer_norm_kernel(out, x, weight, bias, n, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < n
    values = tl.load(x + row * n + i, mask=inside, other=0.0)
    centred = tl.where(inside, values - tl.sum(values, axis=0) / n, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + epsilon)
    result = centred * scale * tl.load(weight + i, mask=inside) + tl.load(bias + i, mask=inside)
    tl.store(out + row * n + i, result, mask=inside)


@triton.jit
def matmul_kernel(c, a, b, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, k, BK):
        left = tl.load(a + rows[:, None] * k + (first + inner)[None, :])
        right = tl.load(b + (first + inner)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def matmul_integer_kernel(c, a, b, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for first in range(0, k, BK):
        left = tl.load(a + rows[:, None] * k + (first + inner)[None, :])
        right = tl.load(b + (first + inner)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def attention_kernel(out, q, k, v, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    depth = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + depth[None, :])
    highest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, D), dtype=tl.float32)
    for first in range(0, n, BN):
        columns = first + tl.arange(0, BN)
        key = tl.load(k + columns[None, :] * D + depth[:, None])
        scores = tl.dot(query, key) * scale
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp(scores - new_highest[:, None])
        fade = tl.exp(highest - new_highest)
        norm = norm * fade + tl.sum(powers, axis=1)
        value = tl.load(v + columns[:, None] * D + depth[None, :])
        total = tl.dot(powers.to(tl.float16), value, total * fade[:, None])
        highest = new_highest
    tl.store(out + rows[:, None] * D + depth[None, :], total / norm[:, None])


@triton.jit
def running_sum_kernel(out, x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


@triton.jit
def histogram_kernel(out, x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i), 1)


@triton.jit
def sort_kernel(out, x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


def floats(*shape, dtype=numpy.float32):
    return RANDOM.normal(size=shape).astype(dtype)


class Case:
    """Pointers are numpy arrays, the result first; other arguments are ints, floats, or constants (upper case)."""

    def __init__(self, kernel, grid, tolerance, expected, **arguments):
        self.kernel, self.grid, self.tolerance, self.expected, self.arguments = (
            kernel, grid, tolerance, expected, arguments)

    def signature(self):
        names = {numpy.float32: "*fp32", numpy.float16: "*fp16", numpy.int32: "*i32", numpy.int8: "*i8"}
        kinds = {int: "i32", float: "fp32"}
        return {name: "constexpr" if name.isupper() else names[value.dtype.type] if hasattr(value, "dtype")
                else kinds[type(value)] for name, value in self.arguments.items()}

    def compile(self, capability):
        constants = {name: value for name, value in self.arguments.items() if name.isupper()}
        source = ASTSource(self.kernel, signature=self.signature(), constexprs=constants)
        return triton_compile(source, target=GPUTarget("cuda", capability, 32))

    def run(self, gpu, compiled):
        function = gpu.function(compiled.asm["ptx"], compiled.metadata.name)
        gpu.set_shared_limit(function, compiled.metadata.shared)
        values = [value for name, value in self.arguments.items() if not name.isupper()]
        arguments = [gpu.upload(value) if hasattr(value, "dtype") else (value, INT if isinstance(value, int) else FLOAT)
                     for value in values]
        unused_scratch = [(0, ADDRESS)] * 2
        grid = (*self.grid, 1, 1)[:3]
        gpu.launch(function, grid, (32 * compiled.metadata.num_warps, 1, 1), compiled.metadata.shared,
                   arguments + unused_scratch)
        return gpu.download(arguments[0], values[0])


def add():
    x, y = floats(1000), floats(1000)
    return Case(add_kernel, (4,), 0, x + y, out=numpy.zeros_like(x), x=x, y=y, n=1000, BLOCK=256)


def softmax():
    x = floats(16, 1000)
    powers = numpy.exp(x - x.max(axis=1, keepdims=True))
    return Case(softmax_kernel, (16,), 1e-6, powers / powers.sum(axis=1, keepdims=True), out=numpy.zeros_like(x), x=x,
                n=1000, BLOCK=1024)


def layer_norm():
    x, weight, bias = floats(8, 700), floats(700), floats(700)
    expected = (x - x.mean(1, keepdims=True)) / numpy.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias
    return Case(layer_norm_kernel, (8,), 1e-5, expected, out=numpy.zeros_like(x), x=x, weight=weight, bias=bias, n=700,
                epsilon=1e-5, BLOCK=1024)


def matmul(kernel, a, b, result_type, tolerance):
    expected = (a.astype(numpy.float64) @ b.astype(numpy.float64)).astype(result_type)
    return Case(kernel, (a.shape[0] // 64, b.shape[1] // 64), tolerance, expected, c=numpy.zeros_like(expected), a=a,
                b=b, n=b.shape[1], k=a.shape[1], BM=64, BN=64, BK=32)


def matmul_half():
    return matmul(matmul_kernel, floats(128, 96, dtype=numpy.float16), floats(96, 128, dtype=numpy.float16),
                  numpy.float32, 1e-4)


def matmul_tf32():
    return matmul(matmul_kernel, floats(128, 96), floats(96, 128), numpy.float32, 5e-2)


def matmul_integer():
    a, b = (RANDOM.integers(-128, 128, (128, 128), dtype=numpy.int8) for _ in range(2))
    return matmul(matmul_integer_kernel, a, b, numpy.int32, 0)


def attention():
    n, depth = 128, 64
    q, k, v = (floats(n, depth, dtype=numpy.float16) for _ in range(3))
    scores = q.astype(numpy.float32) @ k.astype(numpy.float32).T / 8
    powers = numpy.exp(scores - scores.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True) @ v.astype(numpy.float32)
    return Case(attention_kernel, (n // 64,), 5e-3, expected, out=numpy.zeros_like(expected), q=q, k=k, v=v, n=n,
                scale=0.125, BM=64, BN=32, D=depth)


def running_sum():
    x = RANDOM.integers(-9, 9, 1024, dtype=numpy.int32)
    return Case(running_sum_kernel, (1,), 0, numpy.cumsum(x, dtype=numpy.int32), out=numpy.zeros_like(x), x=x,
                BLOCK=1024)


def histogram():
    x = RANDOM.integers(0, 32, 4096, dtype=numpy.int32)
    expected = numpy.bincount(x, minlength=32).astype(numpy.int32)
    return Case(histogram_kernel, (16,), 0, expected, out=numpy.zeros_like(expected), x=x, BLOCK=256)


def sort():
    x = RANDOM.integers(-1000, 1000, 256, dtype=numpy.int32)
    return Case(sort_kernel, (1,), 0, numpy.sort(x), out=numpy.zeros_like(x), x=x, BLOCK=256)


CASES = {case.__name__: case for case in (add, softmax, layer_norm, matmul_half, matmul_tf32, matmul_integer, attention,
                                          running_sum, histogram, sort)}


def main():
    knobs.runtime.add_stages_inspection_hook = stop_at_ptx
    case = CASES[sys.argv[1]]()
    compiled = case.compile(int(sys.argv[2]) if len(sys.argv) > 2 else 80)
    result = case.run(Gpu(), compiled)
    numpy.testing.assert_allclose(result, case.expected, rtol=case.tolerance, atol=case.tolerance)


if __name__ == "__main__":
    main()
