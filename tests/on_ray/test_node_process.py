"""A node's process: found by who listens, started by nobody who stays, stopped and replaced. Without Ray."""

import dataclasses
import os
import pathlib
import signal
import sys

import pytest

from conftest import BUILD, ROOT, eventually

sys.path.insert(0, str(ROOT / "python"))
from fairlead.ray import node_process  # noqa: E402
from fairlead.ray.node_process import NodeProcessError, NodeSpec  # noqa: E402


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "s").mkdir()
    spec = NodeSpec("a", str(BUILD / "bin/fairlead"), str(tmp_path / "s"), {"softgpu": True, "listen": ["127.0.0.1:0"], "drain": 5}, drain_s=5,
                    environment={"SOFTGPU_HOME": str(tmp_path / "gpu")})
    yield spec
    process = node_process.find(spec.state)
    if process is not None:
        node_process.kill(process)


def served(spec):
    return eventually(lambda: (process := node_process.find(spec.state)) and node_process.health(spec.state) == "ok" and process)


def test_a_node_is_found_by_its_socket_and_is_nobodys_child(spec, monkeypatch):
    monkeypatch.setenv("RAY_SECRET", "x")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert node_process.find(spec.state) is None and node_process.health(spec.state) == ""
    started = node_process.start(spec)
    process = served(spec)
    assert process == started and spec.is_current(process) and node_process.is_same(process)
    assert os.getsid(process.pid) == process.pid
    parent = int(pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert parent != os.getpid() and "python" not in pathlib.Path(f"/proc/{parent}/comm").read_text()
    environment = pathlib.Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    assert not [one for one in environment if one.startswith((b"RAY_", b"CUDA_VISIBLE_DEVICES"))]
    assert b"SOFTGPU_HOME=" + spec.environment["SOFTGPU_HOME"].encode() in environment
    assert node_process.peers(spec.state) is None
    # A second one on the same folder ends, and the first goes on.
    second = node_process.start(spec)
    eventually(lambda: second is None or not node_process.is_same(second))
    assert served(spec) == process
    node_process.stop(spec, process)
    assert node_process.find(spec.state) is None and not node_process.is_same(process)
    node_process.stop(spec, process)  # one that has ended is no error


def test_a_node_that_hangs_is_found_and_killed(spec):
    node_process.start(spec)
    process = served(spec)
    os.kill(process.pid, signal.SIGSTOP)
    assert node_process.find(spec.state) == process and node_process.health(spec.state) == ""
    node_process.kill(process)
    assert node_process.find(spec.state) is None


def test_another_program_or_other_settings_are_not_current(spec, tmp_path):
    node_process.start(spec)
    process = served(spec)
    assert not dataclasses.replace(spec, settings={**spec.settings, "drain": 6}).is_current(process)
    assert not dataclasses.replace(spec, environment={}).is_current(process)
    assert not dataclasses.replace(spec, program="/bin/true").is_current(process)
    assert not dataclasses.replace(spec, program=str(tmp_path / "absent")).is_current(process)
    assert dataclasses.replace(spec, start="systemd").is_current(process), "what others start is taken as it is"


def test_what_cannot_start_says_why(spec, tmp_path):
    with pytest.raises(NodeProcessError, match="node a: program is '/absent', which is no program"):
        node_process.start(dataclasses.replace(spec, program="/absent"))
    with pytest.raises(NodeProcessError, match="no-such"):
        node_process.check(dataclasses.replace(spec, settings={**spec.settings, "policy": "no-such"}))
    node_process.check(spec)
    never = dataclasses.replace(spec, start="never")
    with pytest.raises(NodeProcessError, match="leaves starting it to somebody else"):
        node_process.start(never)
    node_process.start(dataclasses.replace(spec, settings={**spec.settings, "policy": "no-such"}))
    eventually(lambda: "no-such" in node_process.log_tail(spec.state))


def test_a_unit_of_systemd_is_started_and_stopped_by_its_name(spec, tmp_path, monkeypatch):
    said = tmp_path / "said"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/systemctl").write_text(f'#!/bin/sh\necho "$@" >> {said}\n[ "$2" != broken ] || {{ echo no such unit >&2; exit 5; }}\n')
    (tmp_path / "bin/systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    unit = dataclasses.replace(spec, start="systemd", unit="fairlead@a")
    node_process.start(unit)
    node_process.stop(unit, node_process.process_of(os.getpid()))
    assert said.read_text() == "start fairlead@a\nstop fairlead@a\n"
    with pytest.raises(NodeProcessError, match="systemctl start broken ended with 5: no such unit"):
        node_process.start(dataclasses.replace(unit, unit="broken"))


def test_a_number_that_another_process_has_by_now_is_left_alone(spec):
    mine = node_process.process_of(os.getpid())
    node_process.kill(dataclasses.replace(mine, started=mine.started - 1))
    assert node_process.is_same(mine)
