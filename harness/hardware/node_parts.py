"""Parts of tools/hardware-check that serve programs on a node: cold and warm calls, charges, and shares of the multiprocessors."""

import json
import os
import re
import shutil
import statistics
import subprocess
import threading

from harness.hardware.setting import FUNCTIONS, Unexpected, function, invoke, settled

# The sample programs, small enough for the software GPU; their answers do not depend on where they run.
PROGRAMS = {"hello-cpp": {"n": 8}, "fft": {"n": 1024, "batch": 8}, "lud": {"n": 128}, "needle": {"n": 128},
            "pathfinder": {"rows": 64, "columns": 512}, "imagenet": {}, "roberta": {}, "ffmpeg": {}, "isoneural": {}}
WARM_CALLS, MOST_WARM_CALLS = 30, 60


def command_line(setting, node, *words):
    """The output of a subcommand of `fairlead` that must succeed."""
    done = subprocess.run([setting.build / "bin/fairlead", *map(str, words)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "FAIRLEAD_ENDPOINT": node.endpoint})
    if done.returncode != 0:
        raise Unexpected(f"fairlead {words[0]}: exit status {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def numbers_of(answer):
    """The numbers of an answer, which a comparison of two devices looks at."""
    return {name: value for name, value in answer.items() if isinstance(value, (int, float)) and not name.endswith("_ms")}


def call_program(setting, node, rows, name, event):
    node.deploy(name, node.sample(name), Timeout=60)
    first, start, cold_s = invoke(node, name, **event)
    rows.expect_equal(f"{name}: first start", start, "cold")
    warm = [invoke(node, name, **event) for _ in range(setting.repetitions(WARM_CALLS))]
    # Whether a warm call is the quicker one is seen by the least: one that this machine's other work delays says nothing.
    while min(seconds for _, _, seconds in warm) >= cold_s and len(warm) < MOST_WARM_CALLS:
        warm.append(invoke(node, name, **event))
    least = min(seconds for _, _, seconds in warm)
    rows.expect_between(f"{name}: cold call / least of the warm calls", cold_s / least, 1, None)
    rows.expect(f"{name}: warm calls answer as the first", sum(numbers_of(answer) == numbers_of(first) for answer, _, _ in warm),
                f"all {len(warm)}", all(numbers_of(answer) == numbers_of(first) for answer, _, _ in warm))
    rows.expect_equal(f"{name}: starts of warm calls", sorted({start for _, start, _ in warm}), ["device-warm"])
    warm_s = statistics.median(seconds for _, _, seconds in warm)
    for field, value in numbers_of(first).items():
        rows.record(f"{name}: answer, {field}", value)
    return warm_s


def programs(setting, rows):
    """`fairlead serve`, deploy, invoke: the sample programs, cold and warm, beside one that uses no GPU."""
    with setting.node("--slots", "1") as node:
        rows.expect_equal("GPUs that serve", [gpu["state"] for gpu in node.status()["gpus"]][:1], ["serving"])
        command_line(setting, node, "deploy", "noop", node.sample("noop"))
        echoed = command_line(setting, node, "invoke", "noop", "--data", '{"x": 1}')
        rows.expect_equal("`fairlead deploy` and `invoke` of noop", json.loads(echoed), {"x": 1})
        noop_s = statistics.median(invoke(node, "noop")[2] for _ in range(setting.repetitions(WARM_CALLS)))
        for name, event in PROGRAMS.items():
            warm_s = call_program(setting, node, rows, name, event)
            rows.record(f"{name}: warm call / warm call of noop", round(warm_s / noop_s, 2))
        rows.expect_equal("failed invocations", node.status()["counters"]["failed"], 0)


# The ways to put work on the device one kernel after the other, with what the answer does not wait for.
WAYS = {"wait": {}, "leave": {}, "wait-late": {"seconds": 0.5}, "launch-and-sleep": {"seconds": 0.5}, "go-on": {}, "graph": {},
        "fork": {}}
QUICK_WAYS = ("wait", "leave", "graph")
KERNELS = 100
PROBE_ROUNDS, LONGER = 50_000, 8
# A machine that is busy otherwise may be late to see the end of work that nobody waits for; and the software GPU, which computes
# on its processors, holds its slot while it waits for them. tests/functional/test_charges.py has the bound of a quiet machine.
LATE_MS = 50
MOST_CHARGED, MOST_CHARGED_IN_SOFTWARE = 1.02, 1.5


def waited_ms(node, name, rounds):
    return min(invoke(node, name, do="wait", kernels=KERNELS, rounds=rounds)[0]["ms"] for _ in range(2))


def rounds_for(node, rows, name, wanted_ms):
    """Rounds of the loop in each of KERNELS kernels, so that all of them take `wanted_ms`."""
    short, long = waited_ms(node, name, PROBE_ROUNDS), waited_ms(node, name, LONGER * PROBE_ROUNDS)
    # Not met where the driver's compiler removes the loop: then the numbers below say nothing.
    rows.expect_between(f"time of kernels of {LONGER} times the rounds / time of kernels", long / short, LONGER / 4, None)
    return max(1, round(LONGER * PROBE_ROUNDS * wanted_ms / long))


def charged_ms(node, name):
    return function(node, name)["stats"]["service_seconds"] * 1e3


def computed_ms(setting, node):
    """By the software GPU's own account, over all living processes."""
    text = subprocess.run([setting.build / "bin/softgpu", "time"], check=True, capture_output=True, text=True, timeout=30,
                          env={**os.environ, **node.gpu_environment}).stdout
    return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(r" +\d", line))


