"""Where things are, and whether what a test needs is installed."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARIES = ROOT / "build/lib/softgpu"


def require(module):
    """Skips, with the reason, unless `module` can be imported here."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: run `make third-party`")
