#!/usr/bin/env python3
"""C++ files are as clang-format-16 writes them. `--fix` writes them so (make format)."""
import subprocess
import sys

import tree


def check(root):
    names = [str(path) for path in tree.files(root, *tree.CPP)]
    if not names:
        return []
    run = subprocess.run(["clang-format-16", "--style=file", "--dry-run", *names], cwd=root, capture_output=True,
                         text=True)
    off = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "[-Wclang-format-violations]" in line})
    if run.returncode != 0 and not off:
        return [f"clang-format-16: {run.stderr.strip()}"]
    return [f"{name}: not as clang-format writes it; run `make format`" for name in off]


def fix(root):
    subprocess.run(["clang-format-16", "--style=file", "-i", *map(str, tree.files(root, *tree.CPP))], cwd=root, check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--fix"]:
        fix(tree.ROOT)
        sys.exit()
    tree.main(check, __doc__)
