"""tools/compare-sim: the simulator beside a live node, on the same arrivals with the same settings.

A node on the software GPU gets eight functions of functions/ and a seeded workload; what it did is recorded (`fairlead sim
record`). The trace is then simulated (`fairlead sim`) and sent to fresh nodes (`fairlead replay`). The GPU's time is the
model's (SOFTGPU_MODE=model on slow.profile), so that kernels last as long on a busy machine as on an idle one.

One live run differs from the next: which instance goes first decides which start follows. So the mean of the live runs stands
beside the mean of simulations with several seeds, and how far the live runs are apart beside both.

So far the simulator is shown what it is asked: its functions are learnt from the run that it then simulates (in-sample).
With --out-of-sample the recorded run only teaches the functions; another workload, of another seed and with each function's
place in Zipf's law changed, is what is simulated and played.

Prints a table and exits 1 where the mean latency differs by more than 10 %, or a kind of start by more than 3 points.
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from harness.node import Node  # noqa: E402

MEAN_WITHIN = 0.10    # of the live node's
SHARE_WITHIN = 3.0    # percentage points
OTHER_SEED = 1000     # from the workload that is recorded to the one that is predicted
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
GPU = {"SOFTGPU_MODE": "model", "SOFTGPU_TIME_SCALE": "4", "SOFTGPU_TIME_SLICE_US": "2000", "SOFTGPU_WORKERS": "1"}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path, help="build folder (default: build)")
    parser.add_argument("--out", type=pathlib.Path, help="folder for states and results (default: BUILD/compare)")
    parser.add_argument("--seconds", default=60, type=float, help="length of the workload (default: 60)")
    parser.add_argument("--rate", default=5, type=float, help="invocations per second (default: 5)")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--slots", default=2, type=int, help="D, concurrent invocations (default: 2)")
    parser.add_argument("--pool", default=6, type=int, help="instances, of 8 functions (default: 6)")
    parser.add_argument("--policy", default="mqfq-setup")
    parser.add_argument("--memory-mib", default=512, type=int,
                        help="of the device (default: 512, more than all functions need together, 272)")
    parser.add_argument("--replays", default=2, type=int, help="live runs after the recorded one (default: 2)")
    parser.add_argument("--out-of-sample", action="store_true",
                        help="compare on another workload than the recorded one (of seed + 1000)")
    parser.add_argument("--sim-seeds", default=8, type=int, help="simulations (default: 8)")
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
    options = ["--policy", arguments.policy, "--slots", arguments.slots, "--pool", arguments.pool, "--over-run", 0.25]
    node = Node(arguments.build, arguments.out / name, options=options,
                gpu_environment={**GPU, "SOFTGPU_PROFILE": str(arguments.out / "gpu.profile")})
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


def figures(run):
    """What is compared: seconds, and shares in percent."""
    return {**{key: run[key] for key in ("mean_s", "p50_s", "p99_s")},
            **{kind: 100 * run[kind] / run["arrived"] for kind in KINDS}}


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def rows_of(simulated, live):
    """[(what, simulated, live, least to most of the live runs, difference, verdict or "")]."""
    ours, theirs = figures(simulated), [figures(run) for run in live]
    rows = []
    for key in ours:
        values = [run[key] for run in theirs]
        if key.endswith("_s"):
            off, unit, scale = 100 * (ours[key] / mean(values) - 1), "ms", 1000
            verdict = ("ok" if abs(off) <= 100 * MEAN_WITHIN else "OFF") if key == "mean_s" else ""
            difference = f"{off:+.1f} %"
        else:
            off, unit, scale = ours[key] - mean(values), "%", 1
            verdict, difference = "ok" if abs(off) <= SHARE_WITHIN else "OFF", f"{off:+.1f} points"
        rows.append((key.removesuffix("_s").replace("_", "-"), f"{scale * ours[key]:.1f} {unit}",
                     f"{scale * mean(values):.1f} {unit}", f"{scale * min(values):.1f} to {scale * max(values):.1f}",
                     difference, verdict))
    return rows


def by_function(simulated, live):
    rows = []
    for ours in simulated["functions"]:
        theirs = [next(function for function in run["functions"] if function["name"] == ours["name"]) for run in live]
        latency = mean(function["mean_s"] for function in theirs)
        starts = " / ".join(f"{100 * cold / arrived:.0f} %" for cold, arrived in (
            (ours["cold"], ours["arrived"]),
            (sum(function["cold"] for function in theirs), sum(function["arrived"] for function in theirs))))
        rows.append((ours["name"], f"{1000 * ours['mean_s']:.1f} ms", f"{1000 * latency:.1f} ms", "",
                     f"{100 * (ours['mean_s'] / latency - 1):+.1f} %", f"cold {starts}"))
    return rows


def print_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  " + row[0].ljust(widths[0]) + "".join("   " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:])))


def write_inputs(arguments):
    arguments.out = (arguments.out or arguments.build / "compare").resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "payloads.json").write_text(json.dumps({name: payload for name, (_, payload, *_) in FUNCTIONS.items()}))
    profile = pathlib.Path(__file__).with_name("slow.profile").read_text()
    (arguments.out / "gpu.profile").write_text(re.sub(r"(?m)^memory_mib = .*$", f"memory_mib = {arguments.memory_mib}", profile))
    for file, seed in (("workload.csv", arguments.seed), ("other.csv", arguments.seed + OTHER_SEED)):
        arrivals = workload(seed, arguments.rate, arguments.seconds)
        (arguments.out / file).write_text("at_s,function\n" + "".join(f"{at:.6f},{name}\n" for at, name in arrivals))


def main():
    arguments = parse_arguments()
    write_inputs(arguments)
    # What is compared: the trace of the recorded run, with its run times, or arrivals that the simulator has not seen.
    trace = arguments.out / ("other.csv" if arguments.out_of_sample else "trace.csv")
    print(f"{arguments.rate:g} invocations a second of {len(FUNCTIONS)} functions in {arguments.seconds:g} s, D = {arguments.slots}, pool of "
          f"{arguments.pool}, device of {arguments.memory_mib} MiB, policy {arguments.policy}, seed {arguments.seed}; "
          f"{'out of sample, ' if arguments.out_of_sample else ''}{1 + arguments.replays} live runs, {arguments.sim_seeds} simulations")
    with start_node(arguments, "recorded") as node:
        live = [replay(arguments, node, arguments.out / "workload.csv")]
        fairlead(arguments, "--endpoint", node.endpoint, "sim", "record", "--out", arguments.out)
    if arguments.out_of_sample:
        live = []
    for run in range(arguments.replays + arguments.out_of_sample):
        with start_node(arguments, f"replayed-{run + 1}") as node:
            live.append(replay(arguments, node, trace))
    simulated = json.loads(fairlead(arguments, "--json", "sim", arguments.out / "scenario.toml", "--set", f"workload.trace={trace}",
                                    "--seeds", arguments.sim_seeds)[0])[0]

    rows = rows_of(simulated, live)
    print_table([("", "simulated", "live", "live runs", "difference", "verdict"), *rows, *by_function(simulated, live)])
    is_off = any(row[-1] == "OFF" for row in rows)
    result = {"arguments": {key: value for key, value in vars(arguments).items() if key not in ("build", "out")},
              "simulated": simulated, "live": live, "ok": not is_off}
    (arguments.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return 1 if is_off else 0


if __name__ == "__main__":
    sys.exit(main())
