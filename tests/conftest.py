"""Fixtures: real nodes with real processes, each in a folder of its own."""

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from harness.node import Node  # noqa: E402

BUILD = ROOT / "build"
MISBEHAVE = ROOT / "tests/functions/misbehave"


PATIENCE_S = 120.0  # how long a machine may be busy with other things before what should happen counts as not happening


def eventually(condition, timeout=PATIENCE_S):
    """The first true value of condition(), or a failure after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)  # sleep: between two looks at a condition
    raise AssertionError(f"not true within {timeout} s: {condition}")


class Gate:
    """Keeps calls of the function misbehave running until open(), in place of a sleep that is long enough on most machines:
    `node.invoke("misbehave", gate.payload)`."""

    numbers = itertools.count()

    def __init__(self, node):
        self.path = node.home / "gpu" / f"gate-{next(Gate.numbers)}"
        self.event = {"do": "gate", "gate": self.path.name}
        self.payload = json.dumps(self.event)

    def open(self):
        self.path.touch()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open()


@pytest.fixture(autouse=True)
def nobody_kills_the_tests(monkeypatch):
    """A node says 0 where a process is just ending or not there yet; the signal would go to all of pytest."""
    kill = os.kill

    def checked(pid, number):
        assert pid > 0, f"signal {number} would go to a group of processes, this one among them: the pid is {pid}"
        kill(pid, number)

    monkeypatch.setattr(os, "kill", checked)


@pytest.fixture(autouse=True)
def environment_is_left_alone():
    """What a library sets in this process would change every node that a later test starts."""
    before = dict(os.environ)
    yield
    after = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    before.pop("PYTEST_CURRENT_TEST", None)
    os.environ.update(before)
    for name in after.keys() - before.keys():
        del os.environ[name]
    assert after == before


@pytest.fixture
def softgpu(tmp_path):
    """softgpu(*arguments): the tool, for the GPUs of this test's node, which need not have started."""
    home = tmp_path / "node/gpu"

    def run(*arguments, **environment):
        home.mkdir(parents=True, exist_ok=True)
        return subprocess.run([BUILD / "bin/softgpu", *arguments], check=True, capture_output=True, text=True, timeout=PATIENCE_S,
                              env={**os.environ, "SOFTGPU_HOME": str(home), **environment}).stdout

    return run


@pytest.fixture
def host_folder():
    """A folder that everybody may write, where a volume may lie: /tmp and what a sandbox has of its own are none."""
    place = next((place for place in ("/srv", "/var/lib", str(pathlib.Path.home())) if os.access(place, os.W_OK)), None)
    if place is None or place.startswith("/tmp"):
        pytest.skip("no folder outside of /tmp can be written")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        os.chmod(folder, 0o777)
        yield pathlib.Path(folder)


@pytest.fixture
def start_node(tmp_path):
    """start_node(*options) -> Node. All nodes of a test share its folder: keep_state=True starts on what was left."""
    nodes = []

    def start(*options, **keywords):
        nodes.append(Node(BUILD, tmp_path / "node", options=options, **keywords))
        return nodes[-1]

    yield start
    for node in nodes:
        if node.process.poll() is None:
            node.stop()
        shutil.rmtree(node.object_memory(), ignore_errors=True)


@pytest.fixture(scope="module")
def shared_node(tmp_path_factory):
    """One node for the tests of a module that leave nothing behind."""
    with Node(BUILD, tmp_path_factory.mktemp("shared") / "node") as node:
        yield node


@pytest.fixture(scope="module")
def misbehave(shared_node):
    """(node, name) with the function that does what its payload says."""
    shared_node.deploy("misbehave", MISBEHAVE)
    return shared_node, "misbehave"
