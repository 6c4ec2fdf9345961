"""Immutable objects of a node, found by tenant and key: what kernel tasks read and write.

A client on the node's own machine maps large objects: it writes a new one straight into the node's shared memory, and
reads one without a copy. Others, and small ones, travel by HTTP.
"""

from __future__ import annotations

import builtins
import io
import json
import mmap
import urllib.parse
from typing import TYPE_CHECKING, Any

from fairlead.arrays import as_array, to_array
from fairlead.errors import RequestError

if TYPE_CHECKING:
    from fairlead.client import Client

MAPPED_FROM = 1 << 20  # bytes
_CONTENT = "X-Fairlead-Object-Content"


class ObjectRef:
    """An object by its key, which need not exist yet: an input of a call, or what a call answers for a kept output."""

    def __init__(self, objects: Objects, key: str) -> None:
        self._objects, self.key = objects, key

    def get(self, type: str | None = None, shape: tuple[int, ...] | None = None, wait: float = 0) -> Any:
        return self._objects.get(self.key, type, shape, wait)

    def delete(self) -> None:
        self._objects.delete(self.key)

    def __repr__(self) -> str:
        return f"ObjectRef({self.key})"


class Objects:
    """client.objects. Written once, then read by anybody of the tenant."""

    def __init__(self, client: Client, mapped_from: int = MAPPED_FROM) -> None:
        self._client, self._mapped_from = client, mapped_from

    def ref(self, key: str) -> ObjectRef:
        return ObjectRef(self, key)

    def put(self, key: str, value: Any, lifetime: float | None = None, replace: bool = False) -> ObjectRef:
        """A new object from bytes, a buffer, a NumPy array or DLPack. lifetime: seconds until it is deleted.
        replace: an object of that key is deleted first; else there must be none."""
        data = as_array(value).data
        if replace:
            self.delete(key, missing_ok=True)
        more = {"lifetime": lifetime} if lifetime else {}
        if not (self._is_mapped(data.nbytes) and self._put_mapped(key, data, more)):
            self._client.request("PUT", _path(key, more), data, {"Content-Type": "application/octet-stream"})
        return self.ref(key)

    def _put_mapped(self, key: str, data: memoryview, more: dict[str, Any]) -> bool:
        """False where the node's memory is not to be seen from here (another mount namespace, a tunnel)."""
        made = self._ask("POST", _path(key, {"create": data.nbytes, **more}))
        try:
            with open(made["path"], "r+b", buffering=0) as file:
                _write_all(file, data)
        except (KeyError, OSError):
            self.delete(key)
            return False
        self._ask("POST", _path(key, {"seal": ""}))
        return True

    def get(self, key: str, type: str | None = None, shape: tuple[int, ...] | None = None, wait: float = 0) -> Any:
        """Its bytes, with a type an array; large ones of a local node are mapped, not copied. wait: seconds to wait for
        one that is not there yet."""
        data: bytes | memoryview | None = self._get_mapped(key)
        if data is None:
            data = self._get_in_parts(_path(key, {"wait": wait} if wait else {}))
        return data if type is None else to_array(data, type, (-1,) if shape is None else shape)

    def _get_in_parts(self, path: str) -> bytes:
        """A node sends 64 MiB at once."""
        parts: list[bytes] = []
        size, content = 0, None
        while True:
            headers, part = self._client.request("GET", path, headers={"Range": f"bytes={size}-"})
            if content not in (None, headers.get(_CONTENT)):
                parts, size, content = [], 0, None  # replaced meanwhile
                continue
            content = headers.get(_CONTENT)
            parts.append(part)
            size += len(part)
            total = headers.get("Content-Range", "").rpartition("/")[2]
            if not total or size >= int(total):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def _get_mapped(self, key: str) -> memoryview | None:
        if not self._client.is_local:
            return None
        try:
            info = self.info(key)
            if not info.get("path") or info.get("state") != "sealed" or not self._is_mapped(info["bytes"]):
                return None
            with open(info["path"], "rb") as file:
                return memoryview(mmap.mmap(file.fileno(), info["bytes"], prot=mmap.PROT_READ))
        except (RequestError, OSError):  # not there yet, spilled meanwhile, or not to be seen from here
            return None

    def _is_mapped(self, size: int) -> bool:
        return self._client.is_local and size >= max(self._mapped_from, 1)

    def info(self, key: str) -> dict[str, Any]:
        """What the node says of it: bytes, state, content hash, ..."""
        return self._ask("GET", _path(key, {"info": ""}))

    def delete(self, key: str, missing_ok: bool = False) -> None:
        try:
            self._client.request("DELETE", _path(key))
        except RequestError as error:
            if error.status != 404 or not missing_ok:
                raise

    def list(self, prefix: str = "", limit: int = 1000) -> builtins.list[dict[str, Any]]:
        """What the node says of each object whose key begins so, by key."""
        query: dict[str, Any] = {"prefix": prefix, "limit": limit}
        found: builtins.list[dict[str, Any]] = []
        while True:
            page = self._ask("GET", f"/v1/objects?{urllib.parse.urlencode(query)}")
            found += page["objects"]
            if "next_after" not in page:
                return found
            query["after"] = page["next_after"]

    def _ask(self, method: str, path: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self._client.request(method, path)[1])
        return said


def _write_all(file: io.RawIOBase, data: memoryview) -> None:
    """Written, not mapped: a page of new shared memory that is mapped costs a fault, and the copy takes twice as long."""
    written = 0
    while written < data.nbytes:
        written += file.write(data[written:]) or 0


def _path(key: str, query: dict[str, Any] | None = None) -> str:
    path = f"/v1/objects/{urllib.parse.quote(key, safe='/:@')}"
    return f"{path}?{urllib.parse.urlencode(query)}" if query else path
