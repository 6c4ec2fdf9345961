"""A node's HTTP interface (docs/reference/api.md). Standard library only.

    with Client("http://127.0.0.1:9001") as client:
        client.invoke("hello", {"n": 3})                 # bytes
        hello = client.function("hello")
        hello({"n": 3})                                  # what the answer says: JSON, an array, bytes
        list(hello.map([{"n": n} for n in range(100)]))  # eight at a time, in order
        hello.submit({"n": 3}).result()                  # a concurrent.futures.Future

A client may be used by any number of threads: each request has a connection of its own, and connections are kept (transport.py). After a
failure the client is as before: a timeout or a refused argument costs one call. fairlead.AsyncClient is the same for asyncio."""

from __future__ import annotations

import base64
import collections
import concurrent.futures
import io
import json
import os
import pathlib
import tempfile
import threading
import urllib.parse
import uuid
import zipfile
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping

from fairlead.arrays import as_array, checked, to_array
from fairlead.credentials import endpoint_for, token_for
from fairlead.errors import FunctionError, RequestError
from fairlead.ktask import wire
from fairlead.ktask.graph import buffer_bytes, write_json
from fairlead.logs import MOST_TAIL_BYTES, LogFollower, Patience
from fairlead.objects import ObjectRef, Objects
from fairlead.transport import REPEAT_ID, Body, Endpoint, Pool
from fairlead.types import TaskError
from fairlead.values import Payload, from_payload, to_payload

if TYPE_CHECKING:
    from fairlead.share import Share

INLINE_LIMIT = 1 << 20        # larger arrays of a call travel as objects; a node takes 4 MiB inline
BUNDLE_LIMIT = 16 << 20       # constants beyond this are put as objects of their own
REQUEST_LIMIT = 32 << 20      # of modules and constants of a one-off request
ARN_PREFIX = "arn:aws:lambda:us-east-1:000000000000:function:"
TEMPORARY_LIFETIME_S = 600    # of objects that a call made, should the client die before it deletes them
AT_ONCE = 8                   # calls of map()
MOST_AT_ONCE = 256
LOG_PERIOD_S = 0.5
LOG_TAIL_BYTES = 64 << 10
LOG_PATIENCE_S = 30.0         # that a node which cannot be reached has to come back


