"""Weights on the GPU once for all instances of a function, as tensors of PyTorch.

    weights = fairlead.torch.load("/var/task/model.safetensors")
    module.load_state_dict(weights, assign=True)      # assign: the module takes these tensors, not copies of them

Needs a CUDA build of PyTorch: the tensors lie at addresses of the device. Never run on hardware so far; its logic is tested
with memory of the host, on the CPU build. The tensors are one copy that others read: do not write to them, and do not
train them.
"""

import torch

from fairlead import models

_DTYPES = {"BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "F16": torch.float16,
           "BF16": torch.bfloat16, "I32": torch.int32, "F32": torch.float32, "I64": torch.int64, "F64": torch.float64}
for _name, _type in (("F8_E4M3", "float8_e4m3fn"), ("F8_E5M2", "float8_e5m2"), ("U16", "uint16"), ("U32", "uint32"),
                     ("U64", "uint64")):
    if hasattr(torch, _type):
        _DTYPES[_name] = getattr(torch, _type)


def _tensor(view):
    """Without a copy. DLPack has no type of 8-bit floats that all versions take: those travel as bytes."""
    wanted = _DTYPES.get(view.dtype)
    if wanted is None:
        raise TypeError(f"tensor {view.name!r} is {view.dtype}, which this PyTorch {torch.__version__} does not have")
    if view.bytes == 0:
        return torch.empty(view.shape, dtype=wanted)
    flat = torch.from_dlpack(view.as_bytes())
    return flat.view(wanted).reshape(view.shape)


def load(path, name=None, store=None):
    """{name: torch.Tensor} of the safetensors file at `path`; see fairlead.models.load()."""
    model = models.load(path, name, store)
    return {key: _tensor(model[key]) for key in model}
