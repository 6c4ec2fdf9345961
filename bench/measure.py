"""Shared by the benchmarks: running a command, and one JSON line per number.

A line says what was measured beside what, in one run, and the bound it is held against:
  {"name": "warm_noop_p50", "value": 98.1, "unit": "us", "baseline": 46.9, "ratio": 2.09, "bound": 2.5, "met": true}
"""

import collections
import json
import pathlib
import statistics
import subprocess
import sys

BUILD = pathlib.Path("build")


def report(name, value, unit, *, baseline=None, bound=None, at_least=False, note=None):
    """bound: for value / baseline when it is a bound on the ratio, that is when there is a baseline; else for value.
    at_least: the bound is a minimum. baseline=None where there is nothing to compare with."""
    ratio = value / baseline if baseline else None
    line = {"name": name, "value": round(value, 4), "unit": unit}
    if baseline:
        line |= {"baseline": round(baseline, 4), "ratio": round(ratio, 3)}
    if bound is not None:
        held = value if ratio is None else ratio
        line |= {"bound": bound, "met": held >= bound if at_least else held <= bound}
    if note:
        line["note"] = note
    print(json.dumps(line), flush=True)


def run_json(*command, timeout=300):
    """The JSON object that a program prints."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed ({done.returncode}): {done.stderr.strip()}")
    return json.loads(done.stdout)


def google_benchmark(program, pattern, repeated=1, of=statistics.median, seconds=0.5):
    """{name: real time in ns} of a Google Benchmark program. What is `repeated` runs in turns, in random order; of its times the
    median, or what `of` makes of them: min where other work on the machine only adds. `seconds`: of each run, about."""
    result = run_json(BUILD / "bin" / program, f"--benchmark_filter={pattern}", "--benchmark_format=json",
                      f"--benchmark_repetitions={repeated}", f"--benchmark_enable_random_interleaving={repeated > 1}",
                      f"--benchmark_min_time={seconds}", timeout=600)
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    times = collections.defaultdict(list)
    for row in result["benchmarks"]:
        if row["run_type"] == "iteration" and not row.get("error_occurred"):
            times[row["run_name"]].append(row["real_time"] * scale[row["time_unit"]])
    return {name: of(taken) for name, taken in times.items()}
