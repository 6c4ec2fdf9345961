"""Long kernels of kernel tasks beside a function that is promised time: how many of its calls are late, with kernels whole and cut.

A function of 34 % of a GPU gets calls at random instants, 10 ms of work each in kernels of 1 ms, at 70 % of what it is promised; each is
wanted within 100 ms. Beside it four best-effort kernel tasks are always busy, each with kernels of 50 ms. Both ways in one run, on one
software GPU each in charge mode: kernels take their modelled time and no processor. As root everything runs before the computer's other
work, at nice -10, since a call is late, too, where the node had no processor."""

import json
import os
import pathlib
import random
import shutil
import statistics
import tempfile
import threading
import time

from bench.measure import BUILD, report
from harness.node import Node

LANES_PER_US = 80 * 64 * 1530  # of the profile v100-16: all its lane instructions of a microsecond
REQUEST_PERCENT = 34
RATE_PER_S = 0.7 * REQUEST_PERCENT / 100 / 0.010
OBJECTIVE_S = 0.100
NEVER_S = 1000
BEST_EFFORT = 4

MODULE = """.version 7.0
.target sm_70
.address_size 64
.visible .entry softgpu_charge_blocks_work(.param .u64 lane_instructions, .param .u64 bytes, .param .u64 out) { ret; }
"""


def task(folder, kernel_ms, kernels, blocks):
    """A bundle: so many kernels one after the other, of so many milliseconds of the whole device each."""
    folder.mkdir(parents=True)
    (folder / "kernels.ptx").write_text(MODULE)
    lanes = int(kernel_ms * 1000 * LANES_PER_US / blocks)
    launch = {"module": "kernels.ptx", "kernel": "softgpu_charge_blocks_work", "grid": [blocks], "block": [64],
              "arguments": [{"u64": lanes}, {"u64": 0}, {"buffer": "out"}]}
    (folder / "task.json").write_text(json.dumps({
        "buffers": {"out": {"role": "output", "type": "f32", "shape": [1]}}, "kernels": [launch] * kernels}))
    return folder


class Load:
    """Calls of the best-effort functions, one after the other of each, until the end of the block."""

    def __init__(self, node, names):
        self.node, self.stop, self.calls = node, threading.Event(), dict.fromkeys(names, 0)
        self.failed = []
        self.threads = [threading.Thread(target=self.call, args=(name,)) for name in names]

    def call(self, name):
        while not self.stop.is_set():
            status, headers, body = self.node.invoke(name, "{}")
            if status != 200 or "X-Amz-Function-Error" in headers:
                self.failed.append(body)
                return
            self.calls[name] += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def late(node, name, seconds, seed):
    """(per cent of calls that were late, the 99th percentile in ms, how many there were). A call's time begins when it was to be made."""
    rng, took, threads = random.Random(seed), [], []
    due = time.monotonic() + 0.1
    end = due + seconds

    def call(at):
        try:
            status, headers, _ = node.invoke(name, "{}")
            is_answer = status == 200 and "X-Amz-Function-Error" not in headers
        except OSError:  # it waited for a minute
            is_answer = False
        took.append(time.monotonic() - at if is_answer else NEVER_S)

    while due < end:
        time.sleep(max(0, due - time.monotonic()))  # sleep: until the call is due
        threads.append(threading.Thread(target=call, args=(due,)))
        threads[-1].start()
        due += rng.expovariate(RATE_PER_S)
    for thread in threads:
        thread.join()
    took.sort()
    missed = sum(1 for one in took if one > OBJECTIVE_S)
    return 100 * missed / len(took), 1000 * took[int(0.99 * (len(took) - 1))], len(took)


def beside_long_kernels(folder, seconds, seed, cut, long_ms=50):
    with Node(BUILD, folder / "node", options=["--slots", "4"], gpu_environment={"SOFTGPU_MODE": "charge"}) as node:
        node.deploy("reserved", task(folder / "reserved", 1, 10, 2560), Timeout=60,
                    Tags={"gpu:quota-request": str(REQUEST_PERCENT), "gpu:replicas": "1"})
        names = [f"long-{i}" for i in range(BEST_EFFORT)] if long_ms else []
        for name in names:
            node.deploy(name, task(folder / name, long_ms, 1, 256_000), Timeout=60, Tags={"gpu:cut-kernels": "true" if cut else "false"})
        for name in ["reserved", *names] * 2:
            node.invoke(name, "{}")
        with Load(node, names) as load:
            began = time.monotonic()
            percent, p99, calls = late(node, "reserved", seconds, seed)
            done, took = sum(load.calls.values()), time.monotonic() - began  # longer than `seconds` where calls pile up
        if load.failed:
            raise SystemExit(f"a best-effort call failed: {load.failed[0].decode(errors='replace')}")
        return {"missed": percent, "p99_ms": p99, "calls": calls, "best_effort": done / took}


