"""The process of a node on this machine: found, started and stopped, never owned.

    STATE/operator.sock ── who listens there? SO_PEERCRED ──> pid, /proc/PID/exe, /proc/PID/cmdline

What runs says by itself what it is: no file with a process number is kept, which could be of a process that is long gone. A node is started
by a fork of a fork in a session of its own, so it is the child of init when it begins: neither Ray's ends of workers nor those of raylets
reach it (spec: `start_new_session` alone is not enough). No Ray here."""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any, Mapping

SOCKET = "operator.sock"
CONFIGURATIONS = "ray"       # folder in the state folder: what is written by fairlead.ray
HEALTH_LIMIT_S = 1.0
KILL_PATIENCE_S = 10.0
CHECK_LIMIT_S = 30.0
LOG_TAIL_BYTES = 2000
NOT_FOR_NODES = ("RAY_", "CUDA_VISIBLE_DEVICES", "PYTHONPATH")  # variables that a worker of Ray has for itself


class NodeProcessError(RuntimeError):
    """A node could not be started or stopped; the message has the end of its log."""


@dataclasses.dataclass(frozen=True)
class Process:
    """started: in clock ticks since the machine's start; with the pid it is one process and no other. program: (device, inode) of its
    executable, which is another once the file was replaced."""

    pid: int
    started: int
    program: tuple[int, int]
    arguments: tuple[str, ...]

    def started_at(self) -> float:
        """By the machine's wall clock."""
        uptime = float(pathlib.Path("/proc/uptime").read_text().split()[0])
        return time.time() - uptime + self.started / os.sysconf("SC_CLK_TCK")


def _stat_of(pid: int) -> tuple[str, int]:
    """(state, start)"""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], int(fields[19])


def process_of(pid: int) -> Process | None:
    """None: it has ended, or is another user's."""
    try:
        state, started = _stat_of(pid)
        if state in "ZX":
            return None
        executable = os.stat(f"/proc/{pid}/exe")
        arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
        return Process(pid, started, (executable.st_dev, executable.st_ino), tuple(arguments))
    except (OSError, ValueError, IndexError):
        return None


def is_same(process: Process) -> bool:
    """It still runs."""
    now = process_of(process.pid)
    return now is not None and now.started == process.started


def _connect(state: str, limit_s: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(limit_s)
    try:
        connection.connect(f"{state}/{SOCKET}")
    except BaseException:
        connection.close()
        raise
    return connection


def find(state: str) -> Process | None:
    """Who listens at the state folder's socket. A node that is stopped (SIGSTOP) is found too: the kernel answers."""
    try:
        with _connect(state, HEALTH_LIMIT_S) as connection:
            pid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    except OSError:
        return None
    return process_of(pid) if pid > 0 else None


def ask(state: str, path: str, limit_s: float = HEALTH_LIMIT_S) -> tuple[int, bytes]:
    """(status, body) of a GET at the node's socket. OSError: no answer in time."""
    connection = http.client.HTTPConnection("localhost", timeout=limit_s)
    try:
        connection.sock = _connect(state, limit_s)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise ConnectionError(f"the node's answer is no HTTP: {error}") from None
    finally:
        connection.close()


def health(state: str) -> str:
    """What /healthz says in one line; "" where nobody answers in time."""
    try:
        return ask(state, "/healthz")[1].decode(errors="replace").strip().split("\n")[0] or "silent"
    except OSError:
        return ""


def peers(state: str) -> dict[str, str] | None:
    """{name: alive, suspect, dead, draining} as this node sees the others; None: it is alone, or does not answer."""
    try:
        status, body = ask(state, "/fairlead/v1/cluster")
        if status != 200:
            return None
        said = json.loads(body)
        return {one["name"]: one["state"] for one in said["members"] if one["name"]}
    except (OSError, ValueError, KeyError):
        return None


# ---- starting


@dataclasses.dataclass(frozen=True)
class NodeSpec:
    """How a node is started. settings: of `fairlead serve`, as they stand in its file. start: "detached", "systemd" (the unit `unit` is
    started and stopped) or "never" (somebody else does, such as a kubelet). environment: variables beside those of the Ray worker's that
    are none of Ray's own."""

    name: str
    program: str
    state: str
    settings: Mapping[str, Any]
    start: str = "detached"
    unit: str = "fairlead"
    drain_s: float = 30.0
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def configuration(self) -> str:
        """The file for --config."""
        lines = ["# Written by fairlead.ray; a change here is lost.", "[serve]"]
        lines += [f"{name} = {_toml(value)}" for name, value in sorted({**self.settings, "state": self.state, "node-name": self.name}.items())]
        return "\n".join(lines) + "\n"

    def configuration_path(self) -> pathlib.Path:
        """Named by what is in it, so that the command line of a process says what it was started with."""
        digest = hashlib.sha256(json.dumps([self.configuration(), dict(self.environment)], sort_keys=True).encode()).hexdigest()[:16]
        return pathlib.Path(self.state, CONFIGURATIONS, f"serve-{digest}.toml")

    def command(self) -> list[str]:
        return [self.program, "serve", "--config", str(self.configuration_path())]

    def program_path(self) -> str:
        """NodeProcessError: there is none."""
        found = shutil.which(self.program)
        if found is None:
            raise NodeProcessError(f"node {self.name}: program is {self.program!r}, which is no program on this machine")
        return found

    def is_current(self, process: Process) -> bool:
        """Whether `process` is what start() would start now. What others start is taken as it is."""
        if self.start != "detached":
            return True
        try:
            executable = os.stat(self.program_path())
        except (NodeProcessError, OSError):
            return False
        return process.program == (executable.st_dev, executable.st_ino) and str(self.configuration_path()) in process.arguments


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)  # of texts, numbers and booleans TOML has JSON's form


