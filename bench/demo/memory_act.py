"""The demo's second act: 24 functions that keep device memory, three times as much as the device has.

Each function is an ordinary program that allocates 32 MiB at its first call, and at every later one reads back every byte of
it; it knows nothing of the node. Sizes are scaled as the demo's time is: 32 MiB beside a start of 0.25 s stand for more than a
GiB beside one of 10 s. Calls come from two clients, Zipf(1.5) over the functions, the same for every memory
policy: where memory does not follow the queues, instances are stopped for room and start cold.
"""

import json
import pathlib
import random
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from harness.node import Node  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEEPER = ROOT / "tests/functions/hoard"
POLICIES = ("none", "prefetch", "prefetch-swap")
FUNCTIONS, MIB_EACH, DEVICE_MIB, CLIENTS = 24, 32, 256, 2
DEVICE = {"SOFTGPU_PROFILE": "v100-16", "SOFTGPU_MEMORY_SCALE": str(16384 // DEVICE_MIB)}


def names():
    return [f"keeper-{i + 1}" for i in range(FUNCTIONS)]


def calls(seed, count):
    generator = random.Random(seed)
    order = names()
    generator.shuffle(order)
    weights = [1 / (rank + 1) ** 1.5 for rank in range(FUNCTIONS)]
    return order + generator.choices(order, weights, k=count)  # each function once, then as it comes


def ask(node, name, **event):
    status, headers, body = node.invoke(name, json.dumps(event))
    answer = json.loads(body)
    if status != 200 or "error" in answer:
        raise SystemExit(f"demo: {name} {event}: {status} {body}")
    return answer, headers["X-Gpu-Start"]


def call(node, name):
    """(kind of start, bytes lost) of one call as a user sees it; a new instance has to make its memory first."""
    answer, start = ask(node, name, do="check")
    if answer["blocks"] == 0:
        ask(node, name, do="hold", mib=MIB_EACH)
    return start, len(answer["lost"])


def run(build, folder, policy, schedule, init_seconds):
    options = ["--memory-policy", policy, "--slots", CLIENTS, "--pool", 32]
    with Node(build, folder / f"memory-{policy}", options=options, gpu_environment=DEVICE) as node:
        for name in names():
            node.deploy(name, KEEPER, {"INIT_SECONDS": str(init_seconds)})
        starts, latencies, failures, lost = [], [], [], 0
        left, lock = list(reversed(schedule)), threading.Lock()

        def client():
            try:
                work()
            except BaseException as error:  # a thread's own end tells nobody
                failures.append(error)
                left.clear()

        def work():
            nonlocal lost
            while True:
                with lock:
                    if not left:
                        return
                    name = left.pop()
                    is_first = len(left) >= len(schedule) - FUNCTIONS
                begun = time.monotonic()
                start, wrong = call(node, name)
                with lock:
                    lost += wrong
                    if not is_first:
                        starts.append(start)
                        latencies.append(time.monotonic() - begun)

        clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        if failures:
            raise failures[0]
        memory = node.status()["counters"]["memory"]
    latencies.sort()
    return {"calls": len(latencies), "mean_ms": 1000 * statistics.mean(latencies), "p50_ms": 1000 * latencies[len(latencies) // 2],
            "p99_ms": 1000 * latencies[int(0.99 * (len(latencies) - 1))], "lost": lost,
            **{kind: starts.count(kind) / len(starts) for kind in ("device-warm", "host-warm", "cold")},
            "swapped_gib": (memory["bytes_in"] + memory["bytes_out"]) / 2**30}


def table(results):
    rows = [["memory policy", "calls", "mean", "p50", "p99", "device-warm", "host-warm", "cold", "moved", "blocks lost"]]
    for policy, r in results.items():
        rows.append([policy, str(r["calls"]), f"{r['mean_ms']:.0f} ms", f"{r['p50_ms']:.0f} ms", f"{r['p99_ms']:.0f} ms",
                     *(f"{100 * r[kind]:.0f} %" for kind in ("device-warm", "host-warm", "cold")),
                     f"{r['swapped_gib']:.1f} GiB", str(r["lost"])])
    return rows


def play(build, folder, seed, count, init_seconds, say):
    """{policy: results}, each as run() gives them."""
    schedule = calls(seed, count)
    results = {}
    for policy in POLICIES:
        say(f"  {policy:<14} {len(schedule)} calls ...")
        results[policy] = run(build, folder, policy, schedule, init_seconds)
    return results
