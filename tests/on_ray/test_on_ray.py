"""fairlead.ray with Ray. Ray is large, so it has a virtual environment of its own; the suites in with_ray/ run there, one after the other.

FAIRLEAD_RAY=all (`make ray`): all of them. Without it those that take long are left out: Ray Serve, upgrades, lost heads."""

import fcntl
import os
import pathlib
import subprocess

import pytest

from conftest import BUILD, ROOT

NOT_REACHED = 3  # exit status of tools/python-env
LONG = "ray_serve or figure_1 or hangs_or_dies or drained or upgrade or head_may_be_lost"
LIMIT_S = 900    # of a suite, on a machine that does other things, too


@pytest.fixture(scope="session")
def python_with_ray():
    """Made once, however many workers there are."""
    requirements, venv = ROOT / "tests/requirements-ray.txt", BUILD / "venv-ray"
    with (BUILD / "venv-ray.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run([ROOT / "tools/python-env", requirements, venv], capture_output=True, text=True)
    if made.returncode == NOT_REACHED:
        pytest.skip("Ray is not installed, and the Python package index cannot be reached")
    assert made.returncode == 0, made.stderr
    return venv / "bin/python"


def test_suites_with_ray(python_with_ray, tmp_path):
    """Calls, and then what happens to the cluster, on three raylets that are started once."""
    suites = [pathlib.Path(__file__).parent / f"with_ray/{suite}.py" for suite in ("calls", "cluster")]
    chosen = [] if os.environ.get("FAIRLEAD_RAY") == "all" else ["-k", f"not ({LONG})"]
    done = subprocess.run([python_with_ray, "-m", "pytest", *chosen, "-q", "-x", "--no-header", "--show-capture=no", "-p", "no:cacheprovider", "-p", "no:xdist",
                           f"--basetemp={tmp_path}/t", *suites], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
