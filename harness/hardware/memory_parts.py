"""Parts of tools/hardware-check about device memory: the back ends that move it, and starts while it is short.

A real GPU is made small by a process that holds the rest (Setting.only_free), a software GPU by its settings.
"""

import collections
import threading

from harness.hardware.setting import FUNCTIONS, MIB, Unexpected, invoke
from harness.node import REPOSITORY, NodeFailed

BACKENDS = ("vmm", "uvm", "checkpoint")
SMALL_GPU = {"SOFTGPU_PROFILE": "v100-16", "SOFTGPU_MEMORY_SCALE": "128"}  # 128 MiB
# MiB free and MiB that each of two functions holds. On a real GPU contexts take some hundred MiB more.
SOFTWARE_MIB, REAL_MIB = (128, 75), (6144, 3072)
TURNS = 4


def held_mib(setting, backend):
    """Two of these exceed the memory, but where a real GPU would have to manage more memory than it has free."""
    free, each = SOFTWARE_MIB if setting.software else REAL_MIB
    return free // 6 if backend == "uvm" and not setting.software else each


def take_turns(setting, rows, node, backend):
    """Two functions called in turns, each of which finds its memory as it left it."""
    size = held_mib(setting, backend)
    for name in ("first", "second"):
        node.deploy(name, FUNCTIONS / "hoard", MemorySize=10240, Timeout=120, Tags={"gpu:memory-mib": str(size + size // 16)})
        invoke(node, name, do="hold", mib=size)
    seconds, lost, starts = collections.defaultdict(list), 0, set()
    for turn in range(TURNS):
        name = ("first", "second")[turn % 2]
        for kind in ("after the other", "again"):
            _, start, elapsed = invoke(node, name, do="work", launches=1, seconds=0)
            seconds[kind].append(elapsed)
            starts.add(start)
        checked, _, _ = invoke(node, name, do="check")
        lost += len(checked["lost"]) + (checked["blocks"] != 1)
    rows.expect_equal(f"{backend}: MiB lost in {TURNS} turns", lost, 0)
    rows.record(f"{backend}: kinds of start", ", ".join(sorted(starts)))
    rows.record(f"{backend}: call after the other function / call again", round(min(seconds["after the other"]) /
                                                                               min(seconds["again"]), 2))
    counters = node.status()["counters"]
    rows.expect_equal(f"{backend}: cold starts", counters["cold_starts"], 2)
    rows.expect_equal(f"{backend}: swaps that failed", counters["memory"]["swap_failures"], 0)
    if backend != "uvm":
        rows.expect_between(f"{backend}: times that memory left", counters["memory"]["swap_outs"], 1, None)


def try_backend(setting, rows, backend):
    free, _ = SOFTWARE_MIB if setting.software else REAL_MIB
    try:
        with setting.only_free(free * MIB), setting.node("--slots", "1", "--memory-backend", backend, "--host-memory", "8GiB",
                                                         gpu=SMALL_GPU) as node:
            take_turns(setting, rows, node, backend)
    except NodeFailed as error:
        if backend == "checkpoint" and "checkpoint" in str(error):  # a driver before 570, which the node refuses
            rows.skip(f"{backend}: the node starts", str(error).strip().splitlines()[-1])
        else:
            raise


def memory(setting, rows):
    if not (setting.build / "lib/libfairlead-shim.so").is_file():
        return rows.expect("the shim", "not built", "lib/libfairlead-shim.so", False)
    for backend in BACKENDS:
        try:
            try_backend(setting, rows, backend)
        except Exception as error:  # the back ends do not need each other
            rows.expect(f"{backend}: two functions in turns", f"{type(error).__name__}: {error}"[-400:], "no error", False)


# Shares of memory that functions take while they start; together 1.8 times what there is. The node is told none of it.
SHARES = (16, 40, 24, 32, 24, 40, 32, 48)
OVERLOAD = 1.8
# MiB free, and how many of them count: contexts, which cannot leave, take the rest of a real GPU's.
PRESSED_SOFTWARE_MIB, PRESSED_REAL_MIB = (144, 144), (8192, 5120)
CALLERS = 4


class Callers:
    """Threads that call functions in turns, each starting with another one, and note every failure."""

    def __init__(self, node, names):
        self.node, self.names = node, names
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.calls, self.wrong, self.answers = 0, [], {}

    def run(self, seconds):
        threads = [threading.Thread(target=self.call_until_stopped, args=(number,)) for number in range(CALLERS)]
        for thread in threads:
            thread.start()
        self.stop.wait(seconds)
        self.stop.set()
        for thread in threads:
            thread.join()

    def call_until_stopped(self, number):
        while not self.stop.is_set():
            number += 3  # shares no divisor with the number of functions, so that every one has its turn
            name = self.names[number % len(self.names)]
            try:
                answer, _, _ = invoke(self.node, name, n=64)
                right = self.answers.setdefault(name, answer["score"]) == answer["score"]
                problem = None if right else f"{name}: {answer['score']}, and {self.answers[name]} before"
            except (Unexpected, OSError) as error:
                problem = str(error)
            with self.lock:
                self.calls += 1
                self.wrong += [problem] if problem else []


def small_profile(setting):
    """Settings of a software GPU with that little memory, where contexts take nothing."""
    text = (REPOSITORY / "softgpu/profiles/v100-16.profile").read_text()
    path = setting.folder / "small.profile"
    path.write_text(text.replace("context_mib = 300", "context_mib = 0").replace("memory_mib = 16384",
                                                                                 f"memory_mib = {PRESSED_SOFTWARE_MIB[0]}"))
    return {"SOFTGPU_PROFILE": str(path)}


def pressure(setting, rows):
    """Functions of 1.8 times the memory, started, evicted and started again beside each other: no call fails."""
    free, counted = PRESSED_SOFTWARE_MIB if setting.software else PRESSED_REAL_MIB
    seconds = 5 if setting.quick else 25
    with setting.only_free(free * MIB), setting.node("--slots", "2", "--pool", "5", "--over-run", "0.25",
                                                     gpu=small_profile(setting)) as node:
        names = [f"f{number}" for number in range(len(SHARES))]
        for name, share in zip(names, SHARES):
            mib = int(share * OVERLOAD * counted / sum(SHARES))
            node.deploy(name, node.sample("needle"), {"FUNCTION_MEMORY_MIB": str(mib), "FUNCTION_INIT_PAUSE_MS": "30"})
        callers = Callers(node, names)
        callers.run(seconds)
        counters = node.status()["counters"]
    first = f"{len(callers.wrong)} of {callers.calls}, the first: {callers.wrong[0][-400:]}" if callers.wrong else 0
    rows.expect("calls that failed", first, "0", not callers.wrong)
    rows.expect_equal("failed invocations", counters["failed"], 0)
    rows.expect_between("cold starts / functions", counters["cold_starts"] / len(names), 1.01, None)
    moves = counters["memory"]["swap_outs"] + counters["memory"]["room_granted"]
    rows.expect_between("times that memory was made free", moves, 1, None)
