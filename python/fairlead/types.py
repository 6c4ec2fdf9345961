"""Element types of tensors: their names, sizes, and what they are to NumPy and to struct."""

import math


class ElementType:
    def __init__(self, name, size, code, numpy=None):
        self.name, self.bytes, self.code, self.numpy = name, size, code, numpy or name

    def __repr__(self):
        return self.name


# name: bytes, the struct module's code for one element (c64 and c128: two), NumPy's name.
TYPES = {t.name: t for t in (
    ElementType("bytes", 1, "B", "uint8"),
    ElementType("s8", 1, "b", "int8"), ElementType("u8", 1, "B", "uint8"),
    ElementType("s16", 2, "h", "int16"), ElementType("u16", 2, "H", "uint16"),
    ElementType("s32", 4, "i", "int32"), ElementType("u32", 4, "I", "uint32"),
    ElementType("s64", 8, "q", "int64"), ElementType("u64", 8, "Q", "uint64"),
    ElementType("f16", 2, "e", "float16"), ElementType("bf16", 2, "H", "uint16"),
    ElementType("f32", 4, "f", "float32"), ElementType("f64", 8, "d", "float64"),
    ElementType("c64", 8, "ff", "complex64"), ElementType("c128", 16, "dd", "complex128"))}
BY_NUMPY = {t.numpy: t for name, t in TYPES.items() if name not in ("bytes", "bf16")}

# What a kernel takes by value, as task.json names it. Other types travel as bytes.
SCALARS = ("s32", "u32", "s64", "u64", "f32", "f64")


class TaskError(ValueError):
    """A task that cannot be: the message names what, its value and the bound."""


def element_type(name):
    """The type called `name` (also NumPy's name or dtype)."""
    if isinstance(name, ElementType):
        return name
    found = TYPES.get(str(name)) or BY_NUMPY.get(str(name))
    if found is None:
        raise TaskError(f"element type is {name}, one of {', '.join(TYPES)} is possible")
    return found


def shape_of(shape):
    """A tuple of positive ints; one int is one dimension."""
    shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    for index, size in enumerate(shape):
        if size < 1:
            raise TaskError(f"shape[{index}] is {size}, at least 1 is possible (a kernel cannot run over nothing)")
    return shape


def element_count(shape):
    return math.prod(shape)


def strides_of(shape):
    """Of a dense row-major tensor, in elements."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def broadcast_shapes(first, second):
    """NumPy's rule."""
    rank = max(len(first), len(second))
    a, b = (1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second
    for x, y in zip(a, b):
        if x != y and 1 not in (x, y):
            raise TaskError(f"shapes {first} and {second} do not fit together: {x} beside {y}")
    return tuple(max(x, y) for x, y in zip(a, b))


def broadcast_strides(shape, onto):
    """Strides with which a dense tensor of `shape` is read as one of shape `onto`."""
    padded = (1,) * (len(onto) - len(shape)) + tuple(shape)
    return tuple(0 if size == 1 and target != 1 else stride
                 for size, target, stride in zip(padded, onto, strides_of(padded)))
