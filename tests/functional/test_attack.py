"""The workloads that once were served worst: the default stays near FCFS with the same starts, eviction and duplicates."""
import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "bench/scenarios"


def judge(scenario):
    done = subprocess.run([ROOT / "build/bin/fairlead", "--json", "sim", "attack", scenario], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[0]


@pytest.mark.parametrize("scenario", sorted((SCENARIOS / "slow-starts").glob("*.toml")), ids=lambda path: path.stem)
def test_slow_starts_hold_nobody_back(scenario):
    judged = judge(scenario)
    assert judged["node"]["arrived"] > 1000
    assert judged["ratios"]["mean"]["fcfs"] <= 1.05


@pytest.mark.parametrize("scenario", sorted((SCENARIOS / "attack").glob("*.toml")), ids=lambda path: path.stem)
def test_what_the_adversary_found_stays_within_its_bounds(scenario):
    ratios = judge(scenario)["ratios"]
    assert max(ratios["mean"].values()) <= 1.2
    assert max(ratios["p99"].values()) <= 1.5
