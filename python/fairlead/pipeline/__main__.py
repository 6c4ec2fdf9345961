"""python3 -m fairlead.pipeline program DIR COMPONENT: serves a component that needs no GPU, over standard input and output.

A request is the bytes of each input, in the order of their names; the answer is a byte 0 and
the bytes of each output in order, or a byte 1, a length (u32, little endian) and the error's text. Sizes follow from types
and shapes. The input's end is the program's end. What the program itself prints goes to standard error.

python3 -m fairlead.pipeline stage DIR COMPONENT: the same for a node, with tensors in shared memory (serving.py).
"""

import os
import pathlib
import struct
import sys

from fairlead.arrays import to_array
from fairlead.pipeline.bodies import call_program
from fairlead.pipeline.description import check, inputs_of, program_of, read, tensors_of
from fairlead.pipeline.runner import function_of
from fairlead.pipeline.serving import stage
from fairlead.types import TYPES, element_count


def read_exactly(stream, size):
    """None where the stream ends before the first byte."""
    data = stream.read(size)
    if len(data) not in (0, size):
        raise EOFError(f"a request ends after {len(data)} of {size} bytes")
    return data if len(data) == size else None


def serve(folder, name, source, sink):
    description = read(folder)
    component = next((c for c in check(description) if c["name"] == name and program_of(c)), None)
    if component is None:
        sys.exit(f"{folder}: there is no program {name}")
    function, tensors = function_of(folder, component), tensors_of(description)
    inputs = {target: tensors[sources[0]] for target, sources in inputs_of(component)}
    outputs = [(o["name"], o["type"], o["shape"]) for o in component["outputs"]]
    while True:
        arrays = {}
        for target, (type_, shape) in inputs.items():
            data = read_exactly(source, element_count(shape) * TYPES[type_].bytes)
            if data is None:
                return
            arrays[target] = to_array(data, type_, shape)
        sink.write(answer(function, arrays, outputs))
        sink.flush()


def answer(function, arrays, outputs):
    try:
        given = call_program(function, arrays, outputs)
    except Exception as error:  # whatever an author's function raises is the request's end, not the program's
        text = f"{type(error).__name__}: {error}".encode()[:4096]
        return b"\x01" + struct.pack("<I", len(text)) + text
    return b"\0" + b"".join(bytes(memoryview(given[name]).cast("B")) for name, _, _ in outputs)


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in ("program", "stage"):
        sys.exit(__doc__)
    if arguments[0] == "stage":
        stage(arguments[1], arguments[2])
        return
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the program's own prints are no answers
    serve(pathlib.Path(arguments[1]), arguments[2], sys.stdin.buffer, sink)


if __name__ == "__main__":
    main(sys.argv[1:])
