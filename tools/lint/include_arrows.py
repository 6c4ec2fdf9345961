#!/usr/bin/env python3
"""Arrows between the folders of src: a -> b where any file of a includes a header of b. Fewer are wanted, 55 at most.

Each row of include_direction.py has no more than what is used, so that a new arrow is a change of that row and can be seen
there. The number may fall, not rise: lower MOST when it has fallen. Folders are those directly under src, so edge/native is
edge; what only tests include counts, too.
"""
import include_direction
import tree

MOST = 54  # 81 before the rooms that decide stood under decide/, and what speaks to the driver under gpu/


def used(root):
    """(folder, the folder it includes), by the rows of include_direction.py."""
    pairs = set()
    for path in tree.files(root, *tree.CPP):
        folder = include_direction.folder_of(path)
        if path.parts[0] != "src" or folder is None:
            continue
        for line in (root / path).read_text().splitlines():
            found = include_direction.INCLUDE.match(line)
            if not found or found[1] == "<" or (root / path.parent / found[2]).is_file():
                continue
            target = include_direction.room_of(found[2].removeprefix("src/").split("/"))
            if target != folder and target in include_direction.ALLOWED:
                pairs.add((folder, target))
    return pairs


def arrows(pairs):
    tops = {(a.split("/")[0], b.split("/")[0]) for a, b in pairs}
    return {(a, b) for a, b in tops if a != b}


def check(root, most=MOST):
    pairs = used(root)
    number = len(arrows(pairs))
    problems = [f"tools/lint/include_direction.py: {folder} may include {target} and does not; take it out of the row"
                for folder, targets in sorted(include_direction.ALLOWED.items()) for target in sorted(targets)
                if (root / "src" / folder).is_dir() and (folder, target) not in pairs]
    if number > most:
        problems.append(f"src: {number} arrows between folders, may have {most}; include less, or move what is shared down")
    if number < most:
        problems.append(f"tools/lint/include_arrows.py: {number} arrows between folders; lower MOST from {most}")
    return problems


if __name__ == "__main__":
    tree.main(check, __doc__)
