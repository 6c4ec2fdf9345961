"""More pipelines than slices: what a call costs where slices change hands for it."""

import itertools
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from bench.ktask_bench import Client  # noqa: E402
from bench.measure import report  # noqa: E402
from bench.pipeline_bench import CALL, Sliced, alone  # noqa: E402

SLICES, FUNCTIONS, CLIENTS, SECONDS = 3, 30, 4, 20


class Taken:
    def __init__(self):
        self.seconds, self.failed = [], []

    def call(self, client, name):
        try:
            self.seconds.append(client.invoke(name, CALL)[0])
        except SystemExit as why:  # of Client
            self.failed.append(why)


def choosers(functions, skewed):
    """Of one client: whom it calls next. Skewed: the k-th function 1 / k as often as the first, Zipf's law."""
    weights = [1 / (k + 1) if skewed else 1 for k in range(functions)]
    names = [f"f{i}" for i in range(functions)]
    return [(rng.choices(names, weights)[0] for _ in itertools.count()) for rng in (random.Random(seed) for seed in range(CLIENTS))]


def load(home, functions, skewed=False):
    with Sliced(home, ",".join(["1g.10gb"] * SLICES)) as on:
        for i in range(functions):
            on.node.deploy(f"f{i}", alone(home / f"f{i}"))
        for i in range(functions):
            on.client.invoke(f"f{i}", CALL)
        taken, end = Taken(), time.monotonic() + SECONDS

        def client(names):
            own = Client(on.node)
            while time.monotonic() < end:
                taken.call(own, next(names))
        threads = [threading.Thread(target=client, args=(names,)) for names in choosers(functions, skewed)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if taken.failed:
            sys.exit(f"{functions} functions on {SLICES} slices: {len(taken.failed)} calls failed beside {len(taken.seconds)} that did not: {taken.failed[0]}")
        return taken.seconds


def main():
    with tempfile.TemporaryDirectory(prefix="fairlead-turns-") as home:
        home = pathlib.Path(home)
        few = load(home / "few", SLICES)
        cases = {"": load(home / "many", FUNCTIONS), "_zipf": load(home / "zipf", FUNCTIONS, skewed=True)}
        for case, many in cases.items():
            whom = f"{FUNCTIONS} pipelines of one stage on {SLICES} slices, {CLIENTS} clients that call them " + (
                "by Zipf's law" if case else "at random")
            report(f"pipeline_turns{case}_p50", 1e3 * statistics.median(many), "ms", baseline=1e3 * statistics.median(few),
                   note=f"{whom}, {len(many)} calls, none failed; baseline: {SLICES} pipelines on them, {len(few)} calls")
            report(f"pipeline_turns{case}_p99", 1e3 * statistics.quantiles(many, n=100)[98], "ms",
                   baseline=1e3 * statistics.quantiles(few, n=100)[98], note="the same")


if __name__ == "__main__":
    main()
