#!/usr/bin/env python3
"""Functions over 70 lines and files over 800 lines may shrink, not grow, and no new one may appear.

What is over the bound today stands with its size in size_baseline.json. `--update` writes down what shrank; it never
raises a number, so that a larger one is a visible, hand-made change of that file.
"""
import json
import subprocess
import sys

import tree

FILE_LINES = 800
FUNCTION_LINES = 70
BASELINE = "tools/lint/size_baseline.json"


def file_sizes(root):
    paths = tree.files(root, *tree.CPP, ".py")
    return {str(path): len((root / path).read_text().splitlines()) for path in paths}


def function_sizes(root):
    """{path:scope::name: lines}. Of overloads in one file, the longest."""
    names = "\n".join(str(path) for path in tree.files(root, *tree.CPP, ".py"))
    tags = subprocess.run(["ctags", "--languages=C,C++,Python", "--langmap=C++:+.h", "--kinds-C=f", "--kinds-C++=f",
                           "--kinds-Python=fm", "--fields=+neZ", "--output-format=json", "-f", "-", "-L", "-"],
                          cwd=root, input=names, capture_output=True, text=True, check=True).stdout
    sizes = {}
    for tag in map(json.loads, tags.splitlines()):
        scope = f"{tag['scope']}::" if "scope" in tag and not tag["scope"].startswith("__anon") else ""
        key = f"{tag['path']}:{scope}{tag['name']}"
        sizes[key] = max(sizes.get(key, 0), tag.get("end", tag["line"]) - tag["line"] + 1)
    return sizes


def over(sizes, bound):
    return {name: lines for name, lines in sizes.items() if lines > bound}


def measure(root):
    return {"files": over(file_sizes(root), FILE_LINES), "functions": over(function_sizes(root), FUNCTION_LINES)}


def baseline(root):
    path = root / BASELINE
    return json.loads(path.read_text()) if path.is_file() else {"files": {}, "functions": {}}


def check(root):
    allowed = baseline(root)
    problems = []
    for kind, bound in (("files", FILE_LINES), ("functions", FUNCTION_LINES)):
        for name, lines in sorted(measure(root)[kind].items()):
            limit = allowed[kind].get(name, bound)
            if lines > limit:
                problems.append(f"{name}: {lines} lines, may have {limit}; split it")
    return problems


def update(root):
    allowed, now = baseline(root), measure(root)
    kept = {kind: {name: min(lines, now[kind][name]) for name, lines in sorted(allowed[kind].items())
                   if name in now[kind]} for kind in allowed}
    (root / BASELINE).write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update(tree.ROOT)
        sys.exit()
    tree.main(check, __doc__)
