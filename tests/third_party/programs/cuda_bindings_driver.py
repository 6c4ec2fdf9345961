"""The driver API through cuda-bindings, NVIDIA's own Python package: one function per call group.

usage: cuda_bindings_driver.py GROUP    one of GROUPS; exit status 0 when every answer is the documented one
"""

import ctypes
import subprocess
import sys

import numpy
from cuda.bindings import driver
from gpu import ADDRESS, FLOAT, INT, Gpu, check

PTX = """
.version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 calls = 5;
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 n)
{
  .reg .pred %outside; .reg .f32 %f<3>; .reg .b32 %r<6>; .reg .b64 %a<3>;
  ld.param.u64 %a0, [data]; ld.param.f32 %f0, [factor]; ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %outside, %r4, %r0;
  @%outside ret;
  mul.wide.u32 %a1, %r4, 4; add.u64 %a2, %a0, %a1;
  ld.global.f32 %f1, [%a2]; mul.f32 %f2, %f1, %f0; st.global.f32 [%a2], %f2;
  ret;
}
"""
N = 1024


def scale(gpu, function, address, factor, stream=0):
    gpu.launch(function, (N // 256, 1, 1), (256, 1, 1), 0, [address, (factor, FLOAT), (N, INT)], stream)


def expect(code, result):
    assert result[0] == getattr(driver.CUresult, code), f"{result[0].name} instead of {code}"


def device(gpu):
    assert check(driver.cuDriverGetVersion()) >= 12000
    assert check(driver.cuDeviceGetCount()) >= 1
    assert check(driver.cuDeviceGetName(100, gpu.device)).strip(b"\0")
    attribute = driver.CUdevice_attribute
    for wanted, least in ((attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32),
                          (attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1),
                          (attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 7)):
        assert check(driver.cuDeviceGetAttribute(wanted, gpu.device)) >= least
    assert len(check(driver.cuDeviceGetUuid(gpu.device)).bytes) == 16
    assert check(driver.cuDeviceTotalMem(gpu.device)) > 1 << 28
    expect("CUDA_ERROR_INVALID_DEVICE", driver.cuDeviceGet(99))


def memory(gpu):
    free_before, total = check(driver.cuMemGetInfo())
    address = check(driver.cuMemAlloc(64 << 20))
    assert check(driver.cuMemGetInfo()) == (free_before - (64 << 20), total)
    base, size = check(driver.cuMemGetAddressRange(int(address) + 100))
    assert (int(base), size) == (int(address), 64 << 20)
    check(driver.cuMemsetD32(address, 0x01020304, 1000))
    check(driver.cuMemsetD8(int(address) + 4, 9, 3))
    words = gpu.download(address, numpy.zeros(3, dtype=numpy.uint32))
    assert list(words) == [0x01020304, 0x01090909, 0x01020304]
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    assert check(driver.cuPointerGetAttribute(kind, address)) == driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    check(driver.cuMemFree(address))
    expect("CUDA_ERROR_INVALID_VALUE", driver.cuMemFree(address))
    expect("CUDA_ERROR_OUT_OF_MEMORY", driver.cuMemAlloc(total * 2))


def modules(gpu):
    function = gpu.function(PTX, "scale")
    attribute = driver.CUfunction_attribute
    assert check(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function)) == 1024
    module = check(driver.cuModuleLoadData(PTX.encode() + b"\0"))
    variable, size = check(driver.cuModuleGetGlobal(module, b"calls"))
    assert size == 4 and gpu.download(variable, numpy.zeros(1, dtype=numpy.uint32))[0] == 5
    expect("CUDA_ERROR_NOT_FOUND", driver.cuModuleGetFunction(module, b"absent"))
    check(driver.cuModuleUnload(module))
    broken = PTX.replace("mul.f32", "no_such_instruction.f32").encode() + b"\0"
    log = bytearray(2000)
    option = driver.CUjit_option
    result = driver.cuModuleLoadDataEx(broken, 2, [option.CU_JIT_ERROR_LOG_BUFFER,
                                                   option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES], [log, len(log)])
    expect("CUDA_ERROR_INVALID_PTX", result)
    assert b"no_such_instruction" in log
    blocks = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, 256, 0))
    assert 1 <= blocks <= 32


def libraries(gpu):
    library = check(driver.cuLibraryLoadData(PTX.encode() + b"\0", [], [], 0, [], [], 0))
    kernel = check(driver.cuLibraryGetKernel(library, b"scale"))
    assert check(driver.cuLibraryGetKernelCount(library)) == 1
    assert check(driver.cuKernelGetParamInfo(kernel, 1)) == (8, 4)
    data = numpy.arange(N, dtype=numpy.float32)
    address = gpu.upload(data)
    scale(gpu, check(driver.cuKernelGetFunction(kernel)), address, 2.0)
    assert (gpu.download(address, data) == data * 2).all()
    check(driver.cuLibraryUnload(library))


def streams(gpu):
    function = gpu.function(PTX, "scale")
    data = numpy.ones(N, dtype=numpy.float32)
    address = gpu.upload(data)
    first, second = (check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)) for _ in range(2))
    start, middle, end = (check(driver.cuEventCreate(0)) for _ in range(3))
    check(driver.cuEventRecord(start, first))
    for _ in range(10):
        scale(gpu, function, address, 2.0, first)
    check(driver.cuEventRecord(middle, first))
    check(driver.cuStreamWaitEvent(second, middle, 0))
    scale(gpu, function, address, 3.0, second)
    check(driver.cuEventRecord(end, second))
    check(driver.cuEventSynchronize(end))
    assert (gpu.download(address, data) == 3 * 1024).all()
    assert check(driver.cuEventElapsedTime(start, end)) >= 0
    expect("CUDA_SUCCESS", driver.cuStreamQuery(first))
    seen = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    check(driver.cuLaunchHostFunc(first, driver.CUhostFn(ctypes.cast(callback, ctypes.c_void_p).value), 7))
    check(driver.cuStreamSynchronize(first))
    assert seen == [7]


