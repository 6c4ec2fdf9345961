"""What travels as a payload: bytes, text, JSON, and arrays in NumPy's format (.npy), which handlers of `fairlead.function` read and write."""

from __future__ import annotations

import io
import json
import sys
from typing import Any, Union

NPY = b"\x93NUMPY"

Payload = Any  # bytes, a text, a NumPy array, or a document that becomes JSON


def to_payload(value: Payload) -> Union[bytes, bytearray, memoryview]:
    """What travels. Of a type that is none of them: TypeError, before anything is sent."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value
    numpy = sys.modules.get("numpy")  # whoever has an array has it
    if numpy is not None and isinstance(value, numpy.ndarray):
        return npy_of(value)
    return json.dumps(value, default=_number_of).encode()


def npy_of(array: Any) -> bytes:
    import numpy  # noqa: PLC0415  it is there where an array is
    buffer = io.BytesIO()
    try:
        numpy.save(buffer, array, allow_pickle=False)
    except ValueError as error:
        raise TypeError(f"an array of {array.dtype} cannot travel: {error}") from None
    return buffer.getvalue()


def _number_of(value: Any) -> Any:
    """NumPy's numbers in a document; its arrays as lists."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.tolist()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def from_payload(payload: bytes) -> Any:
    """An array, what JSON says, None of nothing, else the bytes."""
    if not payload:
        return None
    if payload.startswith(NPY):
        import numpy  # noqa: PLC0415  only where an array came
        return numpy.load(io.BytesIO(payload), allow_pickle=False)
    try:
        return json.loads(payload)
    except ValueError:
        return payload
