"""New lines of a log that a node shows the end of."""

from __future__ import annotations

ANCHOR_BYTES = 1024  # long enough to be unique in practice


class LogFollower:
    """The node serves the last N bytes, no offsets: what was given last is searched in the next tail, and what follows it is new. A log
    that was rotated, or outran the tail, does not contain it: the whole tail is new."""

    def __init__(self) -> None:
        self._anchor = b""

    def next(self, tail: bytes) -> bytes:
        """The part of `tail` that no earlier call has given."""
        at = tail.rfind(self._anchor) if self._anchor else -1
        new = tail if at < 0 else tail[at + len(self._anchor):]
        if tail:
            self._anchor = tail[-ANCHOR_BYTES:]
        return new
