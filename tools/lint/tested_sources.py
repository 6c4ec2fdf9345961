#!/usr/bin/env python3
"""A source file above 200 lines in src/ has a test: FILE_test.cc or FILE_prop_test.cc beside it, or one of another name.

tested_sources.json says which: "elsewhere" names the test and the header through which it reaches the file, one of the
file's own folder that the test includes (itself, or by a header of that folder). "untested" are those that have none
today; that list may only shrink: `--update` takes out who has one now, a new name in it is a visible, hand-made change.
"""
import json
import pathlib
import re
import sys

import tree

LINES = 200
TABLE = "tools/lint/tested_sources.json"
INCLUDE = re.compile(r'^#include "(.+?)"', re.MULTILINE)


def read_table(root):
    path = root / TABLE
    return json.loads(path.read_text()) if path.is_file() else {"elsewhere": {}, "untested": []}


def has_own_test(root, source):
    return any((root / source.with_name(f"{source.stem}{suffix}.cc")).is_file() for suffix in ("_test", "_prop_test"))


def long_sources(root):
    """Those above the bound that have no test of their name."""
    sources = [path for path in tree.files(root, ".cc") if path.parts[0] == "src" and not tree.is_test(path)]
    return [path for path in sources if not has_own_test(root, path) and
            len((root / path).read_text().splitlines()) > LINES]


def reached(root, test):
    """What a test includes, and what the headers of its own folder include that it includes."""
    direct = set(INCLUDE.findall((root / test).read_text()))
    beside = [root / "src" / name for name in direct if (root / "src" / name).parent == (root / test).parent]
    return direct.union(*(INCLUDE.findall(path.read_text()) for path in beside if path.is_file()))


def check_elsewhere(root, source, test, header):
    if not (root / test).is_file() or not tree.is_test(pathlib.Path(test)):
        return f"{TABLE}: {source}: {test} is no test"
    if pathlib.Path("src", header).parent != pathlib.Path(source).parent:
        return f"{TABLE}: {source}: {header} is of another folder"
    if header not in reached(root, test):
        return f"{TABLE}: {source}: {test} does not include {header}"
    return None


def check(root):
    table = read_table(root)
    elsewhere, untested = table["elsewhere"], table["untested"]
    sources = {str(path) for path in long_sources(root)}
    problems = [problem for source, (test, header) in sorted(elsewhere.items())
                if (problem := check_elsewhere(root, source, test, header))]
    problems += [f"{source}: more than {LINES} lines and no test; write {pathlib.Path(source).stem}_test.cc"
                 for source in sorted(sources - elsewhere.keys() - set(untested))]
    problems += [f"{TABLE}: {source} needs no place in it any more: {pathlib.Path(__file__).name} --update"
                 for source in sorted((elsewhere.keys() | set(untested)) - sources)]
    problems += [f"{TABLE}: {source} is in both lists" for source in sorted(elsewhere.keys() & set(untested))]
    return problems


def update(root):
    table = read_table(root)
    sources = {str(path) for path in long_sources(root)}
    kept = {"elsewhere": {source: where for source, where in sorted(table["elsewhere"].items()) if source in sources},
            "untested": [source for source in sorted(table["untested"])
                         if source in sources and source not in table["elsewhere"]]}
    text = json.dumps(kept, indent=2)
    (root / TABLE).write_text(re.sub(r'\[\s+("\S+"),\s+("\S+")\s+\]', r"[\1, \2]", text) + "\n")  # a pair is one line


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update(tree.ROOT)
        sys.exit()
    tree.main(check, __doc__)
