"""Pipelines of PyTorch modules on the software GPU, in every partition, against PyTorch on the CPU."""

import pytest
from environment import ROOT, require
from test_fairlead_torch import require_export


@pytest.mark.parametrize("name", ("modules", "printed", "refusals", "applications", "medium", "large"))
def test_a_pipeline_of_modules(software_gpu, name):
    require("torch")
    require_export()
    done = software_gpu(["fairlead_pipeline.py", name], PYTHONPATH=str(ROOT / "python"),
                        FAIRLEAD_KERNELS=str(ROOT / "build/share/fairlead/kernels"))
    assert done.returncode == 0, done.stdout


def test_the_example_becomes_a_pipeline(software_gpu, tmp_path):
    require("torch")
    require_export()
    done = software_gpu([str(ROOT / "examples/pipeline/portrait.py")], folder=tmp_path, PYTHONPATH=str(ROOT / "python"))
    assert done.returncode == 0 and (tmp_path / "portrait/cut/task.json").is_file(), done.stdout
