"""Elements that change their place: views, parts, choices by condition or index, sorting."""

import torch

from fairlead.torch.arithmetic import NUMBERS, truth
from fairlead.torch.operators import OPERATORS, aten, shape_of
from fairlead.types import element_count

# These move elements of any type and compute nothing, so that f16 and bf16 stay what they are.
MOVES = {"view", "reshape", "_unsafe_view", "flatten", "unflatten", "unsqueeze", "squeeze", "permute", "transpose", "t", "contiguous",
         "clone", "alias", "detach", "dropout", "lift_fresh_copy", "expand", "stack", "slice", "select", "split",
         "split_with_sizes", "chunk", "unbind", "repeat", "flip", "roll", "gather", "index_select", "index", "as_strided", "diagonal",
         "getitem", "numpy_T", "view_as", "expand_as", "movedim", "pixel_shuffle", "copy", "_reshape_alias", "detach_"}


@aten("view", "reshape", "_unsafe_view", "_reshape_alias")
def view(c, x, shape, *_):
    return c.tensor(x).reshape(c.result_shape())


@aten("flatten")
def flatten(c, x, start_dim=0, end_dim=-1):
    return c.tensor(x).reshape(c.result_shape())


@aten("unflatten")
def unflatten(c, x, dim, sizes):
    return c.tensor(x).reshape(c.result_shape())


@aten("unsqueeze")
def unsqueeze(c, x, dim):
    x = c.tensor(x)
    at = dim % (len(x.shape) + 1)
    return x.reshape((*x.shape[:at], 1, *x.shape[at:]))


@aten("squeeze")
def squeeze(c, x, dim=None):
    return c.tensor(x).reshape(c.result_shape())


@aten("permute")
def permute(c, x, dims):
    x = c.tensor(x)
    return c.task.permute(x, dims) if x.shape else x


@aten("transpose")
def transpose(c, x, dim0, dim1):
    x = c.tensor(x)
    return c.task.transpose(x, dim0, dim1) if x.shape else x


@aten("t", "numpy_T")
def t(c, x):
    return c.task.transpose(c.tensor(x)) if len(shape_of(x)) > 1 else c.tensor(x)


@aten("dropout", "native_dropout")
def dropout(c, x, p, train):
    if train and p:
        c.refuse("a dropout that is on, though the module is in evaluation mode,")
    return (x, None) if c.node_name() == "native_dropout" else x


@aten("contiguous", "clone", "alias", "detach", "lift_fresh_copy", "detach_")
def same(c, x, *_, **__):
    return x


@aten("to", "_to_copy", "type_as", "prims::convert_element_type")
def to(c, x, *args, **_):
    return c.as_type(x, c.result_type())


@aten("copy")
def copy(c, x, source, non_blocking=False):
    return c.task.expand(c.as_type(source, c.result_type()), c.result_shape())


@aten("expand", "expand_as")
def expand(c, x, size, implicit=False):
    return c.task.expand(c.tensor(x), c.result_shape())


@aten("repeat")
def repeat(c, x, repeats):
    x = c.tensor(x)
    shape = (1,) * (len(repeats) - len(x.shape)) + x.shape
    spread = tuple(size for pair in zip(repeats, shape) for size in pair)
    return c.task.expand(x.reshape(tuple(size for one in shape for size in (1, one))), spread).reshape(c.result_shape())


@aten("cat")
def cat(c, tensors, dim=0):
    empty = [isinstance(x, torch.Tensor) and x.numel() == 0 for x in tensors]  # of any shape: PyTorch skips them
    return c.task.concat([c.as_type(x, c.result_type(), True) for x, nothing in zip(tensors, empty) if not nothing], dim)


@aten("stack")
def stack(c, tensors, dim=0):
    return c.task.concat([unsqueeze(c, x, dim) for x in tensors], dim)


@aten("slice")
def slice_(c, x, dim=0, start=None, end=None, step=1):
    return c.task.slice(c.tensor(x), dim, start or 0, end, step)


