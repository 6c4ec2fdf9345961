"""tools/torch_coverage.py runs, and what it runs here is right. The whole table takes it half an hour."""

import subprocess
import sys

import pytest
from environment import ROOT, require
from test_fairlead_torch import require_export


@pytest.mark.parametrize("arguments", [("models", "--only", "UNet"), ("operators", "--only", "where")], ids=lambda a: a[0])
def test_rows_of_the_table(arguments, tmp_path):
    for module in ("torch", "torchvision", "expecttest"):
        require(module)
    require_export()
    page = tmp_path / "page.md"
    done = subprocess.run([sys.executable, ROOT / "tools/torch_coverage.py", *arguments, "--page", page], capture_output=True, text=True,
                          timeout=900)
    assert done.returncode == 0, done.stderr
    assert "| where |" in page.read_text() or "| UNet | works" in page.read_text()
