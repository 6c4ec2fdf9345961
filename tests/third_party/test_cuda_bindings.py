"""NVIDIA's Python bindings of the driver API, one process per call group."""

import pytest
from environment import require

GROUPS = ("device", "memory", "modules", "libraries", "streams", "graphs", "virtual_memory", "pools", "managed",
          "interprocess", "faults")


@pytest.mark.parametrize("group", GROUPS)
def test_call_group(software_gpu, group):
    require("cuda")
    done = software_gpu(["cuda_bindings_driver.py", group])
    assert done.returncode == 0, done.stdout
