"""Places with real processes on the software GPU: what instances have of what they were promised, what a leash costs, and what small
clients gain side by side. As root the programs run before the computer's other work (SCHED_FIFO): a request is missed, too, where the
program had no processor."""

import os

from bench.measure import BUILD, report, run_json

FIRST = ["chrt", "-f", "3"] if os.geteuid() == 0 else []
PROGRAM = BUILD / "bin/paced-bench"
SECONDS = 20


def run(*words):
    return run_json(*FIRST, PROGRAM, *words)


def delivered():
    for kernel_us, most, bound in ((300, "0.4", 0.99), (1900, "2", 0.97)):
        numbers = run("delivered", kernel_us, SECONDS)
        report(f"shares_delivered_{most}_ms", numbers["worst"], "of the request", bound=bound, at_least=True,
               note=f"worst of three (40, 30, 25 %) in any second of {SECONDS}; frame {numbers['frame_ms']:.1f} ms, "
                    f"{numbers['late']:.0f} frames late, {'SCHED_FIFO' if numbers['is_realtime'] else 'no real time'}")
    numbers = run("deep", SECONDS)
    report("shares_delivered_beside_300_launches", numbers["worst_0"], "of the request", bound=0.97, at_least=True,
           note=f"50 % beside one of 25 % that launches 300 kernels ahead; that one {numbers['worst_1']:.3f}")


def leash():
    numbers = run("leash", 2)
    for us in (10, 100, 300):
        report(f"shares_leash_{us}_us", numbers[f"with_{us}"], "kernels/s", baseline=numbers[f"without_{us}"], bound=0.98,
               at_least=True, note=f"kernels of {us} us, a hundred ahead, with a leash and without")


def small():
    numbers = run("small", SECONDS / 2)
    report("shares_small_clients", numbers["side_by_side"], "kernels/s", baseline=numbers["in_turns"], bound=4.1, at_least=True,
           note="eight clients of 12 % side by side under MPS with places, and the same eight in turns")


def main():
    delivered()
    leash()
    small()
