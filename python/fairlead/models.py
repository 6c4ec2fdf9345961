"""One copy of a model on the GPU for all instances that use it.

    import fairlead.models
    model = fairlead.models.load("model.safetensors")       # the first instance copies it to the GPU, the others find it
    weight = model["encoder.weight"]                         # address, dtype, shape; read only
    weight.to_numpy()                                        # a copy on the host
    torch.from_dlpack(weight)                                # no copy; needs a CUDA build of PyTorch

The bytes belong to the node: they are mapped into this process, read only where the driver can do that, and stay mapped
until close(). Writing to them is an error where the driver says so, and spoils the model of every other instance where it
does not. See docs/how-to/models.md.

Threads: a Store is for one thread at a time; tensors may be used from any.
"""

import array
import ctypes
import hashlib
import os
import socket
import struct

from .ktask import driver
from .safetensors import DTYPE_BITS, read_header

BLOCK_BYTES = 64 << 20
GRANULE_BYTES = 2 << 20
PIECE_BYTES = 16 << 20
ATTEMPTS = 5  # of what another process gave up, or a server that ended took with it

_PROTOCOL = 1
_OPEN, _SEAL, _CLOSE = 1, 2, 3
_HAS_DIGEST, _WAIT = 1, 2
_READY, _FILL, _MORE, _ERROR = 1, 2, 3, 4
_REQUEST = struct.Struct("=IIQQQII32s256s")
_ANSWER = struct.Struct("=IIQQQII32s256s")
_MOST_FDS = 250
_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_READ, _READ_WRITE = 1, 3  # CU_MEM_ACCESS_FLAGS_PROT_*
_NOT_SUPPORTED = 801


class ModelError(RuntimeError):
    """The node refused; `code` is one of the names below, the message says what and why."""

    NAMES = {1: "absent", 2: "pending", 3: "again", 4: "refused", 5: "no-room", 6: "unavailable"}

    def __init__(self, code, message):
        super().__init__(message)
        self.code = self.NAMES.get(code, str(code))


class Memory:
    """A model's bytes in this process: one range of device addresses."""

    dlpack_device = (2, 0)  # kDLCUDA, the first device that this process sees

    def __init__(self, gpu, tensor, size, descriptors, writable):
        self.gpu, self.tensor, self.bytes, self.writable = gpu, tensor, size, writable
        self.read_only = False  # whether the driver enforces it
        self.reserved = -(-size // GRANULE_BYTES) * GRANULE_BYTES
        self._mapped = []
        address = ctypes.c_uint64()
        gpu.call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(self.reserved), ctypes.c_size_t(0),
                 ctypes.c_uint64(0), ctypes.c_uint64(0))
        self.address = address.value
        try:
            for descriptor in descriptors:
                self._map(descriptor)
            self._allow(writable)
        except Exception:
            self.close()
            raise

    def _map(self, descriptor):
        at = sum(size for _, size in self._mapped)
        size = min(BLOCK_BYTES, self.reserved - at)
        handle = ctypes.c_uint64()
        self.gpu.call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(descriptor), _DESCRIPTOR)
        try:
            self.gpu.call("cuMemMap", ctypes.c_uint64(self.address + at), ctypes.c_size_t(size), ctypes.c_size_t(0), handle,
                          ctypes.c_uint64(0))
        finally:
            self.gpu.call("cuMemRelease", handle)  # the mapping keeps it
        self._mapped.append((self.address + at, size))

    def _allow(self, writable):
        if not writable and self._access(_READ) == 0:
            self.read_only = True
            return
        code = self._access(_READ_WRITE)
        if code != 0:
            raise driver.GpuError(f"cuMemSetAccess: error {code}")

    def _access(self, flags):
        device = ctypes.c_int()
        self.gpu.call("cuCtxGetDevice", ctypes.byref(device))
        description = (ctypes.c_int * 3)(1, device.value, flags)  # CU_MEM_LOCATION_TYPE_DEVICE
        code = self.gpu.try_call("cuMemSetAccess", ctypes.c_uint64(self.address), ctypes.c_size_t(self.reserved), description,
                                 ctypes.c_size_t(1))
        if code not in (0, _NOT_SUPPORTED):
            raise driver.GpuError(f"cuMemSetAccess: error {code}")
        return code

    def close(self):
        """Unmaps it. REQUIRES: nothing uses it any more."""
        if self.address == 0:
            return
        for address, size in self._mapped:
            self.gpu.call("cuMemUnmap", ctypes.c_uint64(address), ctypes.c_size_t(size))
        self.gpu.call("cuMemAddressFree", ctypes.c_uint64(self.address), ctypes.c_size_t(self.reserved))
        self.address, self._mapped = 0, []


