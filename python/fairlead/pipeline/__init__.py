"""Pipelines: functions of several models that a node splits over the slices that are free.

    class Portrait(fairlead.Pipeline):
        inputs = {"image": ("f32", (1, 3, 64, 64))}
        def __init__(self):
            self.deblur, self.cut = Deblur(), Cut()        # PyTorch modules that derive from fairlead.Module
        def dag(self, image):
            return {"mask": self.cut.reg(self, self.deblur.reg(self, image))}

    Portrait().build("portrait")                           # pipeline.json and a kernel task for each component
    with fairlead.pipeline.load("portrait") as run:        # component by component, here
        run(image=array)["mask"]

Nothing here imports PyTorch before a module is registered: pipelines of kernel tasks and programs need none.
"""

from fairlead.pipeline.errors import PipelineError
from fairlead.pipeline.pipeline import Pipeline
from fairlead.pipeline.runner import LocalPipeline, load, partitions

__all__ = ["LocalPipeline", "Pipeline", "PipelineError", "load", "partitions"]
