"""Arrays of others (NumPy, DLPack, the buffer protocol) as bytes with a type and a shape, and back. NumPy is used where
it is installed and never needed."""

from __future__ import annotations

import importlib
from typing import Any

from fairlead.types import BY_NUMPY, TYPES, TaskError, element_count, element_type

# Of buffers that are no NumPy arrays; "B" is what plain bytes are.
_BY_FORMAT = {"b": "s8", "h": "s16", "H": "u16", "i": "s32", "I": "u32", "q": "s64", "Q": "u64", "l": "s64",
              "L": "u64", "e": "f16", "f": "f32", "d": "f64", "Zf": "c64", "Zd": "c128"}


def numpy_module():
    """NumPy, or None."""
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


class Array:
    """`data`: a contiguous memoryview of bytes; `type` and `shape`: what they are, None and None where nobody said."""

    def __init__(self, data: memoryview, type: Any = None, shape: Any = None) -> None:
        self.data, self.type, self.shape = data, type, shape


def as_array(value: Any) -> Array:
    """Takes bytes, a buffer, a NumPy array, anything with DLPack on the CPU, or what NumPy makes an array of."""
    numpy = numpy_module()
    if isinstance(value, (bytes, bytearray)):
        return Array(memoryview(value))
    if hasattr(value, "detach"):  # a PyTorch tensor: one that needs its gradient is not given away otherwise
        value = value.detach().cpu().contiguous()
    if numpy and not isinstance(value, numpy.ndarray) and hasattr(value, "__dlpack__"):
        value = numpy.from_dlpack(value)
    if numpy and not isinstance(value, (memoryview, numpy.ndarray)) and not _is_buffer(value):
        value = numpy.asarray(value)
    if numpy and isinstance(value, numpy.ndarray):
        value = numpy.ascontiguousarray(value).reshape(value.shape)
        if value.dtype.name == "bool":
            value = value.view("uint8")
        if value.dtype.name not in BY_NUMPY:
            raise TaskError(f"an array's type is {value.dtype.name}, one of {', '.join(BY_NUMPY)} is possible")
        return Array(memoryview(value.reshape(-1)).cast("B"), BY_NUMPY[value.dtype.name], value.shape)
    return _from_buffer(value)


def _is_buffer(value):
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _from_buffer(value):
    try:
        view = memoryview(value)
    except TypeError:
        raise TaskError(f"{type(value).__name__} is no array: bytes, a buffer, DLPack or a NumPy array is wanted"
                        " (lists are taken where NumPy is installed)") from None
    if not view.c_contiguous:
        view = memoryview(view.tobytes()).cast(view.format, view.shape)
    name = _BY_FORMAT.get(view.format.lstrip("<=@"))
    return Array(view.cast("B"), TYPES[name] if name else None, tuple(view.shape) if name else None)


def checked(value: Any, type: Any, shape: Any, what: str) -> memoryview:
    """The bytes of `value`, which must have this type and shape; without a type of its own, this many bytes."""
    array = as_array(value)
    want = element_type(type)
    expected = element_count(shape) * want.bytes
    if array.type is not None and want.name not in ("bytes", "bf16") and array.type != want:
        raise TaskError(f"{what} is of type {array.type}, {want} is wanted")
    if array.type is not None and want.name not in ("bytes", "bf16") and (tuple(array.shape) or (1,)) != (tuple(shape) or (1,)):
        raise TaskError(f"{what} has shape {tuple(array.shape)}, {tuple(shape)} is wanted")
    if array.data.nbytes != expected:
        raise TaskError(f"{what} has {array.data.nbytes} bytes, {expected} are wanted")
    return array.data


def to_array(data: Any, type: Any, shape: Any) -> Any:
    """A NumPy array over `data`; where NumPy is missing a memoryview of that type and shape, or of bytes."""
    type = element_type(type)
    numpy = numpy_module()
    if numpy:
        return numpy.frombuffer(data, dtype=type.numpy).reshape(shape)
    view = memoryview(data).cast("B")
    if len(type.code) != 1:
        return view
    return view.cast(type.code) if -1 in shape or not shape else view.cast(type.code, list(shape))
