"""Kernel tasks: functions without host code, a graph of GPU kernels over named buffers.

    from fairlead import ktask
    t = ktask.Task()
    x = t.input("x", "f32", (64, 1024))
    w = t.constant("w", weights)                 # a NumPy array, anything with DLPack or the buffer protocol
    t.output("y", t.relu(x @ w))                 # temporaries and geometry are worked out
    t.save("dir")                                # task.json, modules, constants: what `fairlead deploy` takes
    t.run(x=array)["y"]                          # here and now, on this machine's GPU or the software GPU
    t.deploy(client, "name"); client.call("name", x=array)["y"]
"""

from fairlead.ktask.graph import Buffer, Scalar, Tensor, f32, f64, read, s32, s64, u32, u64, write
from fairlead.ktask.local import LocalTask, load
from fairlead.ktask.task import Task
from fairlead.types import TaskError, element_type

__all__ = ["Task", "TaskError", "Tensor", "Buffer", "Scalar", "LocalTask", "load", "read", "write", "f32", "f64", "s32",
           "s64", "u32", "u64", "element_type"]
