"""The examples run as their page says; those that need packages of others are run by `make third-party`."""

import os
import subprocess
import sys

import pytest
from sdk_paths import ROOT

NEEDS = {"triton_add.py": "triton", "torch_classifier.py": "torch"}


@pytest.mark.parametrize("path", sorted((ROOT / "examples/ktask").glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(path):
    if path.name in NEEDS:
        pytest.importorskip(NEEDS[path.name], reason="installed by `make third-party`")
    done = subprocess.run([sys.executable, path], env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout
