"""New lines of a log that a node shows the end of."""

from __future__ import annotations

import time

ANCHOR_BYTES = 1024  # long enough to be unique in practice
MOST_TAIL_BYTES = 8 << 20  # that a node gives


class Patience:
    """Of somebody who asks again and again, with a node that is not there."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.was_reached()

    def was_reached(self) -> None:
        self._last = time.monotonic()

    def is_over(self) -> bool:
        return time.monotonic() - self._last > self._seconds


class LogFollower:
    """The node serves the last N bytes, no offsets. While they are the whole log, what it was before is its beginning, and the rest is new.
    Later what was given last is searched in the next tail, and what follows it is new; of a log that says the same again and again
    (ANCHOR_BYTES of it) lines are missed then. A log that was rotated, or outran the tail, does not contain it: the whole tail is new."""

    def __init__(self) -> None:
        self._anchor = self._whole = b""

    def reaches(self, tail: bytes, size: int) -> bool:
        """Whether nothing is missing between what was given last and `tail`, for which `size` bytes were asked."""
        return not self._anchor or len(tail) < size or self._anchor in tail

    def next(self, tail: bytes) -> bytes:
        """The part of `tail` that no earlier call has given."""
        before, self._whole = self._whole, tail
        if before and len(tail) > len(before) and tail.startswith(before):
            self._anchor = tail[-ANCHOR_BYTES:]
            return tail[len(before):]
        at = tail.rfind(self._anchor) if self._anchor else -1
        new = tail if at < 0 else tail[at + len(self._anchor):]
        if tail:
            self._anchor = tail[-ANCHOR_BYTES:]
        return new
