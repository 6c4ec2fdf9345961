"""Three models in a row: a portrait without its background."""

from torch import nn

import fairlead


class Deblur(fairlead.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8), nn.LeakyReLU(0.2), nn.Conv2d(8, 3, 1))

    def forward(self, picture):
        return picture + self.body(picture)


class Enlarge(fairlead.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PReLU(), nn.PixelShuffle(2))

    def forward(self, picture):
        return self.body(picture)


class Cut(fairlead.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1), nn.Sigmoid())

    def forward(self, picture):
        return picture * self.body(picture)


class Portrait(fairlead.Pipeline):
    inputs = {"picture": ("f32", (1, 3, 32, 32))}

    def __init__(self):
        self.deblur, self.enlarge, self.cut = Deblur(), Enlarge(), Cut()

    def dag(self, picture):
        sharp = self.deblur(picture)
        large = self.enlarge(sharp)
        return self.cut(large)


if __name__ == "__main__":
    print(Portrait().build("portrait"))
