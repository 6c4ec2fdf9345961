"""Applications 0 to 3 of the FluidFaaS paper (Table 4) as pipelines of PyTorch modules: its operators, random weights.

    0 super resolution -> segmentation -> classification
    1 deblur -> super resolution -> depth
    2 super resolution -> deblur -> background removal
    3 deblur -> (low resolution: super resolution) -> background removal -> segmentation -> classification

    applications.make(3, "small").build("dir")

A variant is a width (channels) and a number of blocks. What the paper says of its variants is the smallest slice that holds
them (Table 5, MINIMUM_SLICE); it prints no sizes of memory. `width` and `picture` scale to any: the weights of a module grow
with width squared, its activations with width times pixels. Needs PyTorch 2.6.
"""

import torch
from torch import nn
from torch.nn import functional as F

from fairlead.pipeline.module import Module
from fairlead.pipeline.pipeline import Pipeline

# variant: (width, blocks)
VARIANTS = {"small": (8, 1), "medium": (16, 2), "large": (24, 3)}
# Table 5, (application, variant): smallest slice for a whole function, for a pipeline's stages; None: none is large enough.
MINIMUM_SLICE = {**{(application, variant): slices for application in (0, 1, 2) for variant, slices in
                    (("small", ("1g.10gb", "1g.10gb")), ("medium", ("2g.20gb", "1g.10gb")), ("large", ("3g.40gb", "2g.20gb")))},
                 (3, "small"): ("2g.20gb", "1g.10gb"), (3, "medium"): ("4g.40gb", "1g.10gb"), (3, "large"): (None, None)}
PICTURE = 32
CLASSES = 10
LABELS = 5


class SuperResolution(Module):
    """Residual blocks, then sub-pixel convolution: twice the height and width."""

    def __init__(self, width, blocks):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.PReLU(width))
        self.body = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.PReLU(),
                                                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)) for _ in range(blocks))
        self.up = nn.Sequential(nn.Conv2d(width, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, picture):
        x = self.first(picture)
        for block in self.body:
            x = x + block(x)
        return torch.sigmoid(self.up(x) + F.interpolate(picture, scale_factor=2, mode="nearest"))


class Deblur(Module):
    """An encoder and decoder with instance normalisation, reflected edges and transposed convolution."""

    def __init__(self, width, blocks):
        super().__init__()
        self.down = nn.Sequential(nn.ReflectionPad2d(3), nn.Conv2d(3, width, 7), nn.InstanceNorm2d(width), nn.LeakyReLU(0.2),
                                  nn.Conv2d(width, 2 * width, 3, 2, 1), nn.InstanceNorm2d(2 * width, affine=True), nn.LeakyReLU(0.2))
        self.body = nn.ModuleList(nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(2 * width, 2 * width, 3), nn.InstanceNorm2d(2 * width),
                                                nn.ReLU()) for _ in range(blocks))
        self.up = nn.Sequential(nn.ConvTranspose2d(2 * width, width, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(width), nn.ReLU(),
                                nn.ReflectionPad2d(3), nn.Conv2d(width, 3, 7), nn.Tanh())

    def forward(self, picture):
        x = self.down(picture)
        for block in self.body:
            x = x + block(x)
        return torch.clamp(picture + self.up(x), 0, 1)


class Segmentation(Module):
    """A U-Net with group normalisation: a score for each label and pixel."""

    def __init__(self, width, blocks):
        super().__init__()

        def block(inputs, outputs):
            parts = [part for i in range(blocks) for part in (nn.Conv2d(inputs if i == 0 else outputs, outputs, 3, padding=1),
                                                              nn.GroupNorm(4, outputs), nn.ReLU())]
            return nn.Sequential(*parts)

        self.high, self.low = block(3, width), block(width, 2 * width)
        self.up, self.merge = nn.ConvTranspose2d(2 * width, width, 2, 2), block(2 * width, width)
        self.scores = nn.Conv2d(width, LABELS, 1)

    def forward(self, picture):
        high = self.high(picture)
        low = self.low(F.max_pool2d(high, 2))
        return torch.softmax(self.scores(self.merge(torch.cat([self.up(low), high], dim=1))), dim=1)


class Classification(Module):
    """A residual network over the labels: probabilities of the classes."""

    def __init__(self, width, blocks, channels=LABELS):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.body = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                                nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))
                                  for _ in range(2 * blocks))
        self.last = nn.Linear(width, CLASSES)

    def forward(self, picture):
        x = self.first(picture)
        for block in self.body:
            x = F.relu(x + block(x))
        return torch.softmax(self.last(F.adaptive_avg_pool2d(x, 1).flatten(1)), dim=-1)


class Depth(Module):
    """An encoder, and a decoder that resizes bilinearly: one distance for each pixel."""

    def __init__(self, width, blocks):
        super().__init__()
        self.down = nn.ModuleList(nn.Sequential(nn.Conv2d(3 if i == 0 else width, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ELU())
                                  for i in range(blocks + 1))
        self.up = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ELU()) for _ in range(blocks + 1))
        self.last = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, picture):
        x = picture
        for block in self.down:
            x = block(x)
        for block in self.up:
            x = block(F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False))
        return F.softplus(self.last(x))


