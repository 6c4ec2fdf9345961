"""One head of attention: softmax(Q K^T / sqrt(d)) V, four kernels of the library."""

import numpy

from fairlead import ktask

tokens, width = 48, 64
random = numpy.random.default_rng(1)

task = ktask.Task()
x = task.input("x", "f32", (tokens, width))
query, key, value = (task.linear(x, task.constant(name, random.normal(size=(width, width)).astype("f") / 8))
                     for name in ("q", "k", "v"))
task.output("y", task.attention(query, key, value))

y = task.run(x=random.normal(size=(tokens, width)).astype("f"))["y"]
buffers = task.description()["buffers"].values()
print(f"{len(task.launches)} kernels, {sum(b['role'] == 'temporary' for b in buffers)} temporaries, y is {y.shape}")
assert numpy.isfinite(y).all()
