#!/usr/bin/env python3
"""softgpu/tools/coverage.py FOLDER [--check]: writes docs/reference/driver-coverage.md and docs/reference/runtime-coverage.md from the built
libraries in FOLDER, or fails when a page is not current.

What a symbol of the tables (driver/symbols.tsv, cudart/symbols.txt) is, the library says: its fallbacks are weak, so a
weak symbol is absent and a strong one is done, unless driver/partial.tsv states what is missing of it.

Example: ninja -C build softgpu_cudart && softgpu/tools/coverage.py build/lib/softgpu
"""
import argparse
import csv
import pathlib
import re
import subprocess
import sys

SOFTGPU = pathlib.Path(__file__).resolve().parent.parent
DOCS = SOFTGPU.parent / "docs/reference"

# Title and the names that belong under it; the first match decides.
DRIVER_GROUPS = (
    ("Graphs", r"Graph(?!ics)|UserObject"),
    ("Graphics and external memory", r"Graphics|External|EGL|VDPAU|^cuGL|Semaphore"),
    ("Green contexts and resources", r"GreenCtx|DevResource|DevSm|ResourceDesc$"),
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
    ("Checkpoints of processes", r"^cuCheckpoint"),
    ("Other", r""),
)
RUNTIME_GROUPS = (
    ("Registration", r"^__cuda(Register|Unregister|Init|P|Get)"),
    ("Graphs", r"Graph(?!ics)|UserObject"),
    ("Graphics and external memory", r"Graphics|External|EGL|VDPAU|^cudaGL|NvSci"),
    ("Arrays, textures, surfaces", r"Array|Texture|Surface|ChannelDesc"),
    ("Devices", r"Device|^cudaCtx"),
    ("Errors, versions, entry points", r"Error|Version|Entry|Export|Logs|Profiler|ProcAddress"),
    ("Streams", r"^cudaStream|^cudaThreadExchange"),
    ("Events", r"^cudaEvent|IpcGetEvent|IpcOpenEvent"),
    ("Copies and fills", r"^cudaMem(cpy|set)|Symbol"),
    ("Launches, functions, libraries", r"Launch|Func|Kernel|Occupancy|Library"),
    ("Memory", r""),
)

DRIVER_INTRODUCTION = """# Coverage of the driver's symbols
Every symbol of CUDA 13.0's driver library in the [software GPU](../how-to/softgpu.md). **done**: behaves as documented by NVIDIA.
**partial**: what is missing is said. **absent**: returns `CUDA_ERROR_NOT_SUPPORTED` and is counted. Written by
`softgpu/tools/coverage.py` from the built library; a test keeps it current.
"""
RUNTIME_INTRODUCTION = """# Coverage of the runtime's symbols
Every symbol of CUDA 13.0's runtime library in [ours](../how-to/softgpu.md). **done**: does what the driver can do for it, see
[the driver's table](driver-coverage.md). **absent**: returns `cudaErrorNotSupported`. Written by
`softgpu/tools/coverage.py` from the built library; a test keeps it current.
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


def driver_rows(library):
    """(symbol, state, version, limitation) in the table's order, and what is wrong with partial.tsv."""
    strong = strong_symbols(library)
    partial = {row["symbol"]: row["limitation"] for row in read_tsv(SOFTGPU / "driver" / "partial.tsv")}
    rows = []
    for row in read_tsv(SOFTGPU / "driver" / "symbols.tsv"):
        symbol = row["symbol"]
        state = "absent" if symbol not in strong else "partial" if symbol in partial else "done"
        rows.append((symbol, state, version_text(row["since"]), partial.get(symbol, "")))
    there = {row[0] for row in rows if row[1] == "partial"}
    return rows, [f"partial.tsv: {symbol} is absent or no symbol" for symbol in partial if symbol not in there]


def runtime_rows(library):
    strong = strong_symbols(library)
    names = (SOFTGPU / "cudart" / "symbols.txt").read_text().split()
    return [(name, "done" if name in strong else "absent") for name in names]


def page(introduction, groups, rows, columns):
    """The introduction, a table of counts, and a table for each group. Columns are those after symbol and state."""
    sections = {title: [] for title, _ in groups}
    for row in rows:
        title = next(title for title, names in groups if re.search(names, row[0]))
        sections[title].append(row)
    states = [state for state in ("done", "partial", "absent") if any(row[1] == state for row in rows)]
    lines = [introduction, f"| group | {' | '.join(states)} |", "| --- |" + " --- |" * len(states)]
    for title, some in [*sections.items(), ("all", rows)]:
        counts = [str(sum(row[1] == state for row in some)) for state in states]
        lines.append(f"| {title} | {' | '.join(counts)} |")
    for title, some in sections.items():
        lines += ["", f"## {title}", "| " + " | ".join(["symbol", "state", *columns]) + " |",
                  "| --- |" + " --- |" * (1 + len(columns))]
        lines += [f"| `{row[0]}` | " + " | ".join(row[1:]) + " |" for row in some]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="the built libraries, as in build/lib/softgpu")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is not current")
    options = parser.parse_args()
    rows, problems = driver_rows(options.folder / "libcuda.so.1")
    pages = {
        "driver-coverage.md": page(DRIVER_INTRODUCTION, DRIVER_GROUPS, rows, ["since", "what is missing"]),
        "runtime-coverage.md": page(RUNTIME_INTRODUCTION, RUNTIME_GROUPS,
                                    runtime_rows(options.folder / "libcudart.so.13"), []),
    }
    for name, text in pages.items():
        path = DOCS / name
        if not options.check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            problems.append(f"docs/reference/{name} is not current; run softgpu/tools/coverage.py {options.folder}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
