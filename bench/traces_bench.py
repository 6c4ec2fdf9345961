"""What traces cost a warm call: a node that sends every request's spans to a collector, beside one that sends none.

  python3 -m bench.traces_bench          two nodes on this machine, software GPU, and a collector that answers 200 to all

Ratios of one run, the two taken in turns.
"""

import pathlib
import statistics
import sys
import tempfile
import urllib.request

from bench.measure import BUILD, report, run_json
from bench.traces_collector import Collector
from harness.node import Node

LOAD = BUILD / "bin/node_load"
ROUNDS, CALLS, WARM_UP = 9, 4000, 500
FUNCTION = "/2015-03-31/functions/noop/invocations"


def load(node, connections, requests):
    numbers = run_json(LOAD, "http", "--host", node.host, "--port", node.port, "--path", FUNCTION, "--body", "{}", "--requests", requests,
                       "--warm-up", WARM_UP, "--connections", connections)
    if numbers["failures"]:
        sys.exit(f"{numbers['failures']} of {requests} calls failed")
    return numbers


def exported(node):
    text = urllib.request.urlopen(node.endpoint + "/metrics", timeout=60).read().decode()
    return {line.split('"')[1]: int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("fairlead_traced_requests_total{")}


def main():
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder, Collector() as collector:
        home = pathlib.Path(folder)
        with Node(BUILD, home / "plain") as plain, Node(BUILD, home / "traced", options=["--otlp", collector.url]) as traced:
            for node in (plain, traced):
                node.deploy("noop", node.sample("noop"))
                load(node, 1, WARM_UP)
            times = {plain: [], traced: []}
            for turn in range(ROUNDS):
                for node in (plain, traced) if turn % 2 == 0 else (traced, plain):
                    times[node].append(load(node, 1, CALLS)["p50_us"])
            busy = {node: load(node, 8, 2 * CALLS)["per_second"] for node in (plain, traced)}
            counts = exported(traced)
    ratios = [with_traces / without for with_traces, without in zip(times[traced], times[plain])]
    report("warm_call_traced_p50", statistics.median(times[traced]), "us", baseline=statistics.median(times[plain]), bound=1.1,
           note=f"every request traced; median of {ROUNDS} rounds of {CALLS} calls, one connection; ratios of single rounds "
                f"{min(ratios):.3f} to {max(ratios):.3f}; baseline: the same without --otlp")
    report("throughput_traced", busy[traced], "1/s", baseline=busy[plain], note="8 connections; node, collector and load on the same cores")
    total = sum(counts.values())
    report("traces_dropped", 1 - counts["exported"] / total, "share", note=f"of {total} requests; {counts}, the last batch under way")


if __name__ == "__main__":
    main()
