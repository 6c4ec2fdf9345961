"""Where things are, and the package of this tree on the path."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
os.environ["FAIRLEAD_LIBCUDA"] = str(ROOT / "build/lib/softgpu/libcuda.so.1")
os.environ["FAIRLEAD_KERNELS"] = str(ROOT / "build/share/fairlead/kernels")