class BackgroundRemoval(Module):
    """A mask from two scales, and the picture times the mask."""

    outputs = ("cut", "mask")

    def __init__(self, width, blocks):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.body = nn.Sequential(*(part for i in range(blocks) for part in (nn.Conv2d(width, width, 3, padding=2, dilation=2),
                                                                             nn.BatchNorm2d(width), nn.ReLU())))
        self.last = nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, picture):
        near = self.first(picture)
        wide = F.interpolate(self.body(F.max_pool2d(near, 2)), size=near.shape[2:], mode="bilinear", align_corners=True)
        mask = torch.sigmoid(self.last(torch.cat([near, wide], dim=1)))
        return picture * mask, mask


class Sharpness(Module):
    """Whether a picture has so little detail that it was enlarged: the mean difference of neighbours is below a limit."""

    outputs = ("is_low",)

    def __init__(self, limit=0.05):
        super().__init__()
        self.limit = limit

    def forward(self, picture):
        detail = (picture[:, :, :, 1:] - picture[:, :, :, :-1]).abs().mean() + (picture[:, :, 1:] - picture[:, :, :-1]).abs().mean()
        return (detail < self.limit).reshape(1)


class Restore(Module):
    """Super resolution of a picture whose pixels say less than they could: halved, which loses nothing, and resolved."""

    def __init__(self, width, blocks):
        super().__init__()
        self.inner = SuperResolution(width, blocks)

    def forward(self, picture):
        return self.inner(F.avg_pool2d(picture, 2))


class _Application(Pipeline):
    def __init__(self, width, blocks, picture, images):
        self.inputs = {"picture": ("f32", (images, 3, picture, picture))}
        self.size = (width, blocks)


class Application0(_Application):
    def __init__(self, *size):
        super().__init__(*size)
        self.sr, self.seg, self.cls = SuperResolution(*self.size), Segmentation(*self.size), Classification(*self.size)

    def dag(self, picture):
        return {"classes": self.cls.reg(self, self.seg.reg(self, self.sr.reg(self, picture)))}


class Application1(_Application):
    def __init__(self, *size):
        super().__init__(*size)
        self.deblur, self.sr, self.depth = Deblur(*self.size), SuperResolution(*self.size), Depth(*self.size)

    def dag(self, picture):
        return {"depth": self.depth.reg(self, self.sr.reg(self, self.deblur.reg(self, picture)))}


class Application2(_Application):
    def __init__(self, *size):
        super().__init__(*size)
        self.sr, self.deblur, self.cut = SuperResolution(*self.size), Deblur(*self.size), BackgroundRemoval(*self.size)

    def dag(self, picture):
        cut, mask = self.cut.reg(self, self.deblur.reg(self, self.sr.reg(self, picture)))
        return {"picture": cut, "mask": mask}


class Application3(_Application):
    def __init__(self, *size):
        super().__init__(*size)
        self.deblur, self.probe, self.sr = Deblur(*self.size), Sharpness(), Restore(*self.size)
        self.cut, self.seg, self.cls = BackgroundRemoval(*self.size), Segmentation(*self.size), Classification(*self.size)

    def dag(self, picture):
        sharp = self.deblur.reg(self, picture)
        is_low = self.probe.reg(self, picture)
        with self.when(is_low):
            resolved = self.sr.reg(self, sharp)
        cut, mask = self.cut.reg(self, self.join(resolved, sharp))
        return {"classes": self.cls.reg(self, self.seg.reg(self, cut)), "mask": mask}


APPLICATIONS = (Application0, Application1, Application2, Application3)


def make(application, variant="small", picture=PICTURE, images=1, width=None, seed=0):
    """Application 0 to 3. Weights are random, from the seed; statistics of batch normalisations are not 0 and 1."""
    if application not in range(len(APPLICATIONS)) or variant not in VARIANTS:
        raise ValueError(f"application {application!r}, variant {variant!r}: 0 to 3 and {', '.join(VARIANTS)} are possible")
    if not 16 <= picture <= 4096 or picture % 16:
        raise ValueError(f"picture is {picture}, a multiple of 16 from 16 to 4096 is possible")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = APPLICATIONS[application](width or VARIANTS[variant][0], VARIANTS[variant][1], picture, images)
        for value in vars(made).values():
            for part in value.modules() if isinstance(value, nn.Module) else ():
                if isinstance(part, nn.BatchNorm2d):
                    part.running_mean.normal_(0, 0.1)
                    part.running_var.uniform_(0.5, 1.5)
    return made


def picture_of(detail, images=1, picture=PICTURE, seed=0):
    """A random picture; detail=False is one that was enlarged by four, which application 3 resolves."""
    generator = torch.Generator().manual_seed(seed)
    size = picture if detail else picture // 16
    small = torch.rand(images, 3, size, size, generator=generator)
    return small if detail else F.interpolate(small, size=(picture, picture), mode="bilinear")
