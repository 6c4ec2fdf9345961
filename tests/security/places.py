"""What the attacks share with the other tests; `conftest` is another module for each folder."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from harness.node import Node  # noqa: E402, F401

BUILD = ROOT / "build"
MISBEHAVE = ROOT / "tests/functions/misbehave"
