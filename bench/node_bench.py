"""What the node adds to a call, how many calls it serves, and what it costs when idle."""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from bench.measure import BUILD, report, run_json  # noqa: E402
from harness.node import Node  # noqa: E402

LOAD = BUILD / "bin/node_load"


def path(function):
    return f"/2015-03-31/functions/{function}/invocations"


def load(port, functions, **options):
    arguments = [part for function in functions for part in ("--path", path(function))]
    arguments += [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    return run_json(LOAD, "http", "--port", port, *arguments)


def node(home, **options):
    settings = {"slots": 64, "pool": 128} | options
    return Node(BUILD, home, options=[part for name, value in settings.items() for part in (f"--{name}", value)])


def warm_latency(home):
    with node(home) as running:
        running.deploy("noop", running.sample("noop"))
        pings = run_json(LOAD, "pingpong")
        on_one_core = run_json(LOAD, "pingpong", "--cores", 1)
        calls = load(running.port, ["noop"], warm_up=2000, requests=20000)
    report("warm_noop_p50", calls["p50_us"], "us", baseline=pings["p50_us"], bound=2.5,
           note="closed loop, one keep-alive connection; baseline: unix-socket ping-pong of two processes on two cores; "
                f"on one core it takes {on_one_core['p50_us']:.1f} us")
    report("warm_noop_p99", calls["p99_us"], "us", baseline=pings["p99_us"], bound=3)
    report("node_adds_p50", calls["p50_us"] - pings["p50_us"], "us", bound=150,
           note="warm no-op call minus one ping-pong")


def echo_throughput():
    with subprocess.Popen([LOAD, "echo"], stdout=subprocess.PIPE, text=True) as server:
        port = server.stdout.readline().rsplit(":", 1)[1].strip()
        result = run_json(LOAD, "http", "--port", port, "--path", "/", "--connections", 64, "--warm-up", 5000,
                          "--requests", 200000)
        server.kill()
    return result["per_second"]


def throughput(home):
    functions = [f"noop-{index}" for index in range(100)]
    with node(home, slots=8) as running:
        for function in functions:
            running.deploy(function, running.sample("noop"))
        load(running.port, functions, warm_up=0, requests=200)  # every function once: warm from here on
        runs = [load(running.port, functions, connections=64, warm_up=5000, requests=50000) for _ in range(5)]
    per_second = statistics.median(run["per_second"] for run in runs)
    failures = sum(run["failures"] for run in runs)
    report("noop_throughput_100_functions", per_second, "1/s", bound=15000, at_least=True,
           note=f"median of 5 runs; 64 connections, D = 8, {failures} failures, load generator on the same two cores")
    report("echo_throughput", echo_throughput(), "1/s", note="the same HTTP library answering at once")


def resident_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(home):
    with node(home) as running:
        pid = running.process.pid
        time.sleep(1)
        before = cpu_seconds(pid)
        time.sleep(5)
        report("idle_resident", resident_mib(pid), "MiB", bound=30)
        report("idle_cpu", (cpu_seconds(pid) - before) / 5, "cores", bound=0.02)


def many_functions(home, count=10_000):
    with node(home) as running:
        for index in range(count):
            running.deploy(f"function-{index}", running.sample("noop"))
    begun = time.monotonic()
    with Node(BUILD, home, options=[], keep_state=True) as restarted:
        report("start_with_10000_functions", time.monotonic() - begun, "s", bound=1,
               note="from exec to the first answer on the listening socket")
        report("resident_with_10000_functions", resident_mib(restarted.process.pid), "MiB", bound=100)


def main():
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        home = pathlib.Path(folder) / "node"
        warm_latency(home)
        throughput(home)
        idle(home)
        many_functions(home)


if __name__ == "__main__":
    main()
