"""Three models in a row: a portrait without its background."""

import torch
from torch import nn


class Deblur(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8), nn.LeakyReLU(0.2), nn.Conv2d(8, 3, 1))

    def forward(self, picture):
        return picture + self.body(picture)


class Enlarge(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PReLU(), nn.PixelShuffle(2))

    def forward(self, picture):
        return self.body(picture)


class Cut(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1), nn.Sigmoid())

    def forward(self, picture):
        return picture * self.body(picture)


class Portrait:
    def __init__(self):
        self.deblur, self.enlarge, self.cut = Deblur(), Enlarge(), Cut()

    def run(self, picture):
        sharp = self.deblur(picture)
        large = self.enlarge(sharp)
        return self.cut(large)


if __name__ == "__main__":
    print(Portrait().run(torch.rand(1, 3, 32, 32)).shape)
