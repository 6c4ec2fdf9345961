#!/usr/bin/env python3
"""softgpu/driver/coverage.py LIBCUDA [--check]: writes docs/driver-coverage.md, or fails when it is not current.

What a symbol of the table (symbols.tsv) is, the built library says: its fallbacks are weak, so a weak symbol is absent
and a strong one is done, unless partial.tsv states what is missing of it.

Example: ninja -C build softgpu_cuda && softgpu/driver/coverage.py build/lib/softgpu/libcuda.so.1
"""
import argparse
import csv
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "driver-coverage.md"

# Title and the names that belong under it; the first match decides.
GROUPS = (
    ("Graphs", r"Graph(?!ics)|UserObject"),
    ("Graphics and external memory", r"Graphics|External|EGL|VDPAU|^cuGL|Semaphore"),
    ("Green contexts and resources", r"GreenCtx|DevResource|DevSm|ResourceDesc$|DeviceGetDevResource|CtxGetDevResource"),
    ("Initialisation, errors, resolver", r"^cu(Init|DriverGet|GetError|GetProc|GetExport)"),
    ("Arrays, textures, surfaces", r"Array|Tex|Surf|TensorMap"),
    ("Memory pools and stream-ordered memory", r"MemPool|MemAllocAsync|MemFreeAsync|MemAllocFromPool"),
    ("Virtual memory and multicast",
     r"^cuMem(Address|Create|Map|Unmap|Release|SetAccess|GetAccess|Export|Import|Retain|GetAllocation|GetHandle)|Multicast"),
    ("Managed memory", r"^cuMem(AllocManaged|Prefetch|Advise|Range|Discard)|StreamAttachMem"),
    ("Devices", r"^cuDevice(?!PrimaryCtx)"),
    ("Contexts", r"^cu(Ctx|DevicePrimaryCtx)"),
    ("Modules, libraries, kernels", r"^cu(Module|Library|Kernel|Func|Link|Occupancy|Param)"),
    ("Copies and fills", r"^cuMem(cpy|set)"),
    ("Memory", r"^cu(Mem|Ipc|Pointer|Array|Mip)"),
    ("Streams", r"^cuStream|^cuThreadExchange"),
    ("Events", r"^cuEvent"),
    ("Launches", r"^cuLaunch"),
    ("Other", r""),
)

INTRODUCTION = """# Coverage of the driver's symbols
Every symbol of CUDA 13.0's driver library in the [software GPU](softgpu.md). **done**: behaves as documented by NVIDIA.
**partial**: what is missing is said. **absent**: returns `CUDA_ERROR_NOT_SUPPORTED` and is counted. Written by
`softgpu/driver/coverage.py` from the built library; a test keeps it current.
"""


def read_tsv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def strong_symbols(library):
    """Names that the library defines and that are not weak."""
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    entries = (line.split() for line in listing.splitlines())
    return {entry[-1].split("@")[0] for entry in entries if entry[-2] in "TiD"}


def version_text(since):
    return f"{int(since) // 1000}.{int(since) % 1000 // 10}"


def states(library):
    """(symbol, version, state, limitation) in the table's order, and what is wrong with partial.tsv."""
    strong = strong_symbols(library)
    partial = {row["symbol"]: row["limitation"] for row in read_tsv(HERE / "partial.tsv")}
    rows = []
    for row in read_tsv(HERE / "symbols.tsv"):
        symbol = row["symbol"]
        state = "absent" if symbol not in strong else "partial" if symbol in partial else "done"
        rows.append((symbol, version_text(row["since"]), state, partial.get(symbol, "")))
    there = {symbol for symbol, _, state, _ in rows if state == "partial"}
    problems = [f"partial.tsv: {symbol} is absent or no symbol" for symbol in partial if symbol not in there]
    return rows, problems


def page(rows):
    sections = {title: [] for title, _ in GROUPS}
    for row in rows:
        title = next(title for title, names in GROUPS if re.search(names, row[0]))
        sections[title].append(row)
    def count(some, state):
        return sum(row[2] == state for row in some)
    lines = [INTRODUCTION, "| group | done | partial | absent |", "| --- | --- | --- | --- |"]
    for title, some in [*sections.items(), ("all", rows)]:
        lines.append(f"| {title} | {count(some, 'done')} | {count(some, 'partial')} | {count(some, 'absent')} |")
    for title, some in sections.items():
        lines += ["", f"## {title}", "| symbol | since | state | what is missing |", "| --- | --- | --- | --- |"]
        lines += [f"| `{symbol}` | {since} | {state} | {limitation} |" for symbol, since, state, limitation in some]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", help="the built libcuda.so.1")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is not current")
    options = parser.parse_args()
    rows, problems = states(options.library)
    text = page(rows)
    if not options.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        problems.append(f"{PAGE.name} is not current; run softgpu/driver/coverage.py {options.library}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
