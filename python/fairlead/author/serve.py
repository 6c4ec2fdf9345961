"""In an instance: loads the author's module once, and calls its handler for each invocation.

A payload that is JSON reaches the handler as what it says, one in NumPy's format (.npy) as an array, nothing as None, and anything else
as bytes; what the handler gives travels the same way. A handler that declares its inputs gets a safetensors file, which calls of models have, as {name: array},
and then gives one. With raw=True both are bytes. What a handler yields is streamed: a text as it is, bytes
as they are, anything else as a line of JSON."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import json
import os
import sys
from typing import Any, AsyncIterator, Awaitable, Callable, Iterator

from fairlead import safetensors
from fairlead.values import from_payload, npy_of

TASK = "/var/task"


class Unusable(Exception):
    """The function cannot start, and why."""


def load(folder: str, said: dict[str, Any]) -> Callable[..., Any]:
    """The handler. Unusable where there is none."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if said["python"] not in (None, python):
        raise Unusable(f"the requirements were installed for Python {said['python']}, the node has {python}: "
                       f"declare python=\"{python}\" and deploy again")
    sys.path.insert(0, folder)
    name = said["file"].removesuffix(".py")
    try:
        module = _import(name, os.path.join(folder, said["file"]))
    except Exception:
        raise
    except BaseException as error:  # sys.exit() in a module is no reason to end without a word
        raise Unusable(f"{said['file']} ended while it was loaded: {type(error).__name__}: {error}") from None
    handler = getattr(module, said["handler"], None)
    if not callable(handler):
        kind = "does not exist" if handler is None else f"is of type {type(handler).__name__}, which cannot be called"
        raise Unusable(f"{said['handler']} of {said['file']} {kind}")
    return handler  # type: ignore[no-any-return]


def _import(name: str, file: str) -> Any:
    if name.isidentifier() and name not in sys.modules and name not in sys.stdlib_module_names:
        return importlib.import_module(name)
    # A file called my-model.py, or json.py.
    spec = importlib.util.spec_from_file_location("handler_of_function", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def encoded(result: Any) -> Any:
    """What fairlead_runtime sends: bytes as they are, an array in NumPy's format, a text and all else as JSON."""
    if isinstance(result, str):
        return json.dumps(result).encode()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(result, numpy.generic):
        return result.item()
    return npy_of(result) if numpy is not None and isinstance(result, numpy.ndarray) else result


def caller(handler: Callable[..., Any], raw: bool, is_model: bool = False) -> Callable[[Any], Any]:
    """handler(event) or handler(event, context), plain or async, as one function of fairlead_runtime's event."""
    takes_context = _takes_context(handler)
    loops: list[asyncio.AbstractEventLoop] = []  # one, when it is needed

    def wait(result: Awaitable[Any]) -> Any:
        if not loops:
            loops.append(asyncio.new_event_loop())
        return loops[0].run_until_complete(_awaited(result))

    def in_turn(parts: AsyncIterator[Any]) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield wait(parts.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            wait(parts.aclose())  # type: ignore[attr-defined]

    def call(event: Any) -> Any:
        as_model = is_model and not raw and safetensors.is_file(event.payload)
        given = event.payload if raw else safetensors.load(event.payload) if as_model else from_payload(event.payload)
        result = handler(given, event) if takes_context else handler(given)
        if inspect.isawaitable(result):  # of an async handler, which another decorator may hide
            result = wait(result)
        sys.stdout.flush()
        if inspect.isasyncgen(result):
            return in_turn(result)
        if raw or hasattr(result, "__next__"):
            return result
        return safetensors.save(result) if as_model and isinstance(result, dict) else encoded(result)

    return call


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def _takes_context(handler: Callable[..., Any]) -> bool:
    """A second parameter by position that must be given, or is called context."""
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = sum(one.default is one.empty for one in positional)
    return needed > 1 or (len(positional) > 1 and positional[1].name == "context")


def main(folder: str = TASK) -> None:
    fairlead_runtime = importlib.import_module("fairlead_runtime")  # the bundle's, not the package's

    with open(os.path.join(folder, ".fairlead/function.json"), encoding="utf-8") as file:
        said = json.load(file)
    ready: list[Callable[[Any], Any]] = []

    def init() -> None:
        ready.append(caller(load(folder, said), said["raw"], said.get("model", False)))
        sys.stdout.flush()

    fairlead_runtime.run(lambda event: ready[0](event), init=init)
