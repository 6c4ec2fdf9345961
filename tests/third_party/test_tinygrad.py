"""tinygrad on its CUDA device with its own PTX renderer: a network, and its published tests file by file.

A published test that fails must be listed, with the reason, in tinygrad_known_failures.txt; one that is listed and
passes must leave the list.
"""

import importlib.util
import os
import pathlib
import re
import xml.etree.ElementTree as ElementTree

import pytest
from environment import LIBRARIES, ROOT, require

SOURCES = ROOT / "build/third-party/tinygrad-0.12.0"
KNOWN_FAILURES = pathlib.Path(__file__).with_name("tinygrad_known_failures.txt")
ON_CUDA_WITH_PTX = {"CUDA": "1", "CUDA_PTX": "1", "CUDA_PATH": str(LIBRARIES / "libcuda.so.1"),
                    "PATH": f"{SOURCES.parent / 'bin'}:{os.environ['PATH']}"}
FILES = ("test_tiny", "test_ops", "test_dtype_alu", "test_schedule", "test_assign", "test_setitem", "test_linearizer",
         "test_arange", "test_pickle", "test_edgecases", "test_softmax_fusion", "test_gc", "test_opt_gemm",
         "test_jit_cases", "test_renderer_failures", "test_to_numpy")


def known_failures(file):
    lines = KNOWN_FAILURES.read_text().splitlines()
    return {line.split()[0].split("::", 1)[1] for line in lines if line.startswith(f"{file}.py::")}


def outcomes(report):
    """The tests of a JUnit file: all, and those that failed, as Class::test."""
    ran, failed = set(), set()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            continue
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        ran.add(name)
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(name)
    return ran, failed


def test_a_network_trains_and_classifies(software_gpu):
    require("tinygrad")
    done = software_gpu(["tinygrad_network.py"], **ON_CUDA_WITH_PTX)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", FILES)
def test_published_tests(software_gpu, tmp_path, file):
    require("tinygrad")
    path = SOURCES / "test" / f"{file}.py"
    if not path.exists():
        pytest.skip("tinygrad's sources are not there: run `make third-party`")
    if re.search(r"^\s*(import|from) torch", path.read_text(), re.MULTILINE) and not importlib.util.find_spec("torch"):
        pytest.skip("it compares with PyTorch: install Debian's python3-torch")
    report = tmp_path / "report.xml"
    done = software_gpu(["-m", "pytest", "-q", f"--junitxml={report}", path], folder=SOURCES, timeout=1800,
                        **ON_CUDA_WITH_PTX)
    assert report.exists(), done.stdout
    ran, failed = outcomes(report)
    known = known_failures(file)
    print(f"{file}: {len(ran) - len(failed)} of {len(ran)} pass")
    assert failed - known == set(), done.stdout[-6000:]
    assert known & (ran - failed) == set(), "listed as failing, and passes"
