"""Parts of tools/hardware-check that look at the driver without a node: conformance, and the shim in front of it."""

import re
import subprocess
import sys

from harness.node import REPOSITORY

NO_DEVICE = 3
QUICK_CASES = "hashing"  # a field of softgpu-conformance, of few and short cases


def run_tool(setting, tool, *options):
    """(exit status, lines of its output) of a tool of this repository."""
    command = [sys.executable, REPOSITORY / "tools" / tool, "--build", setting.build, *options]
    done = subprocess.run([str(part) for part in command], env=setting.environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout.strip().splitlines()


def report_comparison(rows, what, status, lines):
    """The differences, a row for each, and how many cases were compared."""
    counts = next((found for line in lines if (found := re.search(r"(\d+) cases, (\d+) differ", line))), None)
    if counts is None:
        return rows.expect(what, " ".join(lines[-3:])[-400:], "a comparison", False)
    for line in lines:
        if re.match(r"[\w-]+: [\w]+\.[\w.]+: ", line):
            rows.expect(what, line, "no difference", False)
    rows.expect(f"{what}: cases compared", int(counts[1]), "at least 1", int(counts[1]) > 0)
    rows.expect_equal(f"{what}: cases that differ", int(counts[2]), 0)
    rows.expect_equal(f"{what}: exit status", status, 0)


def conformance(setting, rows):
    options = ["--self"] if setting.software else ["--out", setting.folder]
    if setting.quick:
        options += ["--filter", QUICK_CASES]
    status, lines = run_tool(setting, "gpu-check", *options)
    report_comparison(rows, "this GPU beside the software GPU", status, lines)


def shim(setting, rows):
    status, lines = run_tool(setting, "shim-check", *(["--filter", QUICK_CASES] if setting.quick else []))
    report_comparison(rows, "driver with the shim beside the bare driver", status, lines)
    for line in lines:
        for name in ("passed_through", "unhooked_functions"):
            if found := re.search(rf"{name} (\d+)", line):
                rows.record(f"shim: {name}", int(found[1]))
