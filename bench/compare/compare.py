"""tools/compare-sim: the simulator beside a live node, on the same arrivals with the same settings.

A node on the software GPU gets eight functions of functions/ and a seeded workload; what it did is recorded (`fairlead sim
record`). The trace is then simulated (`fairlead sim`) and sent to a fresh node (`fairlead replay`). The GPU's time is the
model's (SOFTGPU_MODE=model on slow.profile), so that kernels last as long on a busy machine as on an idle one.

Prints a table and exits 1 where the mean latency differs by more than 10 %, or a kind of start by more than 3 points.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from harness.node import Node  # noqa: E402

MEAN_WITHIN = 0.10    # of the live node's
SHARE_WITHIN = 3.0    # percentage points
KINDS = ("device_warm", "host_warm", "cold")

# name: (sample, payload, pause at its start that stands for loading libraries, device memory in MiB)
FUNCTIONS = {
    "fft-small": ("fft", {"n": 256, "batch": 1}, 60, 16),
    "fft-large": ("fft", {"n": 4096, "batch": 2}, 60, 40),
    "needle": ("needle", {"n": 128}, 20, 24),
    "pathfinder": ("pathfinder", {"rows": 60, "columns": 2000}, 40, 32),
    "lud": ("lud", {"n": 64}, 20, 24),
    "isoneural": ("isoneural", {"nx": 8, "ny": 8, "nz": 4, "steps": 1}, 250, 40),
    "isoneural-long": ("isoneural", {"nx": 8, "ny": 8, "nz": 4, "steps": 4}, 250, 32),
    "fft-rare": ("fft", {"n": 1024, "batch": 2}, 120, 48),
}
GPU = {"SOFTGPU_MODE": "model", "SOFTGPU_PROFILE": str(pathlib.Path(__file__).with_name("slow.profile")),
       "SOFTGPU_TIME_SCALE": "4", "SOFTGPU_TIME_SLICE_US": "2000", "SOFTGPU_WORKERS": "1"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path, help="build folder (default: build)")
    parser.add_argument("--out", type=pathlib.Path, help="folder for states and results (default: BUILD/compare)")
    parser.add_argument("--seconds", default=60, type=float, help="length of the workload (default: 60)")
    parser.add_argument("--rate", default=5, type=float, help="invocations per second (default: 5)")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--tokens", default=2, type=int, help="D, concurrent invocations (default: 2)")
    parser.add_argument("--pool", default=6, type=int, help="instances, of 8 functions (default: 6)")
    parser.add_argument("--policy", default="mqfq-setup")
    return parser.parse_args()


def workload(seed, rate, seconds):
    """Zipf(1) over the functions in a seeded order, exponential gaps: [(second, function)]."""
    generator = random.Random(seed)
    names = list(FUNCTIONS)
    generator.shuffle(names)
    weights = [1 / rank for rank in range(1, len(names) + 1)]
    at, arrivals = 0.0, []
    while (at := at + generator.expovariate(rate)) < seconds:
        arrivals.append((at, generator.choices(names, weights)[0]))
    return arrivals


def start_node(arguments, name):
    options = ["--policy", arguments.policy, "--tokens", arguments.tokens, "--pool", arguments.pool, "--over-run", 0.25]
    node = Node(arguments.build, arguments.out / name, options=options, gpu_environment=GPU)
    for function, (sample, _, pause_ms, mib) in FUNCTIONS.items():
        node.deploy(function, node.sample(sample), {"FUNCTION_INIT_PAUSE_MS": str(pause_ms), "FUNCTION_MEMORY_MIB": str(mib)})
    return node


def fairlead(arguments, *words):
    command = [str(arguments.build / "bin/fairlead"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    if done.returncode != 0:
        raise SystemExit(f"compare-sim: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout, done.stderr


def replay(arguments, node, trace):
    out, err = fairlead(arguments, "--endpoint", node.endpoint, "--json", "replay", trace,
                        "--payloads", arguments.out / "payloads.json", "--clients", 64)
    if err:
        print(f"  replay: {err.strip()}")
    return json.loads(out)


def share(run, kind):
    return 100 * run[kind] / run["arrived"]


def rows_of(simulated, live):
    """[(what, simulated, live, difference, verdict or "")]."""
    rows = []
    for key, name in (("mean_s", "mean"), ("p50_s", "p50"), ("p99_s", "p99")):
        off = simulated[key] / live[key] - 1
        verdict = ("ok" if abs(off) <= MEAN_WITHIN else "OFF") if key == "mean_s" else ""
        rows.append((name, f"{1000 * simulated[key]:.1f} ms", f"{1000 * live[key]:.1f} ms", f"{100 * off:+.1f} %", verdict))
    for kind in KINDS:
        off = share(simulated, kind) - share(live, kind)
        rows.append((kind.replace("_", "-"), f"{share(simulated, kind):.1f} %", f"{share(live, kind):.1f} %",
                     f"{off:+.1f} points", "ok" if abs(off) <= SHARE_WITHIN else "OFF"))
    return rows


def print_table(rows):
    rows = [("", "simulated", "live", "difference", "verdict"), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  " + row[0].ljust(widths[0]) + "".join("   " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:])))


def by_function(simulated, live):
    rows = []
    for ours in simulated["functions"]:
        theirs = next(function for function in live["functions"] if function["name"] == ours["name"])
        rows.append((ours["name"], f"{1000 * ours['mean_s']:.1f} ms", f"{1000 * theirs['mean_s']:.1f} ms",
                     f"{100 * (ours['mean_s'] / theirs['mean_s'] - 1):+.1f} %",
                     f"cold {ours['cold']} / {theirs['cold']} of {ours['arrived']}"))
    return rows


def main():
    arguments = parse_arguments()
    arguments.out = (arguments.out or arguments.build / "compare").resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "payloads.json").write_text(json.dumps({name: payload for name, (_, payload, *_) in FUNCTIONS.items()}))
    arrivals = workload(arguments.seed, arguments.rate, arguments.seconds)
    first = arguments.out / "workload.csv"
    first.write_text("at_s,function\n" + "".join(f"{at:.6f},{function}\n" for at, function in arrivals))

    print(f"{len(arrivals)} invocations of {len(FUNCTIONS)} functions in {arguments.seconds:g} s, D = {arguments.tokens}, "
          f"pool of {arguments.pool}, policy {arguments.policy}, seed {arguments.seed}")
    with start_node(arguments, "recorded") as node:
        replay(arguments, node, first)
        fairlead(arguments, "--endpoint", node.endpoint, "sim", "record", "--out", arguments.out)
    simulated = json.loads(fairlead(arguments, "--json", "sim", arguments.out / "scenario.toml")[0])[0]
    with start_node(arguments, "replayed") as node:
        live = replay(arguments, node, arguments.out / "trace.csv")

    rows = rows_of(simulated, live)
    print_table(rows)
    print_table(by_function(simulated, live))
    is_off = any(row[-1] == "OFF" for row in rows)
    result = {"arguments": {key: value for key, value in vars(arguments).items() if key not in ("build", "out")},
              "simulated": simulated, "live": live, "ok": not is_off}
    (arguments.out / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    return 1 if is_off else 0


if __name__ == "__main__":
    sys.exit(main())
