"""Functions in plain Python: the Lambda Runtime API and a GPU, with nothing but the standard library.

A whole function (a file called `bootstrap`, executable, beside a copy of this one):

    #!/usr/bin/python3
    import fairlead_runtime

    def handler(event):
        return {"you_sent": event.json()}

    fairlead_runtime.run(handler)

A handler returns bytes, str, or anything the json module can write. What it raises becomes a function error. One that yields, or returns an
iterator, streams: each part is on its way to a caller who asked for a stream before the next is made. See Gpu for kernels.
"""

import base64
import ctypes
import json
import os
import select
import socket
import sys
import traceback

_PREFIX = "/2018-06-01/runtime/"
_MOST_SENT = 13_000_000  # bytes of an answer: the Runtime API takes no more, and says of that much that it is too much
_END = object()
_NEXT = ("GET " + _PREFIX + "invocation/next HTTP/1.1\r\nHost: runtime\r\n\r\n").encode()


class TerminalError(Exception):
    """The process cannot serve another request: run() reports the error and returns."""


class CallerLeft(Exception):
    """Nobody takes the rest of an answer in parts: the caller has left, or the time is over."""


class Event:
    """One invocation: payload (bytes), request_id, deadline_ms (Unix time, 0: none) and all headers, in lower case."""

    def __init__(self, headers, payload):
        self.headers = headers
        self.payload = payload
        self.request_id = headers["lambda-runtime-aws-request-id"]
        self.deadline_ms = int(headers.get("lambda-runtime-deadline-ms", "0"))

    def json(self):
        """The payload as JSON; None where it is empty."""
        return json.loads(self.payload) if self.payload else None


def run(handler, init=None):
    """Calls handler(event) for every invocation until the Runtime API goes away. `init`, if given, runs first; what it
    raises is reported as an initialisation error. Ends the process with status 1."""
    connection = _Connection()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # what is printed is in the log, however the process ends
    try:
        if init is not None:
            try:
                init()
            except Exception as error:
                traceback.print_exc()
                connection.post(*_error("init/error", error))
                connection.read()
                sys.exit(1)
        _serve(connection, handler)
    except (OSError, EOFError) as error:
        print(f"fairlead: stopped: {error}", file=sys.stderr)
    sys.exit(1)


def _serve(connection, handler):
    pending = None
    owner = os.getpid()
    while True:
        status, headers, body = connection.exchange(pending)
        if status != 200:
            raise OSError(f"invocation/next answered status {status}")
        event = Event(headers, body)
        path = f"invocation/{event.request_id}"
        try:
            try:
                result = handler(event)
            finally:
                _flush()
                _end_child(owner)
            if hasattr(result, "__next__"):
                pending = None
                _stream(connection, f"{path}/response", result, owner)
                continue
            pending = (f"{path}/response", *_encode(result), None)
        except TerminalError as error:
            connection.post(*_error(f"{path}/error", error))
            connection.read()
            sys.exit(1)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # asyncio.CancelledError is no Exception
            traceback.print_exc()
            pending = _error(f"{path}/error", error)


def _flush():
    try:
        sys.stdout.flush()
    except Exception:  # the handler closed it, or put something else in its place
        pass


def _end_child(owner):
    """Two processes cannot speak on one connection: a child that a handler forked ends where the handler does."""
    if os.getpid() != owner:
        print("fairlead: a child that the handler forked came back from it, and is ended", file=sys.stderr, flush=True)
        os._exit(1)


def _next_part(parts, owner):
    try:
        return next(parts, _END)
    finally:
        _end_child(owner)


def _stream(connection, path, parts, owner):
    """What fails before the first part is an error like any other; after it, the error follows what was sent."""
    first = _next_part(parts, owner)
    content_type = _type_of_stream(first)
    error = None
    try:
        connection.begin(path, content_type)
        part = first
        while part is not _END:
            connection.part(_encode_part(part))
            part = _next_part(parts, owner)
    except CallerLeft as gone:
        print(f"fairlead: the answer was not taken to its end: {gone}", file=sys.stderr)
        connection.drop()
        getattr(parts, "close", lambda: None)()
        return _flush()
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as raised:
        traceback.print_exc()
        error = raised
    _flush()
    connection.end(error)
    if isinstance(error, TerminalError):
        sys.exit(1)


def _type_of_stream(first):
    if isinstance(first, str):
        return "text/event-stream" if first.startswith(("data:", "event:", "id:", ":")) else "text/plain; charset=utf-8"
    return "application/octet-stream" if first is _END or isinstance(first, (bytes, bytearray)) else "application/x-ndjson"


