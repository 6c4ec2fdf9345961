"""The header of a safetensors file, read with bounds: which tensors it has, and where their bytes are; and whole files of arrays.

    with open("model.safetensors", "rb") as file:
        header = read_header(file)
    header.tensors["encoder.weight"]        # Tensor(dtype="F32", shape=(768, 768), begin=0, end=2359296)

A file is 8 bytes with the header's length, the header (JSON), then the tensors' bytes. What is refused, with the field, its
value and the bound: a header that is longer than the file or than 100 MB, names twice, types that are not known, shapes
whose product is not what the offsets say, bytes that overlap, have gaps, or lie behind the file's end.
"""

from __future__ import annotations

import io
import json
import os
import sys
import typing

MAX_HEADER_BYTES = 100_000_000  # the format's own bound
MAX_DIMENSIONS = 64
DTYPE_BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32,
              "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64}


class FormatError(ValueError):
    """The file is not a safetensors file, or one that cannot be trusted."""


class Tensor(typing.NamedTuple):
    dtype: str
    shape: tuple
    begin: int  # in the data, which follows the header
    end: int


class Header(typing.NamedTuple):
    tensors: dict
    metadata: dict
    data_begin: int  # in the file
    data_bytes: int


def _no_duplicates(pairs):
    names = dict(pairs)
    if len(names) != len(pairs):
        raise FormatError("the header has a name twice")
    return names


def _count(what, value):
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise FormatError(f"{what} is {value!r:.80}; it must be a whole number from 0 to 2^63 - 1")
    return value


def _tensor(name, entry):
    where = f"tensor {name[:80]!r}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"{where} must have dtype, shape and data_offsets, and nothing else")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise FormatError(f"{where}: dtype is {dtype!r:.40}; it must be one of {', '.join(DTYPE_BITS)}")
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise FormatError(f"{where}: shape must be a list of at most {MAX_DIMENSIONS} numbers")
    if not isinstance(offsets, list) or len(offsets) != 2:
        raise FormatError(f"{where}: data_offsets must be [begin, end]")
    count = 1
    for size in shape:
        count *= _count(f"{where}: a size of its shape", size)
    begin, end = (_count(f"{where}: a data offset", value) for value in offsets)
    wanted = count * DTYPE_BITS[dtype] // 8
    if end - begin != wanted:
        raise FormatError(f"{where}: its data has {end - begin} bytes, its shape {shape} of {dtype} needs {wanted}")
    return Tensor(dtype, tuple(shape), begin, end)


def read_header(file, size=None):
    """Of a binary file at its beginning; `size`: of it all, if it has no descriptor. FormatError: see above."""
    size = os.fstat(file.fileno()).st_size if size is None else size
    prefix = file.read(8)
    if len(prefix) != 8:
        raise FormatError(f"the file has {size} bytes; a safetensors file has at least 8")
    length = int.from_bytes(prefix, "little")
    if not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
        raise FormatError(f"the header has {length} bytes; it must be 2 to {min(MAX_HEADER_BYTES, size - 8)}")
    text = file.read(length)
    if len(text) != length:
        raise FormatError("the file became shorter while it was read")
    try:
        entries = json.loads(text.decode(), object_pairs_hook=_no_duplicates)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the header is not JSON: {str(error)[:200]}") from error
    if not isinstance(entries, dict):
        raise FormatError("the header must be a JSON object")
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError("__metadata__ must be an object of strings")
    tensors = {name: _tensor(name, entry) for name, entry in entries.items()}
    at = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin != at:
            raise FormatError(f"tensor {name[:80]!r} begins at {tensor.begin}; the one before it ends at {at}")
        at = tensor.end
    if at != size - 8 - length:
        raise FormatError(f"the tensors have {at} bytes, the file has {size - 8 - length} of data")
    return Header(tensors, metadata, 8 + length, at)


# ---- whole files, of arrays. NumPy is there where an array is.

NUMPY_NAMES = {"U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "F16": "float16", "I32": "int32", "U32": "uint32", "F32": "float32",
               "I64": "int64", "U64": "uint64", "F64": "float64", "BOOL": "bool"}


def is_file(payload: bytes) -> bool:
    """Whether bytes begin as a safetensors file does; no JSON does."""
    return len(payload) >= 10 and payload[8:9] == b"{" and int.from_bytes(payload[:8], "little") <= len(payload) - 8


def load(payload: bytes) -> dict[str, typing.Any]:
    """{name: array} of a file's bytes: NumPy's, or for BF16, which NumPy has not, torch's. FormatError: see above."""
    header = read_header(io.BytesIO(payload), len(payload))
    data = bytearray(payload[header.data_begin:])  # arrays that may be written
    return {name: _array(name, tensor, memoryview(data)[tensor.begin:tensor.end]) for name, tensor in header.tensors.items()}


def _array(name, tensor, data):
    if tensor.dtype == "BF16":
        torch = sys.modules.get("torch")
        if torch is None:
            raise FormatError(f"tensor {name[:80]!r} is BF16, which NumPy has not: import torch where the module is loaded")
        flat = torch.frombuffer(data, dtype=torch.bfloat16) if len(data) else torch.empty(0, dtype=torch.bfloat16)
        return flat.reshape(tensor.shape)
    if tensor.dtype not in NUMPY_NAMES:
        raise FormatError(f"tensor {name[:80]!r} is {tensor.dtype}, which NumPy has not")
    import numpy  # noqa: PLC0415
    return numpy.frombuffer(data, NUMPY_NAMES[tensor.dtype]).reshape(tensor.shape)


def save(arrays: dict[str, typing.Any]) -> bytes:
    """The bytes of a file with these: {name: NumPy's array or number, or torch's tensor}. TypeError names what is none."""
    parts = sorted(((name, *_bytes_of(name, value)) for name, value in arrays.items()), key=lambda part: -DTYPE_BITS[part[1]])
    header, at = {}, 0
    for name, dtype, shape, data in parts:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *(data for *_, data in parts)])


def _bytes_of(name, value):
    if not isinstance(name, str):
        raise TypeError(f"the name of a tensor is {name!r:.80}; it must be a text")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu().contiguous()
        if value.dtype == torch.bfloat16:
            return "BF16", list(value.shape), value.view(torch.int16).numpy().tobytes()
        value = value.numpy()
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        raise TypeError(f"{name!r:.80} is of type {type(value).__name__}; it must be an array, or a tensor of torch")
    for dtype, known in NUMPY_NAMES.items():
        if value.dtype.newbyteorder("<") == numpy.dtype(known).newbyteorder("<"):
            return dtype, list(value.shape), value.astype(value.dtype.newbyteorder("<")).tobytes()
    raise TypeError(f"{name!r:.80} is an array of {value.dtype}; it must be one of {', '.join(NUMPY_NAMES.values())}")
