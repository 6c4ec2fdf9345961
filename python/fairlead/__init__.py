"""Fairlead from Python: a client of a node, and ways to write kernel tasks.

    import fairlead
    client = fairlead.Client("http://127.0.0.1:9001")
    client.invoke("hello", b"{}")            # any function
    client.objects.put("weights/w", array)   # immutable objects

`fairlead.Graph` runs functions that read and write the same objects as one graph. `fairlead.ktask` builds kernel tasks,
and runs them here without a node; `fairlead.Pipeline` makes a function of
several models of them; `fairlead.triton` and `fairlead.torch` make them from Triton kernels and PyTorch modules.
Nothing but the standard library is needed; NumPy arrays are taken and given where NumPy is installed.
"""

from fairlead.client import Client
from fairlead.errors import FunctionError, RequestError
from fairlead.graph import Graph, GraphError
from fairlead.pipeline import Pipeline, PipelineError
from fairlead.share import Share

__all__ = ["Client", "FunctionError", "Graph", "GraphError", "Module", "Pipeline", "PipelineError", "RequestError", "Share"]


def __getattr__(name):
    """fairlead.Module derives from torch.nn.Module: PyTorch is imported by who asks for it."""
    if name == "Module":
        from fairlead.pipeline.module import Module  # noqa: PLC0415
        return Module
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
