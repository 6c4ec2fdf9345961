"""PyTorch: modules as kernel tasks, and weights that are on the GPU once for all instances (load).

    task = fairlead.torch.from_module(module.eval(), (example,))

torch.export makes a graph of the module for inputs of these shapes and types; each of its operators becomes kernels of
the built-in library, and weights become constants. What depends on constants alone is computed here, once. A batch
normalisation, a sum and an activation behind a convolution or a matrix product become part of its kernel.
"""

from fairlead.torch.convert import UnsupportedOperator, from_module
from fairlead.torch.loading import load

__all__ = ["from_module", "load", "UnsupportedOperator"]
