#!/usr/bin/env python3
"""A test waits for a condition and not for a time: a fixed sleep is too short on a busy machine and too long on every other,
and a deadline that is met here is missed where four other programs run.

Refused in tests: a sleep in Python (`eventually(condition)` waits, tests/conftest.py, and a Gate keeps a function busy until
the test lets it go), and a deadline of less than LEAST_PATIENCE_S, in Python and in C++, for what is expected to happen. What
has to be so - a pace, a time that is measured, a program that hangs on purpose - says so on the line: `# sleep: why`,
`# wait: why`. Sleeps in C++ tests are vocabulary's.
"""
import re

import tree

LEAST_PATIENCE_S = 30
UNITS_S = {"milliseconds": 1e-3, "ms": 1e-3, "seconds": 1, "s": 1, "minutes": 60, "min": 60}

PYTHON_SLEEP = re.compile(r"\btime\.sleep\(|\bfrom time import\b.*\bsleep\b")
PYTHON_PATIENCE = re.compile(r"\beventually\(.*\btimeout=(\d+(?:\.\d+)?)\)|\bmonotonic\(\) - \w+ < (\d+(?:\.\d+)?)\b")
CPP_PATIENCE = re.compile(r"\bk\w*Patience = (?:std::chrono::)?(\w+)\((\d+)\);|"
                          r"now\(\) \+ (?:(?:std::chrono::)?(\w+)\((\d+)\)|(\d+)(ms|s|min)\b)|"
                          r"ASSERT_GT\(.*\brun_one_for\((?:std::chrono::)?(\w+)\((\d+)\)\)")
REASON = re.compile(r"(?:#|//) (?:sleep|wait): \w")


def is_test(path):
    return path.parts[0] == "tests" and "programs" not in path.parts and "functions" not in path.parts


def seconds_in_cpp(match):
    pairs = [(match[1], match[2]), (match[3], match[4]), (match[6], match[5]), (match[7], match[8])]
    unit, count = next(pair for pair in pairs if pair[0])
    return UNITS_S.get(unit, LEAST_PATIENCE_S) * float(count)


def python_problem(line):
    if PYTHON_SLEEP.search(line):
        return "a sleep; wait for a condition with eventually(), or keep a function busy with a Gate"
    patience = PYTHON_PATIENCE.search(line)
    if patience and float(patience[1] or patience[2]) < LEAST_PATIENCE_S:
        return f"a deadline of less than {LEAST_PATIENCE_S} s; a busy machine misses it"
    return None


def cpp_problem(line):
    patience = CPP_PATIENCE.search(line)
    if patience and seconds_in_cpp(patience) < LEAST_PATIENCE_S:
        return f"a deadline of less than {LEAST_PATIENCE_S} s; a busy machine misses it"
    return None


def check(root):
    problems = []
    for suffixes, concerned, problem_of in ((".py",), is_test, python_problem), (tree.CPP, tree.is_test, cpp_problem):
        for path in filter(concerned, tree.files(root, *suffixes)):
            if path.stem.endswith(("_bench", "_fuzz")):
                continue
            for number, line in enumerate((root / path).read_text().splitlines(), 1):
                problem = None if REASON.search(line) else problem_of(line)
                if problem:
                    problems.append(f"{path}:{number}: {problem}: {line.strip()}")
    return problems


if __name__ == "__main__":
    tree.main(check, __doc__)
