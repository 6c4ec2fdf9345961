"""What a victim's kernel task loses beside another tenant on its device server who sends modules made to end or occupy it.
Calls a second in slices that take turns, so that a machine that is busy otherwise is so for all. On the software GPU."""

import multiprocessing
import pathlib
import statistics
import sys
import tempfile
import time

from bench.ktask_bench import Client
from bench.measure import BUILD, report
from harness.node import Node

sys.path += [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("tests", "tests/functional")]
from test_kernel_task_hostile import FENCE, HOSTILE, deploy_victim, harmless_as, request  # noqa: E402

ROUNDS, SLICE_S = 8, 1.0


class Mallory:
    """A process of its own, so that what it costs is the node's: `with` sends a request again and again, one at a time."""

    def __init__(self, node, document):
        self.runs, self.sent = multiprocessing.Event(), multiprocessing.Value("i", 0)
        self.process = multiprocessing.Process(target=self.send, args=(node, document), daemon=True)
        self.process.start()

    def send(self, node, document):
        while True:
            self.runs.wait()
            node.call("POST", "/v1/ktasks", document, {"X-Fairlead-Tenant": "mallory"})
            self.sent.value += 1

    def __enter__(self):
        self.runs.set()

    def __exit__(self, *_):
        self.runs.clear()

    def end(self):
        self.process.kill()
        self.process.join()


def calls_per_second(client):
    count, begin = 0, time.monotonic()
    while time.monotonic() - begin < SLICE_S:
        client.invoke("peek", "{}")
        count += 1
    return count / (time.monotonic() - begin)


def rates(document):
    """(calls a second alone, beside somebody who sends the document, documents a second)"""
    alone, beside = [], []
    with tempfile.TemporaryDirectory() as folder, Node(BUILD, pathlib.Path(folder) / "node", options=FENCE) as node:
        deploy_victim(node, pathlib.Path(folder))
        client, mallory = Client(node), Mallory(node, document)
        try:
            for _ in range(ROUNDS):
                alone.append(calls_per_second(client))
                with mallory:
                    beside.append(calls_per_second(client))
            return statistics.median(alone), statistics.median(beside), mallory.sent.value / ROUNDS / SLICE_S
        finally:
            mallory.end()


def main():
    for what, module in HOSTILE.items():
        alone, beside, sent = rates(request(module))
        quiet, harmless, _ = rates(request(harmless_as(module)))
        name = what.replace(",", "").replace(" ", "_")
        report(f"victim_beside_{name}", beside, "calls/s", baseline=alone, bound=0.9, at_least=True,
               note=f"baseline: alone; {sent:.1f} such requests a second; beside as large a module that does nothing wrong "
                    f"{harmless / quiet:.2f} of alone")