def cut(seconds=20, seeds=1):
    """Rows: the kernels whole, and cut; and the reserved function alone, which nobody can better."""
    before_other_work()
    rows = {"alone": [], "whole": [], "cut": []}
    for seed in range(1, seeds + 1):
        for name, rows_of in rows.items():
            folder = pathlib.Path(tempfile.mkdtemp(prefix="fairlead-shares-cut-"))
            try:
                rows_of.append(beside_long_kernels(folder, seconds, seed, name == "cut", 0 if name == "alone" else 50))
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def mean(name, what):
        return statistics.mean(row[what] for row in rows[name])

    calls = sum(row["calls"] for row in rows["cut"])
    report("shares_missed_beside_kernels_of_50_ms_cut", mean("cut", "missed"), "% of calls", bound=2,
           note=f"34 % beside four best-effort kernel tasks, {calls} calls; whole {mean('whole', 'missed'):.2f} %, alone on the device "
                f"{mean('alone', 'missed'):.2f} %; p99 {mean('cut', 'p99_ms'):.0f} ms, {mean('whole', 'p99_ms'):.0f}, {mean('alone', 'p99_ms'):.0f}")
    report("shares_best_effort_of_50_ms_cut", mean("cut", "best_effort") * 0.050, "of the device", at_least=True, bound=0.6,
           note=f"what those four had; {mean('whole', 'best_effort') * 0.050:.2f} with whole kernels, which leave the reserved one nothing")
    return rows


NARROW, NARROW_BLOCKS = 8, 8


def narrow_tasks(folder, seconds, tags, quota):
    """Calls per second of eight kernel tasks together, each with one call at a time of ten kernels of 8 blocks and 2 ms. quota: somebody,
    who has nothing to do, is promised 5 %, so that the device is paced."""
    with Node(BUILD, folder / "node", options=["--slots", str(NARROW)], gpu_environment={"SOFTGPU_MODE": "charge"}) as node:
        names = [f"narrow-{i}" for i in range(NARROW)]
        for name in names:
            node.deploy(name, task(folder / name, 2 * NARROW_BLOCKS / 80, 10, NARROW_BLOCKS), Timeout=60, Tags=tags)
        if quota:
            node.deploy("promised", task(folder / "promised", 0.1, 1, 8), Timeout=60, Tags={"gpu:quota-request": "5"})
        for name in names * 2:
            node.invoke(name, "{}")
        return calls_per_s(node, names, seconds)


def calls_per_s(node, names, seconds):
    """Of all together, a call at a time of each."""
    with Load(node, names) as load:
        time.sleep(1)  # sleep: until all are under way
        before, began = sum(load.calls.values()), time.monotonic()
        time.sleep(seconds)  # sleep: the measurement
        done, took = sum(load.calls.values()) - before, time.monotonic() - began
    if load.failed:
        raise SystemExit(f"a call failed: {load.failed[0].decode(errors='replace')}")
    return done / took


def narrow(seconds=20):
    """Rows: as wide as their kernels, and as wide as the device, which their authors may say; and on a device that is not paced."""
    before_other_work()
    rows = {}
    for name, tags, quota in (("alone", {"gpu:compute-percent": "100"}, True), ("fits", {}, True), ("unpaced", {}, False)):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fairlead-shares-narrow-"))
        try:
            rows[name] = narrow_tasks(folder, seconds, tags, quota)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    report("shares_narrow_kernel_tasks", rows["fits"], "calls/s", baseline=rows["alone"], bound=4.1, at_least=True,
           note=f"eight kernel tasks of 8 blocks a kernel on a paced device of 80 SMs, and the same eight in turns, as wide as the device; "
                f"{rows['unpaced']:.1f} calls/s where nobody has a quota")
    return rows


def halves(seconds=20):
    """Two kernel tasks whose kernels fill the device, each kept to half of its SMs for 90 % of the time: beside each other, and one alone."""
    before_other_work()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fairlead-shares-halves-"))
    try:
        with Node(BUILD, folder / "node", options=["--task-isolation", "fence"], gpu_environment={"SOFTGPU_MODE": "charge"}) as node:
            for name in ("one", "other"):
                node.deploy(name, task(folder / name, 1, 10, 800), Timeout=60, Tags={"gpu:compute-percent": "50", "gpu:quota-request": "90"})
            for name in ("one", "other") * 2:
                node.invoke(name, "{}")
            alone = calls_per_s(node, ["one"], seconds)
            together = calls_per_s(node, ["one", "other"], seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report("shares_kernel_tasks_on_half_the_sms", together, "calls/s", baseline=2 * alone, bound=0.95, at_least=True,
           note="two kernel tasks whose kernels fill the device, each kept to half of its SMs, beside each other; twice what one has alone there")
    return {"alone": alone, "together": together}


def before_other_work():
    """As far as a node can be: what runs under SCHED_FIFO cannot be put into a sandbox's group."""
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
