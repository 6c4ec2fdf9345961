"""A function has a user of the host for itself: what the kernel counts by user, no neighbour uses up."""

import json
import os
import pathlib

import pytest

from places import BUILD, Node

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's node has one user")

BOOTSTRAP = '''#!/usr/bin/python3
import ctypes, http.client, json, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
KEPT = []
def take(what):
    """How many of them there were: until the kernel gives no more, or 200,000."""
    if what == "inotify":
        while (made := libc.inotify_init1(0)) >= 0 and len(KEPT) < 200000: KEPT.append(made)
    if what == "signals":
        value = ctypes.c_long(0)
        while libc.sigqueue(os.getpid(), 40, value) == 0 and len(KEPT) < 200000: KEPT.append(0)
    return len(KEPT)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
runtime = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
while True:
    runtime.request("GET", "/2018-06-01/runtime/invocation/next")
    event = runtime.getresponse()
    body = json.loads(event.read())
    if body["do"] == "take": answer = take(body["what"])
    if body["do"] == "one":
        answer = libc.inotify_init1(0) if body["what"] == "inotify" else libc.sigqueue(os.getpid(), 40, ctypes.c_long(0))
    if body["do"] == "pid": answer = os.getpid()
    runtime.request("POST", "/2018-06-01/runtime/invocation/" + event.headers["Lambda-Runtime-Aws-Request-Id"] + "/response",
                    json.dumps(answer))
    runtime.getresponse().read()
'''


@pytest.fixture
def pair(tmp_path):
    """A node with the functions `greedy` and `modest`."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "bootstrap").write_text(BOOTSTRAP)
    (code / "bootstrap").chmod(0o755)
    with Node(BUILD, tmp_path / "node") as node:
        for name in ("greedy", "modest"):
            node.deploy(name, code)
            ask(node, name, do="pid")
        yield node


def ask(node, name, **event):
    status, headers, body = node.invoke(name, json.dumps(event))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)


def users_of(node):
    """The host's users of this node's functions."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes().split(b"\0")
            if b"/var/task/bootstrap" not in command or f"SOFTGPU_HOME={node.home}/gpu".encode() not in environment:
                continue
            uids = next(line for line in (entry / "status").read_text().splitlines() if line.startswith("Uid:")).split()[1:]
        except OSError:
            continue
        [name] = [text for text in environment if text.startswith(b"AWS_LAMBDA_FUNCTION_NAME=")]
        found[name.decode().split("=")[1]] = set(map(int, uids))
    return found


def test_two_functions_are_two_users_that_nobody_else_is(pair):
    users = users_of(pair)
    assert set(users) == {"greedy", "modest"}
    [greedy], [modest] = users["greedy"], users["modest"]
    assert greedy != modest
    assert all(1878917120 <= user < 1878917120 + 65536 for user in (greedy, modest))


@pytest.mark.parametrize("what", ["inotify", "signals"])
def test_who_uses_up_what_is_counted_by_user_harms_himself_alone(pair, what):
    assert ask(pair, "greedy", do="take", what=what) > 10
    assert ask(pair, "greedy", do="one", what=what) < 0, "all of them are taken"
    assert ask(pair, "modest", do="one", what=what) >= 0
