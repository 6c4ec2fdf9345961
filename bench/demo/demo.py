"""make demo: the same seeded workload under FCFS, under MQFQ-Sticky as in its paper, and as Fairlead runs it by itself.

A node with one V100-like GPU and a warm pool smaller than its 24 functions answers an open-loop Zipf(1.5) workload twice.
Everything is real but the silicon: real processes, real CUDA kernels, real HTTP. Times are Table 1's of the paper divided
by --scale. Prints a table and writes BUILD/demo/summary.json and BUILD/demo/report.html.
"""

import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import memory_act  # noqa: E402
import metrics  # noqa: E402
import report  # noqa: E402
from harness.node import Node  # noqa: E402
from replay import replay  # noqa: E402
from workload import TABLE_1, arrivals, function_names, init_pause_ms, program_of, zipf_rates  # noqa: E402

PAPER = ["--eviction", "inactive-first", "--cold-duplicates", "--starts", "0"]
# What the node is told beside the demo's own options; the last is what it does by itself.
SETTINGS = {"fcfs": ["--policy", "fcfs", *PAPER], "mqfq-sticky": ["--policy", "mqfq-sticky", *PAPER], "fairlead": []}
POLICIES = list(SETTINGS)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=pathlib.Path, help="build folder (default: build)")
    parser.add_argument("--seconds", default=50, type=float, help="length of the workload per policy (default: 50)")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--load", default=0.4, type=float,
                        help="offered warm service, as a share of what the node can serve at once (default: 0.4)")
    parser.add_argument("--scale", default=40, type=float, help="how much faster than Table 1 (default: 40)")
    parser.add_argument("--pool", default=10, type=int, help="warm instances, of 24 functions (default: 10)")
    parser.add_argument("--slots", default=2, type=int, help="D, concurrent invocations (default: 2)")
    parser.add_argument("--memory-calls", default=120, type=int, help="calls per memory policy (default: 120)")
    return parser.parse_args()


def say(text="", end="\n"):
    sys.stdout.write(text + end)
    sys.stdout.flush()


def progress_line(policy):
    def show(done, total, queued):
        share = done / max(1, total)
        bar = "#" * int(30 * share) + "." * (30 - int(30 * share))
        if sys.stdout.isatty():
            say(f"\r  {policy:<12} [{bar}] {done}/{total} answered, {queued} waiting   ", end="")
    return show


def start_node(arguments, policy):
    options = [*SETTINGS[policy], "--slots", arguments.slots, "--pool", arguments.pool,
               "--over-run", 10 / arguments.scale]
    return Node(arguments.build, arguments.build / "demo" / f"node-{policy}", options=options,
                gpu_environment={"SOFTGPU_PROFILE": "v100-16"})


def deploy_all(node, scale):
    for name in function_names():
        node.deploy(name, node.sample(program_of(name)), {"FUNCTION_INIT_PAUSE_MS": str(init_pause_ms(name, scale))})


def measure_service(arguments):
    """Warm service time of each program on this machine, in seconds: the least of nine calls; other work only adds."""
    with start_node(arguments, POLICIES[0]) as node:
        deploy_all(node, arguments.scale)
        service = {}
        for program in TABLE_1:
            node.invoke(f"{program}-1")
            times = [float(node.invoke(f"{program}-1")[1]["X-Gpu-Exec-Ms"]) / 1000 for _ in range(9)]
            service[program] = min(times)
    return service


def run_policy(arguments, policy, schedule):
    with start_node(arguments, policy) as node:
        deploy_all(node, arguments.scale)
        samples, utilisation = replay(node, schedule, progress_line(policy))
    progress_line(policy)(len(samples), len(schedule), 0)
    say()
    return samples, utilisation


def table(summaries):
    rows = [["policy", "invocations", "mean", "p50", "p99", "cold starts", "worst service gap", "GPU busy"]]
    for policy, values in summaries.items():
        rows.append([policy, str(values["invocations"]), f"{values['mean_latency_ms']:.0f} ms",
                     f"{values['p50_latency_ms']:.0f} ms", f"{values['p99_latency_ms']:.0f} ms",
                     f"{100 * values['cold_start_share']:.1f} %", f"{values['service_gap_ms']:.0f} ms",
                     f"{100 * values['gpu_utilisation']:.0f} %"])
    return rows


def print_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        say("  " + "   ".join(cells))


def notes(arguments, service, window):
    times = ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in service.items())
    return [
        f"24 functions (3 copies of 8), Zipf(1.5), exponential arrivals, seed {arguments.seed}, {arguments.seconds:g} s per "
        f"policy; D = {arguments.slots}, warm pool of {arguments.pool}, T = {10 / arguments.scale:g} s (the paper's 10 s "
        f"at 1:{arguments.scale:g}); service gap over windows of {window:g} s.",
        f"Warm service measured on this machine: {times}.",
        f"A cold start includes a pause that stands for loading libraries: Table 1's cold minus warm time, at "
        f"1:{arguments.scale:g}. Everything else is executed: processes, sandboxes, kernels, HTTP.",
    ]


def write_results(program, folder, summaries, memory, results, window, texts):
    for policy in POLICIES:
        assert summaries[policy]["invocations"] == summaries[POLICIES[0]]["invocations"]
    document = {
        "policies": summaries,
        "memory_policies": memory,
        "invocations": sum(values["invocations"] for values in summaries.values()),
        "failed": sum(values["failed"] for values in summaries.values()),
    }
    (folder / "summary.json").write_text(json.dumps(document, indent=2) + "\n")
    (folder / "report.html").write_text(report.page(program, table(summaries), results, window, texts))


def main():
    arguments = parse_arguments()
    folder = arguments.build / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    window = 30 / arguments.scale  # the paper measures the gap over 30 s
    begun = time.monotonic()

    say("Measuring each function's warm service time ...")
    service = measure_service(arguments)
    rates = zipf_rates(arguments.seed, arguments.load, service)
    schedule = arrivals(arguments.seed, rates, arguments.seconds)
    say(f"Replaying {len(schedule)} invocations of {len(rates)} functions under each policy ...")

    results, summaries = {}, {}
    for policy in POLICIES:
        samples, utilisation = run_policy(arguments, policy, schedule)
        results[policy] = samples
        summaries[policy] = metrics.summary(samples, utilisation, window)

    texts = [metrics.what_is_worse(summaries, POLICIES[-1]), *notes(arguments, service, window)]
    say()
    print_table(table(summaries))
    say()
    for text in texts:
        say("  " + text)

    say(f"\n{memory_act.FUNCTIONS} functions that keep {memory_act.MIB_EACH} MiB each on a device of {memory_act.DEVICE_MIB} MiB, every byte checked at every call:")
    init_seconds = 10 / arguments.scale  # loading a framework, as Table 1's cold starts of imagenet and isoneural
    memory = memory_act.play(arguments.build, folder, arguments.seed, arguments.memory_calls, init_seconds, say)
    say()
    print_table(memory_act.table(memory))
    write_results(str(arguments.build / "bin" / "fairlead"), folder, summaries, memory, results, window, texts)
    say(f"""
Took {time.monotonic() - begun:.0f} s. Report: {folder}/report.html, numbers: {folder}/summary.json

Try next:
  {arguments.build}/bin/fairlead serve --softgpu &
  {arguments.build}/bin/fairlead deploy fft {arguments.build}/functions/fft
  {arguments.build}/bin/fairlead invoke fft -d '{{}}'
  {arguments.build}/bin/fairlead top""")
    failed = any(values["failed"] for values in summaries.values())
    return 1 if failed or any(result["lost"] for result in memory.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
