"""Programs that nobody here wrote, unmodified, on the software GPU. `make third-party` installs them and runs this."""

import os
import pathlib
import subprocess
import sys

import pytest
from environment import LIBRARIES

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


@pytest.fixture
def software_gpu(tmp_path):
    """run(arguments, **environment) -> CompletedProcess: Python with the software GPU as its only CUDA driver."""

    def run(arguments, folder=PROGRAMS, timeout=300, **environment):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES), "SOFTGPU_HOME": str(tmp_path / "softgpu"),
                       "SOFTGPU_PROFILE": "a100-40", "SOFTGPU_MEMORY_SCALE": "16", "SOFTGPU_LOG": "1",
                       "TRITON_CACHE_DIR": str(tmp_path / "triton"), **environment}
        return subprocess.run([sys.executable, "-W", "ignore", *arguments], cwd=folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)

    return run
