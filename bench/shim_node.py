"""The node's end of the shim's socket (src/wire/shim_frames.h), as small as an experiment or a check needs it."""

import contextlib
import mmap
import os
import queue
import socket
import struct
import threading

HELLO, WELCOME, SWAP_OUT, SWAP_IN, MOVED, NEED_ROOM, ROOM, NEED_STAGING, STAGING, RETURN_STAGING, WANT_MEMORY = range(1, 12)
BACKENDS = {"none": 0, "vmm": 1, "uvm": 2}
UVM_MODES = {"plain": 0, "advise": 1, "prefetch": 2, "prefetch-swap": 3}
RESULTS = ("done", "partly", "busy", "no room", "nothing")
GRANULE = 2 << 20
ALL = (1 << 64) - 1
FRAME_BYTES, PAGE_BYTES = 40, 4096
# src/wire/shim_page.h.
PAGE_MAGIC, PAGE_VERSION = 0x464C5350, 2
CAP_OFFSET, COUNTERS_OFFSET = 72, 128
COUNTERS = ("held", "resident", "away", "fixed", "gpu_time_ns", "launches", "gate_waits", "passed_through",
            "unhooked_functions", "busy")


def frame(kind, fmt="", *values):
    return struct.pack("<II", kind, 0) + struct.pack("<" + fmt, *values).ljust(32, b"\0")


class Arena:
    """Staging memory, given out first fit by granules. Of no bytes: contents go to memory of the process."""

    def __init__(self, size):
        self.size = size
        self.descriptor = os.memfd_create("staging")
        os.ftruncate(self.descriptor, size)
        self.used = bytearray(size // GRANULE)
        self.lock = threading.Lock()

    def take(self, size):
        count = size // GRANULE
        with self.lock:
            at = self.used.find(bytes(count))
            if at < 0 or count == 0:
                return 0, 0
            self.used[at : at + count] = b"\1" * count
            return at * GRANULE, size

    def give(self, offset, size):
        with self.lock:
            self.used[offset // GRANULE : (offset + size) // GRANULE] = bytes(size // GRANULE)


class Instance:
    """One process that has registered."""

    def __init__(self, connection, node):
        self.connection, self.arena, self.make_room = connection, node.arena, node.make_room
        self.token, _, self.pid = struct.unpack("<QII", connection.recv(FRAME_BYTES)[8:24])
        page = os.memfd_create("page")
        os.ftruncate(page, PAGE_BYTES)
        self.page = mmap.mmap(page, PAGE_BYTES)
        struct.pack_into("<II", self.page, 0, PAGE_MAGIC, PAGE_VERSION)
        struct.pack_into("<Q", self.page, CAP_OFFSET, node.cap)
        welcome = frame(WELCOME, "QII", self.arena.size, BACKENDS[node.backend], UVM_MODES[node.uvm])
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            socket.send_fds(connection, [welcome], [page, self.arena.descriptor] if self.arena.size > 0 else [page])
        os.close(page)
        self.moved = queue.Queue()
        self.wanted = threading.Event()  # a thread of it waits for memory that is away
        threading.Thread(target=self.serve, daemon=True).start()

    def counters(self):
        return dict(zip(COUNTERS, struct.unpack_from(f"<{len(COUNTERS)}Q", self.page, COUNTERS_OFFSET), strict=True))

    def serve(self):
        with contextlib.suppress(OSError):  # the process has ended
            while len(data := self.connection.recv(FRAME_BYTES)) == FRAME_BYTES:
                self.answer(data)

    def answer(self, data):
        kind, body = struct.unpack_from("<I", data)[0], data[8:]
        if kind == MOVED:
            answered, result, size, move_ns, total_ns = struct.unpack_from("<IIQQQ", body)
            self.moved.put((RESULTS[result], size, move_ns, total_ns))
        elif kind == NEED_STAGING:
            size, request = struct.unpack_from("<QQ", body)
            self.connection.send(frame(STAGING, "QQQ", request, *self.arena.take(size)))
        elif kind == RETURN_STAGING:
            self.arena.give(*struct.unpack_from("<QQ", body))
        elif kind == WANT_MEMORY:
            self.wanted.set()
        elif kind == NEED_ROOM:
            # Another thread: making room may need this connection's own answers to others.
            threading.Thread(target=self.answer_room, args=struct.unpack_from("<QQ", body), daemon=True).start()

    def answer_room(self, size, request):
        self.connection.send(frame(ROOM, "QQ", request, size if self.make_room(self, size) else 0))

    def swap_out(self, size=ALL, deadline_ns=5_000_000_000):
        self.connection.send(frame(SWAP_OUT, "QQ", size, deadline_ns))
        return self.moved.get(timeout=60)

    def swap_in(self):
        self.connection.send(frame(SWAP_IN))
        return self.moved.get(timeout=60)


class Node:
    """`cap`: bytes of device memory that a process may hold; 0: no cap."""

    def __init__(self, path, arena_bytes, backend, uvm, make_room=lambda instance, size: False, cap=0):
        self.arena = Arena(arena_bytes)
        self.backend, self.uvm, self.make_room, self.cap = backend, uvm, make_room, cap
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(path)
        self.socket.listen(64)
        self.socket.settimeout(30)

    def accept(self):
        connection, _ = self.socket.accept()
        connection.settimeout(None)
        return Instance(connection, self)

    def close(self):
        self.socket.close()
        os.close(self.arena.descriptor)
