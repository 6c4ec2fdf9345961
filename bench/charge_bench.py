"""What a function is charged beside what the device says it computed, what a forger gains, and what a neighbour waits beside a
function that floods the device without waiting. Ratios of one run, on the software GPU."""

import pathlib
import sys
import tempfile
import threading
import time

from bench.measure import BUILD, report
from harness.node import Node

sys.path += [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("tests", "tests/functional")]
from charges import LAUNCHER, charged_ms, computed_ms, cpu_ms, do, settled  # noqa: E402
from test_charges import MANY, WAYS, competing  # noqa: E402

ROUNDS = 3
QUICK = {"kernels": 2, "rounds": 100_000}
FLOOD = {"kernels": 100, "rounds": 200_000}


def compete(node, ways, seconds, warm_up):
    """Calls of each function in `seconds`."""
    with competing(node, ways) as counts:
        time.sleep(warm_up)
        before = dict(counts)
        time.sleep(seconds)
        after = dict(counts)
    return {name: after[name] - before[name] for name in ways}


def node_in(folder, *options):
    return Node(BUILD, pathlib.Path(folder) / "node", options=options)


def deployed(node, *names):
    for name in names:
        node.deploy(name, LAUNCHER, Timeout=60)
        do(node, name, "wait", kernels=1)
        settled(node, name)


def charge_of(node, way, **event):
    """Charged and computed milliseconds of one call."""
    deployed(node, way)
    before = charged_ms(node, way), sum(computed_ms(node).values())
    do(node, way, way, **MANY, **event)
    settled(node, way)
    after = charged_ms(node, way), sum(computed_ms(node).values())
    node.call("DELETE", f"/2015-03-31/functions/{way}")
    return after[0] - before[0], after[1] - before[1]


def charges():
    with tempfile.TemporaryDirectory() as folder, node_in(folder, "--slots", "1") as node:
        for way, event in WAYS.items():
            # The middle one: what the machine does otherwise can only delay the end that is seen.
            pairs = sorted((charge_of(node, way, **event) for _ in range(ROUNDS)), key=lambda pair: pair[0] / pair[1])
            charged, computed = pairs[ROUNDS // 2]
            report(f"charge_{way.replace('-', '_')}", charged, "ms", baseline=computed, bound=1.02,
                   note="charged, beside what the device's account says; at least 0.98 of it")


def forgers():
    work = {"kernels": 20, "rounds": 200_000}
    for way in ("forge", "forge-end"):
        with tempfile.TemporaryDirectory() as folder, node_in(folder, "--slots", "1", "--over-run", "0.2") as node:
            deployed(node, "honest", "forger")
            calls = compete(node, {"honest": {"what": "wait", **work}, "forger": {"what": way, **work}}, 30, warm_up=5)
            report(f"{way.replace('-', '_')}_gain", calls["forger"], "calls", baseline=calls["honest"], bound=1.05,
                   note="calls of a function that forges its report, beside an equal one that does not")


class Victim:
    """A function that waits for its work, called again and again; latencies by what ran beside it."""

    def __init__(self, node):
        self.node, self.latencies = node, {}

    def call_beside(self, what, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.monotonic()
            do(self.node, "victim", "wait", **QUICK)
            self.latencies.setdefault(what, []).append((time.monotonic() - begin) * 1e3)
            time.sleep(0.01)

    def p99(self, what):
        return sorted(self.latencies[what])[int(len(self.latencies[what]) * 0.99)]


class Disturber:
    """`with`: the function "other" is called without a pause."""

    def __init__(self, node, way, event):
        self.node, self.way, self.event = node, way, event
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stopped.is_set():
            do(self.node, "other", self.way, **self.event)
            settled(self.node, "other")

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()


def flooders(slots, rounds=6, slice_s=4):
    """Slices in turn, so that a machine that is busy with other things is so for all."""
    with tempfile.TemporaryDirectory() as folder, node_in(folder, "--slots", str(slots)) as node:
        deployed(node, "victim", "other")
        before = cpu_ms(node, "other")
        do(node, "other", "leave", **FLOOD)
        settled(node, "other")
        flood_s = (cpu_ms(node, "other") - before) / 1e3
        victim = Victim(node)
        for _ in range(rounds):
            victim.call_beside("nobody", slice_s)
            for what, way, event in (("burner", "burn-cpu", {"seconds": flood_s}), ("waiter", "wait", FLOOD),
                                     ("flooder", "leave", FLOOD)):
                with Disturber(node, way, event):
                    victim.call_beside(what, slice_s)
    report(f"p99_beside_flooder_{slots}_slots", victim.p99("flooder"), "ms", baseline=victim.p99("burner"), bound=1.1,
           note=f"beside {flood_s:.2f} s of kernels a call that nobody waits for; baseline: beside a function that burns as much of "
                f"a core and calls nothing; alone {victim.p99('nobody'):.1f} ms. With two slots both are on the device, in turns")
    report(f"p99_beside_flooder_{slots}_slots_or_waiter", victim.p99("flooder"), "ms", baseline=victim.p99("waiter"), bound=1.1,
           note="baseline: beside a function that waits for these kernels")


def main():
    charges()
    forgers()
    flooders(1)
    flooders(2)
