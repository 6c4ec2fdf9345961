"""What a call says beside its values: made by the caller, carried out by an executor."""

from __future__ import annotations

import dataclasses
import time
import uuid


@dataclasses.dataclass(frozen=True)
class Order:
    """id: what a node knows a repeat by; it is made once, before Ray sees the call, so all of Ray's retries have it. inputs, outputs: names,
    in the order of the values that come and go. keeps: outputs that stay on the node. patience_s: how long a node that is away, or refuses for
    the moment, is waited for. is_idempotent: a function's call may run again where it may have run already."""

    id: str
    created: float
    digest: str = ""
    function: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    tenant: str = "default"
    timeout_s: int = 60
    patience_s: float = 30.0
    is_idempotent: bool = False


def new_id() -> tuple[str, float]:
    """An id, and the time of this machine at which it was made."""
    return f"ray-{uuid.uuid4().hex}", time.time()
