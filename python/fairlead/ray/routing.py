"""Which executor a call goes to. Decided by the caller, without waiting: nothing of Ray is asked in the path of a call but once a second
who is there, and five times a second, in the background, what runs where.

    1. where an input was made, if this process made the call (its DeviceRef is there, or its bytes are)
    2. else the first of the task's own order (rendezvous hashing: modules and constants stay where they are) that has at most 1.5 times the
       mean of what runs, and 4 calls more

choose() is the decision, without a clock and without Ray."""

from __future__ import annotations

import collections
import hashlib
import threading
import time
from typing import Any, Mapping

from fairlead.ray.ray_library import named_actor, names_of_actors, ray_library

WHO_PERIOD_S = 1.0
LOAD_PERIOD_S = 0.2
BOUND = 1.5
SPARE = 4            # calls more than the bound: of few calls no mean is worth a move
MOST_REMEMBERED = 20_000
PREFIX = "executor/"


class NoExecutor(RuntimeError):
    """No node is there to take calls from Ray."""


def order_of(key: str, nodes: list[str]) -> list[str]:
    """Rendezvous hashing: each key has an order of its own, and a node that comes or goes moves only what it has."""
    return sorted(nodes, key=lambda node: hashlib.blake2b(f"{key}\0{node}".encode(), digest_size=8).digest())


def choose(key: str, loads: Mapping[str, int], preferred: str | None = None) -> str:
    """loads: calls that run, by node; at least one node is there. preferred: taken where it is there."""
    if preferred in loads:
        return str(preferred)
    bound = BOUND * sum(loads.values()) / len(loads) + SPARE
    order = order_of(key, list(loads))
    return next((node for node in order if loads[node] <= bound), order[0])


class Routing:
    """Of one process. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executors: dict[str, Any] = {}
        self._looked_at = -WHO_PERIOD_S
        self._loads: dict[str, int] = {}
        self._asked: dict[Any, str] = {}  # answers that are on their way: ref, node
        self._asked_at = -LOAD_PERIOD_S
        self._made: collections.OrderedDict[bytes, str] = collections.OrderedDict()  # id of an ObjectRef: node that makes its value

    def executor(self, key: str, inputs: list[Any], node: str | None = None) -> tuple[str, Any]:
        """(node, executor). node: that one and no other. NoExecutor: nobody is there."""
        with self._lock:
            self._look()
            if node is not None:
                if node not in self._executors:
                    raise NoExecutor(f"node {node} has no executor; there are {', '.join(sorted(self._executors))}")
                return node, self._executors[node]
            if len(self._executors) == 1:
                return next(iter(self._executors.items()))
            self._take_loads()
            preferred = next((found for value in inputs if (found := self._home_of(value))), None)
            chosen = choose(key, self._loads, preferred)
            self._loads[chosen] += 1  # until the next answer says how many there are
            return chosen, self._executors[chosen]

    def made(self, refs: list[Any], node: str) -> None:
        with self._lock:
            for ref in refs:
                self._made[ref.binary()] = node
            while len(self._made) > MOST_REMEMBERED:
                self._made.popitem(last=False)

    def forget(self) -> None:
        """Who is there is asked again at the next call."""
        with self._lock:
            self._looked_at = -WHO_PERIOD_S

    def _home_of(self, value: Any) -> str | None:
        if hasattr(value, "binary"):
            return self._made.get(value.binary())
        return getattr(value, "node", None)

    def _look(self) -> None:
        now = time.monotonic()
        if self._executors and now - self._looked_at < WHO_PERIOD_S:
            return
        self._looked_at = now
        names = {name.removeprefix(PREFIX): name for name in names_of_actors() if name.startswith(PREFIX)}
        found: dict[str, Any] = {}
        for node, name in names.items():
            try:
                found[node] = named_actor(name)
            except ValueError:  # gone in between
                continue
        if not found:
            raise NoExecutor("no executor of fairlead.ray is there: run `python -m fairlead.ray up cluster.toml`, and see "
                             "`python -m fairlead.ray status`")
        self._executors = found
        self._loads = {node: self._loads.get(node, 0) for node in found}

    def _take_loads(self) -> None:
        now = time.monotonic()
        if now - self._asked_at < LOAD_PERIOD_S:
            return
        self._asked_at = now
        ray = ray_library()
        if self._asked:
            ready, _ = ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)
            for ref in ready:
                node = self._asked.pop(ref)
                try:
                    self._loads[node] = ray.get(ref)
                except ray.exceptions.RayError:  # it has died: the next look leaves it out
                    continue
        waited = set(self._asked.values())
        self._asked.update({handle.load.remote(): node for node, handle in self._executors.items() if node not in waited})


routing = Routing()
