#!/usr/bin/env python3
"""The GPU beside the node, in a process of its own, so that neither the check nor the node has this driver loaded.

device.py describe          one line of JSON: name, driver, its CUDA version, memory in bytes; or why the GPU cannot be checked
device.py ballast BYTES     holds device memory until BYTES are free, says "ready", and goes on holding until its input ends
"""

import ctypes
import json
import sys

NAME_BYTES = 96
OLDEST_CUDA = 11020  # of which the node's device servers and its functions' PTX are
CHUNK_BYTES = 64 << 20


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Library:
    """Functions by name; an error is an exception."""

    def __init__(self, file):
        self.library = ctypes.CDLL(file)

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            code = function(*arguments)
            if code != 0:
                raise RuntimeError(f"{name}: error {code}")

        return call


def check_whole(nvml, device):
    """A slice has neither the memory nor the multiprocessors that the parts count on, and MPS is not the node's to start there."""
    mode, pending = ctypes.c_uint(), ctypes.c_uint()
    try:
        nvml.nvmlDeviceGetMigMode(device, ctypes.byref(mode), ctypes.byref(pending))
    except (AttributeError, RuntimeError):
        return  # neither this driver nor this GPU knows slices
    if mode.value:
        raise RuntimeError("GPU 0 is in MIG mode, and what is checked is a whole GPU: `nvidia-smi -i 0 -mig 0` ends that mode")


def cuda_version():
    """As "13.0". The driver must start: one that is older than its kernel module, say, does not."""
    cuda = Library("libcuda.so.1")
    number, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(number))
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    if number.value < OLDEST_CUDA:
        raise RuntimeError(f"the driver runs CUDA {version}: install one of {OLDEST_CUDA // 1000}.{OLDEST_CUDA % 1000 // 10} or newer")
    cuda.cuInit(0)
    cuda.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        raise RuntimeError("cuDeviceGetCount: the driver lists none")
    return version


def describe():
    nvml = Library("libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    device, memory = ctypes.c_void_p(), Memory()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
    check_whole(nvml, device)
    cuda = cuda_version()
    nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
    texts = [ctypes.create_string_buffer(NAME_BYTES) for _ in range(2)]
    nvml.nvmlDeviceGetName(device, texts[0], NAME_BYTES)
    nvml.nvmlSystemGetDriverVersion(texts[1], NAME_BYTES)
    name, driver = (text.value.decode() for text in texts)
    return {"name": name, "driver": driver, "cuda": cuda, "memory_bytes": memory.total, "free_bytes": memory.free}


def free_bytes(cuda):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return free.value


def hold_all_but(keep):
    cuda = Library("libcuda.so.1")
    cuda.cuInit(0)
    context = ctypes.c_void_p()
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    while (excess := free_bytes(cuda) - keep) >= CHUNK_BYTES:
        address = ctypes.c_uint64()
        cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(excess // CHUNK_BYTES * CHUNK_BYTES))
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "describe":
        try:
            print(json.dumps(describe()))
        except (OSError, AttributeError, RuntimeError) as error:
            sys.exit(str(error))
    else:
        hold_all_but(int(sys.argv[2]))
