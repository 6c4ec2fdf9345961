"""tools/hardware-check, rehearsed on the software GPU: every part comes to a verdict, and one that is too slow does not stop
the others."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import BUILD, PATIENCE_S, ROOT

PARTS = ["programs", "conformance", "shim", "kernel tasks", "memory", "mps", "charges", "pressure", "places", "shares",
         "scaling", "models"]
MARK = "HARDWARE_CHECK_TEST"  # in the environment of all that a check starts
ROW_KEYS = {"part", "what", "value", "expected", "verdict"}

pytestmark = pytest.mark.skipif(not (BUILD / "lib/libfairlead-shim.so").exists(), reason="the shim is not built")


def check(folder, *options):
    """(finished process, the report as JSON)"""
    report = folder / "report.md"
    finished = subprocess.run([ROOT / "tools/hardware-check", "--rehearse", "--build", BUILD, "--out", report, *options],
                              env={**os.environ, MARK: str(folder)}, capture_output=True, text=True, timeout=4 * PATIENCE_S)
    print(finished.stdout, finished.stderr)
    return finished, json.loads(report.with_suffix(".json").read_text())


def processes_of(folder):
    """What still runs of a check for this folder."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and os.fsencode(f"{MARK}={folder}") in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


def test_a_rehearsal_has_a_verdict_for_every_part(tmp_path):
    finished, report = check(tmp_path)
    failed = [row for row in report["rows"] if row["verdict"] == "FAIL"]
    assert failed == [] and finished.returncode == 0
    assert list(report["parts"]) == PARTS
    assert all(part["verdict"] == "pass" for part in report["parts"].values())
    assert all(set(row) == ROW_KEYS and row["verdict"] in ("pass", "skipped", "recorded") for row in report["rows"])
    assert {row["part"] for row in report["rows"] if row["verdict"] == "pass"} == set(PARTS)
    assert {row["what"].split(":")[0] for row in report["rows"] if row["part"] == "memory"} == {"vmm", "uvm", "checkpoint"}
    assert report["device"]["driver"] and report["device"]["name"] in (tmp_path / "report.md").read_text()


def test_a_part_that_is_too_slow_is_reported_and_the_next_runs(tmp_path):
    finished, report = check(tmp_path, "--parts", "pressure,memory", "--limit", "1")
    assert finished.returncode == 1
    for name in ("pressure", "memory"):
        assert report["parts"][name]["verdict"] == "FAIL"
        assert [row["value"] for row in report["rows"] if row["part"] == name and row["what"] == "the part"] == ["stopped after 1 s"]
    assert processes_of(tmp_path) == []


def test_a_comparison_names_what_differs_and_nothing_else(tmp_path):
    _, report = check(tmp_path, "--parts", "mps")
    other = json.loads(json.dumps(report))
    changed = next(row for row in other["rows"] if row["what"].startswith("multiprocessors"))
    changed["value"] *= 3
    for row in other["rows"]:  # a time, which is another in each run
        if row["what"].startswith("two functions"):
            other["rows"].remove(row)
            break
    (tmp_path / "other.json").write_text(json.dumps(other))
    sys.path.insert(0, str(ROOT))
    from harness.hardware.report import differences

    assert differences(report, report) == []
    assert [what for _, what, *_ in differences(report, other)] == [
        "multiprocessors with 30 % / without a share", "two functions at the same time / one alone"]
    finished, _ = check(tmp_path, "--parts", "mps", "--compare", tmp_path / "other.json")
    text = (tmp_path / "report.md").read_text()
    assert finished.returncode == 0
    assert "multiprocessors with 30 %" in text[text.index("## Differs from the software GPU"):text.index("## Rows")]


def test_an_unknown_part_and_a_missing_build_are_refused(tmp_path):
    for options, why in (["--parts", "charges,none"], "none is none of"), (["--build", tmp_path], "make portable"):
        finished = subprocess.run([ROOT / "tools/hardware-check", "--rehearse", *options], capture_output=True, text=True,
                                  timeout=PATIENCE_S)
        assert finished.returncode != 0 and why in finished.stderr
