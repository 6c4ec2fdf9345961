#!/usr/bin/env python3
"""clang's -Wthread-safety over the sources that see a lock: what a lock guards is touched only while it is held.

A lock says so of itself (FL_CAPABILITY, SOFTGPU_CAPABILITY), a field names the lock that guards it, a function those that
its caller holds. A std::mutex says nothing, so product code has none. A source whose text and headers are those of the
last clean run is not read again (build/thread_safety/).
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess

import tidy
import tree

FOLDERS = ("src", "shim", "softgpu")
SAYS_NOTHING = re.compile(r"\bstd::(?:(?:shared_|recursive_|timed_)?mutex|condition_variable|(?:lock_guard|(?:scoped|unique|shared)_lock))\b")
WRAPPERS = {"src/base/mutex.h", "softgpu/mutex.h"}
SAYS = re.compile(r"\b(?:FL|SOFTGPU)_(?:GUARDED_BY|PT_GUARDED_BY|REQUIRES|REQUIRES_SHARED|EXCLUDES|ACQUIRE)\b")
NAMED = re.compile(r"\b(?!(?:const|override)\b|FL_|SOFTGPU_)(\w+)(?:\[\w*\])?(?=\(|\s+(?:const\s+|override\s+)*(?:FL|SOFTGPU)_)")
WORD = re.compile(r"\w+")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
FINDING = re.compile(r"^(/\S+?):(\d+):\d+: (?:warning|error): (.*)$", re.MULTILINE)
FLAGS = ("-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Wthread-safety-beta", "-Werror=thread-safety")
KEPT = re.compile(r"-(?:I|D|isystem|std=|f(?:no-)?(?:exceptions|rtti|threadsafe-statics)$|m\w)")


def unannotated_locks(root):
    """Where product code has a lock that clang knows nothing of."""
    for path in tree.files(root, ".h", ".cc"):
        if path.parts[0] not in FOLDERS or tree.is_test(path) or str(path) in WRAPPERS:
            continue
        for number, line in enumerate(tree.code_lines((root / path).read_text()), 1):
            found = SAYS_NOTHING.search(line)
            if found:
                yield f"{path}:{number}: {found.group()} cannot be checked; use those of base/mutex.h or softgpu/mutex.h"


class Sight:
    """What each file sees: itself and the own headers that it includes, with what locks guard there."""

    def __init__(self, root):
        self.root = root
        self.of = functools.cache(self.of)
        self.included = functools.cache(self.included)
        self.text = functools.cache(self.text)
        self.guarded = functools.cache(self.guarded)
        self.touches = functools.cache(self.touches)

    def text(self, path):
        return (self.root / path).read_text(errors="replace")

    def of(self, path):
        seen, open_ends = {path}, [path]
        while open_ends:
            at = open_ends.pop()
            for header in self.included(at) - seen:
                seen.add(header)
                open_ends.append(header)
        return seen

    def included(self, path):
        found = set()
        for name in INCLUDE.findall(self.text(path)):
            places = (path.parent / name, pathlib.Path("src") / name, pathlib.Path(name))
            found |= set([place for place in places if (self.root / place).is_file()][:1])
        return found

    def guarded(self, path):
        """Names of the file's fields and functions that say something of locks."""
        if not SAYS.search(self.text(path)):
            return set()
        code = "\n".join(line for line in tree.code_lines(self.text(path)) if not line.startswith("#"))
        declarations = (one for one in re.split("[;{}]", code) if SAYS.search(one))
        return {name for one in declarations for name in NAMED.findall(one)}

    def touches(self, path):
        """Whether such a name, of what it sees, stands in the file: nothing else of it can be wrong."""
        names = set().union(*(self.guarded(seen) for seen in self.of(path)))
        return bool(names) and not names.isdisjoint(WORD.findall(self.text(path)))


def chosen(sight, sources):
    """The sources to read: those that touch what a lock guards, and one for each header that does."""
    those = [source for source in sources if sight.touches(source)]
    seen = set().union(*(sight.of(source) for source in those))
    for source in sources:
        if any(sight.touches(header) for header in sight.of(source) - seen):
            those.append(source)
            seen |= sight.of(source)
    return those


def digest(root, command, paths):
    state = hashlib.sha256(" ".join(command).encode())
    for path in sorted(paths):
        state.update(str(path).encode() + (root / path).read_bytes())
    return state.hexdigest()


def command_of(entry):
    """The compiler's flags that change what the code means, for clang."""
    given = iter(shlex.split(entry["command"])[1:])
    kept = []
    for word in given:
        if word in ("-I", "-isystem"):
            kept += [word, next(given)]
        elif KEPT.match(word):
            kept.append(word)
    return ["clang++-16", *kept, *FLAGS, entry["file"]]


def read(root, source, command, directory, stamp):
    run = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    problems = [f"{os.path.relpath(path, root)}:{line}: {what}" for path, line, what in FINDING.findall(run.stderr)]
    if run.returncode != 0 and not problems:
        problems = [f"{source}: clang++-16 failed: {run.stderr.strip()[-400:]}"]
    if not problems:
        stamp.touch()
    return problems


def check(root, build=None):
    root = root.resolve()
    build = build or root / "build"
    if not (build / "compile_commands.json").is_file():
        return [f"{build}: not configured; run `make build`"]
    stamps = build / "thread_safety"
    stamps.mkdir(exist_ok=True)
    sight = Sight(root)
    entries = tidy.sources(root, build)
    work = []
    for source in chosen(sight, [path for path in entries if path.parts[0] in FOLDERS and path.suffix == ".cc"]):
        command = command_of(entries[source])
        stamp = stamps / digest(root, command, sight.of(source))
        if not stamp.exists():
            work.append((root, source, command, entries[source]["directory"], stamp))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda one: read(*one), work)
        return sorted({*unannotated_locks(root), *(problem for problems in found for problem in problems)})


if __name__ == "__main__":
    tree.main(check, __doc__)
