"""Decisions of supervisors and of the controller: what was seen goes in, what to do comes out. No clock, no Ray, no processes.

A supervisor looks once a second:

    nobody listens                 start it, at once; a start that failed is tried again after 1, 2, 4, ... 30 s
    it says "ok"                   nothing
    it says anything else          nothing: it drains, or its GPU does not serve, which it knows best
    it is silent three times       kill it; the next look starts another

The controller changes one node at a time, and only while all the others serve: a node that does not come back stops an upgrade, and the
rest of the cluster goes on as it was."""

from __future__ import annotations

import dataclasses
import enum
from typing import Iterable, Mapping

SILENT_LOOKS = 3
MOST_BACK_OFF_S = 30.0


class Step(enum.Enum):
    NOTHING = "nothing"
    START = "start"
    KILL = "kill"


@dataclasses.dataclass
class Tending:
    """What a supervisor remembers of its node."""

    silent: int = 0         # looks in a row
    failed_starts: int = 0  # in a row
    next_start: float = 0.0

    def step(self, now: float, is_there: bool, said: str, is_drained: bool) -> Step:
        """now: seconds of any clock that does not go back. said: what /healthz said, "" of nothing. is_drained: it is to stay away."""
        if not is_there:
            self.silent = 0
            if is_drained or now < self.next_start:
                return Step.NOTHING
            self.failed_starts += 1  # until it is seen to serve
            self.next_start = now + min(2.0 ** (self.failed_starts - 1), MOST_BACK_OFF_S)
            return Step.START
        if said:
            self.silent = 0
            if said == "ok":
                self.failed_starts, self.next_start = 0, now
            return Step.NOTHING
        self.silent += 1
        if self.silent < SILENT_LOOKS:
            return Step.NOTHING
        self.silent = 0
        return Step.KILL


@dataclasses.dataclass(frozen=True)
class NodeView:
    """A node as its supervisor sees it. state: serving, starting, draining, silent, down, drained, unreachable (no supervisor answers), or
    what /healthz says. peers: how it sees the others, by name; None: it is alone."""

    name: str
    state: str
    pid: int = 0
    version: str = ""
    is_current: bool = True
    wants_replacement: bool = False
    peers: Mapping[str, str] | None = None
    message: str = ""
    ray_node: str = ""


def next_replacement(views: Iterable[NodeView]) -> str | None:
    """The node that is replaced now; None: none wants to, or another one is away."""
    seen = list(views)
    staying = [view for view in seen if view.state != "drained"]
    if any(view.state != "serving" for view in staying):
        return None
    names = {view.name for view in staying}
    for view in staying:
        if any(state != "alive" for name, state in (view.peers or {}).items() if name in names and name != view.name):
            return None  # not all have heard yet that the last one is back
    return next((view.name for view in staying if view.wants_replacement), None)
