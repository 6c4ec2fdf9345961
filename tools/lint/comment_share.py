#!/usr/bin/env python3
"""Folders whose code is read for what it guards say why: at least so many of a hundred lines are comments.

Counted over a folder's own C++ files without its tests, and lines that are a comment as a whole; one behind code does not
count. A folder is added to SHARES once it has that much; the number may rise.
"""
import tree

SHARES = {"src/gpu/fence": 10}


def share(root, folder):
    lines = comments = 0
    for path in tree.files(root, ".h", ".cc"):
        if str(path.parent) != folder or tree.is_test(path):
            continue
        text = (root / path).read_text().splitlines()
        lines += len(text)
        comments += sum(line.lstrip().startswith("//") for line in text)
    return 100 * comments / lines if lines else None


def check(root):
    shares = {folder: share(root, folder) for folder in SHARES}
    return [f"{folder}: {found:.1f} % of its lines are comments, at least {SHARES[folder]} % must be; say why, not what"
            for folder, found in shares.items() if found is not None and found < SHARES[folder]]


if __name__ == "__main__":
    tree.main(check, __doc__)
