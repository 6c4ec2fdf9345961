"""The function tests/functions/launcher, what the node charged it, and what the software GPU says it used."""

import json
import os
import re
import subprocess

from conftest import BUILD, ROOT, eventually

LAUNCHER = ROOT / "tests/functions/launcher"


def function(node, name):
    return next(entry for entry in node.status()["functions"] if entry["name"] == name)


def charged_ms(node, name):
    return function(node, name)["stats"]["service_seconds"] * 1e3


def answer(node, name, what, **event):
    status, headers, body = node.invoke(name, json.dumps({"do": what, **event}))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)


def do(node, name, what, **event):
    return answer(node, name, what, **event)["ms"]


def cpu_ms(node, name):
    """Of the instance's process, the software GPU in it included, until now."""
    return answer(node, name, "nothing")["cpu_ms"]


def settled(node, name, timeout=60):
    """Until nothing of the function is charged any more."""
    eventually(lambda: function(node, name)["in_flight"] == 0, timeout)


def computed_ms(node):
    """By the software GPU's own account: how long each living process has computed, by pid."""
    text = subprocess.run([BUILD / "bin/softgpu", "time"], check=True, capture_output=True, text=True, timeout=30,
                          env={**os.environ, **node.gpu_environment}).stdout
    by_pid = {int(line.split()[1]): float(line.split()[-1]) for line in text.splitlines() if re.match(r" +\d", line)}
    by_pid.pop(0, None)  # a process that is just ending; kill(0) would be the tests themselves
    return by_pid
