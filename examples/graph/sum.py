#!/usr/bin/env python3
"""The graph of graph.json from Python: deploys its functions, runs it, prints the sum. Takes a node's address.

    PYTHONPATH=python python3 examples/graph/sum.py http://127.0.0.1:9001
"""

import pathlib
import sys

from fairlead import Client, Graph

HERE = pathlib.Path(__file__).resolve().parent

graph = Graph("sum")
made = graph.call("vectors", {"x": "{run}/x", "y": "{run}/y"}, name="make", writes=["{run}/x", "{run}/y"])
added = graph.task("add", inputs={"x": made["{run}/x"], "y": made["{run}/y"]}, outputs={"sum": "{run}/sum"})
total = graph.call("total", {"read": added["sum"]})

with Client(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:9001") as client:
    client.deploy("vectors", HERE / "functions")
    client.deploy("total", HERE / "functions")
    client.deploy("add", HERE.parent / "ktask/vector-add")
    run = graph.run(client).wait()
    print("the vector on the GPU:", list(memoryview(run.get(added["sum"])).cast("f")))
    print("its total:", run.result(total)["total"])
