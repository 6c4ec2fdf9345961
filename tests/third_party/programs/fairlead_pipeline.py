"""Pipelines of PyTorch modules, compared with PyTorch on the CPU.

usage: fairlead_pipeline.py NAME
"""

import pathlib
import sys
import tempfile

import numpy
import torch
from torch import nn

import fairlead
from fairlead.pipeline import PipelineError, load, partitions

torch.manual_seed(7)
SHAPE = (1, 3, 8, 8)


class Blur(fairlead.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x))


class Split(fairlead.Module):
    outputs = ("mean", "rest")

    def forward(self, x, bias):
        return x.mean(dim=(2, 3)), x + bias


class Two(fairlead.Pipeline):
    inputs = {"image": ("f32", SHAPE), "bias": ("f32", SHAPE)}

    def __init__(self):
        self.blur, self.split = Blur(), Split()

    def dag(self, image, bias):
        mean, rest = self.split.reg(self, self.blur.reg(self, image), bias)
        return {"mean": mean, "rest": self.blur.reg(self, rest, name="again")}


class AsPrinted(fairlead.Pipeline):
    """Figure 7: the class itself registers."""

    inputs = {"x": ("f32", SHAPE)}

    def dag(self, x):
        x1 = Blur.reg(self, x)
        return Blur.reg(self, x1)


def agree(pipeline, folder, few=False, **inputs):
    expected = pipeline.reference(**inputs)
    names = [component["name"] for component in pipeline.graph()["components"]]
    for stages in [[names], [[name] for name in names]] if few else partitions(names):
        with load(folder, stages) as run:
            answer = run(**inputs)
        assert set(answer) == set(expected)
        for name, wanted in expected.items():
            numpy.testing.assert_allclose(answer[name], wanted, rtol=1e-4, atol=1e-5, err_msg=f"{name} of {stages}")


def modules():
    pipeline = Two()
    image, bias = (numpy.random.default_rng(i).normal(size=SHAPE).astype("f") for i in range(2))
    with tempfile.TemporaryDirectory() as folder:
        agree(pipeline, pipeline.build(folder), image=image, bias=bias)
        assert [c["name"] for c in pipeline.graph()["components"]] == ["blur", "split", "again"]
    with torch.no_grad():
        mean, _ = pipeline.split(pipeline.blur(torch.tensor(image)), torch.tensor(bias))
    numpy.testing.assert_allclose(pipeline.reference(image=image, bias=bias)["mean"], mean.numpy(), rtol=1e-6)


def printed():
    pipeline = AsPrinted()
    with tempfile.TemporaryDirectory() as folder:
        agree(pipeline, pipeline.build(folder), x=numpy.ones(SHAPE, "f"))
    assert [c["name"] for c in pipeline.graph()["components"]] == ["blur", "blur2"]


class Sorting(fairlead.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x)


def refusals():
    def refused(dag, *words, build=False):
        made = type("Made", (fairlead.Pipeline,), {"inputs": {"x": ("f32", SHAPE)}, "dag": dag})()
        try:
            with tempfile.TemporaryDirectory() as folder:
                made.build(folder) if build else made.graph()
        except PipelineError as error:
            assert all(word in str(error) for word in words), error
        else:
            raise AssertionError(f"not refused: {words}")

    here = pathlib.Path(__file__).name
    refused(lambda self, x: Sorting.reg(self, x, name="sorting"), "component sorting", "svd", f"{here}:", "torch.linalg.svdvals(x)",
            build=True)
    refused(lambda self, x: self.module(nn.Conv2d(4, 4, 1), x, name="conv"), "component conv", "input.image".replace("image", "x"),
            f"{here}:", "channels")
    refused(lambda self, x: self.module(3, x, name="conv"), "a PyTorch module is wanted")


def applications(variant="small"):
    """Every application of the paper in every partition; both branches of the one that has two."""
    from fairlead.workloads import applications as paper
    for number in range(4):
        made = paper.make(number, variant)
        with tempfile.TemporaryDirectory() as folder:
            made.build(folder)
            ran = set()
            for detail in (True, False) if number == 3 else (True,):
                agree(made, folder, few=variant != "small", picture=paper.picture_of(detail).numpy())
                with load(folder) as run:
                    run(picture=paper.picture_of(detail).numpy())
                    ran.add("sr" in run.ran)
            assert ran == ({True, False} if number == 3 else {True}), ran


def medium():
    applications("medium")


def large():
    applications("large")


CASES = {case.__name__: case for case in (modules, printed, refusals, applications, medium, large)}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
