#!/usr/bin/env python3
"""clang-tidy-16 with the checks of .clang-tidy, over the sources of the release build (tests and benchmarks left out).

A source whose text, headers and checks are those of the last clean run is not read again (build/tidy/). What differs from
the main branch comes first, then what was changed last; when the time budget, TIDY_SECONDS (300), is spent
the rest is left, and said so.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import tree

BUDGET_S = float(os.environ.get("TIDY_SECONDS", 300))
OBJECT = re.compile(r" -o (\S+)")
PRECOMPILED = re.compile(r" -Winvalid-pch -include \S+")  # g++'s, which clang cannot read
FINDING = re.compile(r"^(/\S+?):(\d+):\d+: (?:warning|error): (.*)$", re.MULTILINE)


def sources(root, build):
    """{source: its entry of compile_commands.json} of what the release build compiles; one where it is compiled for
    several instruction sets, because reading it once is enough."""
    own = set(tree.files(root, ".cc", ".c"))
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"]).relative_to(root)
        if path in own and not tree.is_test(path):
            found[path] = entry | {"command": PRECOMPILED.sub("", entry["command"])}
    return found


def built_object(entry):
    named = OBJECT.search(entry["command"])
    return named.group(1) if named else None


def headers_by_object(root, build):
    """{object: own headers it was built from}, from ninja's log of the last build; empty where nothing was built."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True).stdout
    found, current = {}, None
    for line in listing.splitlines():
        if line.startswith("    "):
            path = os.path.normpath(os.path.join(build, line.strip()))
            if path.startswith(f"{root}/"):
                current.append(path)
        elif ": #deps" in line:
            current = found.setdefault(line.split(": #deps")[0], [])
    return found


def digest(root, command, paths):
    state = hashlib.sha256((root / ".clang-tidy").read_bytes() + command.encode())
    for path in sorted(paths):
        state.update(path.encode() + pathlib.Path(path).read_bytes())
    return state.hexdigest()


def by_age(root):
    """{source: rank}: what differs from the main branch, then what was changed last. Nothing where there is no history."""
    ranks = {}
    for command in (["diff", "--name-only", "origin/main..."], ["log", "--format=", "--name-only"]):
        listing = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True)
        for name in listing.stdout.splitlines():
            ranks.setdefault(pathlib.Path(name), len(ranks))
    return ranks


def tidy(root, commands, source, stamp):
    """Problems of one source; a clean one leaves `stamp` behind. `commands`: the folder of compile_commands.json."""
    run = subprocess.run(["clang-tidy-16", "--quiet", "-p", commands, root / source], capture_output=True, text=True)
    problems = [f"{pathlib.Path(path).relative_to(root)}:{line}: {what}" if path.startswith(f"{root}/")
                else f"{source}: {path}:{line}: {what}" for path, line, what in FINDING.findall(run.stdout)]
    if run.returncode != 0 and not problems:
        problems = [f"{source}: clang-tidy-16 failed: {(run.stdout + run.stderr).strip()[-400:]}"]
    if not problems and stamp:
        stamp.touch()
    return problems


def check(root, build=None, budget_s=BUDGET_S):
    root = root.resolve()
    build = build or root / "build"
    if not (build / "compile_commands.json").is_file():
        return [f"{build}: not configured; run `make build`"]
    stamps = build / "tidy"
    stamps.mkdir(exist_ok=True)
    headers = headers_by_object(root, build)
    entries = sources(root, build)
    (stamps / "compile_commands.json").write_text(json.dumps(list(entries.values())))

    work = {}  # source -> stamp, or None where the headers are not known
    for source, entry in entries.items():
        known = headers.get(built_object(entry))
        stamp = stamps / digest(root, entry["command"], {str(root / source), *known}) if known else None
        if not stamp or not stamp.exists():
            work[source] = stamp
    ranks = by_age(root)
    order = sorted(work, key=lambda source: (ranks.get(source, len(ranks)), str(source)))

    deadline = time.monotonic() + budget_s
    left = []

    def one(source):
        if time.monotonic() > deadline:
            left.append(source)
            return []
        return tidy(root, stamps, source, work[source])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = sorted({problem for found in pool.map(one, order) for problem in found})
    if left:
        print(f"note: {len(left)} of {len(order)} sources not read within {budget_s:.0f} s", file=sys.stderr)
    return problems


if __name__ == "__main__":
    tree.main(check, __doc__)
