"""Three functions that say their objective and nothing else, through bursts of 2 to 5 times their usual load: how many requests are late,
and what is held for them beside the fluid bound. The rows of docs/explanation/scaling.md on a node with real processes, by the commands of
docs/tutorial/objectives.md. The software GPU takes modelled time and no processor; as root all runs before the computer's other work,
at nice -10, since a request is late, too, where the node had no processor."""

import json
import pathlib
import subprocess
import tempfile

from bench.measure import BUILD, report
from bench.shares_cut import before_other_work
from harness.node import Node

# What a stand-in does for a call, its objective, its usual rate, and how many of its requests may be late.
FUNCTIONS = {
    "classify": {"call": {"layers": 8, "ms": 14, "sms": 24}, "objective_ms": 69, "rate": 20, "bound": 3},
    "transcribe": {"call": {"layers": 40, "ms": 60, "sms": 12}, "objective_ms": 500, "rate": 4, "bound": 0.2},
    "answer": {"call": {"layers": 24, "ms": 45, "sms": 50}, "objective_ms": 400, "rate": 6, "bound": 0.2},
}
MOST_HELD = 1.7
SECONDS = 120
WARM_UP_S = 30  # a function's first requests start cold
GPUS = {"SOFTGPU_PROFILE": "v100-16", "SOFTGPU_DEVICES": "2", "SOFTGPU_MODE": "charge"}


def fairlead(node, *words, timeout=600):
    done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, *map(str, words)], capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise SystemExit(f"fairlead {' '.join(map(str, words))}: {done.stderr or done.stdout}")
    return done.stdout


def totals(node, name):
    return json.loads(node.call("GET", f"/fairlead/v1/functions/{name}/scaling")[2])["totals"]


def replay(node, payloads, seconds, seed):
    calls = ",".join(f"{name}={one['rate']}" for name, one in FUNCTIONS.items())
    fairlead(node, "--json", "replay", "bursts", "--calls", calls, "--payloads", payloads, "--duration", seconds, "--seed", seed,
             timeout=seconds + 300)


def main(seconds=SECONDS, seed=1):
    before_other_work()
    with tempfile.TemporaryDirectory(prefix="bursts-") as folder:
        folder = pathlib.Path(folder)
        payloads = folder / "payloads.json"
        payloads.write_text(json.dumps({name: one["call"] for name, one in FUNCTIONS.items()}))
        with Node(BUILD, folder / "node", options=("--sharing", "mps"), gpu_environment=GPUS) as node:
            for name, one in FUNCTIONS.items():
                sample = folder / f"{name}.json"
                sample.write_text(json.dumps(one["call"]))
                fairlead(node, "deploy", name, BUILD / "functions/stand-in", "--objective-ms", one["objective_ms"], "--sample", sample, "--yes")
            replay(node, payloads, WARM_UP_S, seed + 1)
            before = {name: totals(node, name) for name in FUNCTIONS}
            replay(node, payloads, seconds, seed)
            measured = {name: {key: after - before[name][key] for key, after in totals(node, name).items() if key != "since_ms"}
                        for name in FUNCTIONS}
    for name, one in FUNCTIONS.items():
        report(f"bursts_{name}_late", 100 * measured[name]["late"] / measured[name]["arrived"], "% of requests", bound=one["bound"],
               note=f"within {one['objective_ms']} ms; {measured[name]['arrived']} requests in {seconds} s at {one['rate']} a second and bursts of 2 to 5 times that")
    held, bound = (sum(one[key] for one in measured.values()) for key in ("held_gpu_seconds", "bound_gpu_seconds"))
    report("bursts_held", held, "GPU seconds", baseline=bound, bound=MOST_HELD,
           note="; ".join(f"{name} {one['held_gpu_seconds'] / one['bound_gpu_seconds']:.2f}" for name, one in measured.items()) + "; beside the fluid bound")
