#!/usr/bin/env python3
"""Relative links in the pages lead somewhere: to a file of the tree and, where they name a heading, to that heading. And every page
under docs/ is reached from README.md."""
import os
import pathlib
import re

import tree

LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def prose(text):
    """The page with code blocks blanked, line numbers kept."""
    text = FENCE.sub(lambda block: "\n" * block.group().count("\n"), text)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """The headings as they appear in an address: lower case, punctuation gone, spaces to hyphens."""
    text = FENCE.sub("", text)
    found = set()
    for heading in re.findall(r"^#+\s+(.*?)\s*$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 1
        while slug in found and f"{slug}-{number}" in found:
            number += 1
        found.add(slug if slug not in found else f"{slug}-{number}")
    return found


def problem_with(root, page, link):
    if re.match(r"[a-z]+:", link):
        return None
    name, _, anchor = link.partition("#")
    target = (root / name.lstrip("/") if name.startswith("/") else root / page.parent / name) if name else root / page
    if not target.exists():
        return f"no such file: {name}"
    if anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
        return f"no such heading: {link}"
    return None


def linked(root, page):
    """The pages that a page leads to."""
    for link in LINK.findall(prose((root / page).read_text())):
        name = link.partition("#")[0]
        if name.endswith(".md") and not re.match(r"[a-z]+:", name):
            yield pathlib.Path(os.path.normpath(name.lstrip("/") if name.startswith("/") else page.parent / name))


def unreachable(root):
    reached, waiting = set(), [pathlib.Path("README.md")]
    while waiting:
        page = waiting.pop()
        if page not in reached and (root / page).exists():
            reached.add(page)
            waiting += linked(root, page)
    return [page for page in tree.files(root, ".md") if page.parts[0] == "docs" and page not in reached]


def check(root):
    problems = [f"{page}: no link leads here from README.md; name it in docs/README.md" for page in unreachable(root)]
    for page in tree.files(root, ".md"):
        for number, line in enumerate(prose((root / page).read_text()).splitlines(), 1):
            for link in LINK.findall(line):
                problem = problem_with(root, page, link)
                if problem:
                    problems.append(f"{page}:{number}: {problem}")
    return problems


if __name__ == "__main__":
    tree.main(check, __doc__)
