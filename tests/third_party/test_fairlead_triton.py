"""Triton kernels in kernel tasks, compiled here without a GPU and run on the software GPU by the local executor."""

import pytest
from environment import ROOT, require


@pytest.mark.parametrize("capability", ("75", "80"))
@pytest.mark.parametrize("name", ("add", "softmax", "matmul", "attention", "sort"))
def test_a_triton_kernel_in_a_task(software_gpu, name, capability):
    require("triton")
    done = software_gpu(["fairlead_triton.py", name, capability], PYTHONPATH=str(ROOT / "python"),
                        FAIRLEAD_KERNELS=str(ROOT / "build/share/fairlead/kernels"))
    assert done.returncode == 0, done.stdout


def test_what_does_not_fit_is_refused(software_gpu):
    require("triton")
    done = software_gpu(["fairlead_triton.py", "refusals"], PYTHONPATH=str(ROOT / "python"))
    assert done.returncode == 0, done.stdout


def test_the_example_runs(software_gpu):
    require("triton")
    done = software_gpu([str(ROOT / "examples/ktask/triton_add.py")], PYTHONPATH=str(ROOT / "python"),
                        FAIRLEAD_KERNELS=str(ROOT / "build/share/fairlead/kernels"))
    assert done.returncode == 0, done.stdout
