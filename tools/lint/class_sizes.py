#!/usr/bin/env python3
"""Classes with more than 30 methods or 15 fields deserve a look; none may have more than 45 or 25.

What is over a bound today stands with its numbers in class_baseline.json, and may shrink, not grow; a class that is not there
must stay within the first bound. `--update` writes down what shrank; it never raises a number and adds no class. For
comparison: leveldb's DBImpl has 38 and 15, its VersionSet 30 and 15, seastar's io_queue 36 and 19.

Methods are member functions that a class declares, overloads and constructors included, overrides left out: their number
is the interface's. Plain values (structs without methods) may have any number of fields.
"""
import collections
import json
import re
import subprocess
import sys

import tree

LOOK = (30, 15)
MOST = (45, 25)
BASELINE = "tools/lint/class_baseline.json"
FOLDERS = ("src", "softgpu", "shim", "functions")
# ctags takes what a field says of its lock for a method, unless told to skip the word and its arguments.
ANNOTATIONS = [f"{prefix}_{word}{end}" for prefix in ("FL", "SOFTGPU") for word, end in (
    ("CAPABILITY", "+"), ("SCOPED_CAPABILITY", ""), ("GUARDED_BY", "+"), ("PT_GUARDED_BY", "+"), ("ACQUIRED_BEFORE", "+"),
    ("REQUIRES", "+"), ("REQUIRES_SHARED", "+"), ("EXCLUDES", "+"), ("ACQUIRE", "+"), ("ACQUIRE_SHARED", "+"),
    ("RELEASE", "+"), ("RELEASE_SHARED", "+"), ("ASSERT_CAPABILITY", "+"), ("RETURN_CAPABILITY", "+"),
    ("NO_THREAD_SAFETY_ANALYSIS", ""))]


def is_for_tests(path):
    return tree.is_test(path) or path.stem.startswith(("fake_", "test_")) or path.stem.endswith(("_fixture", "_support"))


def measure(root):
    """{path:class: [methods, fields]} of all classes that have methods."""
    paths = [path for path in tree.files(root, ".h", ".cc") if path.parts[0] in FOLDERS and not is_for_tests(path)]
    tags = subprocess.run(["ctags", "--languages=C++", "--langmap=C++:+.h", "--kinds-C++=fpm", "--fields=+neZP",
                           "--fields-C++=+{properties}", "-I", ",".join(ANNOTATIONS), "--output-format=json", "-f", "-", "-L", "-"],
                          cwd=root, input="\n".join(map(str, paths)), capture_output=True, text=True, check=True).stdout
    counts = collections.defaultdict(lambda: [0, 0])
    for tag in map(json.loads, tags.splitlines()):
        if tag.get("scopeKind") not in ("class", "struct"):
            continue
        out_of_line = tag["kind"] == "function" and f"{tag['scope'].split('::')[-1]}::{tag['name']}" in tag.get("pattern", "")
        if out_of_line or "override" in tag.get("properties", ""):
            continue
        scope = re.sub(r"__anon\w+::", "", tag["scope"])
        counts[f"{tag['path']}:{scope}"][tag["kind"] == "member"] += 1
    return {name: numbers for name, numbers in counts.items() if numbers[0] > 0}


def over(numbers, bound):
    return any(number > most for number, most in zip(numbers, bound))


def baseline(root):
    path = root / BASELINE
    return json.loads(path.read_text()) if path.is_file() else {}


def check(root):
    allowed = baseline(root)
    problems = []
    for name, numbers in sorted(measure(root).items()):
        limit = allowed.get(name, LOOK)
        if over(numbers, [max(pair) for pair in zip(limit, LOOK)]):
            problems.append(f"{name}: {numbers[0]} methods and {numbers[1]} fields, may have {max(limit[0], LOOK[0])} and "
                            f"{max(limit[1], LOOK[1])}; give a part of it a class of its own")
    return problems


def update(root):
    allowed, now = baseline(root), measure(root)
    kept = {name: [min(pair) for pair in zip(numbers, now[name])] for name, numbers in sorted(allowed.items())
            if name in now and over(now[name], LOOK)}
    (root / BASELINE).write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update(tree.ROOT)
        sys.exit()
    tree.main(check, __doc__)
