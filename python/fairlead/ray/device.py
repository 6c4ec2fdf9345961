"""Results that stay where they were made.

    y = layer.options(keep="device").remote(x=array)     # an ObjectRef whose value is a DeviceRef: a node's name and a key, some 200 bytes
    z = head.remote(x=y)                                 # runs on that node and reads y on its GPU: nothing moved
    fr.get(y)                                            # the array: now it is copied

A DeviceRef names an immutable object of a Fairlead node (docs/how-to/objects.md). The node keeps the object until free(), or until nobody
has used it for an hour (executor.KEPT_S). Ray does not count who has a DeviceRef."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

from fairlead.arrays import to_array
from fairlead.client import Client
from fairlead.errors import RequestError
from fairlead.ktask.graph import buffer_bytes
from fairlead.ray.ray_library import named_actor, ray_library


class DeviceRefLost(RuntimeError):
    """The object of a DeviceRef is gone: freed, unused for too long, or lost with its node. The call that made it must run again."""


@dataclasses.dataclass(frozen=True)
class DeviceRef:
    """node: name in cluster.toml. ray_node: id of the Ray node beside it. state: the node's state folder on that machine."""

    node: str
    ray_node: str
    state: str
    tenant: str
    key: str
    type: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return buffer_bytes(self.key, {"type": self.type, "shape": self.shape})

    @property
    def executor(self) -> str:
        return executor_name(self.node)

    def lost(self, why: object) -> DeviceRefLost:
        return DeviceRefLost(f"object {self.key} of node {self.node} is not there any more ({why}): run the call that made it again")


def executor_name(node: str) -> str:
    return f"executor/{node}"


def local_url(state: str) -> str:
    """Where a node answers whoever is its own user on its machine."""
    return f"unix:{state}/operator.sock"


_clients: dict[tuple[str, str], Client] = {}
_lock = threading.Lock()


def local_client(state: str, tenant: str) -> Client:
    """One for each node and tenant of this process."""
    with _lock:
        if (state, tenant) not in _clients:
            _clients[state, tenant] = Client(local_url(state), tenant=tenant, token="")
        return _clients[state, tenant]


def _get_here(ref: DeviceRef) -> Any:
    """Mapped from the node's memory, where this process is on its machine and may. OSError: it is not, or the node is down."""
    if ray_library().get_runtime_context().get_node_id() != ref.ray_node:
        raise OSError("another machine")
    try:
        return to_array(local_client(ref.state, ref.tenant).objects.get(ref.key), ref.type, ref.shape)
    except RequestError as error:
        if error.status in (404, 410, 503):
            raise ref.lost(error) from None
        raise OSError(str(error)) from None


def _get_one(value: Any) -> Any:
    if not isinstance(value, DeviceRef):
        return value
    try:
        return _get_here(value)
    except OSError:
        return ray_library().get(named_actor(value.executor).fetch.remote(value))


def get(refs: Any, timeout: float | None = None) -> Any:
    """As ray.get, and the arrays of DeviceRefs: of an ObjectRef, a DeviceRef, a list of them, or a dict as `.remote` gives of several outputs.
    Waits, so it belongs into a Ray task or at the end of a driver's work. DeviceRefLost: see there."""
    if isinstance(refs, dict):
        return dict(zip(refs, get(list(refs.values()), timeout)))
    if isinstance(refs, (list, tuple)):
        waited = [ref for ref in refs if not isinstance(ref, DeviceRef)]
        values = iter(ray_library().get(waited, timeout=timeout))
        return [_get_one(ref if isinstance(ref, DeviceRef) else next(values)) for ref in refs]
    return get([refs], timeout)[0]


def free(refs: Any) -> None:
    """Deletes the objects of DeviceRefs, given as to get(); waits for those that are pending. What is gone already is no error."""
    ray = ray_library()
    if isinstance(refs, dict):
        refs = list(refs.values())
    refs = list(refs) if isinstance(refs, (list, tuple)) else [refs]
    values = [ref if isinstance(ref, DeviceRef) else ray.get(ref) for ref in refs]
    done = []
    for value in values:
        if isinstance(value, DeviceRef):
            try:
                done.append(named_actor(value.executor).free.remote(value))
            except ValueError:  # its node has gone, and the object with it or until nobody uses it
                continue
    ray.get(done)
