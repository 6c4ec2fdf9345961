"""What the shim adds to the driver's calls, to a program's start, and to a hand-off at the gate: against a driver that does
nothing, because nanoseconds cannot be seen beside one that does something."""

import os

from bench.measure import BUILD, report, run_json

SHIM = (BUILD / "lib/libfairlead-shim.so").resolve()
PROGRAM = BUILD / "bin/shim-bench"
# As root before the computer's other work: what a scheduler does to a loop of nanoseconds is not the shim's.
FIRST = ["chrt", "-f", "3"] if os.geteuid() == 0 else []
CAP = 1 << 39  # so that queries and allocations go the whole way


def report_added(numbers, name, what, bound):
    report(f"shim_{what}", numbers[f"{name}_added"], "ns", bound=bound,
           note=f"added; bare {numbers[f'{name}_bare']:.1f} ns, with the shim {numbers[f'{name}_shim']:.1f} ns")


def calls():
    numbers = run_json(*FIRST, "env", f"LD_PRELOAD={SHIM}", f"FAIRLEAD_SHIM_MEMORY_CAP={CAP}", PROGRAM, "calls")
    report_added(numbers, "launch", "launch", 5)
    report_added(numbers, "launch_2_threads", "launch_2_threads", 5)
    report_added(numbers, "launch_and_wait", "launch_and_wait", None)
    report_added(numbers, "memory_query", "memory_query", 20)
    for live in (0, 1000, 100000):
        report_added(numbers, f"allocate_and_free_{live}", f"allocate_and_free_{live}_live", 150)


def start():
    numbers = run_json(PROGRAM, "start", SHIM)
    milliseconds = {name: value / 1e3 for name, value in numbers.items()}
    bare, alone, joined = (milliseconds[f"start_{kind}_of_1"] for kind in ("bare", "shim", "node"))
    report("shim_start", alone - bare, "ms", bound=2, note=f"added from exec to exit; bare {bare:.2f} ms")
    report("shim_start_with_node", joined - bare, "ms", bound=2, note="and registered with a node")
    report("shim_start_8_at_once", milliseconds["start_shim_of_8"], "ms", baseline=milliseconds["start_bare_of_8"],
           bound=1.5, note=f"eight processes on {os.cpu_count()} cores beside the same eight without the shim")


def gate():
    numbers = run_json(*FIRST, PROGRAM, "gate", SHIM)
    report("shim_gate_hand_off", numbers["gate_hand_off"], "us", bound=50,
           note="from one process opening the gate to a launch in another going on")
    note = "a place's grant to the launch, beside a token sent over TCP to a process that waits for it"
    report("shim_grant_to_launch", numbers["gate_hand_off"], "us", baseline=numbers["tcp_hand_off"], bound=1, note=note)
    report("shim_grant_to_launch_p99", numbers["gate_hand_off_p99"], "us", baseline=numbers["tcp_hand_off_p99"], bound=1,
           note=note)


KERNEL_NS = 10_000


def leash():
    numbers = run_json(*FIRST, PROGRAM, "leash", SHIM)
    report("shim_leash", numbers["launch_leash_added"], "ns",
           note=f"added to a launch of a process that needs places; without a leash {numbers['launch_places']:.1f} ns")
    report("shim_leash_of_10_us", 100 * numbers["launch_leash_added"] / KERNEL_NS, "%", bound=2,
           note="of a kernel of 10 us; what the driver takes for an event every twelfth kernel is not in it")


def main():
    calls()
    start()
    gate()
    leash()