# A parent that is gone at once, so that the node is nobody's child.
_PARENT = """
import subprocess, sys
with open(sys.argv[1], "ab") as log:
    print(subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True).pid)
"""


def start(spec: NodeSpec) -> Process | None:
    """Does not wait until it serves. A node that runs already on this state folder keeps it: the second one ends. None: it has ended by
    now, or somebody else has its number."""
    if spec.start == "never":
        raise NodeProcessError(f'node {spec.name} is not there, and start = "never" leaves starting it to somebody else')
    if spec.start == "systemd":
        _systemctl("start", spec)
        return None
    command = _written(spec)
    for old in spec.configuration_path().parent.glob("serve-*.toml"):
        if old != spec.configuration_path():
            old.unlink()
    done = subprocess.run([sys.executable, "-S", "-E", "-c", _PARENT, str(log_path(spec.state)), *command], env=_environment(spec), stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/", check=False)
    if done.returncode != 0:
        raise NodeProcessError(f"node {spec.name}: {spec.program} could not be started: {done.stderr.strip()[-200:]}")
    return process_of(int(done.stdout))


def check(spec: NodeSpec) -> None:
    """Asks the program whether it would start so, before anything is stopped for it. NodeProcessError: what it says."""
    if spec.start != "detached":
        return
    done = subprocess.run([*_written(spec), "--print-config"], env=_environment(spec), capture_output=True, text=True, timeout=CHECK_LIMIT_S, check=False)
    if done.returncode != 0:
        raise NodeProcessError(f"node {spec.name}: {spec.program} does not take these settings: {done.stderr.strip()[-LOG_TAIL_BYTES:]}")


def _written(spec: NodeSpec) -> list[str]:
    """The command line, whose file is there now."""
    path = spec.configuration_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(spec.configuration())
    return [spec.program_path(), *spec.command()[1:]]


def _environment(spec: NodeSpec) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(NOT_FOR_NODES)} | dict(spec.environment)


def log_path(state: str) -> pathlib.Path:
    return pathlib.Path(state, CONFIGURATIONS, "node.log")


def log_tail(state: str) -> str:
    """The end of the log of a node that was started here."""
    try:
        with log_path(state).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").strip()
    except OSError:
        return ""


def _systemctl(verb: str, spec: NodeSpec) -> None:
    done = subprocess.run(["systemctl", verb, spec.unit], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NodeProcessError(f"node {spec.name}: systemctl {verb} {spec.unit} ended with {done.returncode}: {done.stderr.strip()}")


# ---- stopping


def stop(spec: NodeSpec, process: Process) -> None:
    """Drains it: it says so to its peers, finishes what runs, and ends; where it does not, it is killed a moment after its own limit. Of
    start = "never" it is an error: whoever started it would start it again."""
    if spec.start == "never":
        raise NodeProcessError(f'node {spec.name} has start = "never": who started it stops it')
    if spec.start == "systemd":
        _systemctl("stop", spec)
    elif not _end(process, signal.SIGTERM, spec.drain_s + KILL_PATIENCE_S):
        kill(process)


def kill(process: Process) -> None:
    """NodeProcessError: not even that ends it (a process that waits for its device)."""
    if not _end(process, signal.SIGKILL, KILL_PATIENCE_S):
        raise NodeProcessError(f"process {process.pid} does not end, not even by SIGKILL")


def _end(process: Process, number: signal.Signals, patience_s: float) -> bool:
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        if not is_same(process):
            return True  # the number is another's by now
        signal.pidfd_send_signal(descriptor, number)
        ready = select.poll()
        ready.register(descriptor, select.POLLIN)
        return bool(ready.poll(patience_s * 1000))
    except ProcessLookupError:
        return True
    finally:
        os.close(descriptor)
