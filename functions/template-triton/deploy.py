"""hello-triton: a Triton kernel as a function. The kernel is compiled here, without a GPU; the node needs neither Python nor Triton.

    pip install triton numpy
    python3 deploy.py                     # deploys, and calls the function once
"""

import numpy
import triton
import triton.language as tl

import fairlead
from fairlead import ktask
from fairlead import triton as fairlead_triton

COUNT = 1000


@triton.jit
def add_one(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


task = ktask.Task()
x = task.input("x", "f32", (COUNT,))
y = task.output("y", type="f32", shape=(COUNT,))
kernel = fairlead_triton.compile(add_one, "*f32, *f32, s32", target=70, BLOCK=256)
kernel(task, grid=(COUNT + 255) // 256, out=ktask.write(y), x=x, n=COUNT)

with fairlead.Client() as client:
    task.deploy(client, "hello-triton")
    answer = client.call("hello-triton", x=numpy.arange(COUNT, dtype="f4"))
    print("y[:3] =", answer["y"][:3])
