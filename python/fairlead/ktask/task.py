"""A kernel task under construction: buffers, kernels in order, and what `fairlead deploy` takes in the end."""

import hashlib
import pathlib

from fairlead.arrays import as_array
from fairlead.ktask import library, local
from fairlead.ktask.graph import Argument, Buffer, Launch, Scalar, Tensor, write_json
from fairlead.ktask.operators import Operators
from fairlead.ktask.planning import share_temporaries
from fairlead.types import TaskError, element_count, element_type, shape_of

NAME_LIMIT = 256


class Task(Operators):
    """Operators (gemm, conv2d, relu, ...) append kernels of the built-in library; `launch` appends any kernel. Kernels
    run in the order in which they were appended, `iterations` times. share_temporaries=False takes more memory: what
    one kernel has read is then not overwritten by the next, so that more of them may run at once."""

    def __init__(self, iterations=1, share_temporaries=True):
        if not 1 <= iterations <= 1_000_000:
            raise TaskError(f"iterations is {iterations}, 1 to 1000000 is possible")
        self.iterations, self.share_temporaries = iterations, share_temporaries
        self.launches = []
        self.modules = {}  # name in the bundle: bytes
        self._named = {}   # name: Buffer

    # ---- buffers

    def input(self, name, type, shape):
        """An object that every call gives."""
        return self._tensor(name, "input", type, shape)

    def constant(self, name, value=None, *, key=None, type=None, shape=None):
        """The same at every call: an array that travels with the task, or with `key`, `type` and `shape` an object that
        the node has already."""
        if (value is None) == (key is None):
            raise TaskError(f"constant {name}: either an array or a key")
        if key is not None:
            return self._tensor(name, "constant", type, shape, key=key)
        array = as_array(value)
        type = element_type(type or array.type or "bytes")
        shape = shape or array.shape or (array.data.nbytes // type.bytes,)
        if element_count(shape) * type.bytes != array.data.nbytes:
            raise TaskError(f"constant {name}: {array.data.nbytes} bytes, shape {shape} of {type} has "
                            f"{element_count(shape) * type.bytes}")
        return self._tensor(name, "constant", type, shape, data=array.data)

    def inout(self, name, type, shape):
        """An object is copied into it at a call, and its contents become a new object."""
        return self._tensor(name, "inout", type, shape)

    def temporary(self, type, shape, zeroed=False):
        """Memory between kernels. `zeroed`: filled with zeros before every call; else its contents are anybody's."""
        return Tensor(self, self._buffer("temporary", type, shape, zeroed=zeroed), type, shape)

    def output(self, name, tensor=None, *, type=None, shape=None, zeroed=False):
        """Makes `tensor` the output `name`; without one, an output for kernels of your own to write."""
        if tensor is None:
            return self._tensor(name, "output", type, shape, zeroed=zeroed)
        buffer = tensor.buffer
        if buffer.role != "temporary" or tensor.bytes != buffer.bytes:  # an input, an output already, or a part
            tensor = self.copy(tensor)
            buffer = tensor.buffer
        self._name(name, buffer)
        buffer.role, buffer.type, buffer.shape = "output", tensor.type, tensor.shape
        return tensor

    def _tensor(self, name, role, type, shape, **more):
        buffer = self._buffer(role, type, shape, **more)
        self._name(name, buffer)
        return Tensor(self, buffer, type, shape)

    def _buffer(self, role, type, shape, **more):
        type, shape = element_type(type), shape_of(shape)
        return Buffer(role, element_count(shape) * type.bytes, type, shape, **more)

    def _name(self, name, buffer):
        if not 1 <= len(name.encode()) <= NAME_LIMIT:
            raise TaskError(f"a buffer's name has {len(name.encode())} bytes, 1 to {NAME_LIMIT} are possible")
        if name in self._named:
            raise TaskError(f"two buffers are called {name}")
        self._named[name] = buffer
        buffer.name = name

    # ---- kernels

    def module(self, code, name=None):
        """Takes PTX, a cubin or a fat binary (bytes, or str for PTX) along; the result is for `launch`."""
        code = code.encode() if isinstance(code, str) else bytes(code)
        suffix = "cubin" if code.startswith(b"\x7fELF") else "ptx"
        name = name or f"modules/{hashlib.sha256(code).hexdigest()[:16]}.{suffix}"
        if self.modules.get(name, code) != code:
            raise TaskError(f"two modules are called {name}")
        self.modules[name] = code
        return name

    def launch(self, module, kernel, grid, block, arguments, shared_bytes=0):
        """Appends a kernel. `module`: what module() gave, or "fairlead:NAME". Arguments in the kernel's order: tensors,
        read(tensor) or write(tensor), ktask.f32(2.0) and the like, or bytes."""
        if not module.startswith("fairlead:") and module not in self.modules:
            raise TaskError(f"{kernel}: there is no module {module}")
        self.launches.append(Launch(module, kernel, grid, block,
                                    [self._argument(kernel, i, a) for i, a in enumerate(arguments)], shared_bytes))

    def _argument(self, kernel, index, value):
        if isinstance(value, Tensor):
            value = Argument(value)
        if isinstance(value, (bytes, bytearray)):
            return Scalar("bytes", *value)
        if isinstance(value, Scalar):
            return value
        if not isinstance(value, Argument):
            raise TaskError(f"{kernel}: argument {index} is {value!r}; say its type, as in ktask.s32({value!r})")
        if value.buffer.role in ("input", "constant") and value.access == "write":
            raise TaskError(f"{kernel}: argument {index} would write {value.buffer.role} {value.buffer.name}")
        return value

    def library_kernel(self, name, **values):
        """Appends a kernel of the built-in library, by the names of its arguments (docs/reference/kernel-library.md). Geometry is
        worked out from them; what it needs beside them (batch, images, ...) is given here, too. None is a null
        buffer."""
        kernel = library.KERNELS.get(name)
        if kernel is None:
            raise TaskError(f"the library has no kernel {name}")
        if values.get("count", 1) >= 2**31:
            raise TaskError(f"{name}: {values['count']} elements, fewer than {2**31} are possible")
        grid, block = kernel.geometry(values)
        arguments = [_library_argument(name, argument, kind, values) for argument, kind in kernel.arguments]
        self.launch(f"fairlead:{kernel.module}", name, grid, block, arguments)

    # ---- what comes of it

    def description(self):
        """task.json as a dict."""
        names = {buffer: name for name, buffer in self._named.items()}
        buffers = {name: _buffer_json(buffer) for name, buffer in self._named.items()}
        for index, shared in enumerate(share_temporaries(self.launches, self.iterations, self.share_temporaries)):
            name = next(n for n in (f"t{index}", f"t{index}.temporary") if n not in buffers)
            names.update((member, name) for member in shared.members)
            buffers[name] = {"role": "temporary", "bytes": shared.bytes}
            if shared.members[0].zeroed:
                buffers[name]["zeroed"] = True
        self._check_outputs()
        return {"buffers": buffers, "kernels": [launch.to_json(names) for launch in self.launches],
                "iterations": self.iterations}

    def _check_outputs(self):
        if not self.launches:
            raise TaskError("the task has no kernel")
        written = {argument.buffer for launch in self.launches for argument in launch.buffers() if argument.writes()}
        outputs = [buffer for buffer in self._named.values() if buffer.role in ("output", "inout")]
        for buffer in outputs:
            if buffer not in written:
                raise TaskError(f"no kernel writes output {buffer.name}")
        if not outputs:
            raise TaskError("the task has no output")

    def constants(self):
        """{path in the bundle: bytes}."""
        return {_constant_path(buffer): buffer.data for buffer in self._named.values() if buffer.data is not None}

    def save(self, folder):
        """Writes the bundle: task.json, modules, constants. Files of an earlier task of that folder are overwritten."""
        folder = pathlib.Path(folder)
        description = self.description()
        for path, data in {**self.modules, **self.constants()}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "task.json").write_text(write_json(description))
        return folder

    def load(self, **options):
        """The task on this machine's GPU, without a node: ktask.local."""
        return local.LocalTask(self.description(), {**self.modules, **self.constants()}.__getitem__, **options)

    def run(self, **inputs):
        """One call here and now: {output: array}."""
        with self.load() as loaded:
            return loaded(**inputs)

    def deploy(self, client, name, **options):
        """Makes it function `name` of the client's node."""
        return client.deploy_task(name, self, **options)


def _library_argument(kernel, name, kind, values):
    if name not in values:
        raise TaskError(f"{kernel}: argument {name} is missing")
    value = values[name]
    if kind in ("in", "in?", "out"):
        if value is None and kind == "in?":
            return Scalar("u64", 0)
        return Argument(value, "write" if kind == "out" else "read")
    if "[" in kind:
        return Scalar(kind.partition("[")[0], *value)
    return Scalar(kind, value)


def _constant_path(buffer):
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in buffer.name).lstrip(".")
    if plain != buffer.name:  # two names may have become one
        plain += "-" + hashlib.sha256(buffer.name.encode()).hexdigest()[:8]
    return f"constants/{plain}.bin"


def _buffer_json(buffer):
    said = {"role": buffer.role, "type": buffer.type.name, "shape": list(buffer.shape) or [1]}
    if buffer.key is not None:
        said["key"] = buffer.key
    if buffer.data is not None:
        said["file"] = _constant_path(buffer)
    if buffer.zeroed:
        said["zeroed"] = True
    return said
