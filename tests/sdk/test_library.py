"""The table of the kernel library, the compiled modules and the page in docs/ say the same."""

import re

import pytest
from sdk_paths import ROOT

from fairlead.ktask import library, local
from fairlead.types import TYPES

MODULES = sorted({kernel.module for kernel in library.KERNELS.values()})


def entries(ptx):
    """{kernel: [bytes of each parameter]} of PTX text."""
    sizes = {"8": 1, "16": 2, "32": 4, "64": 8}
    found = {}
    for name, parameters in re.findall(r"\.visible \.entry (\w+)\((.*?)\)", ptx, re.DOTALL):
        declared = re.findall(r"\.param (?:\.align \d+ )?\.[a-z](\d+) [\w$]+(?:\[(\d+)\])?", parameters)
        found[name] = [int(count or 1) * sizes[bits] for bits, count in declared]
    return found


def size_of(kind):
    name, _, count = kind.rstrip("]").partition("[")
    return 8 if name in ("in", "in?", "out") else TYPES[name].bytes * int(count or 1)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_the_kernels_of_the_table_and_no_others(module):
    compiled = entries(local.library_module(f"fairlead:{module}").decode())
    table = {name: [size_of(kind) for _, kind in kernel.arguments]
             for name, kernel in library.KERNELS.items() if kernel.module == module}
    assert compiled == table


def test_every_source_is_a_module():
    assert sorted(path.stem for path in (ROOT / "kernels").glob("*.cu")) == MODULES


def test_the_page_is_what_the_table_says():
    assert (ROOT / "docs/reference/kernel-library.md").read_text() == library.documentation(), \
        "run: cd python && python3 -m fairlead.ktask > ../docs/reference/kernel-library.md"


def test_geometry_covers_every_element():
    kernel = library.KERNELS["relu_f32"]
    assert kernel.geometry({"count": 256}) == ((1, 1, 1), (256, 1, 1))
    assert kernel.geometry({"count": 257}) == ((2, 1, 1), (256, 1, 1))
    assert library.KERNELS["gemm_f32"].geometry({"m": 65, "n": 64, "batch": 3})[0] == (1, 2, 3)
