"""Calls, answers and one-off requests of kernel tasks as bytes: the binary form of src/wire/kernel_task_codec.h. A buffer is its index
among the task's buffers, sorted by name (as bytes)."""

from __future__ import annotations

import struct
from typing import Any

CONTENT_TYPE = "application/vnd.fairlead.kernel-task"
_MAGIC, _VERSION, _CALL, _ANSWER, _REQUEST = b"FLKT", 1, 2, 3, 4
PHASES = ("kernel_run", "kernel_init", "device_malloc", "device_copy", "data_layer", "overhead")


def buffer_names(description: dict[str, Any]) -> list[str]:
    return sorted(description["buffers"], key=str.encode)


def _length(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(data):
    return _length(len(data)) + data


def encode_call(names: list[str], inputs: dict[str, Any], outputs: dict[str, Any]) -> bytes:
    """`inputs`, `outputs`: {buffer: key (str) or bytes}. An output without a key is not named: it comes inline."""
    parts = [_MAGIC, bytes((_VERSION, _CALL))]
    for bindings in (inputs, outputs):
        parts.append(_length(len(bindings)))
        for name, value in bindings.items():
            key, data = (value.encode(), b"") if isinstance(value, str) else (b"", value)
            parts += [struct.pack("<I", names.index(name)), _length(len(key)), key, _length(len(data)), data]
    return b"".join(parts)


def encode_request(task: str, files: dict[str, Any], call: bytes, timeout_seconds: int = 60) -> bytes:
    """`task`: task.json as text; `files`: {name: bytes} of its modules and constants; `call`: bytes of encode_call or of
    JSON. The node knows the task again by these very bytes."""
    return with_call(request_head(task, files, timeout_seconds), call)


def request_head(task: str, files: dict[str, Any], timeout_seconds: int = 60) -> bytes:
    """A request up to its call, which is the same for every call of a task."""
    parts = [_MAGIC, bytes((_VERSION, _REQUEST)), _text(task.encode()), _length(len(files))]
    for name in sorted(files, key=str.encode):
        parts += [_text(name.encode()), _length(memoryview(files[name]).nbytes), files[name]]
    return b"".join([*parts, struct.pack("<I", timeout_seconds)])


def with_call(head: bytes, call: bytes) -> bytes:
    return b"".join([head, _length(len(call)), call])


class _Reader:
    def __init__(self, data):
        self.data, self.at = memoryview(data), 0

    def take(self, size):
        if self.at + size > len(self.data):
            raise ValueError(f"the answer ends at byte {len(self.data)}, {self.at + size} are wanted")
        self.at += size
        return self.data[self.at - size:self.at]

    def length(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self):
        return self.take(self.length())


def is_binary(data):
    return data[:4] == _MAGIC


def decode_answer(names: list[str], data: bytes) -> Any:
    """({output: key (str) or bytes}, {phase: microseconds})"""
    reader = _Reader(data)
    head = bytes(reader.take(6))
    if head != _MAGIC + bytes((_VERSION, _ANSWER)):
        raise ValueError(f"the answer begins with {head!r}, which is no answer of version {_VERSION}")
    outputs = {}
    for _ in range(reader.length()):
        name = names[struct.unpack("<I", reader.take(4))[0]]
        key, contents = bytes(reader.text()).decode(), reader.text()
        outputs[name] = key or contents
    phases = struct.unpack("<6q", reader.take(48))
    return outputs, {name: ns / 1e3 for name, ns in zip(PHASES, phases)}
