"""Places with real processes on the software GPU: what instances have of what they were promised, what a leash costs, what small clients
gain side by side, and what a reserved function misses beside others. As root the programs run before the computer's other work
(SCHED_FIFO): a request is missed, too, where the program had no processor.

The rows are those of `fairlead sim shares` (docs/explanation/pacer.md), live. `tools/bench shares --minutes 10 --seeds 5` is the long run;
by default each row takes 20 s, with one seed."""

import os
import statistics

from bench import shares_cut
from bench.measure import BUILD, report, run_json

FIRST = ["chrt", "-f", "3"] if os.geteuid() == 0 else []
PROGRAM = BUILD / "bin/paced-bench"
SECONDS = 20
REQUESTS = (40, 30, 25)


def run(*words):
    return run_json(*FIRST, PROGRAM, *words, timeout=float(words[-1]) + 300)


def delivered(seconds, seeds):
    for kernel_us, most, bound in ((300, "0.4", 0.99), (1900, "2", 0.97)):
        runs = [run("delivered", kernel_us, *REQUESTS, seconds) for _ in range(seeds)]
        numbers = min(runs, key=lambda one: one["worst"])
        report(f"shares_delivered_{most}_ms", numbers["worst"], "of the request", bound=bound, at_least=True,
               note=f"worst of three ({', '.join(map(str, REQUESTS))} %) in any second of {seeds} x {seconds} s; frame "
                    f"{numbers['frame_ms']:.1f} ms, {numbers['late']:.0f} frames late, "
                    f"{'SCHED_FIFO' if numbers['is_realtime'] else 'no real time'}")
    numbers = run("deep", seconds)
    report("shares_delivered_beside_300_launches", numbers["worst_0"], "of the request", bound=0.97, at_least=True,
           note=f"50 % beside one of 25 % that launches 300 kernels ahead; that one {numbers['worst_1']:.3f}")


def leash():
    numbers = run("leash", 2)
    for us in (10, 100, 300):
        report(f"shares_leash_{us}_us", numbers[f"with_{us}"], "kernels/s", baseline=numbers[f"without_{us}"], bound=0.98,
               at_least=True, note=f"kernels of {us} us, a hundred ahead, with a leash and without")


def small(seconds):
    numbers = run("small", seconds / 2)
    report("shares_small_clients", numbers["side_by_side"], "kernels/s", baseline=numbers["in_turns"], bound=4.1, at_least=True,
           note="eight clients of 12 % side by side under MPS with places, and the same eight in turns")


def objectives(seconds, seeds):
    runs = [run("eight", seed, seconds) for seed in range(1, seeds + 1)]
    for kind, objective_ms in (("resnet", 69), ("rnnt", 500), ("bert", 400)):
        report(f"shares_eight_{kind}_missed", statistics.mean(one[f"{kind}_missed_percent"] for one in runs), "% of requests", bound=1,
               note=f"the paper's eight at 70 % of their requests, within {objective_ms} ms; "
                    f"{sum(one[f'{kind}_requests'] for one in runs):.0f} requests")


def reserved(seconds, seeds):
    runs = [run("reserved", seed, seconds) for seed in range(1, seeds + 1)]
    report("shares_reserved_missed", statistics.mean(one["reserved_missed_percent"] for one in runs), "% of requests", bound=1,
           note=f"34 % of the GPU beside four best-effort instances, within 100 ms; "
                f"{sum(one['reserved_requests'] for one in runs):.0f} requests")
    report("shares_best_effort", statistics.mean(one["best_effort_share"] for one in runs), "of the SMs", bound=0.60, at_least=True,
           note="what those four had")
    report("shares_best_effort_gap", max(one["gap_percent"] for one in runs), "% of a second", bound=4,
           note="the most that one of the three of 50 % had more than another, in any second")


def main(seconds=SECONDS, seeds=1):
    shares_cut.cut(seconds, seeds)
    shares_cut.narrow(seconds)
    shares_cut.halves(seconds)
    reserved(seconds, seeds)
    objectives(seconds, seeds)
    delivered(seconds, seeds)
    leash()
    small(seconds)
