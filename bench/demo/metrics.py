"""What the demo reports about one replay."""

import math
from collections import defaultdict


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def service_by_window(samples, window):
    """{function: [service received in each window]}. An invocation's service lies in the seconds before its answer."""
    end = max(sample.at + sample.latency for sample in samples)
    windows = math.ceil(end / window)
    received = defaultdict(lambda: [0.0] * windows)
    for sample in samples:
        finish = sample.at + sample.latency
        begin = max(0.0, finish - sample.service)
        for index in range(int(begin / window), min(windows - 1, int(finish / window)) + 1):
            overlap = min(finish, (index + 1) * window) - max(begin, index * window)
            received[sample.function][index] += max(0.0, overlap)
    return dict(received)


def backlogged_windows(samples, window):
    """{function: set of windows throughout which it had an invocation waiting or running}."""
    intervals = defaultdict(list)
    for sample in samples:
        intervals[sample.function].append((sample.at, sample.at + sample.latency))
    backlogged = {}
    for function, busy in intervals.items():
        merged = []
        for begin, end in sorted(busy):
            if merged and begin <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([begin, end])
        backlogged[function] = {index for begin, end in merged
                                for index in range(math.ceil(begin / window), int(end / window))}
    return backlogged


def worst_service_gap(samples, window):
    """Over all windows: the largest difference of service between two functions that were backlogged throughout it
    (paper, section 6.2). Functions of equal weight that all wait ought to receive the same."""
    received = service_by_window(samples, window)
    backlogged = backlogged_windows(samples, window)
    worst = 0.0
    for index in set().union(*backlogged.values()):
        services = [received[function][index] for function in received if index in backlogged[function]]
        worst = max(worst, max(services) - min(services))
    return worst


def summary(samples, utilisation, window):
    answered = [sample for sample in samples if sample.ok]
    latencies = [sample.latency for sample in answered]
    return {
        "invocations": len(samples),
        "failed": len(samples) - len(answered),
        "mean_latency_ms": 1000 * sum(latencies) / max(1, len(latencies)),
        "p50_latency_ms": 1000 * percentile(latencies, 0.50),
        "p99_latency_ms": 1000 * percentile(latencies, 0.99),
        "cold_start_share": sum(sample.cold for sample in answered) / max(1, len(answered)),
        "service_gap_ms": 1000 * worst_service_gap(answered, window),
        "gpu_utilisation": sum(utilisation) / max(1, len(utilisation)),
    }


# Of a summary, what is better when it is less: how it is called, and how a value is written.
LESS_IS_BETTER = {
    "mean_latency_ms": ("mean latency", "{:.0f} ms"),
    "p50_latency_ms": ("p50", "{:.0f} ms"),
    "p99_latency_ms": ("p99", "{:.0f} ms"),
    "cold_start_share": ("cold starts", "{:.1%}"),
    "service_gap_ms": ("worst service gap", "{:.0f} ms"),
    "failed": ("failed invocations", "{:d}"),
}


def what_is_worse(summaries, ours):
    """A sentence: the measures in which `ours` is worse than the best of the others, with both values."""
    worse = []
    for measure, (name, form) in LESS_IS_BETTER.items():
        best = min((policy for policy in summaries if policy != ours), key=lambda policy: summaries[policy][measure])
        mine, theirs = summaries[ours][measure], summaries[best][measure]
        if mine > theirs:
            worse.append(f"{name}, {form.format(mine)} against {form.format(theirs)} under {best}")
    if not worse:
        return f"In this run {ours} is not worse than another policy in any column."
    return f"In this run {ours} is worse than another policy in: " + "; ".join(worse) + "."
