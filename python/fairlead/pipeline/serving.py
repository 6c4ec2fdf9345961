"""A component that needs no GPU, as a node runs it: python3 -m fairlead.pipeline stage DIR COMPONENT.

The node speaks over descriptor 3, one packet each (src/wire/program_frames.h). Tensors lie in memory that both have mapped, so
a function reads what another stage wrote where it lies, and what it gives is copied once, into its slot.

    'o' ring, with its memory       'r' call 5, inputs [(ring 7, slot 2)], outputs [(ring 9, slot 0)]       'D' 5

What the function prints goes nowhere: the node's own streams are not a stranger's to fill.
"""

import array
import json
import mmap
import os
import pathlib
import socket
import struct
import sys

from fairlead.arrays import to_array
from fairlead.pipeline.bodies import call_program
from fairlead.pipeline.description import check, inputs_of, program_of, read, tensors_of
from fairlead.pipeline.runner import function_of
from fairlead.types import TYPES, element_count

NODE = 3  # the descriptor
MAX_PACKET = 64 << 10
MAX_DESCRIPTORS = 250
MAX_TEXT = 2048
ENVIRONMENT = "FAIRLEAD_PROGRAM_ENVIRONMENT"


class Rings:
    """Memory between stages: {number: ring}."""

    def __init__(self):
        self._open = {}

    def open(self, number, slot_bytes, first, step, descriptor):
        self._open[number] = (mmap.mmap(descriptor, 0), slot_bytes, first, step)
        os.close(descriptor)

    def close(self, number):
        self._open.pop(number, None)  # unmapped when the last array over it is gone

    def slot(self, number, slot, writable=False):
        memory, size, first, step = self._open[number]
        view = memoryview(memory)[first + slot * step:][:size]
        return view if writable else view.toreadonly()


class Program:
    """A function with the types of its component."""

    def __init__(self, folder, name):
        description = read(folder)
        component = next((c for c in check(description) if c["name"] == name and program_of(c)), None)
        if component is None:
            raise LookupError(f"there is no program {name}")
        tensors = tensors_of(description)
        self.inputs = [(target, *tensors[sources[0]]) for target, sources in inputs_of(component)]
        self.outputs = [(o["name"], o["type"], o["shape"]) for o in component["outputs"]]
        file = folder / program_of(component)[0]
        sys.path[:0] = [str(file.parent), str(folder)]
        self.function = function_of(folder, component)

    def run(self, given, slots):
        """`given`: bytes of the inputs; `slots`: where the outputs go."""
        arrays = {}
        for (target, type_, shape), data in zip(self.inputs, given):
            arrays[target] = to_array(data[:element_count(shape) * TYPES[type_].bytes], type_, shape)
        made = call_program(self.function, arrays, self.outputs)
        for (name, _, _), slot in zip(self.outputs, slots):
            data = memoryview(made[name]).cast("B")
            slot[:len(data)] = data


class Node:
    """The other end of descriptor 3."""

    def __init__(self, program, link):
        self.program, self.link, self.rings = program, link, Rings()

    def serve(self):
        """Until the node has gone."""
        while True:
            packet, descriptors = receive(self.link)
            if not packet:
                return
            if packet[:1] == b"o":
                number, _, slot_bytes, first, step = struct.unpack("<QIQQQ", packet[1:])
                self.rings.open(number, slot_bytes, first, step, descriptors[0])
            elif packet[:1] == b"c":
                self.rings.close(*struct.unpack("<Q", packet[1:]))
            else:
                self.link.send(self.answer(packet, descriptors))

    def answer(self, packet, descriptors):
        call, inputs, outputs = struct.unpack_from("<QHH", packet, 1)
        places = list(struct.iter_unpack("<QI", packet[13:]))
        try:
            given = [self.rings.slot(ring, slot) if ring else mapped(descriptors[slot]) for ring, slot in places[:inputs]]
            self.program.run(given, [self.rings.slot(ring, slot, writable=True) for ring, slot in places[inputs:inputs + outputs]])
        except Exception as error:  # whatever an author's function raises is the request's end, not the program's
            return b"E" + struct.pack("<Q", call) + said(error)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return b"D" + struct.pack("<Q", call)


def receive(link):
    """(bytes, descriptors) of a frame; b"": the node has gone. 'a' has descriptors of the frame that follows, 'i' is a frame."""
    descriptors = []
    while True:
        packet, ancillary, _, _ = link.recvmsg(MAX_PACKET, socket.CMSG_SPACE(4 * MAX_DESCRIPTORS))
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors += array.array("i", data[:len(data) // 4 * 4])
        if packet[:1] != b"a":
            return packet[1:], descriptors


def mapped(descriptor):
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))


def said(error):
    return f"{type(error).__name__}: {error}".encode()[:MAX_TEXT]


def stage(folder, name):
    link = socket.socket(fileno=NODE)
    os.environ.update(json.loads(os.environ.pop(ENVIRONMENT, "{}")))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    try:
        program = Program(pathlib.Path(folder), name)
    except (Exception, SystemExit) as error:  # as above: an author's file may raise anything while it is imported
        link.send(b"F" + said(error))
        return
    link.send(b"R")
    Node(program, link).serve()