def _encode_part(part):
    if isinstance(part, str):
        return part.encode()
    return bytes(part) if isinstance(part, (bytes, bytearray)) else json.dumps(part, default=_plain).encode() + b"\n"


def _encode(result):
    if isinstance(result, (bytes, bytearray)):
        return bytes(result), "application/octet-stream"
    if isinstance(result, str):
        return result.encode(), "text/plain"
    return json.dumps(result, default=_plain).encode(), "application/json"


def _plain(value):
    """NumPy's numbers and arrays, which are not imported here, as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _text(error):
    try:
        return str(error)
    except Exception as broken:
        return f"(its text cannot be made: {type(broken).__name__})"


def _error(path, error):
    trace = traceback.format_tb(error.__traceback__)
    body = {"errorMessage": _text(error), "errorType": type(error).__name__, "stackTrace": trace}
    return path, json.dumps(body).encode(), "application/json", type(error).__name__


class _Connection:
    """Keeps one connection to the Runtime API; opens it again once where the server closed it."""

    def __init__(self):
        self._reader = None
        self._socket = None

    def exchange(self, pending):
        """Posts `pending` (or nothing) together with the request for the next event; returns that event's answer."""
        for attempt in (1, 2):
            try:
                self._write((self._post_bytes(*pending) if pending else b"") + _NEXT)
                if pending:
                    status, _, body = self.read()
                    pending = None
                    if status != 202:
                        print(f"fairlead: the Runtime API refused an answer: status {status} {body!r}", file=sys.stderr)
                return self.read()
            except (OSError, EOFError):
                self._socket = None
                if attempt == 2:
                    raise

    def post(self, path, body, content_type, error_type):
        self._write(self._post_bytes(path, body, content_type, error_type))

    def begin(self, path, content_type):
        """The head of an answer in parts. It and part() raise CallerLeft."""
        self._in_parts((f"POST {_PREFIX}{path} HTTP/1.1\r\nHost: runtime\r\nContent-Type: {content_type}\r\n"
                     "Lambda-Runtime-Function-Response-Mode: streaming\r\nTransfer-Encoding: chunked\r\n"
                     "Trailer: Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body\r\n\r\n").encode())

    def part(self, data):
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        if waiting.poll(0):  # an answer before the end: nothing more is wanted, though the socket takes it
            raise CallerLeft("the caller has left, or the time is over")
        if data:
            self._in_parts(b"%x\r\n%b\r\n" % (len(data), data))

    def _in_parts(self, data):
        try:
            self._write(data)
        except OSError as gone:
            raise CallerLeft(str(gone)) from None

    def end(self, error):
        tail = b"0\r\n"
        if error is not None:
            body = {"errorMessage": _text(error)[:2000], "errorType": type(error).__name__}
            tail += (f"Lambda-Runtime-Function-Error-Type: {type(error).__name__}\r\n"
                     f"Lambda-Runtime-Function-Error-Body: {base64.b64encode(json.dumps(body).encode()).decode()}\r\n").encode()
        try:
            self._socket.sendall(tail + b"\r\n")
            status, _, body = self.read()
        except (OSError, EOFError) as gone:
            print(f"fairlead: the answer was not taken to its end: {gone}", file=sys.stderr)
            return self.drop()
        if status != 202:
            print(f"fairlead: the Runtime API refused an answer: status {status} {body!r}", file=sys.stderr)
            self.drop()

    def drop(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def read(self):
        """The next answer: status, headers, body."""
        status_line = self._line()
        if not status_line.startswith("HTTP/1."):
            raise OSError(f"Runtime API answer not understood: {status_line!r}")
        headers = {}
        while line := self._line():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = b"".join(iter(self._chunk, b""))
            while self._line():
                pass
        else:
            body = self._exactly(int(headers.get("content-length", "0")))
        return int(status_line.split(" ", 2)[1]), headers, body

    def _chunk(self):
        size = int(self._line().partition(";")[0], 16)
        if size == 0:
            return b""
        data = self._exactly(size)
        self._line()
        return data

    def _line(self):
        line = self._reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError("closed by the Runtime API")
        return line.rstrip(b"\r\n").decode("latin-1")

    def _exactly(self, size):
        data = self._reader.read(size)
        if len(data) < size:
            raise EOFError("closed by the Runtime API")
        return data

    def _write(self, data):
        if self._socket is None:
            self._socket = _connect()
            self._reader = self._socket.makefile("rb")
        self._socket.sendall(data)

    @staticmethod
    def _post_bytes(path, body, content_type, error_type):
        body = body[:_MOST_SENT]
        head = f"POST {_PREFIX}{path} HTTP/1.1\r\nHost: runtime\r\nContent-Type: {content_type}\r\n"
        head += f"Content-Length: {len(body)}\r\n"
        if error_type:
            head += f"Lambda-Runtime-Function-Error-Type: {error_type}\r\n"
        return (head + "\r\n").encode() + body


def _connect():
    if path := os.environ.get("FAIRLEAD_RUNTIME_SOCKET"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        return connection
    host, _, port = os.environ.get("AWS_LAMBDA_RUNTIME_API", "").rpartition(":")
    if not host:
        sys.exit("fairlead: neither FAIRLEAD_RUNTIME_SOCKET nor AWS_LAMBDA_RUNTIME_API (host:port) is set; the platform "
                 "sets them: deploy this program instead of starting it by hand")
    connection = socket.create_connection((host.strip("[]"), int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class CudaError(Exception):
    """A call of the CUDA driver failed; the text names the call and the result."""


# After these results the context answers every call with the same error.
_LOST = {214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 806, 810, 999}


class CudaContextLost(CudaError, TerminalError):
    """The process must be replaced: its GPU context is lost."""


class Gpu:
    """A device with its context, through the CUDA driver API (libcuda.so.1).

        gpu = Gpu()
        add = gpu.load(open("vector_add.ptx").read()).kernel("vector_add")
        a = gpu.upload(array.array("f", [1, 2, 3]))
        add.launch((1,), (32,), a, 3)
        print(a.download("f"))

    Everything belongs to one thread; work is queued on the default stream, in order.
    """

    def __init__(self, ordinal=0):
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"the CUDA driver cannot be loaded: {error}") from error
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), ordinal)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), device)
        self.name = name.value.decode()

    def call(self, function, *arguments):
        """Calls any function of the driver by its exported name; raises CudaError unless it succeeds."""
        result = getattr(self._cuda, function)(*arguments)
        if result == 0:
            return
        name = ctypes.c_char_p()
        self._cuda.cuGetErrorName(result, ctypes.byref(name))
        kind = CudaContextLost if result in _LOST else CudaError
        raise kind(f"{function}: {name.value.decode() if name.value else result}")

    def load(self, ptx):
        return Module(self, ptx)

    def allocate(self, size):
        return Buffer(self, size)

    def upload(self, data):
        """A new Buffer with a copy of `data` (bytes, array.array, or any other contiguous buffer)."""
        view = memoryview(data).cast("B")
        buffer = Buffer(self, len(view))
        buffer.write(view)
        return buffer

    def synchronize(self):
        self.call("cuCtxSynchronize")


