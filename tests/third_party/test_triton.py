"""Kernels written in Triton, as PTX of Triton's own LLVM, against numpy."""

import pytest
from environment import require

KERNELS = ("add", "softmax", "layer_norm", "matmul_half", "matmul_tf32", "matmul_integer", "attention", "running_sum",
           "histogram", "sort")


@pytest.mark.parametrize("capability", ("75", "80"))
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel(software_gpu, kernel, capability):
    require("triton")
    if (kernel, capability) == ("matmul_integer", "75"):
        pytest.skip("Triton cannot compile products of 8-bit integers for sm_75")
    done = software_gpu(["triton_kernels.py", kernel, capability])
    assert done.returncode == 0, done.stdout
