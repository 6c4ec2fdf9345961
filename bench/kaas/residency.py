#!/usr/bin/env python3
"""Who is next when constants do not all fit: queueing policies on a live node, beside the laboratory.

Kernel tasks with 8 MB of constants each on two GPUs, one more on each GPU than it has room for; each has a client that
sends its next call when the last is answered. GPUs, copies and kernels take the model's time (SOFTGPU_MODE=model: a load 42
ms, a kernel about 16 ms), the rest is the node. The laboratory is given the time of a call that a client alone met. Prints a
table, or JSON: calls per second, constants loaded per call, the greatest client's calls over the least's, p50 and p90.
"""
import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from harness.node import Node  # noqa: E402

POLICIES = ("resident-window", "mqfq-setup", "mqfq-sticky", "cfs-affinity", "fcfs")
GPUS, LANES, OVER_RUN = 2, 4, 0.5
CONSTANT, ROOM = 8 << 20, 7  # of a GPU's object memory: so many constants and the inputs of what runs
MEMORY_MIB = ROOM * (CONSTANT >> 20) + 2
THREADS, ROUNDS = 256, 128
LINK_GB_S, TIME_SCALE = 1, 5

PROFILE = f"""name = Slow link
pci_device_id = 7602
compute_capability = 7.0
sm_count = 1
cores_per_sm = 64
clock_mhz = 1
memory_clock_mhz = 877
memory_bus_bits = 4096
memory_mib = 256
memory_bandwidth_gb_s = 1
link_bandwidth_gb_s = {LINK_GB_S}
l2_kib = 6144
shared_per_sm_kib = 96
shared_per_block_kib = 96
power_idle_watts = 40
power_max_watts = 300
temperature_idle_celsius = 32
temperature_max_celsius = 78
context_mib = 0
launch_overhead_us = 5
"""

