#!/usr/bin/env python3
"""The paper's figure 4: copies of fft whose memory is 1.5 x the device's, called in turn, for each way of moving memory.

    bench/figure4/figure4.py --build build                     on the software GPU, in modelled time
    bench/figure4/figure4.py --build build --real --copy-mib N   on a real GPU, in time that events measured

On the software GPU an execution is what the device's account of modelled time says (the kernels, and the migrations of
managed pages that they caused), so it does not depend on what else the computer does; swaps are given in modelled time,
too. On a real GPU managed memory beyond what is free is refused unless --oversubscribe-managed says so: it can hang the
card. Contents are checked at every call, which is after every move. Exit status 1: contents were wrong, or a bound was
missed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import shim_node  # noqa: E402

MODES = {
    "fits": ("vmm", "plain"),
    "uvm plain": ("uvm", "plain"),
    "uvm advise": ("uvm", "advise"),
    "uvm prefetch": ("uvm", "prefetch"),
    "uvm prefetch + swap": ("uvm", "prefetch-swap"),
    "vmm": ("vmm", "plain"),
}
MOST_OVER_FITS = 1.05
MOST_OF_PLAIN = 0.70
LEAST_OF_LINK = 0.80


class Copies:
    """So many programs under the shim, and the node that says who is on the device."""

    def __init__(self, options, name, count, size):
        self.options, self.count = options, count
        backend, uvm = MODES[name]
        self.moves = name not in ("fits", "uvm plain", "uvm advise")
        self.folder = tempfile.mkdtemp(prefix="figure4-")
        self.environment = dict(os.environ, LD_PRELOAD=f"{options.build}/lib/libfairlead-shim.so",
                                FAIRLEAD_SHIM_SOCKET=f"{self.folder}/node", FAIRLEAD_SHIM_TOKEN="1")
        if not options.real:
            self.environment.update(
                LD_LIBRARY_PATH=f"{options.build}/lib/softgpu", SOFTGPU_HOME=f"{self.folder}/machine",
                SOFTGPU_MODE="charge", SOFTGPU_TIME_SCALE=str(options.time_scale), SOFTGPU_PROFILE="v100-16",
                SOFTGPU_MEMORY_SCALE=str(options.memory_scale))
        self.size = size
        self.node = shim_node.Node(f"{self.folder}/node", (count + 1) * size + (count << 23), backend, uvm, self.make_room)
        self.programs, self.instances, self.resident = [], [], []
        self.moved_bytes = self.moved_ns = 0
        self.wrong = 0

    def start_one(self):
        self.programs.append(subprocess.Popen([f"{self.options.build}/bin/figure4-program", str(self.size)], text=True,
                                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment))
        self.instances.append(self.node.accept())
        self.resident.append(len(self.instances) - 1)

    def make_room(self, asking, size):
        """The least recently called of the others leaves."""
        for index in self.resident:
            if self.instances[index] is not asking:
                self.resident.remove(index)
                return self.note(self.instances[index].swap_out()) in ("done", "partly")
        return False

    def note(self, moved):
        self.moved_bytes += moved[1]
        self.moved_ns += moved[2]
        return moved[0]

    def bring(self, index):
        if not self.moves:
            return
        if index in self.resident:
            self.resident.remove(index)
            self.resident.append(index)
            return
        while len(self.resident) >= self.fit:
            self.note(self.instances[self.resident.pop(0)].swap_out())
        result = self.note(self.instances[index].swap_in())
        if result not in ("done", "nothing"):
            raise SystemExit(f"copy {index} did not return: {result}")
        self.resident.append(index)

    def call(self, index):
        program = self.programs[index]
        program.stdin.write("call\n")
        program.stdin.flush()
        words = program.stdout.readline().split()
        if len(words) != 2:
            raise SystemExit(f"copy {index}: {' '.join(words) or 'ended'}")
        self.wrong += int(words[1])
        return float(words[0])

    def modelled_ms(self):
        """Of all kernels and all copies so far, by the device's account."""
        lines = subprocess.run([f"{self.options.build}/bin/softgpu", "time"], text=True, stdout=subprocess.PIPE,
                               env=self.environment | {"LD_PRELOAD": ""}, check=True).stdout.splitlines()[1:]
        pids = {str(program.pid) for program in self.programs}
        ours = [words for words in map(str.split, lines) if words[1] in pids]
        return sum(float(words[3]) for words in ours), sum(float(words[5]) for words in ours)

    def run(self):
        self.fit = max(1, self.options.fit)
        for index in range(self.count):
            if self.moves:
                while len(self.resident) >= self.fit:
                    self.note(self.instances[self.resident.pop(0)].swap_out())
            self.start_one()
            self.call(index)
        self.moved_bytes = self.moved_ns = 0
        before = (0, 0) if self.options.real else self.modelled_ms()
        events_ms = 0
        for _ in range(self.options.calls):
            for index in range(self.count):
                self.bring(index)
                events_ms += self.call(index)
        calls = self.options.calls * self.count
        if self.options.real:
            return events_ms / calls, self.moved_ns / 1e6 / calls
        after = self.modelled_ms()
        return (after[0] - before[0]) / calls, (after[1] - before[1]) / calls

    def close(self):
        # Those whose memory is away would wait for it before they end.
        for program in self.programs:
            program.kill()
            program.wait()
        self.node.close()
        shutil.rmtree(self.folder)