def charge_of(setting, node, way, event, reference_ms):
    """(milliseconds charged, on the device, until the answer) of one call."""
    settled(node, "launcher")
    charged = charged_ms(node, "launcher")
    computed = computed_ms(setting, node) if setting.software else 0
    answered, _, _ = invoke(node, "launcher", do=way, **event)
    settled(node, "launcher")
    computed = computed_ms(setting, node) - computed if setting.software else reference_ms
    return charged_ms(node, "launcher") - charged, computed, answered["ms"]


def charges(setting, rows):
    """What a call is charged beside its work on the device: by the software GPU's account, on a real GPU by the time that
    the same kernels take where the function waits for them."""
    with setting.node("--slots", "1") as node:
        node.deploy("launcher", FUNCTIONS / "launcher", Timeout=60)
        invoke(node, "launcher", do="wait", kernels=1)
        rounds = rounds_for(node, rows, "launcher", 300 if setting.quick else 1000)
        reference_ms = waited_ms(node, "launcher", rounds)
        for way in QUICK_WAYS if setting.quick else WAYS:
            event = {"kernels": KERNELS, "rounds": rounds, **WAYS[way]}
            charged, computed, answered = charge_of(setting, node, way, event, reference_ms)
            most = MOST_CHARGED_IN_SOFTWARE if setting.software else MOST_CHARGED
            most += LATE_MS / computed if computed else 0
            rows.expect_between(f"{way}: charged / on the device", charged / computed if computed else 0, 0.98, most)
            if way in ("leave", "graph"):
                rows.expect_between(f"{way}: answered after / on the device", answered / computed if computed else 1, None, 0.5)
        rows.expect_equal("device time that these honest calls did not report, s",
                          function(node, "launcher")["stats"]["gpu_time_not_reported_seconds"], 0)


def together_over_alone(setting, node, names):
    """Time of one call of each at the same time, beside the first one alone."""
    event = {"do": "wait", "kernels": KERNELS, "rounds": PROBE_ROUNDS}
    alone = min(invoke(node, names[0], **event)[2] for _ in range(3))
    seconds = []
    callers = [threading.Thread(target=lambda name=name: seconds.append(invoke(node, name, **event)[2])) for name in names]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return max(seconds, default=0) / alone


def mps(setting, rows):
    """`--sharing mps`: a client gets its percentage of the multiprocessors and its memory, and two run side by side."""
    if not setting.software and not shutil.which("nvidia-cuda-mps-control"):
        return rows.skip("--sharing mps", "nvidia-cuda-mps-control is not on this machine")
    with setting.node("--sharing", "mps", "--slots", "2") as node:
        node.deploy("narrow", FUNCTIONS / "misbehave", Tags={"gpu:compute-percent": "30", "gpu:memory-mib": "2048"})
        node.deploy("wide", FUNCTIONS / "misbehave")
        narrow, wide = (invoke(node, name, do="attributes")[0] for name in ("narrow", "wide"))
        rows.expect_equal("functions are MPS clients", [narrow["mps"], wide["mps"]], [1, 1])
        rows.expect_between("multiprocessors with 30 % / without a share", narrow["sms"] / wide["sms"], 0.25, 0.35)
        rows.expect_equal("3 GiB with a share of 2 GiB: code", invoke(node, "narrow", do="allocate", bytes=3 << 30)[0]["code"], 2)
        rows.expect_equal("3 GiB without a share: code", invoke(node, "wide", do="allocate", bytes=3 << 30)[0]["code"], 0)
        for name in ("left", "right"):
            node.deploy(name, FUNCTIONS / "launcher")
            invoke(node, name, do="wait", kernels=1)
        rows.record("two functions at the same time / one alone", round(together_over_alone(setting, node, ("left", "right")), 2))
        rows.expect_equal("the node's sharing", node.status()["sharing"], "mps")
