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


# A mean of 1.2 x and a p99 of 1.5 x the better of the two. In two mixes of functions that need most of the device FCFS is
# better (docs/how-to/simulator.md, "What the adversary finds").
MEAN, P99 = 1.2, 1.5
BEYOND = {"sizes-mean-fcfs": (1.5, P99), "sizes-churn": (2.1, 2.5)}


@pytest.mark.parametrize("scenario", sorted((SCENARIOS / "attack").glob("*.toml")), ids=lambda path: path.stem)
def test_what_the_adversary_found_stays_within_its_bounds(scenario):
    ratios = judge(scenario)["ratios"]
    mean, p99 = BEYOND.get(scenario.stem, (MEAN, P99))
    assert max(ratios["mean"].values()) <= mean
    assert max(ratios["p99"].values()) <= p99
