"""An executor: the actor beside a node that carries calls of Ray to it.

    driver ── order, refs ──> executor ── HTTP over STATE/operator.sock ──> node
              Ray waits for the refs       large arrays: one copy into, none out of the node's shared memory

It is an actor of asyncio: a thousand calls at once are a thousand coroutines. It keeps nothing that cannot be found again: when it is
killed, Ray starts another one and sends it the same orders, and the node knows them by their ids.

What is on a node after an executor died, or because nobody frees a DeviceRef, is deleted by age: everything this module makes has a key
that begins with PREFIX and goes when it was not used for KEPT_S.

    call of                    node ended while the call ran                executor ended while the call ran
    a kernel task              runs again: it only makes new objects        same id: the node gives its answer
    a function                 NodeLost, says that it may have run;         the same
                               with is_idempotent it runs again"""

from __future__ import annotations

import asyncio
import base64
import collections
import json
import pathlib
import pickle
import threading
import time
import urllib.parse
import uuid
from typing import Any, Awaitable, Callable

from fairlead.aio import AsyncClient
from fairlead.arrays import checked, to_array
from fairlead.client import INLINE_LIMIT, TEMPORARY_LIFETIME_S
from fairlead.errors import FunctionError, RequestError
from fairlead.ktask import wire
from fairlead.ray import node_process
from fairlead.ray.bundle import CARRIED_LIMIT, Buffer, Bundle, bundle_of, with_constants
from fairlead.ray.device import DeviceRef, DeviceRefLost, executor_name, local_client, local_url
from fairlead.ray.orders import Order
from fairlead.ray.ray_library import came_back, named_actor, ray_library
from fairlead.transport import REPEAT_ID, wait_before
from fairlead.types import TaskError
from fairlead.values import from_payload, to_payload

PREFIX = "ray/"
CONSTANTS = "ray/constants/"
MOST_RUNS = 5            # of one call, for objects that are gone
KEPT_S = 3600.0          # an object that nobody used for so long is deleted
SWEEP_S = 60.0
MOST_PREPARED = 64       # tasks whose requests are kept ready
CLOCKS_APART_S = 2.0     # of the driver's machine and this one
MOST_WAIT_S = 1.0


class NodeLost(ConnectionError):
    """The node ended while it had the call, which may have run. A call with options(idempotent=True) is then sent again."""


class _RunAgain(Exception):
    """Something that this module had put on the node, or was to read there, is gone, and the task can run again."""


class _Prepared:
    """A task's request up to its call, for one tenant."""

    def __init__(self, bundle: Bundle, description: dict[str, Any], files: dict[str, Any], timeout_s: int) -> None:
        self.names = bundle.names()  # and not the bundle, which would keep its constants in Ray's object store
        self.inputs, self.outputs = bundle.inputs, bundle.outputs
        self.head = wire.request_head(json.dumps(description), files, timeout_s)


