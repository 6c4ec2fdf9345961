"""Prints the table of docs/reference/numbers.md from runs of `make bench`: bench/table.py docs/measurements/bench-*.jsonl"""

import fileinput
import json

# (name in the run, what it says to a reader)
ROWS = [
    ("warm_noop_p50", "Warm no-op call over HTTP, gateway to function and back, p50"),
    ("warm_noop_p99", "the same, p99"),
    ("node_adds_p50", "What the node adds to it"),
    ("noop_throughput_100_functions", "No-op calls per second over 100 functions, load generator on the same two cores"),
    ("echo_throughput", "for comparison: the bare HTTP server, echoing"),
    ("decision_mqfq-sticky_10000_flows", "One scheduling decision with 10,000 backlogged functions"),
    ("decision_mqfq-sticky_100000_flows", "the same with 100,000"),
    ("simulated_24_node_pool_12", "Simulated invocations per second, one core, 24 functions, the node's settings, pool of 12"),
    ("simulated_24_node_pool_32", "the same, pool of 32"),
    ("simulated_24_paper_pool_12", "the same, the paper's settings, pool of 12"),
    ("simulated_24_paper_pool_32", "the same, pool of 32"),
    ("simulated_10000_node_pool_32", "the same with 10,000 functions, the node's settings, pool of 32"),
    ("simulated_10000_paper_pool_32", "the same, the paper's settings"),
    ("simulated_trace_memory", "Simulator: memory of a trace beside one of an eighth of its length"),
    ("model_memory_of_three", "Three instances that share a model (ViT-huge / 8), device memory beside three private copies"),
    ("model_memory_two_parked", "the same with two of them parked host-warm"),
    ("model_memory_two_parked_without_contexts", "the same without contexts on either side"),
    ("sandbox_start", "Sandbox, order to first instruction, beside `crun run`"),
    ("sandbox_start_to_end", "the same, to the end of the program"),
    ("sgemm_1024_16x16_tile", "Software GPU: SGEMM 1024, 16x16 tile, one core"),
    ("sgemm_1024_64x64_register_tile", "Software GPU: SGEMM 1024, 64x64 register tile, one core"),
    ("jacobi_512_3000_launches", "Software GPU: Jacobi 512, 3000 launches, one core"),
    ("softmax_64x1000", "Software GPU: softmax of 64 rows of 1,000"),
    ("sgemm_512_on_two_cores", "Software GPU: SGEMM 512 on one core, beside two cores"),
    ("module_load_2000_instructions", "Software GPU: load of a module of 2,000 instructions"),
    ("empty_launch", "Software GPU: launch of an empty kernel, through the driver"),
    ("empty_launch_and_wait", "the same, and waiting for each"),
    ("ipc_open", "Software GPU: opening another process's memory"),
    ("device_lock", "Software GPU: the lock that processes share, uncontended"),
    ("idle_resident", "Node, idle: resident memory"),
    ("idle_cpu", "Node, idle: processor"),
    ("start_with_10000_functions", "Node start with 10,000 functions"),
    ("resident_with_10000_functions", "its resident memory"),
]

AT_LEAST = ("noop_throughput_100_functions", "sgemm_512_on_two_cores", "simulated_24_", "simulated_10000_")


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def bound(line):
    if "bound" not in line:
        return "", ""
    at_least = line["name"].startswith(AT_LEAST)
    unit = "x" if "ratio" in line else line["unit"]
    return f"{'at least' if at_least else 'at most'} {number(line['bound'])} {unit}", "yes" if line["met"] else "**no**"


def main():
    lines = {line["name"]: line for line in map(json.loads, fileinput.input())}
    print("| what | measured | baseline | ratio | bound | met |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, text in ROWS:
        line = lines[name]
        baseline = f"{number(line['baseline'])} {line['unit']}" if "baseline" in line else ""
        ratio = f"{line['ratio']:.2f} x" if "ratio" in line else ""
        print(f"| {text} | {number(line['value'])} {line['unit']} | {baseline} | {ratio} | {' | '.join(bound(line))} |")


if __name__ == "__main__":
    main()
