"""PyTorch modules as kernel tasks, run on the software GPU by the local executor, against PyTorch's own results."""

import pytest
from environment import ROOT, require


@pytest.mark.parametrize("name", ("resnet", "cnn", "transformer", "encoder", "many", "types", "halves", "sequences", "refusals"))
def test_a_module_as_a_task(software_gpu, name):
    require("torch")
    require_export()
    done = software_gpu(["fairlead_torch.py", name], PYTHONPATH=str(ROOT / "python"),
                        FAIRLEAD_KERNELS=str(ROOT / "build/share/fairlead/kernels"))
    assert done.returncode == 0, done.stdout


def test_the_example_runs(software_gpu):
    require("torch")
    require_export()
    done = software_gpu([str(ROOT / "examples/ktask/torch_classifier.py")], PYTHONPATH=str(ROOT / "python"),
                        FAIRLEAD_KERNELS=str(ROOT / "build/share/fairlead/kernels"))
    assert done.returncode == 0, done.stdout


def require_export():
    """Debian's PyTorch is older than torch.export."""
    import torch
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        pytest.skip(f"PyTorch is {torch.__version__}, 2.6 or newer is wanted: pip install torch")
