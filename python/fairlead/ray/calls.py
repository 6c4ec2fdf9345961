"""What a program with Ray calls: functions and kernel tasks whose arguments and results are ObjectRefs.

    layer = fr.ktask(task)                              # a fairlead.ktask.Task, or the folder of one
    y = layer.remote(x=array_or_ref)                    # at once an ObjectRef; x may be pending
    z = layer.options(keep="device").remote(x=y)        # the value stays on the node: a DeviceRef
    b = fr.function("resize").remote(payload_or_ref)

Nothing here waits for a value: refs are arguments of a call of an executor, and Ray waits for them there."""

from __future__ import annotations

import dataclasses
import pathlib
import pickle
import threading
from typing import Any, Union

from fairlead.ray.bundle import Bundle, bundle_of
from fairlead.ray.device import DeviceRef
from fairlead.ray.orders import Order, new_id
from fairlead.ray.ray_library import ray_library
from fairlead.ray.routing import routing
from fairlead.types import TaskError

SENT_WITH_CALL = 32 << 10  # bytes of a bundle; larger ones lie in Ray's object store


@dataclasses.dataclass(frozen=True)
class Options:
    """tenant: whose objects, quota and GPU time. timeout: seconds for the run. patience: seconds that a node which is away or busy is waited
    for. idempotent: of a function, may run again where it may have run. keep: "device", all outputs of a kernel task stay on its node; or
    names of outputs. node: a name in cluster.toml, where the call must run."""

    tenant: str = "default"
    timeout: int = 60
    patience: float = 30.0
    idempotent: bool = False
    keep: Union[str, tuple[str, ...]] = ()
    node: Union[str, None] = None

    def __post_init__(self) -> None:
        if not 1 <= self.timeout <= 900:
            raise ValueError(f"timeout is {self.timeout}, 1 to 900 seconds is possible")
        if not 0 <= self.patience <= 3600:
            raise ValueError(f"patience is {self.patience}, 0 to 3600 seconds is possible")

    def with_changes(self, changes: dict[str, Any]) -> Options:
        known = {field.name for field in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise TypeError(f"there is no option {name}; there are {', '.join(sorted(known))}")
        return dataclasses.replace(self, **changes)


class Function:
    """A deployed function, by its name. May be pickled, so tasks, actors and deployments may hold one."""

    def __init__(self, name: str, options: Options) -> None:
        self.name, self._options = name, options

    def options(self, **changes: Any) -> Function:
        """The same with other options: see Options."""
        return Function(self.name, self._options.with_changes(changes))

    def remote(self, payload: Any = b"") -> Any:
        """An ObjectRef of what the function answers: a document, an array, bytes. payload: those, or an ObjectRef of one."""
        chosen = self._options
        made, created = new_id()
        order = Order(made, created, function=self.name, tenant=chosen.tenant, timeout_s=chosen.timeout, patience_s=chosen.patience,
                      is_idempotent=chosen.idempotent)
        _, executor = routing.executor(f"{chosen.tenant}/{self.name}", [payload], chosen.node)
        return executor.function.remote(order, payload)

    def __repr__(self) -> str:
        return f"fairlead.ray.Function({self.name})"


class KernelTask:
    """A kernel task that every node can run. May be pickled, as Function."""

    def __init__(self, bundle: Bundle, options: Options) -> None:
        self._bundle, self._options = bundle, options
        self._inputs, self._outputs = tuple(bundle.inputs), tuple(bundle.outputs)
        kept = self._outputs if options.keep == "device" else (options.keep,) if isinstance(options.keep, str) else options.keep
        for name in kept:
            if name not in self._outputs:
                raise TaskError(f'keep has {name!r}, which is no output of the task; "device" or some of {", ".join(self._outputs)} is possible')
        self._keeps = tuple(kept)
        self._sent: Any = None
        self._lock = threading.Lock()

    def options(self, **changes: Any) -> KernelTask:
        """The same with other options: see Options."""
        other = KernelTask(self._bundle, self._options.with_changes(changes))
        other._sent = self._sent
        return other

    def remote(self, **inputs: Any) -> Any:
        """An ObjectRef of the output's array, or of its DeviceRef; {output: ObjectRef} where the task has several. Each input: an array,
        or an ObjectRef or DeviceRef of one."""
        if inputs.keys() != set(self._inputs):
            raise TaskError(f"inputs given: {', '.join(sorted(inputs)) or 'none'}; wanted: {', '.join(sorted(self._inputs)) or 'none'}")
        chosen = self._options
        values = [inputs[name] for name in self._inputs]
        made, created = new_id()
        order = Order(made, created, self._bundle.digest, inputs=self._inputs, outputs=self._outputs, keeps=self._keeps, tenant=chosen.tenant,
                      timeout_s=chosen.timeout, patience_s=chosen.patience)
        node, executor = routing.executor(self._bundle.digest, values, chosen.node)
        count = len(self._outputs)
        method = executor.task if count == 1 else executor.task.options(num_returns=count)
        refs = method.remote(order, self._travelling(), *values)
        refs = [refs] if count == 1 else refs
        routing.made(refs, node)
        return refs[0] if count == 1 else dict(zip(self._outputs, refs))

    def _travelling(self) -> Any:
        """The bundle as bytes, which an executor that knows it does not read, or an ObjectRef of it; made once in this process."""
        with self._lock:
            if self._sent is None:
                packed = pickle.dumps(self._bundle) if self._bundle.bytes <= SENT_WITH_CALL else b""
                self._sent = packed if 0 < len(packed) <= SENT_WITH_CALL else ray_library().put(self._bundle)
            return self._sent

    def __reduce__(self) -> tuple[Any, tuple[Bundle, Options]]:
        return KernelTask, (self._bundle, self._options)

    def __repr__(self) -> str:
        return f"fairlead.ray.KernelTask({self._bundle.digest[:8]}, {', '.join(self._inputs)} -> {', '.join(self._outputs)})"


def function(name: str, **options: Any) -> Function:
    """A function that is deployed in the cluster. options: of Options."""
    return Function(name, Options().with_changes(options))


def ktask(task: Any, **options: Any) -> KernelTask:
    """A kernel task: a fairlead.ktask.Task, the pathlib.Path of a folder with task.json, or the name of one that is deployed, whose task is
    asked for here, once: what is deployed later under that name is another handle's. options: of Options."""
    chosen = Options().with_changes(options)
    if isinstance(task, str):
        _, executor = routing.executor(f"{chosen.tenant}/{task}", [], chosen.node)
        return KernelTask(ray_library().get(executor.deployed.remote(task, chosen.tenant)), chosen)
    return KernelTask(bundle_of(task), chosen)


__all__ = ["DeviceRef", "Function", "KernelTask", "Options", "function", "ktask"]