class Client:
    """url: "http://host:port", "https://host:port" (FAIRLEAD_CA names a file with certificates to trust beside the system's), or
    "unix:/path"; None: FAIRLEAD_ENDPOINT, else http://127.0.0.1:9001. tenant: whose objects and quotas these are; a key of one tenant
    needs none. timeout: seconds without a byte from the node after which a request is a TimeoutError. token: an API key, "ID.SECRET"; None:
    FAIRLEAD_TOKEN, or the key of who started the node on this machine; "": none is shown. retries: how often what may be sent again is, after a connection
    that ended, a 429 or a 503."""

    def __init__(self, url: str | None = None, tenant: str | None = None, timeout: float = 900, token: str | None = None,
                 retries: int = 2) -> None:
        endpoint = Endpoint.of(url or endpoint_for())
        self.is_local = endpoint.is_local
        self.objects = Objects(self)
        self.headers = {"X-Fairlead-Tenant": tenant} if tenant else {}
        if token is None:
            token = token_for(endpoint.is_local and endpoint.scheme != "unix")
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self.pool = Pool(endpoint, timeout, retries)
        self._tasks: dict[str, dict[str, Any]] = {}  # descriptions of what this client deployed
        self._workers: concurrent.futures.ThreadPoolExecutor | None = None
        self._workers_pid = os.getpid()
        self._lock = threading.Lock()

    # ---- HTTP

    def request(self, method: str, path: str, body: Body = None, headers: Mapping[str, str] | None = None,
                timeout: float | None = None) -> tuple[Mapping[str, str], bytes]:
        """(headers, body) of a success; RequestError of anything else."""
        answer = self.pool.exchange(method, path, body, {**self.headers, **(headers or {})}, timeout).checked()
        return answer.headers, answer.body

    def close(self) -> None:
        """Ends idle connections, and calls of submit() that have not begun."""
        with self._lock:
            workers, self._workers = self._workers, None
        if workers and self._workers_pid == os.getpid():
            workers.shutdown(wait=False, cancel_futures=True)
        self.pool.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- calls

    def invoke(self, name: str, payload: Payload = b"", event: bool = False, headers: Mapping[str, str] | None = None,
               invocation_id: str | None = None, timeout: float | None = None) -> bytes:
        """The response's bytes. payload: bytes, a text, an array, or a document that becomes JSON. event=True: accepted and safely
        stored means done; such a call is not repeated, because the node would run it twice. invocation_id: of a call that was sent
        before and whose answer was lost (a timeout): the node gives its answer, or attaches to it, and runs nothing again."""
        answered, data = self.request("POST", f"{_function(name)}/invocations", to_payload(payload),
                                      {**invoke_headers(event, invocation_id), **(headers or {})}, timeout)
        if answered.get("X-Amz-Function-Error"):
            raise FunctionError(data)
        return data

    def stream(self, name: str, payload: Payload = b"", invocation_id: str | None = None, timeout: float | None = None) -> Iterator[bytes]:
        """The response's bytes as the function makes them. Of a function that answers whole: all of them, once. FunctionError where it
        fails before its first byte, ConnectionError where it fails, or is lost, after that. timeout: seconds without a byte."""
        answer = self.pool.stream("POST", f"/fairlead/v1/functions/{urllib.parse.quote(name, safe='')}/stream", to_payload(payload),
                                  {**self.headers, **invoke_headers(False, invocation_id)}, timeout)
        if answer.status >= 300 or answer.headers.get("X-Amz-Function-Error"):
            raise FunctionError(answer.whole().checked().body)
        return iter(answer)

    def function(self, name: str) -> Function:
        """A handle of a function, deployed or not yet: call it like one of Python."""
        return Function(self, name)

    def send(self, name: str, payload: Payload = b"") -> Event:
        """An Event invocation, accepted and on disk: the node runs it, and tries it again where it fails."""
        answered, _ = self.request("POST", f"{_function(name)}/invocations", to_payload(payload), invoke_headers(True, None))
        return Event(self, name, answered.get("x-amzn-RequestId", ""))

    def submit(self, name: str, payload: Payload = b"", **options: Any) -> concurrent.futures.Future[bytes]:
        """invoke() on a thread of this client's, of which there are at most MOST_AT_ONCE."""
        return self._executor().submit(self.invoke, name, payload, **options)

    def map(self, name: str, payloads: Iterable[Payload], at_once: int = AT_ONCE,
            return_exceptions: bool = False) -> Iterator[bytes]:
        """Answers in the order of the payloads, `at_once` calls at a time; payloads are taken as they are needed. A call that fails
        raises where its answer would be; with return_exceptions its exception stands there, and the rest goes on."""
        return _map(lambda payload: self.submit(name, payload), payloads, at_once, return_exceptions)

    def _executor(self) -> concurrent.futures.ThreadPoolExecutor:
        with self._lock:
            if self._workers is None or self._workers_pid != os.getpid():  # a fork has the pool, and none of its threads
                self._workers_pid = os.getpid()
                self._workers = concurrent.futures.ThreadPoolExecutor(MOST_AT_ONCE, "fairlead")
            return self._workers

    def logs(self, name: str, follow: bool = False, tail: int = LOG_TAIL_BYTES) -> Iterator[str]:
        """Lines of what a function wrote, from `tail` bytes before the end on. follow=True: and those that come, without end; then a node
        that cannot be reached is asked again for LOG_PATIENCE_S."""
        if follow:
            yield from self.follow(name, False, threading.Event(), tail)
            return
        text = self.request("GET", _log(name, tail))[1].decode(errors="replace")
        yield from text.removesuffix("\n").split("\n") if text else []

    def follow(self, name: str, skip: bool, end: threading.Event, tail: int = LOG_TAIL_BYTES) -> Iterator[str]:
        """logs(follow=True) until `end` is set by another thread. skip: what is there already is not given."""
        follower, patience, rest = LogFollower(), Patience(LOG_PATIENCE_S), b""
        size = tail
        while not end.is_set():
            try:
                seen = self.request("GET", _log(name, size))[1]
                if not follower.reaches(seen, size):  # more than a tail was written since
                    seen = self.request("GET", _log(name, MOST_TAIL_BYTES))[1]
                new = follower.next(seen)
                patience.was_reached()
            except ConnectionError:
                if patience.is_over():
                    raise
                end.wait(LOG_PERIOD_S)
                continue
            *lines, rest = (rest + (b"" if skip else new)).split(b"\n")
            skip = False
            for line in lines:
                yield line.decode(errors="replace")
            size = max(tail, LOG_TAIL_BYTES)
            end.wait(LOG_PERIOD_S)  # the node has no stream of logs

    # ---- functions

    def deploy(self, name: str, folder: str | pathlib.Path, upload: bool | None = None, share: Share | None = None,
               in_place: bool = False, **configuration: Any) -> None:
        """Creates function `name` from a folder, or replaces its code. upload: send an archive, as is done for a node
        elsewhere; one on this machine reads the folder itself. in_place: a node on this machine runs the folder where it lies,
        without a copy and of any size. share: a fairlead.Share. `configuration`: fields of CreateFunction. A share that the node
        cannot keep is a RequestError that says what is lacking, and changes nothing."""
        if in_place and (upload or not self.is_local):
            raise ValueError("in_place: a node runs a folder of its own machine, and nothing is sent")
        place = {"Folder": str(pathlib.Path(folder).resolve())}
        if in_place:
            code: dict[str, Any] = {**place, "InPlace": True}
        else:
            code = _archive(pathlib.Path(folder)) if (not self.is_local if upload is None else upload) else place
        self._tasks.pop(name, None)
        if share is not None:
            configuration["Tags"] = {**configuration.get("Tags", {}), **share.tags()}
        try:
            self._send("POST", "/2015-03-31/functions", {
                "FunctionName": name, "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap", "Code": code,
                **configuration})
        except RequestError as error:
            if error.status != 409:
                raise
            if "Tags" in configuration:  # first: a share may be refused
                arn = urllib.parse.quote(f"{ARN_PREFIX}{name}", safe="")
                self._send("POST", f"/2017-03-31/tags/{arn}", {"Tags": configuration["Tags"]})
            if configuration:
                self._send("PUT", f"{_function(name)}/configuration", configuration)
            self._send("PUT", f"{_function(name)}/code", code)

    def deploy_function(self, what: str | pathlib.Path, name: str | None = None, upload: bool | None = None,
                        say: Callable[[str], None] = lambda _: None, **configuration: Any) -> Function:
        """`fairlead deploy FILE.py[:HANDLER]`, or a folder with a handler.py. `configuration` wins over what the file says."""
        from fairlead.author import bundle  # noqa: PLC0415  only authors need it
        found = bundle.find(str(what), name)
        tags = {**found.tags, **configuration.pop("Tags", {})}
        with bundle.built(found, say) as folder:
            self.deploy(found.name, folder, upload, **{**bundle.document(found, folder)["configuration"], "Tags": tags, **configuration})
        return self.function(found.name)

    def remove(self, name: str) -> None:
        self.request("DELETE", _function(name))

    def _send(self, method: str, path: str, document: dict[str, Any]) -> tuple[Mapping[str, str], bytes]:
        return self.request(method, path, json.dumps(document).encode(), {"Content-Type": "application/json"})

    # ---- kernel tasks

    def deploy_task(self, name: str, task: Any, **options: Any) -> None:
        """Task.deploy: constants travel in the bundle, or where they are large as objects."""
        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            large = sum(len(data) for data in task.constants().values()) > BUNDLE_LIMIT
            description = task.description()
            for path, data in {**task.modules, **({} if large else task.constants())}.items():
                file = pathlib.Path(folder) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            if large:
                self._put_constants(name, task, description)
            (pathlib.Path(folder) / "task.json").write_text(write_json(description))
            self.deploy(name, folder, **options)
        self._tasks[name] = description

    def _put_constants(self, name: str, task: Any, description: dict[str, Any]) -> None:
        files = task.constants()
        for buffer, spec in description["buffers"].items():
            if "file" in spec:
                spec["key"] = f"{name}/{spec['file']}"
                self.objects.put(spec["key"], files[spec.pop("file")], replace=True)

    def call(self, name: str, outputs: Mapping[str, str] | None = None, task: dict[str, Any] | None = None,
             **inputs: Any) -> dict[str, Any]:
        """Calls a kernel task: {output: array}. An input is an array or an ObjectRef; an output that `outputs` gives a
        key becomes an object, and its ObjectRef is answered. `task`: the description (task.json as a dict) of a task
        that this client did not deploy; without one, inputs and outputs travel as JSON."""
        description = task or self._tasks.get(name)
        if description is None:
            return self._call_by_json(name, inputs, outputs or {})
        return _BinaryCall(self, description).run(inputs, dict(outputs or {}), lambda call: self.invoke(
            name, call, headers={"Content-Type": wire.CONTENT_TYPE}))

    def run_task(self, task: Any, outputs: Mapping[str, str] | None = None, timeout_seconds: int = 60,
                 **inputs: Any) -> dict[str, Any]:
        """Calls a task that is not deployed, as `call` does one that is; modules and constants travel with every call.
        The node knows the same task again, so that only its first call is cold."""
        files = {**task.modules, **task.constants()}
        size = sum(memoryview(data).nbytes for data in files.values())
        if size > REQUEST_LIMIT:
            raise TaskError(f"modules and constants have {size} bytes together, a request takes {REQUEST_LIMIT}: put "
                            "large constants as objects and name their keys, or deploy the task")
        description = task.description()
        text = json.dumps(description)
        return _BinaryCall(self, description).run(inputs, dict(outputs or {}), lambda call: self._request_task(
            wire.encode_request(text, files, call, timeout_seconds)))

    def _request_task(self, body: bytes) -> bytes:
        answered, data = self.request("POST", "/v1/ktasks", body,
                                      {"Content-Type": wire.CONTENT_TYPE, REPEAT_ID: str(uuid.uuid4())})
        if answered.get("X-Amz-Function-Error"):
            raise FunctionError(data)
        return data

    def _call_by_json(self, name: str, inputs: dict[str, Any], outputs: Mapping[str, str]) -> dict[str, Any]:
        said = {key: {"key": value.key} if isinstance(value, ObjectRef) else
                {"base64": base64.b64encode(as_array(value).data).decode()} for key, value in inputs.items()}
        call = {"inputs": said, "outputs": {key: {"key": value} for key, value in outputs.items()}}
        answer = json.loads(self.invoke(name, json.dumps(call)))
        return {key: _json_output(self.objects, value) for key, value in answer["outputs"].items()}


