"""Runs a kernel task here, without a node: on this machine's GPU, or on the software GPU. One kernel after the other,
as task.json says; it is the plain reference of what a node does with the same task.

    task = ktask.load("dir")            # or Task.load()
    task(x=array)["y"]
"""

import base64
import json
import os
import pathlib
import struct
import sys

from fairlead.arrays import checked, to_array
from fairlead.ktask.driver import NATIVE, SOURCE_TREE, gpu
from fairlead.ktask.graph import buffer_bytes
from fairlead.types import TYPES, TaskError

LIBRARY = "fairlead:"


def library_module(name):
    """The code of module "fairlead:NAME": from $FAIRLEAD_KERNELS, the wheel, a source tree around this package,
    or an installation."""
    folders = [os.environ.get("FAIRLEAD_KERNELS"), NATIVE / "kernels", SOURCE_TREE / "build/share/fairlead/kernels",
               *(pathlib.Path(prefix) / "share/fairlead/kernels" for prefix in (sys.prefix, "/usr/local", "/usr", "/usr/lib/fairlead"))]
    for folder in filter(None, folders):
        path = pathlib.Path(folder) / f"{name.removeprefix(LIBRARY)}.ptx"
        if path.is_file():
            return path.read_bytes()
    raise TaskError(f"module {name} is in none of {', '.join(str(f) for f in folders if f)}; "
                    "build it (ninja -C build kernel_library) or set FAIRLEAD_KERNELS")


def load(folder, **options):
    """The task of a bundle."""
    folder = pathlib.Path(folder)
    description = json.loads((folder / "task.json").read_text())
    return LocalTask(description, lambda name: (folder / name).read_bytes(), **options)


class LocalTask:
    """A task whose memory is allocated and whose modules are loaded. Use it as a context manager, or close() it.

    description: task.json as a dict. read_file(name): a file of the bundle. constants: {name: array} of those that the
    task names by key."""

    def __init__(self, description, read_file, constants=None):
        self.description = description
        self._gpu = gpu()
        self._gpu.make_current()
        self._modules, self._functions, self._addresses = {}, {}, {}
        self.buffers = description["buffers"]
        self._sizes = {name: buffer_bytes(name, spec) for name, spec in self.buffers.items()}
        try:
            self._allocate(read_file, constants or {})
            self._launches = [self._prepare(kernel, read_file) for kernel in description["kernels"]]
        except Exception:
            self.close()
            raise

    def _allocate(self, read_file, constants):
        for name, size in self._sizes.items():
            self._addresses[name] = self._gpu.allocate(size)
        for name, spec in self.buffers.items():
            if spec["role"] != "constant":
                continue
            if "file" not in spec and name not in constants:
                raise TaskError(f"constant {name} is object {spec.get('key')} of a node; give it: "
                                f"constants={{{name!r}: array}}")
            data = read_file(spec["file"]) if "file" in spec else constants[name]
            self._gpu.upload(self._addresses[name], self._checked(name, data, f"constant {name}"))

    def _checked(self, name, value, what):
        spec = self.buffers[name]
        if "type" not in spec:
            return checked(value, "bytes", (self._sizes[name],), what)
        return checked(value, spec["type"], spec["shape"], what)

    def _prepare(self, kernel, read_file):
        module = kernel["module"]
        if module not in self._modules:
            code = library_module(module) if module.startswith(LIBRARY) else read_file(module)
            self._modules[module] = self._gpu.load_module(code, module)
        shared = kernel.get("shared_bytes", 0)
        function = self._gpu.kernel(self._modules[module], kernel["kernel"], shared)
        parameters = [self._parameter(argument) for argument in kernel["arguments"]]
        grid, block = (([*kernel[side], 1, 1])[:3] for side in ("grid", "block"))
        return kernel["kernel"], (function, grid, block, shared, parameters)

    def _parameter(self, argument):
        if "buffer" in argument:
            return struct.pack("<Q", self._address(argument))
        if "bytes" in argument:
            data = bytearray(base64.b64decode(argument["bytes"]))
            for relocation in argument.get("relocations", ()):
                struct.pack_into("<Q", data, relocation["at"], self._address(relocation))
            return bytes(data)
        (type, value), = argument.items()
        return struct.pack("<" + TYPES[type].code, value)

    def _address(self, argument):
        return self._addresses[argument["buffer"]] + argument.get("offset", 0)

    def __call__(self, **inputs):
        """{output: array}. Each input and in-out buffer must be given."""
        self._gpu.make_current()
        wanted = {name for name, spec in self.buffers.items() if spec["role"] in ("input", "inout")}
        if set(inputs) != wanted:
            raise TaskError(f"inputs given: {', '.join(sorted(inputs)) or 'none'}; "
                            f"wanted: {', '.join(sorted(wanted)) or 'none'}")
        data = {name: self._checked(name, value, f"input {name}") for name, value in inputs.items()}
        for name, value in data.items():
            self._gpu.upload(self._addresses[name], value)
        for name, spec in self.buffers.items():
            if spec.get("zeroed"):
                self._gpu.zero(self._addresses[name], self._sizes[name])
        for _ in range(self.description.get("iterations", 1)):
            for _, launch in self._launches:
                self._gpu.launch(*launch)
        self._gpu.synchronise()
        return {name: self._result(name) for name, spec in self.buffers.items() if spec["role"] in ("output", "inout")}

    def _result(self, name):
        spec = self.buffers[name]
        data = self._gpu.download(self._addresses[name], self._sizes[name])
        return to_array(data, spec["type"], spec["shape"]) if "type" in spec else data

    def close(self):
        """Gives memory and modules back."""
        for address in self._addresses.values():
            self._gpu.free(address)
        for module in self._modules.values():
            self._gpu.unload(module)
        self._addresses, self._modules = {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
