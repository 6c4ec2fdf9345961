"""The paper's workloads at a small size against NumPy, and their full sizes against the paper's numbers."""

import subprocess
import sys

import numpy
import pytest
from sdk_paths import ROOT
from numpy_task import NumpyTask

from fairlead import ktask, workloads

FACTORS = {"microbenchmark": 0.07, "resnet50": 0.15, "bert": 0.13, "cgemm": 0.011}


@pytest.mark.parametrize("name", FACTORS)
def test_a_workload_computes_what_numpy_computes(name):
    task, inputs = workloads.make(name, FACTORS[name], seed=5)
    reference = NumpyTask(inputs)
    workloads.WORKLOADS[name](workloads.Maker(reference, FACTORS[name], seed=5))
    (output, result), = task.run(**inputs).items()
    expected = reference.outputs[output]
    assert result.shape == expected.shape and numpy.abs(expected).max() > 0.1
    numpy.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3 * numpy.abs(expected).max())


def test_jacobi_solves_its_equations():
    task, inputs = workloads.make("jacobi", 0.1, seed=5)
    assert task.iterations == 150
    numpy.testing.assert_allclose(task.run(**inputs)["x"], numpy.linalg.solve(inputs["a"].astype(float), inputs["b"]),
                                  rtol=1e-9)


def test_another_seed_makes_another_tenant():
    first, second, again = (workloads.make("microbenchmark", 0.01, seed)[0].constants() for seed in (1, 2, 1))
    assert first == again and first != second


def test_full_sizes_are_the_papers():
    """BERT and cGEMM hold gigabytes, so they are made small and their sizes counted from the factor."""
    sizes = {name: sum(map(len, workloads.make(name, factor)[0].constants().values()))
             for name, factor in (("microbenchmark", 1), ("resnet50", 1), ("cgemm", 0.01))}
    assert sizes["microbenchmark"] == 3 * 4 << 20
    assert 95e6 < sizes["resnet50"] < 135e6
    assert sizes["cgemm"] == 2.0e9 * 1e-4


def test_the_command_writes_a_bundle_that_runs(tmp_path):
    subprocess.run([sys.executable, "-m", "fairlead.workloads", "jacobi", tmp_path / "j", "--factor", "0.02"],
                   cwd=ROOT / "python", check=True, capture_output=True, timeout=60)
    inputs = {path.stem: path.read_bytes() for path in (tmp_path / "j/inputs").iterdir()}
    with ktask.load(tmp_path / "j") as task:
        x = task(**inputs)["x"]
    a = numpy.frombuffer(inputs["a"], numpy.float32).reshape(10, 10).astype(float)
    numpy.testing.assert_allclose(a @ x, numpy.frombuffer(inputs["b"]), rtol=1e-9)
