"""A kernel task as it travels to the node that runs it.

A deployed kernel task has a home, and its objects lie elsewhere. So a call from Ray brings its task along (`POST /v1/ktasks`): it runs
where it arrives, which is where its inputs are. The node knows the same task again. Large constants do not travel with calls: each node is
given them once, as objects."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from typing import Any

from fairlead.ktask import wire
from fairlead.ktask.graph import buffer_bytes
from fairlead.types import TaskError

CARRIED_LIMIT = 256 << 10  # of constants that travel with each call


@dataclasses.dataclass(frozen=True)
class Buffer:
    """type "bytes" and a shape of one dimension where the task says neither."""

    type: str
    shape: tuple[int, ...]
    bytes: int


@dataclasses.dataclass(frozen=True)
class Bundle:
    """description: task.json as a dict. constants: {file of the bundle: bytes as an array of u8}, which Ray does not copy."""

    digest: str
    description: dict[str, Any]
    modules: dict[str, bytes]
    constants: dict[str, Any]

    @property
    def bytes(self) -> int:
        return sum(map(len, self.modules.values())) + sum(int(one.nbytes) for one in self.constants.values())

    def buffers(self, *roles: str) -> dict[str, Buffer]:
        """Those of these roles, in the order of the task."""
        return {name: _buffer(name, spec) for name, spec in self.description["buffers"].items() if spec["role"] in roles}

    @property
    def inputs(self) -> dict[str, Buffer]:
        return self.buffers("input", "inout")

    @property
    def outputs(self) -> dict[str, Buffer]:
        return self.buffers("output", "inout")

    def names(self) -> list[str]:
        return wire.buffer_names(self.description)


def _buffer(name: str, spec: dict[str, Any]) -> Buffer:
    size = buffer_bytes(name, spec)
    return Buffer(spec["type"], tuple(spec["shape"]), size) if "type" in spec and "shape" in spec else Buffer("bytes", (size,), size)


def bundle_of(task: Any) -> Bundle:
    """Of a fairlead.ktask.Task, or of a folder as `fairlead deploy` takes it. TaskError: the folder has no task."""
    if isinstance(task, pathlib.Path):
        return _bundle(*_read_folder(task))
    return _bundle(task.description(), {**task.modules, **task.constants()})


def with_constants(bundle: Bundle, contents: dict[str, Any]) -> Bundle:
    """The same with the contents of constants, by buffer, that were keys of objects before."""
    buffers = dict(bundle.description["buffers"])
    for buffer in contents:
        buffers[buffer] = {name: value for name, value in buffers[buffer].items() if name != "key"} | {"file": f"object:{buffer}"}
    files = {f"object:{buffer}": data for buffer, data in contents.items()}
    return _bundle({**bundle.description, "buffers": buffers}, {**bundle.modules, **bundle.constants, **files})


def _bundle(description: dict[str, Any], files: dict[str, Any]) -> Bundle:
    import numpy  # noqa: PLC0415  Ray brings it

    named = {spec["file"] for spec in description["buffers"].values() if "file" in spec}
    modules = {name: bytes(data) for name, data in files.items() if name not in named}
    constants = {name: numpy.frombuffer(data, dtype="uint8") for name, data in files.items() if name in named}
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    contents: dict[str, Any] = {**modules, **constants}
    for name, data in sorted(contents.items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
    return Bundle(digest.hexdigest(), description, modules, constants)


def _read_folder(folder: pathlib.Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    try:
        description = json.loads((folder / "task.json").read_text())
    except (OSError, ValueError) as error:
        raise TaskError(f"{folder} is no kernel task, task.json is wanted in it: {error}") from None
    names = {spec["file"] for spec in description.get("buffers", {}).values() if "file" in spec}
    names |= {kernel["module"] for kernel in description.get("kernels", []) if not kernel["module"].startswith("fairlead:")}
    inside = folder.resolve()
    for name in names:
        if inside not in (folder / name).resolve().parents:
            raise TaskError(f"task.json of {folder} names the file {name}, which is not in the folder")
    return description, {name: (folder / name).read_bytes() for name in names}
