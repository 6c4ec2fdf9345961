"""The header of a safetensors file, read with bounds: which tensors it has, and where their bytes are.

    with open("model.safetensors", "rb") as file:
        header = read_header(file)
    header.tensors["encoder.weight"]        # Tensor(dtype="F32", shape=(768, 768), begin=0, end=2359296)

A file is 8 bytes with the header's length, the header (JSON), then the tensors' bytes. What is refused, with the field, its
value and the bound: a header that is longer than the file or than 100 MB, names twice, types that are not known, shapes
whose product is not what the offsets say, bytes that overlap, have gaps, or lie behind the file's end.
"""

import json
import os
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


def read_header(file):
    """Of a binary file at its beginning. FormatError: see above."""
    size = os.fstat(file.fileno()).st_size
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