# y[i] = x[i] + the sum of w[i], w[i + 256], ... over so many rounds.
KERNEL = f""".version 7.1
.target sm_70
.address_size 64
.visible .entry add_all(.param .u64 x, .param .u64 w, .param .u64 y)
{{
  .reg .b64 %x, %w, %y, %o; .reg .f32 %s, %v; .reg .b32 %t, %n; .reg .pred %p;
  ld.param.u64 %x, [x]; ld.param.u64 %w, [w]; ld.param.u64 %y, [y];
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4;
  add.s64 %x, %x, %o; add.s64 %w, %w, %o; add.s64 %y, %y, %o;
  ld.global.f32 %s, [%x]; mov.u32 %n, 0;
L: ld.global.f32 %v, [%w]; add.f32 %s, %s, %v; add.s64 %w, %w, {4 * THREADS}; add.u32 %n, %n, 1;
  setp.lt.u32 %p, %n, {ROUNDS}; @%p bra L;
  st.global.f32 [%y], %s;
  ret;
}}
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=pathlib.Path, help="build folder (default: build)")
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--clients", default=GPUS * (ROOM + 1), type=int)
    parser.add_argument("--seconds", default=15, type=float, help="measured, for each policy (default: 15)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def bundle(folder, number):
    folder.mkdir(parents=True)
    vector = {"type": "f32", "shape": [THREADS]}
    task = {"buffers": {"x": {"role": "input", **vector},
                        "w": {"role": "constant", "type": "f32", "shape": [CONSTANT // 4], "file": "w.bin"},
                        "y": {"role": "output", **vector}},
            "kernels": [{"module": "kernel.ptx", "kernel": "add_all", "grid": [1], "block": [THREADS],
                         "arguments": [{"buffer": "x"}, {"buffer": "w"}, {"buffer": "y"}]}]}
    (folder / "task.json").write_text(json.dumps(task))
    (folder / "kernel.ptx").write_text(KERNEL)
    (folder / "w.bin").write_bytes(struct.pack("<f", 1 + number) * (CONSTANT // 4))
    return folder


class Client(threading.Thread):
    """Calls one function until the run ends; (end, seconds) of each call."""

    def __init__(self, node, number, stop):
        super().__init__()
        self.node, self.name, self.stop, self.calls = node, f"f{number}", stop, []
        self.expected = 1 + ROUNDS * (1 + number)
        self.payload = json.dumps({"inputs": {"x": [1.0] * THREADS}})

    def call(self):
        begin = time.monotonic()
        status, headers, body = self.node.invoke(self.name, self.payload)
        if status != 200 or "X-Amz-Function-Error" in headers:
            raise SystemExit(f"residency: {self.name}: {status} {body.decode(errors='replace')}")
        if json.loads(body)["outputs"]["y"]["values"][0] != self.expected:
            raise SystemExit(f"residency: {self.name}: wrong result")
        self.calls.append((time.monotonic(), time.monotonic() - begin))

    def run(self):
        while not self.stop.is_set():
            self.call()


def counted(node):
    """(calls, constants copied to a device) so far."""
    text = node.call("GET", "/metrics")[2].decode()

    def total(pattern):
        return sum(float(value) for value in re.findall(rf"^{pattern} ([0-9.e+]+)$", text, re.M))
    return total(r"fairlead_kernel_task_calls_total\{[^}]*\}"), total(r'fairlead_object_lookups_total\{[^}]*result="host_hit"\}')


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def live(arguments, home, policy):
    (home / "gpu.profile").write_text(PROFILE)
    node_options = ["--policy", policy, "--over-run", OVER_RUN, "--slots", LANES, "--task-memory", f"{MEMORY_MIB}MiB"]
    machine = {"SOFTGPU_MODE": "model", "SOFTGPU_PROFILE": str(home / "gpu.profile"), "SOFTGPU_DEVICES": str(GPUS),
               "SOFTGPU_TIME_SCALE": str(TIME_SCALE), "SOFTGPU_WORKERS": "1"}
    with Node(arguments.build, home / policy, options=node_options, gpu_environment=machine) as node:
        stop = threading.Event()
        clients = [Client(node, number, stop) for number in range(arguments.clients)]
        for client in clients:
            node.deploy(client.name, home / client.name)
            client.call()
        for _ in range(9):
            clients[-1].call()
        alone_ms = 1000 * min(seconds for _, seconds in clients[-1].calls)
        for client in clients:
            client.start()
        time.sleep(arguments.seconds / 3)  # until who is where has settled
        begin, before = time.monotonic(), counted(node)
        time.sleep(arguments.seconds)
        end, after = time.monotonic(), counted(node)
        stop.set()
        for client in clients:
            client.join()
    measured = [[seconds for at, seconds in client.calls if begin <= at < end] for client in clients]
    seconds = [one for calls in measured for one in calls]
    return {"policy": policy, "calls_per_s": len(seconds) / (end - begin),
            "loaded": (after[1] - before[1]) / max(1, after[0] - before[0]),
            "spread": max(map(len, measured)) / max(1, min(map(len, measured))),
            "p50_ms": 1000 * percentile(seconds, 0.5), "p90_ms": 1000 * percentile(seconds, 0.9), "alone_ms": alone_ms}


def laboratory(arguments, policy, call_ms):
    settings = {"policy": policy, "gpus": GPUS, "lanes": LANES, "over_run_s": OVER_RUN, "memory_gib": MEMORY_MIB / 1024,
                "link_gb_per_s": LINK_GB_S / TIME_SCALE, "workload.gpu_ms": call_ms, "workload.at_once": LANES, "workload.cpu_ms": 0,
                "workload.constants_mb": CONSTANT / 1e6, "workload.dynamic_mb": 2 * 4 * THREADS / 1e6}
    command = [arguments.build / "bin/fairlead", "--json", "sim", "ktask", "micro", "--system", "fairlead", "--replicas",
               arguments.clients]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"residency: {done.stderr.strip()}")
    return json.loads(done.stdout)[0]["throughput_per_s"]


def main():
    arguments = parse_arguments()
    rows = []
    with tempfile.TemporaryDirectory() as home:
        home = pathlib.Path(home)
        for number in range(arguments.clients):
            bundle(home / f"f{number}", number)
        for policy in arguments.policies:
            row = live(arguments, home, policy)
            rows.append({**row, "laboratory_calls_per_s": laboratory(arguments, policy, row["alone_ms"])})
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'policy':16} {'calls/s':>8} {'loaded':>7} {'spread':>7} {'p50 ms':>7} {'p90 ms':>7}   laboratory: calls/s")
    for row in rows:
        print(f"{row['policy']:16} {row['calls_per_s']:8.1f} {row['loaded']:6.0%} {row['spread']:7.2f} {row['p50_ms']:7.0f} "
              f"{row['p90_ms']:7.0f} {row['laboratory_calls_per_s']:15.1f}")


if __name__ == "__main__":
    main()
