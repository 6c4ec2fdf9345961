"""One function that is promised 34 % of a GPU, beside everything else that floods it, for as long as one likes:

  python3 -m bench.flooded_bench --minutes 60

The reserved function gets calls at random instants, 10 ms of work each in ten kernels, at 70 % of what it is promised; each is wanted within
100 ms. Beside it, on the same GPU and node, callers who never pause: programs with kernels of 1 ms, one that launches 300 kernels and does not
wait, kernel tasks with kernels of 50 ms and with kernels of a tenth of the SMs, a sample application; and a program that crashes at every call.
Said at the end: calls that were late, over all and in the worst minute; what those had that always have work, the least beside the
most; how much of the GPU's time nobody used; and how far `fairlead status` was from what the node had charged.

On the software GPU in charge mode kernels take their modelled time and no processor. As root everything runs before the computer's other work, at
nice -10, since a call is late, too, where the node had no processor."""

import argparse
import collections
import json
import pathlib
import random
import sys
import tempfile
import threading
import time

from bench import shares_cut
from bench.measure import BUILD, report
from harness.node import Node

ROOT = pathlib.Path(__file__).resolve().parents[1]
OBJECTIVE_S = 0.100
REQUEST_PERCENT = 34
CALL = {"layers": 10, "ms": 10, "sms": 100}
RATE_PER_S = 0.7 * REQUEST_PERCENT / 100 / 0.010
MODEL = {"layers": 40, "ms": 40, "sms": 100}
WARM_UP_S = 90  # for so long who comes first may be ahead by T of fair queueing (`over-run`, 8 s of GPU time)
MINUTE_S = 60
CRASHES_EVERY_S = 2
EQUALS = ("model", "other-model", "ahead", "long-task", "other-long-task")  # who always have work, as wide as the GPU


class Minute:
    """What was seen in one minute."""

    def __init__(self):
        self.calls = self.late = self.errors = 0


