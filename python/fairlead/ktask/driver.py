"""The CUDA driver through ctypes, as much of it as running a kernel task needs.

Which driver: $FAIRLEAD_LIBCUDA if set, else the machine's libcuda.so.1, else the software GPU: that of the wheel (native/), or
of a source tree around this package (build/lib/softgpu), so that a task can be tried where there is no GPU. It is then an A100, unless
$SOFTGPU_PROFILE or its state folder says otherwise, so that code for all but the newest GPUs runs.
"""

import contextlib
import ctypes
import functools
import os
import pathlib

SOURCE_TREE = pathlib.Path(__file__).resolve().parents[3]
NATIVE = pathlib.Path(__file__).resolve().parents[1] / "native"  # what a wheel brings (tools/package)
SOFTWARE_GPU = NATIVE / "softgpu/libcuda.so.1"
if not SOFTWARE_GPU.exists():
    SOFTWARE_GPU = SOURCE_TREE / "build/lib/softgpu/libcuda.so.1"
_JIT_ERROR_LOG_BUFFER, _JIT_ERROR_LOG_BUFFER_SIZE = 5, 6
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
_SHARED_WITHOUT_OPT_IN = 48 << 10
_SUCCESS = 0


class GpuError(RuntimeError):
    """A call of the driver failed; the message names it and the driver's reason."""


def _candidates():
    if os.environ.get("FAIRLEAD_LIBCUDA"):
        return [os.environ["FAIRLEAD_LIBCUDA"]]
    return ["libcuda.so.1", str(SOFTWARE_GPU)]


def _load():
    reasons = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path), path == str(SOFTWARE_GPU)
        except OSError as error:
            reasons.append(str(error))
    raise GpuError(f"there is no CUDA driver: {'; '.join(reasons)}. Build the software GPU "
                   "(ninja -C build softgpu_cuda) or set FAIRLEAD_LIBCUDA to a libcuda.so.1")


@contextlib.contextmanager
def _environment(name, value):
    """`name` set where it is not, and taken back: programs that this process starts are none of this module's business."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


class Gpu:
    """Device 0 in its primary context, current for the thread that made this."""

    def __init__(self):
        self._cuda, is_software = _load()
        device, self._context = ctypes.c_int(), ctypes.c_void_p()
        with _environment("SOFTGPU_PROFILE", "a100-40") if is_software else contextlib.nullcontext():
            self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self.make_current()

    def make_current(self):
        self.call("cuCtxSetCurrent", self._context)

    def call(self, name, *arguments):
        self._check(name, self.try_call(name, *arguments))

    def try_call(self, name, *arguments):
        """The driver's own code; 0: it was done."""
        return getattr(self._cuda, name)(*arguments)

    def _check(self, what, code):
        if code == _SUCCESS:
            return
        text = ctypes.c_char_p()
        self._cuda.cuGetErrorString(code, ctypes.byref(text))
        raise GpuError(f"{what}: error {code}, {(text.value or b'unknown').decode()}")

    def load_module(self, code, name):
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(_JIT_ERROR_LOG_BUFFER, _JIT_ERROR_LOG_BUFFER_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        module = ctypes.c_void_p()
        result = self._cuda.cuModuleLoadDataEx(ctypes.byref(module), bytes(code) + b"\0", 2, options, values)
        self._check(f"module {name} {log.value.decode(errors='replace').strip()}".strip(), result)
        return module

    def kernel(self, module, name, shared_bytes):
        function = ctypes.c_void_p()
        self._check(f"kernel {name}",
                    self._cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        if shared_bytes > _SHARED_WITHOUT_OPT_IN:
            self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes)
        return function

    def unload(self, module):
        self.call("cuModuleUnload", module)

    def allocate(self, size):
        address = ctypes.c_uint64()
        self._check(f"allocating {size} bytes", self._cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
        return address.value

    def free(self, address):
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def upload(self, address, data):
        data = memoryview(data).cast("B")
        if data.readonly:  # ctypes takes the address of bytes, not of other read-only buffers
            source = ctypes.c_char_p(data.tobytes())
        else:
            source = (ctypes.c_char * len(data)).from_buffer(data)
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(len(data)))

    def download(self, address, size):
        data = bytearray(size)
        self.call("cuMemcpyDtoH_v2", (ctypes.c_char * size).from_buffer(data), ctypes.c_uint64(address),
                  ctypes.c_size_t(size))
        return data

    def zero(self, address, size):
        self.call("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(0), ctypes.c_size_t(size))

    def launch(self, function, grid, block, shared_bytes, parameters):
        """`parameters`: the bytes of each."""
        buffers = [ctypes.create_string_buffer(value, max(len(value), 1)) for value in parameters]
        pointers = (ctypes.c_void_p * max(len(buffers), 1))(*map(ctypes.addressof, buffers))
        self.call("cuLaunchKernel", function, *grid, *block, shared_bytes, None, pointers, None)

    def synchronise(self):
        self.call("cuCtxSynchronize")


@functools.lru_cache(maxsize=None)
def gpu():
    """The one of this process."""
    return Gpu()
