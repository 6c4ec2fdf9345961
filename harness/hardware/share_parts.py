"""Parts of tools/hardware-check about shares of a GPU in time: the gate without a node, and functions with a quota on one."""

import json
import shutil
import subprocess
import threading

from harness.hardware.node_parts import KERNELS, PROBE_ROUNDS, command_line, rounds_for, waited_ms
from harness.hardware.setting import FUNCTIONS, Unexpected, eventually, function, invoke
from harness.node import REPOSITORY

# Of the request, in the second that gave least. Without turns 60, 20 and 15 per cent would have a third each: 0.55 of 60.
LEAST_DELIVERED, LEAST_IN_SOFTWARE = 0.9, 0.6
REQUESTS = (60, 20, 15)
PATTERNS = ("deep", "graph", "streams", "capture", "fork")
LEAST_OF_LEASH, LEAST_OF_SMALL = 0.98, 4.1


def first_of_all():
    """Words that start a program before the computer's other work, where that is allowed."""
    words = ["chrt", "-f", "3"]
    return words if shutil.which("chrt") and subprocess.run([*words, "true"], capture_output=True).returncode == 0 else []


def paced_bench(setting, *words):
    """The numbers that bench/shares/paced_bench.cc prints."""
    command = [setting.build / "bin/paced-bench", *([] if setting.software else ["--real"]), *words]
    done = subprocess.run([*first_of_all(), *map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Unexpected(f"paced-bench {words[0]}: exit status {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def places(setting, rows):
    """Programs whose kernels wait for their turns, and nothing else of a node."""
    seconds = 2 if setting.quick else 5
    least = LEAST_IN_SOFTWARE if setting.software else LEAST_DELIVERED
    for kernel_us in (300,) if setting.quick else (300, 1900):
        numbers = paced_bench(setting, "delivered", kernel_us, *REQUESTS, seconds)
        what = f"kernels of {kernel_us} us"
        rows.expect_between(f"{what}: least delivered in a second / requested", numbers["worst"], least, None)
        rows.record(f"{what}: frame, ms", round(numbers["frame_ms"], 1))
        rows.record(f"{what}: instances that lost their place", numbers["revoked"])
    numbers = paced_bench(setting, "patterns", 1.1 if setting.quick else 3)
    for pattern in PATTERNS:
        rows.expect_between(f"50 % beside {pattern}: least delivered in a second / requested", numbers[f"beside_{pattern}"], least, None)
        rows.expect(f"{pattern}: kernels that ended", int(numbers[f"{pattern}_kernels"]), "some", numbers[f"{pattern}_kernels"] > 0)
    if setting.quick:
        return
    numbers = paced_bench(setting, "leash", 0.3)
    for us in (10, 100, 300):
        rows.expect_between(f"kernels of {us} us: with a leash / without", numbers[f"with_{us}"] / numbers[f"without_{us}"],
                            LEAST_OF_LEASH, None)
    try:
        numbers = paced_bench(setting, "small", 3)
    except Unexpected as error:
        return rows.skip("eight small clients", str(error))
    rows.expect_between("eight clients of 12 %: side by side / in turns", numbers["side_by_side"] / numbers["in_turns"],
                        LEAST_OF_SMALL, None)


class Callers:
    """Callers of each function without a pause, until the end of the block."""

    def __init__(self, node, names, event, each=3):
        self.node, self.event, self.stop, self.failed = node, event, threading.Event(), []
        self.threads = [threading.Thread(target=self.call, args=(name,)) for name in names for _ in range(each)]

    def call(self, name):
        try:
            while not self.stop.is_set():
                invoke(self.node, name, **self.event)
        except Unexpected as error:
            self.failed.append(str(error))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def delivered(node, name):
    return function(node, name)["share"].get("delivered_percent") or 0


def settles(node, name, is_met, patience):
    """What was delivered in the last second, once that is met; else what it was at the end."""
    def met():
        return is_met(delivered(node, name))

    try:
        eventually(met, patience)
    except Unexpected:
        pass
    return delivered(node, name)


def shares(setting, rows):
    """`gpu:quota-request` and `gpu:quota-limit` on a node, also of kernel tasks, and a share that changes while it runs."""
    patience = 60 if setting.software else 15  # the callers need the processor, too
    with setting.node("--slots", "4") as node:
        def deploy(name, **tags):
            node.deploy(name, FUNCTIONS / "launcher", Timeout=60, Tags={f"gpu:{key}": value for key, value in tags.items()})
            invoke(node, name, do="wait", kernels=1)

        deploy("limited", **{"quota-limit": "30"})
        rounds = rounds_for(node, rows, "limited", 40) if not setting.software else PROBE_ROUNDS // 2
        event = {"do": "wait", "kernels": KERNELS, "rounds": rounds}
        with Callers(node, ["limited"], event, each=1) as callers:
            value = settles(node, "limited", lambda percent: 20 <= percent <= 36, patience)
            rows.expect_between("a limit of 30 %, alone: per cent of the last second", value, 20, 36)
            node.call("POST", "/2017-03-31/tags/arn:aws:lambda:us-east-1:000000000000:function:limited",
                      json.dumps({"Tags": {"gpu:quota-limit": "60"}}))
            value = settles(node, "limited", lambda percent: 45 <= percent <= 66, 10)
            rows.record("the same with 60 %, changed while it runs: per cent of the last second", value)
        rows.expect_equal("calls that failed", callers.failed, [])
        deploy("reserved", **{"quota-request": "66"})
        deploy("flood")
        least = 45 if setting.software else 60
        with Callers(node, ["reserved", "flood"], event) as callers:
            value = settles(node, "reserved", lambda percent: percent >= least, patience)
            rows.expect_between("a request of 66 % beside a flood: per cent of the last second", value, least, None)
            rows.record("the flood: per cent of the last second, of its instances the least", delivered(node, "flood"))
        rows.expect_equal("calls that failed beside a flood", callers.failed, [])
        for way in ("graph", "leave"):
            rows.record(f"{way}: ms until the answer", round(invoke(node, "reserved", **{**event, "do": way})[0]["ms"]))
        rows.record("one call alone, ms", round(waited_ms(node, "reserved", rounds)))
        task_in_turns(node, rows, event)


VECTOR_ADD = REPOSITORY / "examples/ktask/vector-add"
INPUTS = {"inputs": {"x": [1, 2, 3, 4, 5, 6, 7, 8], "y": [10] * 8}}
TASK_CALLS = 30


def task_in_turns(node, rows, event):
    """Answers of a kernel task with a quota beside a flood."""
    node.deploy("task", VECTOR_ADD, Tags={"gpu:quota-request": "20"})
    expected = invoke(node, "task", **INPUTS)[0]
    with Callers(node, ["flood"], event):
        answers = [invoke(node, "task", **INPUTS)[0] for _ in range(TASK_CALLS)]
    rows.expect("a kernel task with 20 % beside a flood: right answers",
                sum(answer["outputs"] == expected["outputs"] for answer in answers), f"all {TASK_CALLS}",
                all(answer["outputs"] == expected["outputs"] for answer in answers))
    share = function(node, "task")["share"]
    rows.expect_between("its waits at the gate", share["gate_waits"], TASK_CALLS, None)


def scaling(setting, rows):
    """An objective and a sample: the experiment, the rectangle that it found, and calls by it."""
    with setting.node(*([] if setting.software else ["--sharing", "mps"])) as node:
        sample = setting.folder / "call.json"
        node.deploy("probe", FUNCTIONS / "launcher", Timeout=60)
        invoke(node, "probe", do="wait", kernels=1)
        rounds = PROBE_ROUNDS // 4 if setting.software else rounds_for(node, rows, "probe", 20)
        sample.write_text(json.dumps({"do": "wait", "kernels": KERNELS, "rounds": rounds}))
        node.deploy("scaled", FUNCTIONS / "launcher", Timeout=60)
        command_line(setting, node, "profile", "scaled", "--sample", sample, "--yes", "--trial-seconds", "0.5")
        command_line(setting, node, "deploy", "scaled", FUNCTIONS / "launcher", "--objective-ms", "400", "--sample", sample, "--yes")

        def found():
            told = json.loads(node.call("GET", "/fairlead/v1/functions/scaled/scaling")[2])
            return told if told.get("state") == "scaled" else None

        rows.expect("the function is scaled", eventually(found, 60)["state"], "after its experiment", True)
        exported = setting.folder / "profile.json"
        command_line(setting, node, "profile", "export", "scaled", exported)
        profile = json.loads(exported.read_text())
        rows.expect_between("trials of the experiment", len(profile["trials"]), 1, 35)
        rows.record("trials: width %, quota %, calls a second", [
            [trial["width_percent"], trial["quota_percent"], round(trial["rate_per_s"], 1)] for trial in profile["trials"]])
        rows.record("error of the last trial", profile["error"])
        with Callers(node, ["scaled"], json.loads(sample.read_text())) as callers:
            def is_ready():
                return found() and found()["ready"] >= 1

            rows.expect("seats that are ready under load", bool(eventually(is_ready, 30)), "one or more", True)
        rows.expect_equal("calls that failed", callers.failed, [])
        for line in command_line(setting, node, "describe", "scaled").splitlines():
            if line.strip().startswith(("Rectangle", "Price")):
                rows.record(f"describe: {line.split()[0]}", " ".join(line.split()[1:]))
