"""Fairlead from Ray (docs/how-to/ray.md).

    import fairlead.ray as fr

    layer = fr.ktask(task)                          # a fairlead.ktask.Task
    y = layer.remote(x=array_or_ref)                # an ObjectRef; x may be pending
    z = layer.options(keep="device").remote(x=y)    # its value stays on the GPU node
    print(fr.get(z))
    b = fr.function("resize").remote(payload_or_ref)

`python -m fairlead.ray up cluster.toml` gives each machine of a Ray cluster its node, supervisor and executor. Ray is imported when
something here is used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.ray.calls import Function as Function, KernelTask as KernelTask, function as function, ktask as ktask
    from fairlead.ray.cluster import down as down, drain as drain, resume as resume, status as status, up as up, upgrade as upgrade
    from fairlead.ray.device import DeviceRef as DeviceRef, DeviceRefLost as DeviceRefLost, free as free, get as get
    from fairlead.ray.executor import NodeLost as NodeLost
    from fairlead.ray.routing import NoExecutor as NoExecutor

_HOMES = {"Function": "calls", "KernelTask": "calls", "function": "calls", "ktask": "calls", "DeviceRef": "device", "DeviceRefLost": "device",
          "free": "device", "get": "device", "NodeLost": "executor", "NoExecutor": "routing", "up": "cluster", "down": "cluster",
          "drain": "cluster", "resume": "cluster", "status": "cluster", "upgrade": "cluster"}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"fairlead.ray.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
