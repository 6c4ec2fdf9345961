"""Fairlead from Python: a client of a node, and ways to write kernel tasks.

    import fairlead
    client = fairlead.Client("http://127.0.0.1:9001")
    client.invoke("hello", b"{}")            # any function
    client.objects.put("weights/w", array)   # immutable objects

`fairlead.Graph` runs functions that read and write the same objects as one graph. `fairlead.ktask` builds kernel tasks,
and runs them here without a node; `fairlead.triton` and `fairlead.torch` make them from Triton kernels and PyTorch modules.
Nothing but the standard library is needed; NumPy arrays are taken and given where NumPy is installed.
"""

from fairlead.client import Client
from fairlead.errors import FunctionError, RequestError
from fairlead.graph import Graph, GraphError
from fairlead.share import Share

__all__ = ["Client", "FunctionError", "Graph", "GraphError", "RequestError", "Share"]