class Function:
    """client.function(name). Payloads and answers are values: JSON documents, arrays, bytes (values.py)."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self.name = client, name

    def __call__(self, payload: Payload = b"", **options: Any) -> Any:
        """What the answer says. FunctionError: what the handler raised. `options`: of Client.invoke."""
        return from_payload(self._client.invoke(self.name, payload, **options))

    def submit(self, payload: Payload = b"") -> concurrent.futures.Future[Any]:
        return self._client._executor().submit(self, payload)

    def map(self, payloads: Iterable[Payload], at_once: int = AT_ONCE, return_exceptions: bool = False) -> Iterator[Any]:
        """As Client.map."""
        return _map(self.submit, payloads, at_once, return_exceptions)

    def send(self, payload: Payload = b"") -> Event:
        return self._client.send(self.name, payload)

    def logs(self, follow: bool = False) -> Iterator[str]:
        return self._client.logs(self.name, follow)

    def __repr__(self) -> str:
        return f"Function({self.name})"


class Event:
    """An Event invocation that a node accepted. A node keeps no answers of events: what can be known is that one failed for good. A
    function whose answer is wanted writes it to an object (client.objects), or is called with submit()."""

    def __init__(self, client: Client, function: str, request_id: str) -> None:
        self._client, self.function, self.request_id = client, function, request_id

    def failure(self) -> dict[str, Any] | None:
        """Its dead letter: error_type, error_message, attempts, ...; None: it waits, runs, or was done."""
        query = urllib.parse.urlencode({"function": self.function, "limit": 10_000})
        letters = json.loads(self._client.request("GET", f"/fairlead/v1/dead-letters?{query}")[1])["dead_letters"]
        found: list[dict[str, Any]] = [one for one in letters if one["request_id"] == self.request_id]
        return found[0] if found else None

    def __repr__(self) -> str:
        return f"Event({self.function}, {self.request_id})"


def _json_output(objects: Objects, value: dict[str, Any]) -> Any:
    if "key" in value:
        return objects.ref(value["key"])
    if "base64" in value:
        return base64.b64decode(value["base64"])
    return value["values"]


class _BinaryCall:
    """One call; what is large goes by objects, which are deleted afterwards."""

    def __init__(self, client: Client, description: dict[str, Any]) -> None:
        self.client, self.buffers = client, description["buffers"]
        self.names = wire.buffer_names(description)
        self.prefix = f"calls/{uuid.uuid4()}"
        self.made: list[str] = []

    def run(self, inputs: dict[str, Any], outputs: dict[str, str], send: Callable[[bytes], bytes]) -> dict[str, Any]:
        """`send(call)`: the answer's bytes."""
        self._check(inputs, outputs)
        borrowed = {}
        for name, spec in self.buffers.items():
            if spec["role"] in ("output", "inout") and name not in outputs and buffer_bytes(name, spec) > INLINE_LIMIT:
                borrowed[name] = f"{self.prefix}/out/{name}"
        try:
            given = {name: self._input(name, value) for name, value in inputs.items()}
            call = wire.encode_call(self.names, given, {**outputs, **borrowed})
            answer = send(call)
            self.made += borrowed.values()
            results, _ = wire.decode_answer(self.names, answer)
            return {name: self._output(name, value, borrowed) for name, value in results.items()}
        finally:
            for key in self.made:
                self.client.objects.delete(key, missing_ok=True)

    def _check(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        wanted = {name for name, spec in self.buffers.items() if spec["role"] in ("input", "inout")}
        if set(inputs) != wanted:
            raise TaskError(f"inputs given: {', '.join(sorted(inputs)) or 'none'}; "
                            f"wanted: {', '.join(sorted(wanted)) or 'none'}")
        for name in outputs:
            if self.buffers.get(name, {}).get("role") not in ("output", "inout"):
                raise TaskError(f"{name} is no output of the task")

    def _input(self, name: str, value: Any) -> Any:
        if isinstance(value, ObjectRef):
            return value.key
        spec = self.buffers[name]
        shape = spec.get("shape", (buffer_bytes(name, spec),))
        data = checked(value, spec.get("type", "bytes"), shape, f"input {name}")
        if data.nbytes <= INLINE_LIMIT:
            return data
        key = f"{self.prefix}/in/{name}"
        self.client.objects.put(key, data, lifetime=TEMPORARY_LIFETIME_S)
        self.made.append(key)
        return key

    def _output(self, name: str, value: Any, borrowed: dict[str, str]) -> Any:
        if isinstance(value, str) and name not in borrowed:
            return self.client.objects.ref(value)
        spec = self.buffers[name]
        data = self.client.objects.get(value) if isinstance(value, str) else value
        return to_array(data, spec["type"], spec["shape"]) if "type" in spec else bytes(data)


def invoke_headers(event: bool, invocation_id: str | None) -> dict[str, str]:
    return {"X-Amz-Invocation-Type": "Event"} if event else {REPEAT_ID: invocation_id or str(uuid.uuid4())}


def _map(submit: Callable[[Payload], concurrent.futures.Future[Any]], payloads: Iterable[Payload], at_once: int,
         return_exceptions: bool) -> Iterator[Any]:
    if not 1 <= at_once <= MOST_AT_ONCE:
        raise ValueError(f"at_once is {at_once}, 1 to {MOST_AT_ONCE} is possible")
    return _mapped(submit, payloads, at_once, return_exceptions)


def _mapped(submit: Callable[[Payload], concurrent.futures.Future[Any]], payloads: Iterable[Payload], at_once: int,
            return_exceptions: bool) -> Iterator[Any]:
    waiting: collections.deque[concurrent.futures.Future[Any]] = collections.deque()
    source = iter(payloads)
    try:
        while True:
            for payload in source:
                waiting.append(submit(payload))
                if len(waiting) >= at_once:
                    break
            if not waiting:
                return
            try:
                result = waiting.popleft().result()
            except Exception as error:
                if not return_exceptions:
                    raise
                result = error
            yield result
    finally:
        for future in waiting:  # whoever stops listening, or had an error, wants no more of them
            future.cancel()


def _function(name: str) -> str:
    return f"/2015-03-31/functions/{urllib.parse.quote(name, safe='')}"


def _log(name: str, tail: int) -> str:
    return f"/fairlead/v1/functions/{urllib.parse.quote(name, safe='')}/log?tail={tail}"


def _archive(folder: pathlib.Path) -> dict[str, str]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return {"ZipFile": base64.b64encode(packed.getvalue()).decode()}
