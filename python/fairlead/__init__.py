"""Fairlead from Python: a client of a node, functions, and ways to write kernel tasks.

    import fairlead
    client = fairlead.Client("http://127.0.0.1:9001")
    client.invoke("hello", b"{}")            # any function
    client.objects.put("weights/w", array)   # immutable objects

`fairlead.function` makes a function of a handler, for `fairlead deploy FILE.py`. `fairlead.Graph` runs functions that read and write
the same objects as one graph. `fairlead.ktask` builds kernel tasks, and runs them here without a node; `fairlead.Pipeline` makes a
function of several models of them; `fairlead.triton` and `fairlead.torch` make them from Triton kernels and PyTorch modules.
Nothing but the standard library is needed; NumPy arrays are taken and given where NumPy is installed.

What is asked for is imported then: a function that only marks its handler starts as fast as one that does not.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fairlead.author.declaration import function

if TYPE_CHECKING:
    from fairlead.aio import AsyncClient as AsyncClient
    from fairlead.client import Client as Client
    from fairlead.errors import FunctionError as FunctionError, RequestError as RequestError
    from fairlead.graph import Graph as Graph, GraphError as GraphError
    from fairlead.pipeline import Pipeline as Pipeline, PipelineError as PipelineError
    from fairlead.pipeline.module import Module as Module
    from fairlead.share import Share as Share

_HOMES = {"AsyncClient": "aio", "Client": "client", "FunctionError": "errors", "RequestError": "errors", "Graph": "graph", "GraphError": "graph",
          "Module": "pipeline.module", "Pipeline": "pipeline", "PipelineError": "pipeline", "Share": "share"}
_MODULES = ("aio", "arrays", "client", "credentials", "dlpack", "errors", "graph", "ktask", "models", "objects", "pipeline", "safetensors",
            "share", "torch", "triton", "types", "workloads")

__all__ = [*_HOMES, "function"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"fairlead.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"fairlead.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_MODULES])
