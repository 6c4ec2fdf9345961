#!/usr/bin/env python3
"""What a way out (docs/how-to/egress.md) adds to a cold start and to a node that gives one: cold calls of a function with the tag
gpu:egress and of the same one without, in turns, on one node, beside a node without --egress. One JSON line per number.

    python3 bench/egress_cost.py [--rounds 30]
"""

import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]
from measure import report  # noqa: E402

from harness.node import Node  # noqa: E402

BOOTSTRAP = """#!/usr/bin/python3
import sys
sys.path.insert(0, "/var/task")
import fairlead_runtime
fairlead_runtime.run(lambda event: {})
"""


def cold_call(node, code, name, **tags):
    """Milliseconds of a new function's first call; it is removed again."""
    body = {"FunctionName": name, "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap", "Code": {"Folder": str(code)},
            "Tags": tags}
    status, _, answer = node.call("POST", "/2015-03-31/functions", json.dumps(body))
    assert status == 201, answer
    began = time.monotonic()
    status, headers, answer = node.invoke(name)
    took = (time.monotonic() - began) * 1000
    assert status == 200 and "X-Amz-Function-Error" not in headers, answer
    assert node.call("DELETE", f"/2015-03-31/functions/{name}")[0] == 204
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        code = home / "code"
        code.mkdir()
        (code / "bootstrap").write_text(BOOTSTRAP)
        (code / "bootstrap").chmod(0o755)
        shutil.copy(ROOT / "functions/runtime/python/fairlead_runtime.py", code)
        times = {"closed node": [], "without": [], "with": []}
        with Node(ROOT / "build", home / "open", options=("--egress", "default=all")) as node, Node(ROOT / "build", home / "closed") as closed:
            cold_call(node, code, "first")
            cold_call(closed, code, "first")
            for turn in range(rounds):
                times["closed node"].append(cold_call(closed, code, f"c{turn}"))
                times["without"].append(cold_call(node, code, f"n{turn}"))
                times["with"].append(cold_call(node, code, f"e{turn}", **{"gpu:egress": "all"}))
    median = {name: statistics.median(values) for name, values in times.items()}
    report("cold_call_without_egress_on_a_node_that_gives_it", median["without"], "ms", baseline=median["closed node"])
    report("cold_call_with_egress", median["with"], "ms", baseline=median["without"],
           note=f"{median['with'] - median['without']:.1f} ms more; medians of {rounds}, a function in Python")


if __name__ == "__main__":
    main()
