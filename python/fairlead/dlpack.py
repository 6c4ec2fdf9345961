"""DLPack capsules over memory that somebody else owns (dlpack.h 1.0's first struct, which all consumers take)."""

import ctypes

_CODES = {"I": 0, "U": 1, "F": 2, "B": 4}  # kDLInt, kDLUInt, kDLFloat, kDLBfloat


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]

_alive = {}  # by address of the managed struct: what it must keep alive


def _delete(managed):
    _alive.pop(ctypes.addressof(managed.contents), None)


_delete_c = _DELETER(_delete)
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_api.PyCapsule_IsValid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_NAME = b"dltensor"


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _unused(capsule):
    # A consumer renames the capsule and calls the deleter itself.
    if _api.PyCapsule_IsValid(capsule, _NAME):
        _alive.pop(_api.PyCapsule_GetPointer(capsule, _NAME), None)


def _type(dtype):
    if dtype == "BOOL":
        return 6, 8  # kDLBool
    if dtype.startswith("F8"):
        raise BufferError(f"{dtype} has no DLPack type that consumers take yet")
    if dtype == "BF16":
        return _CODES["B"], 16
    return _CODES[dtype[0]], int(dtype[1:])


def capsule(owner, address, dtype, shape, device):
    """`owner` lives until the consumer is done. Contiguous, rows first. BufferError: no such type."""
    code, bits = _type(dtype)
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps, stride = [0] * len(shape), 1
    for i in reversed(range(len(shape))):
        steps[i] = stride
        stride *= max(shape[i], 1)
    strides = (ctypes.c_int64 * max(len(shape), 1))(*steps)
    managed = _Managed(_Tensor(address, device[0], device[1], len(shape), code, bits, 1, sizes, strides, 0), None, _delete_c)
    _alive[ctypes.addressof(managed)] = (managed, sizes, strides, owner)
    return _api.PyCapsule_New(ctypes.addressof(managed), _NAME, ctypes.cast(_unused, ctypes.c_void_p))
