#!/usr/bin/env python3
"""The comparison of tools/gpu-check: what counts as a difference between two runs of a case."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import unittest

PATH = pathlib.Path(__file__).resolve().parents[2] / "tools/gpu-check"
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("gpu_check", str(PATH))
gpu_check = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", LOADER))
LOADER.exec_module(gpu_check)


def case(name="field.case", status="pass", bits="same", digest="1", observed=None, detail=""):
    return {"name": name, "status": status, "bits": bits, "digest": digest, "observed": observed or {}, "detail": detail,
            "max_error": 0.0, "milliseconds": 1.0}


class Difference(unittest.TestCase):
    def test_equal_runs_do_not_differ(self):
        self.assertIsNone(gpu_check.difference(case(), case()))

    def test_another_status_is_named_with_its_reason(self):
        why = gpu_check.difference(case(), case(status="fail", detail="y[3] is 4"))
        self.assertIn("pass, fail", why)
        self.assertIn("y[3] is 4", why)

    def test_other_bits_count_where_they_are_promised(self):
        self.assertIn("bits", gpu_check.difference(case(), case(digest="2")))
        self.assertIsNone(gpu_check.difference(case(bits="free"), case(bits="free", digest="2")))

    def test_another_answer_of_the_driver_counts(self):
        why = gpu_check.difference(case(observed={"cuMemFree": "A"}), case(observed={"cuMemFree": "B"}))
        self.assertEqual(why, "cuMemFree: A, B")
        self.assertIn("None", gpu_check.difference(case(observed={"cuMemFree": "A"}), case()))

    def test_what_the_documentation_leaves_open_does_not(self):
        left, right = ({"open: reuse": answer} for answer in ("yes", "no"))
        self.assertIsNone(gpu_check.difference(case(observed=left), case(observed=right)))
        self.assertEqual(gpu_check.left_open(case(observed=left), case()), [("reuse", "yes", None)])
        device = {"device": "GPU", "capability": 80, "driver_version": 13000}
        rows = gpu_check.compare({"cases": [case(observed=left)]}, {"cases": [case(observed=right)]})
        self.assertIn("| field.case | reuse | yes | no |", gpu_check.markdown(device, device, rows, "2026-01-02"))

    def test_a_case_that_a_side_skips_is_not_compared(self):
        skipped = case(status="skipped", detail="needs two devices", digest="0")
        for left, right, side in ((skipped, case(), "GPU"), (case(), skipped, "software")):
            self.assertIsNone(gpu_check.difference(left, right))
            self.assertEqual(gpu_check.not_compared(left, right), f"{side}: needs two devices")
        self.assertIsNone(gpu_check.not_compared(case(), case(status="fail")))


class Report(unittest.TestCase):
    def test_only_cases_of_both_runs_are_compared(self):
        rows = gpu_check.compare({"cases": [case("a.a"), case("a.b")]}, {"cases": [case("a.b"), case("a.c")]})
        self.assertEqual([row[0] for row in rows], ["a.b"])

    def test_no_common_case_is_a_failure(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(gpu_check.report_differences([]), 1)

    def test_differences_come_first(self):
        device = {"device": "GPU", "capability": 80, "driver_version": 13000}
        rows = gpu_check.compare({"cases": [case()]}, {"cases": [case(digest="2")]})
        text = gpu_check.markdown(device, device, rows, "2026-01-02")
        self.assertLess(text.index("`field.case`: bits"), text.index("## Cases"))

    def test_skipped_cases_have_a_section_of_their_own_and_do_not_fail_the_run(self):
        device = {"device": "GPU", "capability": 80, "driver_version": 13000}
        rows = gpu_check.compare({"cases": [case(status="skipped", detail="too large")]}, {"cases": [case()]})
        text = gpu_check.markdown(device, device, rows, "2026-01-02")
        self.assertIn("## Differences\n\nNone.\n", text)
        self.assertIn("## Not compared", text)
        self.assertIn("- `field.case`: GPU: too large", text)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(gpu_check.report_differences(rows), 0)
        self.assertIn("0 differ, 1 not compared", out.getvalue())
        self.assertNotIn("Not compared", gpu_check.markdown(device, device, gpu_check.compare(
            {"cases": [case()]}, {"cases": [case()]}), "2026-01-02"))


if __name__ == "__main__":
    unittest.main(verbosity=0)