@aten("select")
def select(c, x, dim, index):
    x = c.tensor(x)
    dim = dim % len(x.shape)
    index = index % x.shape[dim]
    return c.task.slice(x, dim, index, index + 1).reshape(x.shape[:dim] + x.shape[dim + 1:])


@aten("split", "split_with_sizes")
def split(c, x, sizes, dim=0):
    x = c.tensor(x)
    whole = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, whole - first) for first in range(0, whole, sizes)]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [c.task.slice(x, dim, start, start + size) for start, size in zip(starts, sizes)]


@aten("chunk")
def chunk(c, x, chunks, dim=0):
    return split(c, x, -(-shape_of(x)[dim] // chunks), dim)


@aten("unbind")
def unbind(c, x, dim=0):
    return [select(c, x, dim, index) for index in range(shape_of(x)[dim])]


@aten("flip")
def flip(c, x, dims):
    x = c.tensor(x)
    return c.task.flip(x, list(dims)) if x.shape and dims else x


@aten("roll")
def roll(c, x, shifts, dims=()):
    x = c.tensor(x)
    shifts = [shifts] if isinstance(shifts, int) else shifts
    if not dims:
        return roll(c, x.reshape(x.count), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, [dims] if isinstance(dims, int) else dims):
        size = x.shape[dim]
        shift %= size
        if shift:
            x = c.task.concat([c.task.slice(x, dim, size - shift, size), c.task.slice(x, dim, 0, size - shift)], dim)
    return x


@aten("as_strided")
def as_strided(c, x, size, stride, storage_offset=None):
    origin = c.meta(0)
    if not origin.is_contiguous() or origin.storage_offset():
        c.refuse("as_strided of a view")
    return c.task.strided_view(c.tensor(x), tuple(size), list(stride), storage_offset or 0)


@aten("diagonal")
def diagonal(c, x, offset=0, dim1=0, dim2=1):
    x = c.tensor(x)
    dim1, dim2 = dim1 % len(x.shape), dim2 % len(x.shape)
    shape = c.result_shape()
    others = [i for i in range(len(x.shape)) if i not in (dim1, dim2)]
    first = max(-offset, 0) * x.strides[dim1] + max(offset, 0) * x.strides[dim2]
    return c.task.strided_view(x, shape, [x.strides[i] for i in others] + [x.strides[dim1] + x.strides[dim2]], first)


def _put(c, x, source, dim, start, step, part):
    x, source = c.tensor(x), c.as_type(source, c.tensor(x).type.name, True)
    strides = list(x.strides)
    strides[dim] *= step
    return c.task.put(x, source.reshape(part), strides, start * x.strides[dim])


@aten("slice_scatter")
def slice_scatter(c, x, source, dim=0, start=None, end=None, step=1):
    dim = dim % len(shape_of(x))
    start, end, step = slice(start, end, step).indices(shape_of(x)[dim])
    return _put(c, x, source, dim, start, step, shape_of(source))


@aten("select_scatter")
def select_scatter(c, x, source, dim, index):
    shape = shape_of(x)
    dim = dim % len(shape)
    return _put(c, x, source, dim, index % shape[dim], 1, (*shape[:dim], 1, *shape[dim + 1:]))


@aten("embedding")
def embedding(c, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return c.task.embedding(c.tensor(weight), c.tensor(indices))


# ---- filled


@aten("full_like", "zeros_like", "ones_like", "new_zeros", "new_ones", "new_full", "fill", "empty_like", "new_empty",
      "new_empty_strided", "zero")
def filled(c, x, *args, **keywords):
    name = c.node_name()
    value = 1 if "ones" in name else 0
    if name in ("full_like", "fill"):
        value = args[0] if args else keywords.get("fill_value", keywords.get("value"))
    elif name == "new_full":
        value = args[1] if len(args) > 1 else keywords["fill_value"]
    type, shape = c.result_type(), c.result_shape()
    if not isinstance(value, NUMBERS):
        return c.task.expand(c.as_type(value, type), shape)
    if element_count(shape) < 4096:
        return torch.full(shape, value, dtype=c.result_dtype())
    return c.task.fill(type, shape, int(value) if type in ("u8", "s32", "s64") else value)


# ---- by condition


@aten("where")
def where(c, condition, a, b):
    type = c.result_type()
    a, b = (c.filled(type, x) if isinstance(x, NUMBERS) else c.as_type(x, type) for x in (a, b))
    return c.task.where(truth(c, condition), a, b)


@aten("masked_fill")
def masked_fill(c, x, mask, value):
    return where(c, mask, value, x)


@aten("masked_scatter")
def masked_scatter(c, x, mask, source):
    """The source's elements in their order, where the mask is true: place k takes as many as were true before it."""
    x, source, shape = c.tensor(x), c.tensor(source), c.result_shape()
    mask = c.task.expand(truth(c, mask), shape)
    count = element_count(shape)
    order = c.task.cumsum(c.as_type(mask.reshape(count), "s64"), 0)
    first = c.task.strided("max", c.task.strided("sub", order, c.filled("s64", 1)), c.filled("s64", 0))
    taken = c.task.gather(source.reshape(source.count), 0, first).reshape(shape)
    return c.task.where(mask, taken, c.task.expand(x, shape))


# ---- by index


@aten("gather")
def gather(c, x, dim, index, *, sparse_grad=False):
    x, index = c.tensor(x), c.as_type(index, "s64")
    if not x.shape or not index.shape:
        return c.task.gather(x.reshape(x.count), 0, index.reshape(index.count)).reshape(index.shape)
    return c.task.gather(x, dim, index)


def _rows(c, x, axis, index):
    """x along one dimension by a list of places."""
    shape = (*x.shape[:axis], index.count, *x.shape[axis + 1:])
    index = index.reshape(tuple(index.count if i == axis else 1 for i in range(len(shape))))
    return c.task.gather(x, axis, c.task.expand(index, shape))


@aten("index_select")
def index_select(c, x, dim, index):
    x, index = c.tensor(x), c.as_type(index, "s64")
    if not x.shape:
        return x
    return _rows(c, x, dim % len(x.shape), index)


class _Indexed:
    """x[..., i, j, ...]: the indexed dimensions together, as one of size `limit`, and places in it. They are brought to the front
    where they are not side by side, as NumPy does."""

    def __init__(self, c, x, indices):
        self.dims = [i for i, index in enumerate(indices) if index is not None]
        tensors = [indices[i] for i in self.dims]
        if any(c.is_bool(index) for index in tensors):
            c.refuse("an index of truth values, whose result has no fixed size")
        tensors = [c.as_type(index, "s64") for index in tensors]
        together = self.dims == list(range(self.dims[0], self.dims[-1] + 1))
        self.first = self.dims[0] if together else 0
        self.order = None if together else self.dims + [i for i in range(len(x.shape)) if i not in self.dims]
        self.x = x if together else c.task.permute(x, self.order)
        self.limits = self.x.shape[self.first:self.first + len(self.dims)]
        self.shape = tuple(torch.broadcast_shapes(*(index.shape for index in tensors)))
        at = None
        for index, limit in zip(tensors, self.limits):
            wrapped = c.task.where(c.task.strided("lt", index, c.filled("s64", 0)),
                                   c.task.strided("add", index, c.filled("s64", limit)), index)
            at = wrapped if at is None else c.task.strided("add", c.task.strided("mul", at, c.filled("s64", limit)), wrapped)
        self.at = c.task.expand(at, self.shape).reshape(element_count(self.shape))
        self.before, self.after = self.x.shape[:self.first], self.x.shape[self.first + len(self.dims):]

    def flat(self):
        return self.x.reshape((*self.before, element_count(self.limits), *self.after))


@aten("index", "_unsafe_index")
def index_(c, x, indices):
    where_ = _Indexed(c, c.tensor(x), indices)
    return _rows(c, where_.flat(), where_.first, where_.at).reshape((*where_.before, *where_.shape, *where_.after))


@aten("index_put", "_unsafe_index_put")
def index_put(c, x, indices, values, accumulate=False):
    x, values = c.tensor(x), c.tensor(values)
    if len(indices) == 1 and indices[0] is not None and c.is_bool(indices[0]):
        if values.count != 1 or accumulate:
            c.refuse("index_put of several values by truth values")
        mask = truth(c, indices[0])
        return c.task.where(mask.reshape((*mask.shape, *(1,) * (len(x.shape) - len(mask.shape)))), values.reshape(()), x)
    where_ = _Indexed(c, x, indices)
    flat = where_.flat()
    values = c.task.expand(values, (*where_.before, *where_.shape, *where_.after)).reshape((*where_.before, where_.at.count, *where_.after))
    index = where_.at.reshape(tuple(where_.at.count if i == where_.first else 1 for i in range(len(flat.shape))))
    out = c.task.scatter(flat, where_.first, c.task.expand(index, values.shape), values, "sum" if accumulate else None)
    out = out.reshape(where_.x.shape)
    return out if where_.order is None else c.task.permute(out, [where_.order.index(i) for i in range(len(where_.order))])


def _scatter(c, x, dim, index, source, reduce=None, include=True):
    x, index = c.tensor(x), c.as_type(index, "s64")
    if not x.shape:
        return _scatter(c, x.reshape(1), 0, index.reshape(index.count), source if isinstance(source, NUMBERS) else
                        c.tensor(source).reshape(c.tensor(source).count), reduce, include).reshape(())
    dim = dim % len(x.shape)
    if isinstance(source, NUMBERS):
        source = c.task.expand(c.filled(x.type.name, source), index.shape)
    source = c.as_type(source, x.type.name, True)
    for axis, size in enumerate(index.shape):
        source = c.task.slice(source, axis, 0, size)
    part = x
    for axis, size in enumerate(index.shape):
        part = part if axis == dim else c.task.slice(part, axis, 0, size)
    part = c.task.scatter(part, dim, index, source, reduce, include)
    return part if part.shape == x.shape else c.task.put(x, part, x.strides)


@aten("scatter")
def scatter(c, x, dim, index, src=None, value=None, *, reduce=None):
    source = value if src is None else src
    return _scatter(c, x, dim, index, source, {None: None, "add": "sum", "multiply": "prod"}[reduce])


@aten("scatter_add")
def scatter_add(c, x, dim, index, src):
    return _scatter(c, x, dim, index, src, "sum")


@aten("scatter_reduce")
def scatter_reduce(c, x, dim, index, src, reduce, *, include_self=True):
    return _scatter(c, x, dim, index, src, reduce, include_self)


# ---- sorted


def _sorted(c, x, dim, descending):
    x = c.as_type(x, "f32")
    if not x.shape:
        out, indices = c.task.sort(x.reshape(1))
        return out.reshape(()), indices.reshape(())
    dim = dim % len(x.shape)
    last = len(x.shape) - 1
    if dim == last:
        return c.task.sort(x, descending)
    return tuple(c.task.transpose(part, dim, last) for part in c.task.sort(c.task.transpose(x, dim, last), descending))


@aten("sort")
def sort(c, x, dim=-1, descending=False, *, stable=None):
    if isinstance(dim, bool):
        dim, descending = -1, dim
    return _sorted(c, x, dim, descending)


@aten("topk")
def topk(c, x, k, dim=-1, largest=True, sorted=True):
    both = _sorted(c, x, dim, largest)
    return tuple(c.task.slice(part, dim, 0, k) if part.shape else part for part in both)


assert MOVES - set(OPERATORS) <= {"getitem", "view_as", "movedim", "pixel_shuffle"}
