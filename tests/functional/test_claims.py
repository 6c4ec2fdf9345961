"""What the reports say of their measurements: an effect that is not there is not reproduced, and what is worse is named."""
import importlib.machinery
import importlib.util
import math
import pathlib
import random
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name, path):
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(path.parent))  # for what it shares with others
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


reproduce = load("reproduce", ROOT / "tools/reproduce")
metrics = load("metrics", ROOT / "bench/demo/metrics.py")


def ratio(centre, spread=0.2, seeds=20):
    """Of runs whose true ratio is `centre`, each seed off by about `spread`; the same in every test run."""
    rng = random.Random(7)
    off = [rng.gauss(0, spread) for _ in range(seeds)]
    mean = sum(off) / seeds
    return reproduce.mean_ratio([centre * math.exp(x - mean) for x in off], [1] * seeds)


def test_the_interval_covers_the_true_ratio_as_often_as_it_says():
    rng = random.Random(1)
    held = 0
    for _ in range(400):
        found = reproduce.mean_ratio([1.5 * math.exp(rng.gauss(0, 0.3)) for _ in range(20)], [1] * 20)
        held += found.low <= 1.5 <= found.high
    assert 0.92 <= held / 400 <= 0.98


@pytest.mark.parametrize("paper", [(1.15, 1.15), (1.5, 1.5), (1.01, 1.3), (2, None), (0.75, 0.75), (1, None)])
@pytest.mark.parametrize("absent", [0.99, 1.0, 1.01])
def test_an_effect_that_is_not_there_is_not_reproduced(paper, absent):
    assert reproduce.verdict(ratio(absent), *paper) == reproduce.NONE


def test_a_small_effect_on_the_wrong_side_is_the_opposite_however_near():
    found = ratio(0.99, spread=0.001)
    assert found.is_effect()
    assert reproduce.verdict(found, 1.15, 1.15) == reproduce.OPPOSITE
    assert reproduce.verdict(ratio(1.01, spread=0.001), 0.75, 0.75) == reproduce.OPPOSITE


@pytest.mark.parametrize(("here", "paper", "verdict"), [
    (1.10, (1.15, 1.15), "reproduced"), (1.05, (1.15, 1.15), "direction only"), (1.40, (1.15, 1.15), "direction only"),
    (3.0, (4.4, 4.4), "reproduced"), (2.0, (4.4, 4.4), "direction only"), (30, (4.4, 4.4), "direction only"),
    (1.3, (2, None), "direction only"), (1.5, (2, None), "reproduced"), (500, (2, None), "reproduced"),
    (0.8, (0.75, 0.75), "reproduced"), (0.95, (0.75, 0.75), "direction only"), (0.2, (0.75, 0.75), "direction only"),
    (1.02, (1, None), "reproduced"),
])
def test_a_verdict_needs_the_size_too(here, paper, verdict):
    assert reproduce.verdict(ratio(here, spread=0.001), *paper) == verdict


def test_one_seed_shows_nothing():
    assert reproduce.verdict(reproduce.mean_ratio([3], [1]), 2, 4) == reproduce.NONE


def summary(**changes):
    return {"mean_latency_ms": 100, "p50_latency_ms": 50, "p99_latency_ms": 900, "cold_start_share": 0.1, "service_gap_ms": 600,
            "failed": 0, "gpu_utilisation": 0.5, **changes}


def test_the_demo_says_what_is_worse():
    others = {"fcfs": summary(service_gap_ms=900), "mqfq-sticky": summary()}
    better = summary(mean_latency_ms=20, gpu_utilisation=0.1)
    assert metrics.what_is_worse({**others, "fairlead": better}, "fairlead") == (
        "In this run fairlead is not worse than another policy in any column.")
    worse = summary(mean_latency_ms=20, service_gap_ms=750, failed=2)
    assert metrics.what_is_worse({**others, "fairlead": worse}, "fairlead") == (
        "In this run fairlead is worse than another policy in: worst service gap, 750 ms against 600 ms under mqfq-sticky; "
        "failed invocations, 2 against 0 under fcfs.")
