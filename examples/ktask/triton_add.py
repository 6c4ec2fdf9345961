"""A Triton kernel in a kernel task, compiled here without a GPU."""

import numpy
import triton
import triton.language as tl

from fairlead import ktask
from fairlead import triton as fairlead_triton


@triton.jit
def add(out, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


task = ktask.Task()
x = task.input("x", "f32", (1000,))
y = task.output("y", type="f32", shape=(1000,))
kernel = fairlead_triton.compile(add, "*f32, *f32, *f32, s32", target=80, BLOCK=256)
kernel(task, grid=4, out=ktask.write(y), x=x, y=x, n=1000)

assert (task.run(x=numpy.ones(1000, "f"))["y"] == 2).all()
print(f"{len(kernel.code)} bytes of PTX, {kernel.threads} threads a block")