def measure(options, name):
    copies = Copies(options, name, min(options.fit, options.copies) if name == "fits" else options.copies,
                    options.copy_mib << 20)
    try:
        execution_ms, copying_ms = copies.run()
        return {"mode": name, "execution_ms": execution_ms, "copying_ms": copying_ms, "wrong_words": copies.wrong,
                "moved_bytes": copies.moved_bytes}
    finally:
        copies.close()


def bandwidth(options):
    """One copy goes out and comes back; bytes per modelled second (or real second) of copying."""
    copies = Copies(options, "vmm", 1, options.bandwidth_mib << 20)
    try:
        copies.start_one()
        copies.call(0)
        instance = copies.instances[0]
        moves = [(instance.swap_out(), instance.swap_in()) for _ in range(2)]  # the first pins the arena
        out, back = moves[-1]
        if (out[0], back[0]) != ("done", "done"):
            raise SystemExit(f"the copy did not move: {out[0]}, {back[0]}")
        copies.call(0)
        scale = 1 if options.real else options.time_scale
        return {"out_gb_s": out[1] / out[2] * scale, "in_gb_s": back[1] / back[2] * scale, "wrong_words": copies.wrong}
    finally:
        copies.close()


def failures(rows, link, options):
    by_mode = {row["mode"]: row for row in rows}
    for row in rows:
        if row["wrong_words"]:
            yield f"{row['mode']}: {row['wrong_words']} words were not what was left there"
    for name in ("uvm prefetch + swap", "vmm"):
        if name not in by_mode:
            continue
        for other, bound in (("fits", MOST_OVER_FITS), ("uvm plain", MOST_OF_PLAIN)):
            if other in by_mode and by_mode[name]["execution_ms"] > bound * by_mode[other]["execution_ms"]:
                yield f"{name}: {by_mode[name]['execution_ms'] / by_mode[other]['execution_ms']:.2f} x {other}, at most {bound}"
    for way in ("out_gb_s", "in_gb_s"):
        if link[way] < LEAST_OF_LINK * options.link_gb_s:
            yield f"swap {way}: {link[way]:.1f} of a link of {options.link_gb_s}"
    if link["wrong_words"]:
        yield "the bandwidth's copy came back wrong"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="the build folder")
    parser.add_argument("--copies", type=int, default=16)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--fit", type=int, default=6, help="how many copies the device has room for beside all contexts")
    parser.add_argument("--copy-mib", type=int, default=24, help="memory of one copy")
    parser.add_argument("--memory-scale", type=int, default=64, help="software GPU: the device's 16 GiB divided by this")
    parser.add_argument("--time-scale", type=float, default=0.1, help="software GPU: what modelled time is multiplied by")
    parser.add_argument("--bandwidth-mib", type=int, default=128)
    parser.add_argument("--bandwidth-time-scale", type=float, default=40, help="large: the link is what limits")
    parser.add_argument("--link-gb-s", type=float, default=12)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--oversubscribe-managed", action="store_true")
    parser.add_argument("--modes", default=",".join(MODES), help="some of: " + ", ".join(MODES))
    parser.add_argument("--json", help="file for the numbers")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    return options


def main():
    options = parse()
    names = [name for name in options.modes.split(",") if name in MODES]
    if options.real and not options.oversubscribe_managed:
        names = [name for name in names if not name.startswith("uvm")]
        print("managed memory beyond the card's is left out (--oversubscribe-managed)")
    rows = []
    print(f"{'':22}{'execution ms':>14}{'of fits':>9}{'moved MiB':>11}{'copying ms':>12}{'wrong':>7}")
    for name in names:
        rows.append(measure(options, name))
        row = rows[-1]
        ratio = row["execution_ms"] / rows[0]["execution_ms"]
        print(f"{name:22}{row['execution_ms']:14.3f}{ratio:9.2f}{row['moved_bytes'] >> 20:11}{row['copying_ms']:12.3f}"
              f"{row['wrong_words']:7}", flush=True)
    scale, options.time_scale = options.time_scale, options.bandwidth_time_scale
    link = bandwidth(options)
    options.time_scale = scale
    print(f"swap out {link['out_gb_s']:.1f} GB/s, in {link['in_gb_s']:.1f} GB/s, of a link of {options.link_gb_s} GB/s")
    missed = list(failures(rows, link, options))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "rows": rows, "bandwidth": link, "missed": missed}, file, indent=1)
    for line in missed:
        print("MISSED:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