class Reserved:
    """Calls at random instants, each from a thread of its own. A call's time begins when it was to be made."""

    def __init__(self, node, seed):
        self.node, self.chance = node, random.Random(seed)
        self.minutes, self.lock = collections.defaultdict(Minute), threading.Lock()
        self.took, self.threads = [], []

    def call(self, minute, at):
        try:
            status, headers, _ = self.node.invoke("reserved", json.dumps(CALL))
            is_answer = status == 200 and "X-Amz-Function-Error" not in headers
        except OSError:
            is_answer = False
        took = time.monotonic() - at
        with self.lock:
            counted = self.minutes[minute]
            counted.calls += 1
            counted.errors += not is_answer
            counted.late += not is_answer or took > OBJECTIVE_S
            self.took.append(took)

    def until(self, end):
        began = due = time.monotonic()
        while due < end:
            time.sleep(max(0, due - time.monotonic()))  # sleep: until the call is due
            thread = threading.Thread(target=self.call, args=(int((due - began) // MINUTE_S), due))
            thread.start()
            self.threads = [one for one in self.threads if one.is_alive()] + [thread]
            due += self.chance.expovariate(RATE_PER_S)
        for thread in self.threads:
            thread.join()


class Flood(shares_cut.Load):
    """Callers who never pause. `crashes` is called now and then, since every call costs a start of the interpreter."""

    def __init__(self, node, calls):
        super().__init__(node, [])
        self.answers = collections.Counter()
        self.threads = [threading.Thread(target=self.ask, args=(name, payload)) for name, payload, callers in calls for _ in range(callers)]
        self.threads.append(threading.Thread(target=self.crash))

    def ask(self, name, payload):
        while not self.stop.is_set():
            try:
                status, headers, _ = self.node.invoke(name, json.dumps(payload))
            except OSError:
                continue
            self.answers[name, "answered" if status == 200 and "X-Amz-Function-Error" not in headers else "failed"] += 1

    def crash(self):
        while not self.stop.wait(CRASHES_EVERY_S):
            self.node.invoke("crashes", json.dumps({"do": "crash"}))


def deploy(node, folder):
    """What the flood is to call: (function, payload, callers)."""
    node.deploy("reserved", BUILD / "functions/stand-in", Timeout=60,
                Tags={"gpu:quota-request": str(REQUEST_PERCENT), "gpu:objective-ms": str(int(OBJECTIVE_S * 1000))})
    for name in ("model", "other-model"):
        node.deploy(name, BUILD / "functions/stand-in", Timeout=60)
    node.deploy("ahead", ROOT / "tests/functions/launcher", Timeout=60)
    for name in ("long-task", "other-long-task"):
        node.deploy(name, shares_cut.task(folder / name, 50, 1, 256_000), Timeout=60)
    node.deploy("narrow-task", shares_cut.task(folder / "narrow-task", 2 * shares_cut.NARROW_BLOCKS / 80, 10, shares_cut.NARROW_BLOCKS), Timeout=60)
    node.deploy("application", BUILD / "functions/fft", Timeout=60)
    node.deploy("crashes", ROOT / "tests/functions/misbehave", Timeout=60)
    return [("model", MODEL, 2), ("other-model", MODEL, 2), ("ahead", {"do": "leave", "kernels": 300, "rounds": 20_000}, 2),
            ("long-task", {}, 2), ("other-long-task", {}, 2), ("narrow-task", {}, 2), ("application", {"n": 65536, "batch": 4}, 1)]


class Account:
    """What the node says of each minute, taken at its end."""

    def __init__(self, node):
        self.node, self.before, self.minutes = node, None, []

    def look(self):
        status = self.node.status()
        charged = {one["name"]: one["stats"]["service_seconds"] for one in status["functions"]}
        now = time.monotonic()
        if self.before:
            at, earlier = self.before
            used = {name: charged[name] - earlier[name] for name in charged}
            share = next(one["share"] for one in status["functions"] if one["name"] == "reserved")
            self.minutes.append({"seconds": now - at, "used": used, "said_percent": share.get("delivered_last_minute_percent")})
        self.before = (now, charged)


def minutes_of(account):
    for minute in account.minutes:
        equals = [minute["used"][name] for name in EQUALS]
        yield {"reserved_percent": 100 * minute["used"]["reserved"] / minute["seconds"], "said_percent": minute["said_percent"],
               "least_of_most": min(equals) / max(equals), "used": sum(minute["used"].values()) / minute["seconds"],
               "by_function": {name: round(used, 2) for name, used in minute["used"].items()}}


def flooded(folder, minutes, seed, options):
    with Node(BUILD, folder / "node", options=options, gpu_environment={"SOFTGPU_MODE": "charge"}) as node:
        calls = deploy(node, folder)
        with Flood(node, calls) as flood:
            Reserved(node, seed + 1).until(time.monotonic() + WARM_UP_S)
            account, reserved = Account(node), Reserved(node, seed)
            end = time.monotonic() + minutes * MINUTE_S
            caller = threading.Thread(target=reserved.until, args=(end,))
            caller.start()
            account.look()
            while time.monotonic() < end - 1:
                time.sleep(min(MINUTE_S, end - time.monotonic()))  # sleep: a minute of the measurement
                account.look()
                print(json.dumps(list(minutes_of(account))[-1]), file=sys.stderr, flush=True)
            caller.join()
        return reserved, list(minutes_of(account)), flood.answers


def main(minutes, seed, options):
    shares_cut.before_other_work()
    with tempfile.TemporaryDirectory(prefix="fairlead-flooded-") as folder:
        reserved, seen, answers = flooded(pathlib.Path(folder), minutes, seed, options)
    counted = list(reserved.minutes.values())
    calls, late = sum(one.calls for one in counted), sum(one.late for one in counted)
    worst = max(100 * one.late / one.calls for one in counted)
    took = sorted(reserved.took)
    report("flooded_reserved_missed", 100 * late / calls, "% of calls", bound=1,
           note=f"34 % of a GPU beside all else, within {OBJECTIVE_S * 1000:.0f} ms; {calls} calls in {minutes:g} minutes, {sum(one.errors for one in counted)} "
                f"not answered; worst minute {worst:.2f} %; p50 {1000 * took[len(took) // 2]:.0f} ms, p99 {1000 * took[int(0.99 * len(took))]:.0f} ms")
    least = [one["least_of_most"] for one in seen]
    report("flooded_least_of_most", sum(least) / len(least), "of the GPU time of who had most, by the minute", bound=0.9, at_least=True,
           note=f"among {', '.join(EQUALS)}; worst minute {min(least):.3f}")
    used = [one["used"] for one in seen]
    report("flooded_used", sum(used) / len(used), "of the GPU's time, charged to somebody", bound=0.95, at_least=True, note=f"worst minute {min(used):.3f}")
    apart = [abs(one["said_percent"] - one["reserved_percent"]) for one in seen if one["said_percent"] is not None]
    report("flooded_status", max(apart, default=100), "points between `status` and what was charged", bound=1,
           note="the reserved function's last minute, at worst; " + ", ".join(f"{name} {count} {what}" for (name, what), count in sorted(answers.items())))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--option", action="append", default=[], help="of `fairlead serve`, for example --option=--sharing=mps")
    chosen = parser.parse_args()
    if chosen.minutes < 1:
        parser.error(f"--minutes is {chosen.minutes:g}; at least 1, since `status` tells of the last minute")
    main(chosen.minutes, chosen.seed, chosen.option)