class Store:
    """This process's connection to the models of its GPU. `path`: the node's socket, by default $FAIRLEAD_MODELS."""

    def __init__(self, path=None, gpu=None):
        path = path or os.environ.get("FAIRLEAD_MODELS")
        if not path:
            raise ModelError(6, "FAIRLEAD_MODELS is not set: this is no function of a node, or the node shares no models "
                                "(--model-memory)")
        self._path, self._gpu, self._socket, self._number = path, gpu, None, 0
        self._open = {}  # by id: opened once and kept
        self.models = {}  # by id: how many Models that are not closed use it

    @property
    def gpu(self):
        if self._gpu is None:
            self._gpu = driver.gpu()
        return self._gpu

    def get(self, name, wait=True):
        """Memory of the sealed tensor of that id; ModelError "absent" where there is none. What is open already is given as it is."""
        return self._kept(name) or self._keep(name, self._ask_again(name, 0, None, wait, None))

    def store(self, name, size, fill, digest=None, wait=True):
        """As get(); where there is none, calls fill(memory) first, which writes all `size` bytes, and seals it. `digest`: of
        the content (BLAKE2b-256), where it is known: what is on the GPU already under any id is found by it."""
        return self._kept(name) or self._keep(name, self._ask_again(name, size, digest, wait, fill))

    def close(self, name):
        """Unmaps it, however often it was got, and tells the node that this process no longer uses it. Of what is not open: no
        effect. REQUIRES: nothing uses it any more; a Model is closed by its own close()."""
        memory = self._open.pop(name, None)
        if memory is None:
            return
        memory.close()
        if self._socket is not None:
            try:
                self._send(_CLOSE, tensor=memory.tensor)
            except OSError:  # the node has gone, and with it what this process held
                self._socket = None

    def _kept(self, name):
        return self._open.get(name)

    def _keep(self, name, memory):
        self._open[name] = memory
        return memory

    def _ask_again(self, name, size, digest, wait, fill):
        for attempt in range(ATTEMPTS):
            try:
                return self._ask(name, size, digest, wait, fill)
            except ModelError as error:
                if error.code != "again" or attempt == ATTEMPTS - 1:
                    raise

    def _ask(self, name, size, digest, wait, fill):
        flags = (_HAS_DIGEST if digest else 0) | (_WAIT if wait else 0)
        kind, tensor, size, descriptors = self._exchange(_OPEN, size=size, flags=flags, digest=digest or b"", name=name)
        if kind == _READY:
            return self._map(tensor, size, descriptors, False)
        memory = self._map(tensor, size, descriptors, True)
        try:
            fill(memory)
            self.gpu.synchronise()
        except BaseException:
            memory.close()
            self._send(_CLOSE, tensor=tensor)
            raise
        memory.close()
        _, tensor, size, descriptors = self._exchange(_SEAL, tensor=tensor)
        return self._map(tensor, size, descriptors, False)

    def _map(self, tensor, size, descriptors, writable):
        try:
            return Memory(self.gpu, tensor, size, descriptors, writable)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _send(self, kind, tensor=0, size=0, flags=0, digest=b"", name=""):
        encoded = name.encode()
        if len(encoded) > 255:
            raise ModelError(4, f"the id has {len(encoded)} bytes; it must be 1 to 255")
        self._number += 1
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._socket.connect(self._path)
        self._socket.send(_REQUEST.pack(_PROTOCOL, kind, self._number, tensor, size, flags, 0, digest, encoded))
        return self._number

    def _exchange(self, kind, **fields):
        try:
            number = self._send(kind, **fields)
            return self._answer(number)
        except OSError as error:
            self._socket = None
            raise ModelError(6, f"the node's socket for models closed ({error})") from error

    def _answer(self, number):
        descriptors, first = [], None
        try:
            while first is None or len(descriptors) < first[6]:
                data, passed = self._receive()
                descriptors += passed
                if not data:
                    raise OSError("end of file")
                if len(data) != _ANSWER.size or struct.unpack_from("=I", data)[0] != _PROTOCOL:
                    said = struct.unpack_from("=I", data)[0] if len(data) >= 4 else 0
                    raise OSError(f"the node speaks version {said} of the protocol of models, this package {_PROTOCOL}: take the "
                                  "package of the node's release")
                fields = _ANSWER.unpack(data)
                if fields[2] != number:
                    raise OSError(f"an answer to {fields[2]}, not {number}")
                if fields[1] == _ERROR:
                    raise ModelError(fields[6], fields[8].split(b"\0")[0].decode(errors="replace"))
                first = first or (*fields[:4], fields[4], None, fields[5])
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise
        return first[1], first[3], first[4], descriptors

    def _receive(self):
        room = socket.CMSG_SPACE(_MOST_FDS * 4)
        data, ancillary, flags, _ = self._socket.recvmsg(_ANSWER.size, room, socket.MSG_CMSG_CLOEXEC)
        passed = array.array("i")
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                passed.frombytes(content[:len(content) // 4 * 4])
        if flags & socket.MSG_CTRUNC:
            for descriptor in passed:
                os.close(descriptor)
            raise OSError("no file descriptors are left in this process")
        return data, list(passed)


class Tensor:
    """A view of device memory: address, dtype (as safetensors has it), shape, bytes."""

    def __init__(self, model, name, entry):
        self.model, self.name, self._entry = model, name, entry  # the model stays mapped
        self.dtype, self.shape = entry.dtype, entry.shape
        self.address, self.bytes = model.memory.address + entry.begin, entry.end - entry.begin

    def download(self):
        return self.model.memory.gpu.download(self.address, self.bytes) if self.bytes else bytearray()

    def as_bytes(self):
        """The same memory as a flat tensor of bytes."""
        return Tensor(self.model, self.name, self._entry._replace(dtype="U8", shape=(self.bytes,)))

    def to_numpy(self):
        """A copy on the host. BF16 and F8 have no NumPy type: they come as unsigned integers of their size."""
        import numpy

        kinds = {"BOOL": "?", "U8": "u1", "I8": "i1", "F8_E4M3": "u1", "F8_E5M2": "u1", "I16": "i2", "U16": "u2", "F16": "f2",
                 "BF16": "u2", "I32": "i4", "U32": "u4", "F32": "f4", "I64": "i8", "U64": "u8", "F64": "f8"}
        return numpy.frombuffer(self.download(), kinds[self.dtype]).reshape(self.shape)

    def __dlpack_device__(self):
        return self.model.memory.dlpack_device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from . import dlpack

        if copy:
            raise BufferError("a shared model is not copied by DLPack; download() it")
        return dlpack.capsule(self, self.address, self.dtype, self.shape, self.__dlpack_device__())

    @property
    def __cuda_array_interface__(self):
        kinds = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1", "F16": "<f2", "F32": "<f4", "F64": "<f8", "I16": "<i2", "I32": "<i4",
                 "I64": "<i8", "U16": "<u2", "U32": "<u4", "U64": "<u8"}
        if self.dtype not in kinds:
            raise AttributeError(f"{self.dtype} has no type in the CUDA array interface")
        return {"shape": self.shape, "typestr": kinds[self.dtype], "data": (self.address, True), "version": 3}


class Model:
    """The tensors of a file, by name."""

    def __init__(self, memory, header, store, name):
        self.memory, self.metadata, self._store, self._name = memory, header.metadata, store, name
        self._entries, self._is_closed = header.tensors, False
        store.models[name] = store.models.get(name, 0) + 1

    def __getitem__(self, name):
        if self._is_closed:
            raise ModelError(4, f"model {self._name!r} is closed; load it again")
        return Tensor(self, name, self._entries[name])

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def keys(self):
        return self._entries.keys()

    def close(self):
        """Once more: no effect. Others that loaded the same keep it; with the last it is unmapped. REQUIRES: none of its tensors is
        used any more."""
        if self._is_closed:
            return
        self._is_closed = True
        self._store.models[self._name] -= 1
        if self._store.models[self._name] == 0:
            del self._store.models[self._name]
            self._store.close(self._name)


_stores = {}


def _this_process():
    pid = os.getpid()  # a fork has no connection and no mappings of its own
    if pid not in _stores:
        _stores.clear()
        _stores[pid] = Store()
    return _stores[pid]


def _digest(file, header):
    digest = hashlib.blake2b(digest_size=32)
    file.seek(header.data_begin)
    left = header.data_bytes
    while left:
        piece = file.read(min(PIECE_BYTES, left))
        if not piece:
            raise ValueError("the file became shorter while it was read")
        digest.update(piece)
        left -= len(piece)
    return digest.digest()


def _upload(file, header, memory):
    file.seek(header.data_begin)
    done = 0
    while done < header.data_bytes:
        piece = file.read(min(PIECE_BYTES, header.data_bytes - done))
        if not piece:
            raise ValueError("the file became shorter while it was read")
        memory.gpu.upload(memory.address + done, piece)
        done += len(piece)


def _name_of(path, file):
    """Where the file is (of a path above 190 bytes the last 190), and which one it is there: one that is written over has another
    time, one that is put in its place another number."""
    status = os.fstat(file.fileno())
    place = os.fsencode(os.path.realpath(path))[-190:].decode(errors="ignore")
    return f"{place}@{status.st_ino:x}.{status.st_mtime_ns:x}.{status.st_ctime_ns:x}"


def load(path, name=None, store=None):
    """The safetensors file at `path`, on the GPU once for all who load the same bytes. `name`: its id within this version of
    the function, which is then the caller's to change with the content; by default the file's place, number and times.
    Loading it again gives what is open."""
    store = store or _this_process()
    with open(path, "rb") as file:
        name = name or _name_of(path, file)
        header = read_header(file)
        if header.data_bytes == 0:
            raise ValueError(f"{path} has no tensor with any bytes")
        try:
            memory = store.get(name)
            if memory.bytes != header.data_bytes:
                raise ModelError(4, f"model {name!r} on the GPU has {memory.bytes} bytes, {path} has {header.data_bytes}")
        except ModelError as error:
            if error.code != "absent":
                raise
            memory = store.store(name, header.data_bytes, lambda at: _upload(file, header, at), _digest(file, header))
    return Model(memory, header, store, name)


__all__ = ["DTYPE_BITS", "Memory", "Model", "ModelError", "Store", "Tensor", "load"]
