#!/usr/bin/env python3
"""No large files in git: a clone carries every version of them for ever. What is large is made by a command."""
import tree

LIMIT_KIB = 512


def check(root):
    sizes = {path: (root / path).stat().st_size // 1024 for path in tree.files(root)}
    return [f"{path}: {kib} KiB, may have {LIMIT_KIB}; write the command that makes it instead"
            for path, kib in sizes.items() if kib > LIMIT_KIB]


if __name__ == "__main__":
    tree.main(check, __doc__)
