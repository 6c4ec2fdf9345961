"""Shapes and strides as the strided kernels take them: at most six dimensions."""

from fairlead.types import TaskError

DIMENSIONS = 6


def collapse(shape, *strides):
    """The same places with as few dimensions as can be: size 1 is left out, and neighbours that lie behind each other
    in every one of `strides` become one. [(size, (stride, ...))]"""
    merged = []
    for size, steps in zip(shape, zip(*strides)):
        if size == 1:
            continue
        if merged and all(outer == step * size for outer, step in zip(merged[-1][1], steps)):
            merged[-1] = (merged[-1][0] * size, steps)
        else:
            merged.append((size, steps))
    return merged


def six(shape, *strides):
    """(six sizes, [six strides, ...]); what is missing comes first, with size 1."""
    merged = collapse(shape, *strides)
    if len(merged) > DIMENSIONS:
        raise TaskError(f"shape {tuple(shape)} has {len(merged)} dimensions that cannot be merged, "
                        f"{DIMENSIONS} are possible")
    missing = DIMENSIONS - len(merged)
    sizes = [1] * missing + [size for size, _ in merged]
    return sizes, [[0] * missing + [steps[i] for _, steps in merged] for i in range(len(strides))]


def slices(size, start, stop, step):
    """Python's rule for x[start:stop:step], for a step of at least 1 and something to be left."""
    if step < 1:
        raise TaskError(f"slice: the step is {step}, at least 1 is possible")
    start, stop, _ = slice(start, stop).indices(size)
    if start >= stop:
        raise TaskError(f"slice: nothing is left of {size} from {start} to {stop}")
    return start, stop, step
