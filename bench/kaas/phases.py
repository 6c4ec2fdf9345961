#!/usr/bin/env python3
"""Figure 8 of the KaaS paper on a live node: where the time of one call of the microbenchmark goes, cold and warm, and beside
it an ordinary GPU function in a Python process of its own. The software GPU computes the kernels, so their time says
nothing of a real one; the other phases are the product's own. Of each phase the least of several calls counts: other work on the
machine only adds. Prints JSON, all times in ms.
"""
import argparse
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from harness.node import Node  # noqa: E402

PHASES = ("kernel_run", "kernel_init", "device_malloc", "device_copy", "data_layer", "overhead")
REPEATS = 9


def bundle(folder, factor, seed):
    subprocess.run([sys.executable, "-m", "fairlead.workloads", "microbenchmark", folder, "--factor", str(factor), "--seed",
                    str(seed)], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    return folder


def timed(node, name, payload):
    begin = time.perf_counter()
    status, headers, body = node.invoke(name, payload)
    elapsed = 1000 * (time.perf_counter() - begin)
    if status != 200 or "X-Amz-Function-Error" in headers:
        raise SystemExit(f"phases: {name}: {status} {body.decode(errors='replace')}")
    return elapsed, json.loads(body)


def call_phases(node, name, payload):
    """{phase: ms}; what the client saw beyond the device server's phases is "outside"."""
    elapsed, answer = timed(node, name, payload)
    phases = {phase: answer["phases_us"][phase] / 1000 for phase in PHASES}
    return {**phases, "outside": max(0.0, elapsed - sum(phases.values()))}


def least(calls):
    return {phase: min(call[phase] for call in calls) for phase in calls[0]}


def kernel_task(node, home, factor):
    folders = [bundle(home / f"micro-{seed}", factor, seed) for seed in range(REPEATS + 1)]
    data = (folders[0] / "inputs/x.bin").read_bytes()
    payload = json.dumps({"inputs": {"x": {"base64": base64.b64encode(data).decode()}}})
    cold = []
    for seed, folder in enumerate(folders):
        node.deploy(f"micro-{seed}", folder)
        cold.append(call_phases(node, f"micro-{seed}", payload))
    warm = [call_phases(node, "micro-0", payload) for _ in range(REPEATS + 1)]
    # The first of all starts the device server; each of the others is cold in a server that runs.
    return {"server_start": cold[0], "cold": least(cold[1:]), "warm": least(warm[1:])}


def process(node, build):
    payload = json.dumps({"a": [1, 2, 3], "b": [10, 20, 30]})
    cold, warm = [], []
    for index in range(3):
        name = f"process-{index}"
        node.deploy(name, build / "functions/hello-python")
        cold.append(timed(node, name, payload)[0])
        warm += [timed(node, name, payload)[0] for _ in range(REPEATS)]
    return {"cold_ms": min(cold), "warm_ms": min(warm)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path)
    parser.add_argument("--factor", default=0.125, type=float, help="size of the matrices, 1 is 1024")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        home = pathlib.Path(home)
        with Node(options.build, home / "node") as node:
            result = {"side": round(1024 * options.factor), **kernel_task(node, home, options.factor),
                      "process": process(node, options.build)}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