class Executor:
    """node: its name; state: its state folder on this machine."""

    def __init__(self, node: str, state: str) -> None:
        self.node, self.state = node, state
        context = ray_library().get_runtime_context()
        self._ray_node: str = context.get_node_id()
        self._came_back = came_back()
        self._started = time.time()
        self._client = AsyncClient(local_url(state), token="", retries=0)
        self._prepared: collections.OrderedDict[tuple[str, str, int], asyncio.Future[_Prepared]] = collections.OrderedDict()
        self._tenants = {"default"}  # that were served
        self._running = 0
        self._moved = {"to_node": 0, "from_node": 0, "between_nodes": 0}
        self._calls = 0
        self._phases: dict[str, float] = {}
        threading.Thread(target=self._sweep_for_ever, name="fairlead-sweep", daemon=True).start()

    # ---- what callers ask

    async def task(self, order: Order, bundle: bytes | Bundle, *values: Any) -> Any:
        """The outputs of a kernel task in the order of order.outputs; alone where it is one. bundle: pickled, or from Ray's object store."""
        elsewhere = self._home_of(values)
        if elsewhere is not None:
            return await self._at(elsewhere, order, bundle, values)
        self._running += 1
        try:
            return await self._again(order, lambda number: self._run_task(order, bundle, values, number))
        finally:
            self._running -= 1

    async def deployed(self, name: str, tenant: str) -> Bundle:
        """The bundle of a deployed kernel task, with the constants that are objects of this node. TaskError: it is none, or one is lacking."""
        path = f"/2015-03-31/functions/{urllib.parse.quote(name, safe='')}/configuration"
        said = json.loads((await self._client.request("GET", path, headers={"X-Fairlead-Tenant": tenant}))[1])
        folder = pathlib.Path(self.state, "code", base64.b64decode(said["CodeSha256"]).hex())
        bundle = await asyncio.to_thread(bundle_of, folder)
        objects = local_client(self.state, tenant).objects
        files = {}
        for buffer, spec in bundle.description["buffers"].items():
            if spec["role"] == "constant" and "key" in spec:
                try:
                    files[buffer] = await asyncio.to_thread(objects.get, spec["key"])
                except RequestError as error:
                    raise TaskError(f"constant {buffer} of {name} is the object {spec['key']}, which node {self.node} lacks: {error}") from None
        return with_constants(bundle, files)

    async def function(self, order: Order, payload: Any) -> Any:
        """What a function answers, as fairlead.Function has it."""
        body = to_payload(await self._array_of(payload) if isinstance(payload, DeviceRef) else payload)
        self._running += 1
        try:
            return await self._again(order, lambda _: self._run_function(order, body))
        finally:
            self._running -= 1

    async def fetch(self, ref: DeviceRef) -> Any:
        """The array, which Ray copies once, from the node's memory into its own."""
        try:
            data = await asyncio.to_thread(local_client(self.state, ref.tenant).objects.get, ref.key)
        except RequestError as error:
            raise ref.lost(error) from None
        self._moved["from_node"] += memoryview(data).nbytes
        return to_array(data, ref.type, ref.shape)

    async def free(self, ref: DeviceRef) -> None:
        await self._delete(ref.tenant, [ref.key])

    async def look(self) -> dict[str, Any]:
        """running: calls now. moved: bytes that went into and out of the node, and between nodes, since this executor began. phases_us: of all
        kernel tasks, summed."""
        return {"node": self.node, "running": self._running, "calls": self._calls, "moved": dict(self._moved),
                "phases_us": dict(self._phases), "came_back": self._came_back}

    async def load(self) -> int:
        return self._running

    # ---- repeats

    async def _again(self, order: Order, run: Callable[[int], Awaitable[Any]]) -> Any:
        """Until it is done, refused for good, or order.patience_s is over. The id stays the same, so what the node has run it does not run
        again; only a node that was restarted has forgotten, and _lost() says what follows then."""
        deadline = time.monotonic() + order.patience_s
        number = 0
        if order.function:
            self._refuse_what_may_have_run(order)
        while True:
            before = node_process.find(self.state) if order.function else None
            try:
                result = await run(number)
                self._calls += 1
                return result
            except _RunAgain as error:
                number += 1
                if number > MOST_RUNS:
                    raise TaskError(f"node {self.node} loses objects as fast as they are put: {error}") from None
                continue
            except RequestError as error:
                if error.status == 503 and order.function and not order.is_idempotent and not _has_not_begun(error):
                    raise NodeLost(f"a call of {order.function} may have run ({error}); options(idempotent=True) lets it run again") from None
                if error.status not in (429, 503) or time.monotonic() >= deadline:
                    raise
            except (ConnectionRefusedError, FileNotFoundError) as error:  # no node is there: nothing ran
                if time.monotonic() >= deadline:
                    raise ConnectionRefusedError(f"node {self.node} was away for {order.patience_s:g} s: {error}") from None
            except ConnectionError as error:
                self._lost(order, before, error)
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(min(wait_before(number), MOST_WAIT_S))
            number += 1

    def _lost(self, order: Order, before: node_process.Process | None, error: Exception) -> None:
        if not order.function or order.is_idempotent:
            return
        if before is None or not node_process.is_same(before):
            raise NodeLost(f"node {self.node} ended while it had a call of {order.function}, which may have run "
                           f"({error}); options(idempotent=True) lets it run again") from None

    def _refuse_what_may_have_run(self, order: Order) -> None:
        """An earlier executor may have given this order to an earlier process of the node: both began after the order was made."""
        if not self._came_back or order.is_idempotent or order.created > self._started + CLOCKS_APART_S:
            return
        process = node_process.find(self.state)
        if process is None or process.started_at() > order.created - CLOCKS_APART_S:
            raise NodeLost(f"node {self.node} and its executor both ended while a call of {order.function} was on its way, which may have run;"
                           " options(idempotent=True) lets it run again")

    # ---- functions

    async def _run_function(self, order: Order, body: Any) -> Any:
        return from_payload(await self._client.invoke(order.function, body, headers={"X-Fairlead-Tenant": order.tenant},
                                                      invocation_id=order.id, timeout=order.timeout_s + order.patience_s))

    # ---- kernel tasks

    async def _run_task(self, order: Order, bundle: bytes | Bundle, values: tuple[Any, ...], number: int) -> Any:
        prepared = await self._prepare(order, bundle)
        self._tenants.add(order.tenant)
        made: list[str] = []
        try:
            inputs = {name: await self._input(order, prepared.inputs[name], f"input {name}", value, made)
                      for name, value in zip(order.inputs, values)}
            asked = self._asked_outputs(order, prepared.outputs, number)
            made += [key for name, key in asked.items() if name not in order.keeps]
            call = wire.encode_call(prepared.names, inputs, asked)
            answered, answer = await self._client.request("POST", "/v1/ktasks", wire.with_call(prepared.head, call), {
                "Content-Type": wire.CONTENT_TYPE, REPEAT_ID: _attempt_id(order, number), "X-Fairlead-Tenant": order.tenant},
                timeout=order.timeout_s + order.patience_s)
            if answered.get("X-Amz-Function-Error"):
                raise FunctionError(answer)
            results, phases = wire.decode_answer(prepared.names, answer)
            for name, microseconds in phases.items():
                self._phases[name] = self._phases.get(name, 0) + microseconds
            outputs = [await self._output(order, prepared.outputs[name], name, results[name]) for name in order.outputs]
        except FunctionError as error:
            if CONSTANTS in str(error):  # swept, or lost with the machine's memory
                self._prepared.pop((order.digest, order.tenant, order.timeout_s), None)
                raise _RunAgain(str(error)) from None
            for value in values:
                if isinstance(value, DeviceRef) and value.key in str(error):
                    raise value.lost(error) from None
            raise
        finally:
            if made:
                await self._delete(order.tenant, made)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    async def _prepare(self, order: Order, bundle: bytes | Bundle) -> _Prepared:
        """Once for a task and a tenant, however many ask at once."""
        kept = (order.digest, order.tenant, order.timeout_s)
        if kept not in self._prepared:
            self._prepared[kept] = asyncio.ensure_future(self._prepare_new(order, bundle))
            if len(self._prepared) > MOST_PREPARED:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(kept)
        preparing = self._prepared[kept]
        if preparing.done() and preparing.exception() is None:
            return preparing.result()
        try:
            return await asyncio.shield(preparing)
        except BaseException:
            if preparing.done() and self._prepared.get(kept) is preparing:
                del self._prepared[kept]
            raise

    async def _prepare_new(self, order: Order, travelled: bytes | Bundle) -> _Prepared:
        bundle: Bundle = pickle.loads(travelled) if isinstance(travelled, bytes) else travelled
        if sum(one.nbytes for one in bundle.constants.values()) <= CARRIED_LIMIT:
            return _Prepared(bundle, bundle.description, {**bundle.modules, **bundle.constants}, order.timeout_s)
        buffers = {}
        for name, spec in bundle.description["buffers"].items():
            if "file" in spec:
                spec = {key: value for key, value in spec.items() if key != "file"} | {"key": f"{CONSTANTS}{order.digest}/{uuid.uuid4().hex}"}
                await self._put(order.tenant, spec["key"], bundle.constants[bundle.description["buffers"][name]["file"]].data, None)
            buffers[name] = spec
        return _Prepared(bundle, {**bundle.description, "buffers": buffers}, dict(bundle.modules), order.timeout_s)

    def _asked_outputs(self, order: Order, outputs: dict[str, Buffer], number: int) -> dict[str, str]:
        return {name: f"{PREFIX}{_attempt_id(order, number)}/out/{index}" for index, (name, spec) in enumerate(outputs.items())
                if name in order.keeps or spec.bytes > INLINE_LIMIT}

    async def _input(self, order: Order, spec: Buffer, what: str, value: Any, made: list[str]) -> Any:
        """A key, or bytes that travel along."""
        if isinstance(value, DeviceRef):
            if value.node == self.node and value.tenant == order.tenant:
                if spec.bytes != value.bytes:
                    raise TaskError(f"{what} is a DeviceRef of {value.type} {value.shape}, {spec.type} {spec.shape} is wanted")
                return value.key
            value = await self._array_of(value)
        data = checked(value, spec.type, spec.shape, what)
        self._moved["to_node"] += data.nbytes
        if data.nbytes <= INLINE_LIMIT:
            return data
        key = f"{PREFIX}{order.id}/in/{uuid.uuid4().hex}"
        await self._put(order.tenant, key, data, TEMPORARY_LIFETIME_S)
        made.append(key)
        return key

    async def _output(self, order: Order, spec: Buffer, name: str, value: Any) -> Any:
        if name in order.keeps:
            return DeviceRef(self.node, self._ray_node, self.state, order.tenant, value, spec.type, spec.shape)
        if isinstance(value, str):
            try:
                value = await asyncio.to_thread(local_client(self.state, order.tenant).objects.get, value)
            except RequestError as error:
                if error.status == 404:  # an earlier executor was given this answer, has read it and died before Ray had it
                    raise _RunAgain(str(error)) from None
                raise
        self._moved["from_node"] += spec.bytes
        return to_array(value, spec.type, spec.shape)

    # ---- other nodes

    def _home_of(self, values: tuple[Any, ...]) -> str | None:
        """The other node that has all the DeviceRefs; None: they are here, on several nodes, or there are none."""
        nodes = {value.node for value in values if isinstance(value, DeviceRef)}
        return nodes.pop() if len(nodes) == 1 and self.node not in nodes else None

    async def _at(self, node: str, order: Order, bundle: bytes | Bundle, values: tuple[Any, ...]) -> Any:
        """The call goes to its inputs."""
        try:
            there = named_actor(executor_name(node))
        except ValueError as error:
            ref = next(value for value in values if isinstance(value, DeviceRef))
            raise ref.lost(error) from None
        given = there.task.options(num_returns=len(order.outputs)).remote(order, bundle, *values)
        return tuple(await asyncio.gather(*given)) if isinstance(given, list) else await given

    async def _array_of(self, ref: DeviceRef) -> Any:
        if ref.node == self.node:
            return await self.fetch(ref)
        try:
            array = await named_actor(ref.executor).fetch.remote(ref)
        except ValueError as error:
            raise ref.lost(error) from None
        self._moved["between_nodes"] += array.nbytes
        return array

    # ---- objects

    async def _put(self, tenant: str, key: str, data: memoryview, lifetime_s: float | None) -> None:
        await asyncio.to_thread(local_client(self.state, tenant).objects.put, key, data, lifetime_s)

    async def _delete(self, tenant: str, keys: list[str]) -> None:
        for key in keys:
            try:
                await self._client.request("DELETE", f"/v1/objects/{key}", headers={"X-Fairlead-Tenant": tenant})
            except (RequestError, OSError):
                continue  # gone already, or the node is: the sweep comes by

    def _sweep_for_ever(self) -> None:
        while True:
            time.sleep(SWEEP_S)  # sleep: the period of sweeping
            try:
                self._sweep(KEPT_S)
            except (RequestError, OSError):
                continue  # a node that is away has nothing to sweep

    async def sweep(self, kept_s: float = KEPT_S) -> int:
        """Deletes what was not used for `kept_s`, now; how many. Of the tenant `default` and those that this process has served."""
        return await asyncio.to_thread(self._sweep, kept_s)

    def _sweep(self, kept_s: float) -> int:
        oldest = (time.time() - kept_s) * 1000
        deleted = 0
        for tenant in self._tenants.copy():
            objects = local_client(self.state, tenant).objects
            for one in objects.list(PREFIX):
                if max(one["last_used_ms"], one["created_ms"]) < oldest:
                    objects.delete(one["key"], missing_ok=True)
                    deleted += 1
        return deleted


# What a node says of an invocation that it has not begun (src/decide/core/admission.cc, src/node/invocations.cc, src/node/peers/cluster_node.cc).
# Of any other 503 nobody knows: the home of a function may have ended with the call.
_NOT_BEGUN = ("accepts no invocations", "which did not begin", "no node can take a call", "it is at home on neither", "finds no GPU")


def _has_not_begun(error: RequestError) -> bool:
    return any(words in str(error) for words in _NOT_BEGUN)


def _attempt_id(order: Order, number: int) -> str:
    """Attempt 0 is what Ray's own retries send again. Where a node has ended with a kernel task, the next one is new: its outputs may lie there."""
    return order.id if number == 0 else f"{order.id}-{number}"


__all__ = ["DeviceRefLost", "Executor", "NodeLost"]
