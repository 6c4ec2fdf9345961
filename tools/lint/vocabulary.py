#!/usr/bin/env python3
"""Words that have one home: clocks, threads, randomness and the environment stay out of the decision layers, sleeps out of
unit tests, unfinished work out of the tree.

A decision is state + event + now -> actions. One call to a clock in there and a replay no longer gives the same answer.
"""
import re

import tree

DECISION_LAYERS = ("model", "decide")

IMPURE = {
    r"\b(steady|system|high_resolution)_clock\b": "a clock; every entry point is told `now`",
    r"\b(clock_gettime|gettimeofday)\b|[^\w.>:]time\(": "a clock; every entry point is told `now`",
    r"\bs?rand\(|\brandom_device\b|\bmt19937": "randomness; it is injected",
    r"\bgetenv\b": "the environment; options are values",
    r"\b(sleep_for|sleep_until|usleep|nanosleep)\b": "a sleep; ask for a wake-up",
    r"\bstd::(jthread|thread|async|mutex|shared_mutex|condition_variable|atomic)\b": "a thread; one owner by design",
    r"\bstd::(ifstream|ofstream|fstream|cout|cerr|filesystem)\b|\bprintf\(": "IO; the caller carries actions out",
}
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|[^\w.>]sleep\(")
SLEEP_ALLOWED = {  # test -> why it cannot be told
    "src/runtime/sandbox_test.cc": "polls, with a bound, for the end of processes that are not its children",
}
UNORDERED = re.compile(r"\bunordered_(?:flat_)?(?:map|set)<.*>\s+(\w+)\s*[;={]")
# It throws where a folder has the file's name, and of a process that ends; on a thread that ends the program.
THROWS = re.compile(r"\bistreambuf_iterator\b")
THROWS_ALLOWED = {"src/cli/sim_chart.cc": "standard input"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def is_for_tests(path):
    return tree.is_test(path) or path.stem.startswith("test_") or path.stem.endswith("_fixture")


def is_decision(path):
    return path.parts[0] == "src" and path.parts[1] in DECISION_LAYERS and not tree.is_test(path)


def iteration_over(names):
    """A pattern for a loop over any of the unordered containers called `names`, or None."""
    if not names:
        return None
    choice = "|".join(sorted(names))
    return re.compile(rf"for\s*\(.*:\s*(?:\w+(?:->|\.))*({choice})\)|\b({choice})\.(?:c?begin)\(")


def check(root):
    problems = []
    code = {path: tree.code_lines((root / path).read_text()) for path in tree.files(root, *tree.CPP)}

    unordered = {}  # folder -> names of unordered containers declared there
    for path, lines in code.items():
        if is_decision(path):
            unordered.setdefault(path.parent, set()).update(name for line in lines for name in UNORDERED.findall(line))

    for path, lines in code.items():
        iteration = iteration_over(unordered.get(path.parent)) if is_decision(path) else None
        for number, line in enumerate(lines, 1):
            where = f"{path}:{number}"
            if path.stem.endswith("_test") and str(path) not in SLEEP_ALLOWED and SLEEP.search(line):
                problems.append(f"{where}: a sleep in a unit test; move time instead of waiting for it")
            if path.parts[0] == "src" and str(path) not in THROWS_ALLOWED and not is_for_tests(path) and THROWS.search(line):
                problems.append(f"{where}: istreambuf_iterator throws; base/read_file.h returns an error")
            if not is_decision(path):
                continue
            problems += [f"{where}: {what}" for pattern, what in IMPURE.items() if re.search(pattern, line)]
            if iteration and iteration.search(line):
                problems.append(f"{where}: iteration over an unordered container; its order differs between builds")
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            if UNFINISHED.search(line):
                problems.append(f"{path}:{number}: unfinished work is absent, not marked: {line.strip()}")
    return problems


if __name__ == "__main__":
    tree.main(check, __doc__)
