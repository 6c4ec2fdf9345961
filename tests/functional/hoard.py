"""The function tests/functions/hoard, which keeps device memory and checks every byte of it, as its tests ask it."""

import json

from conftest import ROOT

HOARD = ROOT / "tests/functions/hoard"


def ask(node, name, **event):
    """(answer, kind of start) of one invocation."""
    status, headers, body = node.invoke(name, json.dumps(event))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    answer = json.loads(body)
    assert "error" not in answer, answer
    return answer, headers["X-Gpu-Start"]


def function(node, name):
    return next(entry for entry in node.status()["functions"] if entry["name"] == name)
