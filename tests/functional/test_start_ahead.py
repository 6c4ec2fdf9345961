"""Instances that start before they are needed: a burst's first seconds with and without, under the same conditions."""

import json
import threading
import time

from conftest import BUILD, eventually
from test_autoscale import imported, scaling

CALL = json.dumps({"layers": 10, "ms": 100, "sms": 12})
LOAD_S = 3  # that an instance needs before it is ready
OBJECTIVE_MS = 500
USUAL, BURST = 4, 20  # requests per second
GPUS = {"SOFTGPU_PROFILE": "v100-16", "SOFTGPU_DEVICES": "2", "SOFTGPU_MODE": "charge"}


def open_loop(node, name, rate, seconds):
    """How many of the requests of that time were late."""
    late, threads, began = [], [], time.monotonic()

    def call(due):
        status = node.invoke(name, CALL)[0]
        late.append(status != 200 or time.monotonic() - due > OBJECTIVE_MS / 1000)

    for i in range(int(rate * seconds)):
        due = began + i / rate
        time.sleep(max(0, due - time.monotonic()))  # sleep: until the request is due
        threads.append(threading.Thread(target=call, args=(due,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return sum(late)


def started(node):
    state = scaling(node, "f")
    return state["ready"] + state["parked"]


def late_in_a_burst(start_node, ahead):
    node = start_node("--sharing", "mps", "--start-ahead", str(ahead), gpu_environment=GPUS)
    imported(node, "f", objective=OBJECTIVE_MS, execution_ms=100, saturation=12, code=BUILD / "functions/stand-in")
    node.call("PUT", "/2015-03-31/functions/f/configuration", json.dumps({"Environment": {"Variables": {"STAND_IN_LOAD_S": str(LOAD_S)}}}))
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    assert node.invoke("f", CALL)[0] == 200
    open_loop(node, "f", USUAL, 20)
    if ahead:
        keep_calling = lambda: open_loop(node, "f", USUAL, 3) is not None and started(node) >= ahead  # noqa: E731
        eventually(keep_calling)
    open_loop(node, "f", USUAL, 3)
    late = open_loop(node, "f", BURST, 4)
    books = scaling(node, "f")["totals"]
    assert books["arrived"] == books["answered"] > 0
    node.stop()
    return late


def test_a_bursts_first_seconds_are_late_less_often_with_spares(start_node):
    without, with_spares = late_in_a_burst(start_node, 0), late_in_a_burst(start_node, 6)
    print(f"late of {BURST * 4}: {without} without, {with_spares} with spares")
    assert without > BURST / 4, "what waits for a start is late"
    assert with_spares < without / 2, (with_spares, without)
