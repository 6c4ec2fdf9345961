"""The examples run as their page says; those that need packages of others are run by `make third-party`."""

import difflib
import os
import subprocess
import sys

import pytest
from sdk_paths import ROOT

NEEDS = {"triton_add.py": "triton", "torch_classifier.py": "torch", "portrait.py": "torch", "portrait_before.py": "torch"}
PROGRAMS = sorted(path for folder in ("ktask", "pipeline") for path in (ROOT / "examples" / folder).glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_an_example_runs(path, tmp_path):
    if path.name in NEEDS:
        pytest.importorskip(NEEDS[path.name], reason="installed by `make third-party`")
    done = subprocess.run([sys.executable, path], env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                          capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_program_becomes_a_pipeline_in_under_ten_lines():
    before, after = ([line for line in (ROOT / "examples/pipeline" / name).read_text().splitlines() if line]
                     for name in ("portrait_before.py", "portrait.py"))
    steps = [step for step in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if step[0] != "equal"]
    assert sum(max(b - a, d - c) for _, a, b, c, d in steps) < 10