class Buffer:
    """A block of device memory, freed with the object."""

    def __init__(self, gpu, size):
        self._gpu = gpu
        self.size = size
        self.address = ctypes.c_uint64()
        gpu.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(size))

    def __del__(self):
        if self.address:
            self._gpu._cuda.cuMemFree_v2(self.address)

    def write(self, data):
        raw = bytes(data)
        if len(raw) > self.size:
            raise ValueError(f"{len(raw)} bytes do not fit into a buffer of {self.size}")
        self._gpu.call("cuMemcpyHtoD_v2", self.address, raw, ctypes.c_size_t(len(raw)))

    def download(self, typecode="B"):
        """The contents as a memoryview of the given type ("f": float, "i": int, "B": bytes)."""
        raw = bytearray(self.size)
        target = (ctypes.c_char * self.size).from_buffer(raw)
        self._gpu.call("cuMemcpyDtoH_v2", target, self.address, ctypes.c_size_t(self.size))
        return memoryview(raw).cast(typecode)


class Module:
    """Kernels loaded from PTX text."""

    def __init__(self, gpu, ptx):
        self._gpu = gpu
        self._module = ctypes.c_void_p()
        text = ptx.encode() if isinstance(ptx, str) else bytes(ptx)
        gpu.call("cuModuleLoadData", ctypes.byref(self._module), text + b"\0")

    def kernel(self, name):
        function = ctypes.c_void_p()
        self._gpu.call("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
        return Kernel(self._gpu, function)


class Kernel:
    def __init__(self, gpu, function):
        self._gpu = gpu
        self._function = function

    def launch(self, grid, block, *arguments):
        """Queues a launch. `grid` and `block` are tuples of one to three sizes. A Buffer stands for its address, an int
        for a 32-bit integer, a float for a 32-bit float; pass a ctypes value for any other type."""
        values = [_argument(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
        sizes = [*grid, *(1,) * (3 - len(grid)), *block, *(1,) * (3 - len(block))]
        self._gpu.call("cuLaunchKernel", self._function, *sizes, 0, None, pointers, None)


def _argument(value):
    if isinstance(value, Buffer):
        return value.address
    if isinstance(value, int):
        return ctypes.c_int32(value)
    if isinstance(value, float):
        return ctypes.c_float(value)
    return value
