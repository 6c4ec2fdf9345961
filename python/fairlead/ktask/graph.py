"""What a task under construction is made of: buffers, tensors (typed places in a buffer), scalars, launches."""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any

from fairlead.types import SCALARS, TaskError, element_count, element_type, shape_of, strides_of


class Buffer:
    """Device memory of one name. A temporary's name is given when the task is written."""

    def __init__(self, role, size, type, shape, name=None, **more):
        self.role, self.bytes, self.type, self.shape, self.name = role, size, type, shape, name
        self.key = more.get("key")
        self.data = more.get("data")
        self.zeroed = more.get("zeroed", False)


class Tensor:
    """A dense row-major tensor in a buffer, `offset` bytes from its start. Operators make new ones; nothing is computed
    before the task runs."""

    __array_priority__ = 1000  # `array @ tensor` is the tensor's

    def __init__(self, task, buffer, type, shape, offset=0):
        self.task, self.buffer, self.offset = task, buffer, offset
        self.type, self.shape = element_type(type), shape_of(shape)

    @property
    def count(self):
        return element_count(self.shape)

    @property
    def bytes(self):
        return self.count * self.type.bytes

    @property
    def strides(self):
        return strides_of(self.shape)

    def __repr__(self):
        return f"Tensor({self.buffer.name or self.buffer.role}, {self.type}, {self.shape})"

    def reshape(self, *shape):
        """The same elements under another shape; one size may be -1. Costs nothing."""
        shape = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
        if shape.count(-1) == 1:
            known = -math.prod(shape)
            shape[shape.index(-1)] = self.count // known if known else 0
        if element_count(shape) != self.count:
            raise TaskError(f"a tensor of shape {self.shape} cannot have shape {tuple(shape)}: "
                            f"{self.count} and {element_count(shape)} elements")
        return Tensor(self.task, self.buffer, self.type, shape, self.offset)

    def part(self, first, count):
        """`count` rows from row `first`, in place."""
        if not 0 <= first < first + count <= self.shape[0]:
            raise TaskError(f"rows {first} to {first + count} of a tensor with {self.shape[0]}")
        row = self.bytes // self.shape[0]
        return Tensor(self.task, self.buffer, self.type, (count, *self.shape[1:]), self.offset + first * row)

    def __add__(self, other):
        return self.task.add(self, other)

    __radd__ = __add__

    def __sub__(self, other):
        return self.task.sub(self, other)

    def __mul__(self, other):
        return self.task.mul(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self.task.div(self, other)

    def __matmul__(self, other):
        return self.task.gemm(self, other)


class Scalar:
    """A value that a kernel takes by value: a number of a type, or several in a row."""

    def __init__(self, type, *values):
        self.type, self.values = element_type(type), values

    def pack(self):
        code = self.type.code[0]
        values = [part for value in self.values
                  for part in ((value.real, value.imag) if self.type.name in ("c64", "c128") else (value,))]
        try:
            return struct.pack(f"<{len(values)}{code}", *values)
        except (struct.error, OverflowError) as error:
            raise TaskError(f"{self.values} cannot be {self.type}: {error}") from None

    def to_json(self):
        """{"s32": 5} where JSON can say it, else the bytes."""
        packed = self.pack()
        if len(self.values) == 1 and self.type.name in SCALARS and math.isfinite(self.values[0]):
            return {self.type.name: struct.unpack("<" + self.type.code, packed)[0]}
        return {"bytes": base64.b64encode(packed).decode()}


def s32(*values):
    return Scalar("s32", *values)


def u32(*values):
    return Scalar("u32", *values)


def s64(*values):
    return Scalar("s64", *values)


def u64(*values):
    return Scalar("u64", *values)


def f32(*values):
    return Scalar("f32", *values)


def f64(*values):
    return Scalar("f64", *values)


class Argument:
    """A buffer as a kernel gets it. `access`: "read", "write", or None, both as far as the role allows."""

    def __init__(self, tensor, access=None):
        self.tensor, self.access = tensor, access

    @property
    def buffer(self):
        return self.tensor.buffer

    def reads(self):
        return self.access != "write"

    def writes(self):
        return self.access == "write" or self.access is None and self.buffer.role not in ("input", "constant")

    def to_json(self, name):
        said = {"buffer": name}
        if self.tensor.offset:
            said["offset"] = self.tensor.offset
        if self.access:
            said["access"] = self.access
        return said


def read(tensor):
    """For Task.launch: the kernel only reads it. Kernels that only read a buffer may run at once."""
    return Argument(tensor, "read")


def write(tensor):
    """For Task.launch: the kernel writes it and does not read it."""
    return Argument(tensor, "write")


class Launch:
    def __init__(self, module, kernel, grid, block, arguments, shared_bytes=0):
        self.module, self.kernel, self.arguments, self.shared_bytes = module, kernel, arguments, shared_bytes
        self.grid, self.block = _three(grid, "grid", kernel), _three(block, "block", kernel)

    def buffers(self):
        return [argument for argument in self.arguments if isinstance(argument, Argument)]

    def to_json(self, names):
        """`names`: {Buffer: its name}."""
        arguments = [argument.to_json(names[argument.buffer]) if isinstance(argument, Argument) else argument.to_json()
                     for argument in self.arguments]
        return {"module": self.module, "kernel": self.kernel, "grid": self.grid, "block": self.block,
                "shared_bytes": self.shared_bytes, "arguments": arguments}


_LIMITS = {"grid": (2**31 - 1, 65535, 65535), "block": (1024, 1024, 64)}


def _three(sizes, what, kernel):
    sizes = [sizes] if isinstance(sizes, int) else list(sizes)
    sizes += [1] * (3 - len(sizes))
    for axis, (size, limit) in enumerate(zip(sizes, _LIMITS[what])):
        if not 1 <= size <= limit:
            raise TaskError(f"{kernel}: {what}[{axis}] is {size}, 1 to {limit} is possible")
    return sizes


def write_json(description: dict[str, Any]) -> str:
    """task.json for people: a line for each buffer and each kernel."""
    lines = []
    for section in ("buffers", "kernels"):
        entries = description[section]
        if section == "buffers":
            inside = [f"{json.dumps(name)}: {json.dumps(spec)}" for name, spec in entries.items()]
        else:
            inside = [json.dumps(entry) for entry in entries]
        opening, closing = "{}" if section == "buffers" else "[]"
        lines.append(f'"{section}": {opening}\n  ' + ",\n  ".join(inside) + f"\n{closing}")
    lines.append(f'"iterations": {description["iterations"]}')
    return "{" + ",\n".join(lines) + "}\n"


def buffer_bytes(name: str, spec: dict[str, Any]) -> int:
    """The size of a buffer of task.json."""
    if "bytes" in spec:
        return spec["bytes"]
    if "type" not in spec or "shape" not in spec:
        raise TaskError(f"buffer {name} says neither bytes nor type and shape")
    return element_count(spec["shape"]) * element_type(spec["type"]).bytes
