"""The supervisor of a node: an actor on its machine that looks after a process which is not its child.

Killed, it is started again by Ray and finds the node as it is. What must outlive it stands in the node's state folder: `ray/drained` (the
node is to stay away) and `ray/replace` (an upgrade has still to come by). Threads: Ray's, for what is asked, and one that looks."""

from __future__ import annotations

import json
import pathlib
import threading
import time
from typing import Any

from fairlead.ray import node_process
from fairlead.ray.node_process import CONFIGURATIONS, NodeProcessError, NodeSpec, Process
from fairlead.ray.plan import NodeView, Step, Tending
from fairlead.ray.ray_library import ray_library

PERIOD_S = 1.0
START_PATIENCE_S = 60.0
LONGEST_MESSAGE = 500


class Supervisor:
    def __init__(self, spec: NodeSpec) -> None:
        self._spec = spec
        self._ray_node: str = ray_library().get_runtime_context().get_node_id()
        self._acting = threading.Lock()  # one start, stop or kill at a time
        self._tending = Tending()
        self._starting: tuple[Process | None, float] | None = None  # what was started, and until when it may take
        self._versions: dict[tuple[int, int], str] = {}
        self._message = ""
        self._view = NodeView(spec.name, "starting", ray_node=self._ray_node)
        self._thread = threading.Thread(target=self._look_for_ever, name="fairlead-supervisor", daemon=True)
        self._thread.start()

    # ---- what is asked

    def look(self) -> NodeView:
        """As of the last second."""
        return self._view

    def take(self, spec: NodeSpec) -> None:
        """How the node is started from now on. One that runs goes on."""
        self._spec = spec

    def want_replacement(self, always: bool) -> bool:
        """Marks the node for the controller, if it is not what would be started now (`always`: also if it is). Whether it is marked."""
        process = node_process.find(self._spec.state)
        if self._spec.start == "never" or (process is not None and not always and self._spec.is_current(process)):
            return False
        node_process.check(self._spec)
        self._mark("replace").touch()
        return True

    def replace(self) -> None:
        """Drains the node, ends it and starts it; waits until it serves. NodeProcessError: it does not, and is tried again."""
        node_process.check(self._spec)
        with self._acting:
            process = node_process.find(self._spec.state)
            if process is not None:
                node_process.stop(self._spec, process)
            self._tending = Tending()
            self._start()
        self._wait_until_serving()

    def drain(self) -> None:
        """The node finishes what it has and stays away until resume(), whatever is restarted. Waits for its end."""
        if self._spec.start == "never":
            raise NodeProcessError(f'node {self._spec.name} has start = "never": who started it stops it')
        self._mark("drained").touch()
        with self._acting:
            process = node_process.find(self._spec.state)
            if process is not None:
                node_process.stop(self._spec, process)
        self._look()

    def end(self) -> None:
        """Drains the node and ends it, and looks no more: the cluster is taken down. A node that others start goes on."""
        self._acting.acquire()  # and kept
        process = node_process.find(self._spec.state)
        if process is not None and self._spec.start != "never":
            node_process.stop(self._spec, process)

    def resume(self) -> None:
        self._mark("drained").unlink(missing_ok=True)
        self._tending = Tending()
        self._look()
        self._wait_until_serving()

    # ---- looking

    def _mark(self, name: str) -> pathlib.Path:
        folder = pathlib.Path(self._spec.state, CONFIGURATIONS)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder / name

    def _look_for_ever(self) -> None:
        while True:
            try:
                self._look()
            except (NodeProcessError, OSError) as error:
                self._message = str(error)[:LONGEST_MESSAGE]
            time.sleep(PERIOD_S)  # sleep: the period of looking

    def _look(self) -> None:
        with self._acting:
            process = node_process.find(self._spec.state)
            said = node_process.health(self._spec.state) if process else ""
            is_drained = self._mark("drained").exists()
            self._view = self._seen(process, said, is_drained)
            if process is not None:
                self._starting = None
            elif self._still_starts():
                return
            step = self._tending.step(time.monotonic(), process is not None, said, is_drained or self._spec.start == "never")
            if step is Step.KILL and process is not None and self._spec.start != "never":
                self._message = f"process {process.pid} did not answer {PERIOD_S:g} s after {PERIOD_S:g} s, and was killed"
                node_process.kill(process)
            elif step is Step.START:
                self._start()

    def _start(self) -> None:
        self._starting = (node_process.start(self._spec), time.monotonic() + START_PATIENCE_S)

    def _still_starts(self) -> bool:
        """It was started, runs, and does not listen yet."""
        if self._starting is None:
            return False
        process, until = self._starting
        if time.monotonic() < until and (process is not None and node_process.is_same(process) or self._spec.start == "systemd"):
            return True
        self._starting = None
        self._message = f"it was started and ended: {node_process.log_tail(self._spec.state)[-LONGEST_MESSAGE:]}"
        return False

    def _wait_until_serving(self) -> None:
        deadline = time.monotonic() + START_PATIENCE_S
        while time.monotonic() < deadline:
            self._look()
            if self._view.state == "serving":
                return
            time.sleep(0.1)  # sleep: between two looks at a condition
        raise NodeProcessError(f"node {self._spec.name} does not serve {START_PATIENCE_S:g} s after its start: {self._view.state}; {self._message}")

    def _seen(self, process: Process | None, said: str, is_drained: bool) -> NodeView:
        name, mark = self._spec.name, self._mark("replace")
        if process is None:
            state = "drained" if is_drained else "starting" if self._starting else "down"
            return NodeView(name, state, message=self._message, wants_replacement=mark.exists(), ray_node=self._ray_node)
        is_current = self._spec.is_current(process)
        if said == "ok" and is_current and mark.exists() and self._is_new(process, mark):
            mark.unlink()
        if said == "ok":
            self._message = ""
        return NodeView(name, {"ok": "serving", "": "silent"}.get(said, said), process.pid, self._version(process), is_current, mark.exists(),
                        node_process.peers(self._spec.state) if said else None, self._message, self._ray_node)

    @staticmethod
    def _is_new(process: Process, mark: pathlib.Path) -> bool:
        return process.started_at() >= mark.stat().st_mtime - 0.1

    def _version(self, process: Process) -> str:
        one = (process.pid, process.started)
        if one not in self._versions:
            try:
                self._versions = {one: str(json.loads(node_process.ask(self._spec.state, "/fairlead/v1/status")[1])["version"])}
            except (OSError, ValueError, KeyError):
                return ""
        return self._versions[one]


def of_program(view: NodeView) -> dict[str, Any]:
    """A view as JSON has it."""
    return {"name": view.name, "state": view.state, "pid": view.pid, "version": view.version, "current": view.is_current,
            "wants_replacement": view.wants_replacement, "peers": dict(view.peers) if view.peers is not None else None, "message": view.message,
            "ray_node": view.ray_node}
