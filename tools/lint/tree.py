"""What the checks of this folder share: the files of the tree, C++ text without its comments, and how to report.

A check is a file with `check(root) -> list of problems`; each problem is one line that says where, what and what to do.
Run alone it prints them and exits 1 if there are any; `tools/lint/run` runs them all.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CPP = (".h", ".cc", ".c", ".cu")


def files(root, *suffixes):
    """The tree's own files, relative to root and sorted: what git tracks, or would (not ignored)."""
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root,
                             capture_output=True, text=True)
    if listing.returncode == 0:
        names = set(listing.stdout.split("\0")) - {""}
    else:  # a plain folder: the self-test's samples
        names = {str(path.relative_to(root)) for path in root.rglob("*")}
    found = (pathlib.Path(name) for name in sorted(names) if not suffixes or name.endswith(suffixes))
    return [path for path in found if (root / path).is_file()]


def is_test(path):
    return path.stem.endswith(("_test", "_prop_test", "_bench", "_fuzz")) or "testing" in path.parts


COMMENT_OR_LITERAL = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
                                re.DOTALL)


def code_lines(text):
    """The lines of C++ text with comments and literals blanked, so that words in prose are not taken for code."""
    def blank(match):
        # A digit separator (1'000'000) is not a character literal.
        before = text[match.start() - 1:match.start()]
        if match.group()[0] == "'" and before.isalnum():
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())
    return COMMENT_OR_LITERAL.sub(blank, text).splitlines()


def main(check, description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="tree to check")
    options = parser.parse_args()
    problems = check(options.root)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
