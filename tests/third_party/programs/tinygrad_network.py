"""Trains a small convolutional network with tinygrad on its CUDA device, then classifies with it."""

import numpy
from tinygrad import Device, Tensor, TinyJit, nn

CLASSES = 10
BATCH = 64


class Network:
    def __init__(self):
        self.first, self.second = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
        self.last = nn.Linear(16 * 5 * 5, CLASSES)

    def __call__(self, x):
        x = self.first(x).relu().max_pool2d()
        x = self.second(x).relu().max_pool2d()
        return self.last(x.flatten(1))


def pictures(random, count):
    """Noise with a bar whose height is the class."""
    classes = random.integers(0, CLASSES, count)
    x = random.normal(size=(count, 1, 28, 28)).astype(numpy.float32)
    for picture, class_ in zip(x, classes):
        picture[0, 2 * class_:2 * class_ + 4, 4:20] += 3
    return Tensor(x), Tensor(classes.astype(numpy.int32))


def main():
    assert Device.DEFAULT == "CUDA", Device.DEFAULT
    Tensor.manual_seed(0)
    Tensor.training = True
    network = Network()
    optimiser = nn.optim.Adam(nn.state.get_parameters(network), lr=3e-3)
    x, classes = pictures(numpy.random.default_rng(0), 256)

    @TinyJit
    def step(x, classes):
        optimiser.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(classes).backward()
        return loss.realize(*optimiser.schedule_step())

    losses = []
    for i in range(20):
        batch = slice(i * BATCH % 256, i * BATCH % 256 + BATCH)
        losses.append(step(x[batch].contiguous().realize(), classes[batch].contiguous().realize()).item())
    Tensor.training = False
    right = (network(x).argmax(axis=1) == classes).mean().item()
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}, {right:.0%} right")
    assert losses[-1] < losses[0] / 4 and right > 0.95


if __name__ == "__main__":
    main()
