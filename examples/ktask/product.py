"""y = relu(x W): run here; with a node's address as argument deployed there and called."""

import sys

import numpy

from fairlead import Client, ktask

random = numpy.random.default_rng(1)
weights = random.normal(size=(256, 128)).astype("f")

task = ktask.Task()
x = task.input("x", "f32", (32, 256))
w = task.constant("w", weights)
task.output("y", task.relu(x @ w))

array = random.normal(size=(32, 256)).astype("f")
expected = numpy.maximum(array @ weights, 0)
numpy.testing.assert_allclose(task.run(x=array)["y"], expected, rtol=1e-4, atol=1e-4)
print("here: as NumPy says")

if len(sys.argv) > 1:
    with Client(sys.argv[1]) as client:
        task.deploy(client, "product")
        numpy.testing.assert_allclose(client.call("product", x=array)["y"], expected, rtol=1e-4, atol=1e-4)
        print(f"on {sys.argv[1]}: as NumPy says")
