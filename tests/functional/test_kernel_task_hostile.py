"""What a victim notices of a neighbour on the same device server who sends modules made to end or occupy it."""

import base64
import json
import statistics
import threading
import time

import pytest

from test_kernel_task_isolation import BYTES, CONTENT, HEAD, VICTIM, output, victim_task, write
from test_kernel_tasks import metric

FENCE = ("--task-isolation", "fence")
SLICE_S = 1.0
ROUNDS = 4


def kernel(body="ret;", preamble=""):
    return f"{HEAD}{preamble}\n.visible .entry k(.param .u64 y)\n{{\n.reg .b64 %rd<4>; .reg .b32 %r<4>;\n{body}\nret;\n}}\n"


def functions(count):
    return "".join(f".func f{i}() {{ ret; }}\n" for i in range(count))


# Each was found to stop all tenants of a server, for seconds or for ever.
HOSTILE = {
    "alias of nothing": kernel(preamble=".func foo();\n.alias foo, nothere;"),
    "60,000 variables": kernel(preamble="".join(f".global .u32 v{i};\n" for i in range(60_000))),
    "1,500 calls among 1,500 functions": kernel(
        preamble=functions(1500),
        body="".join(f"mov.u64 %rd1, f{i};\n" for i in range(1500)) + "P: .callprototype _ ();\n" +
             "call %rd1, P;\n" * 1500),
    "trap": kernel(body="trap;"),
}


def request(module):
    task = {"buffers": {"y": {"role": "output", "bytes": 64, "zeroed": True}},
            "kernels": [{"module": "m.ptx", "kernel": "k", "grid": [1], "block": [1],
                         "arguments": [{"buffer": "y", "access": "write"}]}]}
    return json.dumps({"task": task, "files": {"m.ptx": base64.b64encode(module.encode()).decode()}})


class Neighbour:
    """Sends a request again and again, one at a time, while it is told to."""

    def __init__(self, node, document):
        self.node, self.document = node, document
        self.sent, self.stopped = 0, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stopped.is_set():
            self.node.call("POST", "/v1/ktasks", self.document, {"X-Fairlead-Tenant": "mallory"})
            self.sent += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()


def calls_per_second(node):
    count, begin = 0, time.monotonic()
    while time.monotonic() - begin < SLICE_S:
        assert output(node.invoke("peek", "{}")) == CONTENT
        count += 1
    return count / (time.monotonic() - begin)


def deploy_victim(node, folder):
    task = victim_task("peek", BYTES)
    node.deploy("peek", write(folder / "peek", task, victim_ptx=VICTIM, w_bin=CONTENT), Tags={"gpu:tenant": "victim"})
    assert output(node.invoke("peek", "{}")) == CONTENT


def harmless_as(module):
    """As long as that, and nothing wrong in it."""
    return kernel(preamble="// " + "x" * max(0, len(module) - len(kernel()) - 4))


@pytest.fixture
def node(start_node, tmp_path):
    node = start_node(*FENCE)
    deploy_victim(node, tmp_path)
    return node


@pytest.mark.parametrize("what", HOSTILE)
def test_a_victim_is_served_beside_a_hostile_module_as_beside_a_harmless_one(node, what):
    hostile = request(HOSTILE[what])
    harmless = request(harmless_as(HOSTILE[what]))
    rates = {"alone": [], "beside harmless": [], "beside hostile": []}
    for _ in range(ROUNDS):
        rates["alone"].append(calls_per_second(node))
        with Neighbour(node, harmless):
            rates["beside harmless"].append(calls_per_second(node))
        with Neighbour(node, hostile) as mallory:
            rates["beside hostile"].append(calls_per_second(node))
        assert mallory.sent > 0
    medians = {name: statistics.median(values) for name, values in rates.items()}
    print(f"\n{what}: " + ", ".join(f"{name} {value:.0f}/s" for name, value in medians.items()) +
          f"; {medians['beside hostile'] / medians['alone']:.2f} of alone, "
          f"{medians['beside hostile'] / medians['beside harmless']:.2f} of beside harmless")
    # Wanted is 0.9 (bench/hostile_bench.py measures it). Beside other work on two cores a second of calls varies by more than that, and
    # what disturbs lasts; so this says that the victim had half of it in one of the rounds. A module that holds it up does so in all.
    assert max(rates["beside hostile"]) > 0.5 * min(medians["alone"], medians["beside harmless"])
    assert metric(node, "fairlead_device_server_restarts_total") < 20, "restarts are spaced"


def test_outputs_that_were_answered_survive_a_neighbours_trap(node):
    keys = []
    with Neighbour(node, request(HOSTILE["trap"])) as mallory:
        while mallory.sent < 5:
            key = f"kept/{len(keys)}"
            status, _, body = node.invoke("peek", json.dumps({"outputs": {"y": {"key": key}}}))
            assert status == 200, body
            keys.append(key)
    assert keys
    for key in keys:
        status, _, body = node.call("GET", f"/v1/objects/{key}", headers={"X-Fairlead-Tenant": "victim"})
        assert (status, body) == (200, CONTENT), key