def graphs(gpu):
    function = gpu.function(PTX, "scale")
    data = numpy.ones(N, dtype=numpy.float32)
    address = gpu.upload(data)
    stream = check(driver.cuStreamCreate(0))
    check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    for _ in range(3):
        scale(gpu, function, address, 2.0, stream)
    graph = check(driver.cuStreamEndCapture(stream))
    assert (gpu.download(address, data) == 1).all(), "captured work must not run"
    executable = check(driver.cuGraphInstantiate(graph, 0))
    for _ in range(2):
        check(driver.cuGraphLaunch(executable, stream))
    check(driver.cuStreamSynchronize(stream))
    assert (gpu.download(address, data) == 64).all()
    check(driver.cuGraphExecDestroy(executable))
    check(driver.cuGraphDestroy(graph))


def virtual_memory(gpu):
    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = int(gpu.device)
    granularity = check(driver.cuMemGetAllocationGranularity(
        properties, driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM))
    access = driver.CUmemAccessDesc()
    access.location = properties.location
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    address = check(driver.cuMemAddressReserve(granularity, 0, 0, 0))
    expect("CUDA_ERROR_INVALID_VALUE", driver.cuMemCreate(granularity - 1, properties, 0))
    data = numpy.arange(N, dtype=numpy.float32)
    for _ in range(2):  # evicted and restored under one address
        handle = check(driver.cuMemCreate(granularity, properties, 0))
        check(driver.cuMemMap(address, granularity, 0, handle, 0))
        check(driver.cuMemSetAccess(address, granularity, [access], 1))
        check(driver.cuMemcpyHtoD(address, data.ctypes.data, data.nbytes))
        assert (gpu.download(address, data) == data).all()
        check(driver.cuMemUnmap(address, granularity))
        check(driver.cuMemRelease(handle))
    check(driver.cuMemAddressFree(address, granularity))


def pools(gpu):
    pool = check(driver.cuDeviceGetDefaultMemPool(gpu.device))
    threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    check(driver.cuMemPoolSetAttribute(pool, threshold, driver.cuuint64_t(1 << 30)))
    stream = check(driver.cuStreamCreate(0))
    address = check(driver.cuMemAllocAsync(1 << 20, stream))
    check(driver.cuMemsetD8Async(address, 3, 1 << 20, stream))
    check(driver.cuStreamSynchronize(stream))
    assert (gpu.download(address, numpy.zeros(1 << 20, dtype=numpy.uint8)) == 3).all()
    used = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    assert int(check(driver.cuMemPoolGetAttribute(pool, used))) == 1 << 20
    check(driver.cuMemFreeAsync(address, stream))
    check(driver.cuStreamSynchronize(stream))
    assert int(check(driver.cuMemPoolGetAttribute(pool, used))) == 0


def managed(gpu):
    address = check(driver.cuMemAllocManaged(N * 4, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value))
    host = numpy.ctypeslib.as_array(ctypes.cast(int(address), ctypes.POINTER(ctypes.c_float)), (N,))
    host[:] = numpy.arange(N)
    scale(gpu, gpu.function(PTX, "scale"), address, 4.0)
    check(driver.cuCtxSynchronize())
    assert (host == numpy.arange(N) * 4).all()
    check(driver.cuMemFree(address))


def interprocess(gpu):
    data = numpy.arange(N, dtype=numpy.float32)
    address = gpu.upload(data)
    handle = check(driver.cuIpcGetMemHandle(address))
    text = ctypes.string_at(handle.getPtr(), 64).hex()
    subprocess.run([sys.executable, "-W", "ignore", __file__, "open-handle", text], check=True)
    assert (gpu.download(address, data) == data * 5).all()


def open_handle(gpu, text):
    handle = driver.CUipcMemHandle()
    ctypes.memmove(handle.getPtr(), bytes.fromhex(text), 64)
    address = check(driver.cuIpcOpenMemHandle(
        handle, driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value))
    scale(gpu, gpu.function(PTX, "scale"), address, 5.0)
    check(driver.cuCtxSynchronize())
    check(driver.cuIpcCloseMemHandle(address))


def faults(gpu):
    """An access behind an allocation is an error that sticks to the context."""
    address = check(driver.cuMemAlloc(1 << 21))
    scale(gpu, gpu.function(PTX, "scale"), (int(address) + (1 << 40), ADDRESS), 1.0)
    expect("CUDA_ERROR_ILLEGAL_ADDRESS", driver.cuCtxSynchronize())
    expect("CUDA_ERROR_ILLEGAL_ADDRESS", driver.cuMemAlloc(16))


GROUPS = {group.__name__: group for group in (device, memory, modules, libraries, streams, graphs, virtual_memory,
                                              pools, managed, interprocess, faults)}

if __name__ == "__main__":
    if sys.argv[1] == "open-handle":
        open_handle(Gpu(), sys.argv[2])
    else:
        GROUPS[sys.argv[1]](Gpu())
