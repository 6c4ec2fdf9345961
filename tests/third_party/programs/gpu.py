"""A CUDA device through NVIDIA's own Python bindings, as small as the programs here need it."""

import ctypes

import numpy
from cuda.bindings import driver


def check(result):
    """The values of a call's result tuple: nothing, one, or a tuple."""
    error, *values = result
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(error.name)
    return values[0] if len(values) == 1 else tuple(values) or None


class Gpu:
    def __init__(self, ordinal=0):
        check(driver.cuInit(0))
        self.device = check(driver.cuDeviceGet(ordinal))
        self.context = check(driver.cuDevicePrimaryCtxRetain(self.device))
        check(driver.cuCtxSetCurrent(self.context))

    def upload(self, array):
        array = numpy.ascontiguousarray(array)
        address = check(driver.cuMemAlloc(array.nbytes))
        check(driver.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes))
        return address

    def download(self, address, like):
        array = numpy.empty_like(like)
        check(driver.cuMemcpyDtoH(array.ctypes.data, address, array.nbytes))
        return array

    def function(self, ptx, name):
        module = check(driver.cuModuleLoadData(ptx.encode() + b"\0"))
        return check(driver.cuModuleGetFunction(module, name.encode()))

    def launch(self, function, grid, block, shared, arguments, stream=0):
        """`arguments`: device addresses, or (value, ctypes type)."""
        values = tuple(a[0] if isinstance(a, tuple) else a for a in arguments)
        types = tuple(a[1] if isinstance(a, tuple) else None for a in arguments)
        check(driver.cuLaunchKernel(function, *grid, *block, shared, stream, (values, types), 0))

    def set_shared_limit(self, function, size):
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(driver.cuFuncSetAttribute(function, attribute, size))


INT = ctypes.c_int
FLOAT = ctypes.c_float
ADDRESS = ctypes.c_void_p
