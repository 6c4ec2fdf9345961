"""A node's HTTP interface (docs/reference/api.md). Standard library only; one connection per client, reopened when it was closed, and
after every failure: a timeout or a refused argument costs one call and not the client. A client belongs to one thread at a
time.

What fails on its way is sent again once, if a second run cannot follow from it: reads, writes of a whole thing, and
invocations, which carry an id by which the node knows a repeat. Everything else is the caller's to repeat."""

import base64
import http.client
import io
import json
import os
import pathlib
import select
import ssl
import tempfile
import urllib.parse
import uuid
import zipfile

from fairlead.arrays import as_array, checked, to_array
from fairlead.credentials import token_for
from fairlead.errors import FunctionError, RequestError
from fairlead.ktask import wire
from fairlead.ktask.graph import buffer_bytes, write_json
from fairlead.types import TaskError
from fairlead.objects import ObjectRef, Objects

INLINE_LIMIT = 1 << 20        # larger arrays of a call travel as objects; a node takes 4 MiB inline
BUNDLE_LIMIT = 16 << 20       # constants beyond this are put as objects of their own
REQUEST_LIMIT = 32 << 20      # of modules and constants of a one-off request
REPEAT_ID = "amz-sdk-invocation-id"  # a node runs the invocations that have the same one once
ARN_PREFIX = "arn:aws:lambda:us-east-1:000000000000:function:"
REPEATABLE = ("GET", "HEAD", "PUT")
TEMPORARY_LIFETIME_S = 600    # of objects that a call made, should the client die before it deletes them


def _connection(parts, timeout):
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)
    context = ssl.create_default_context()
    if os.environ.get("FAIRLEAD_CA"):
        context.load_verify_locations(os.environ["FAIRLEAD_CA"])
    return http.client.HTTPSConnection(parts.hostname, parts.port or 443, timeout=timeout, context=context)


class Client:
    """url: "http://host:port", or "https://host:port", then FAIRLEAD_CA names a file with certificates to trust beside the
    system's. tenant: whose objects and quotas these are; a key of one tenant needs none. token: an API key,
    "ID.SECRET"; None: FAIRLEAD_TOKEN, or the key of who started the node on this machine."""

    def __init__(self, url="http://127.0.0.1:9001", tenant=None, timeout=900, token=None):
        parts = urllib.parse.urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the URL is {url}, one like http://127.0.0.1:9001 or https://gpu.example.com:9001 is wanted")
        self.is_local = parts.hostname in ("127.0.0.1", "localhost", "::1")
        self.objects = Objects(self)
        self._headers = {"X-Fairlead-Tenant": tenant} if tenant else {}
        token = token or token_for(self.is_local)
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection = _connection(parts, timeout)
        self._tasks = {}  # descriptions of what this client deployed

    # ---- HTTP

    def request(self, method, path, body=None, headers=None):
        """(headers, body) of a success; RequestError of anything else."""
        response, data = self._exchange(method, path, body, {**self._headers, **(headers or {})})
        if response.status >= 300:
            try:
                message = json.loads(data).get("Message") or data.decode(errors="replace")
            except (ValueError, AttributeError):
                message = data.decode(errors="replace")
            raise RequestError(response.status, response.headers.get("x-amzn-ErrorType", response.reason), message)
        return response.headers, data

    def _exchange(self, method, path, body, headers):
        self._drop_closed_connection()
        reused = self._connection.sock is not None
        try:
            return self._exchange_once(method, path, body, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The node may have closed the idle connection, or have died with the request: who knows.
            if not reused or not (method in REPEATABLE or REPEAT_ID in headers):
                raise
        return self._exchange_once(method, path, body, headers)

    def _exchange_once(self, method, path, body, headers):
        """Whatever happens, the connection is ready for the next request or closed."""
        try:
            self._connection.request(method, path, body=body, headers=headers)
            response = self._connection.getresponse()
            return response, response.read()
        except BaseException:
            self._connection.close()
            raise

    def _drop_closed_connection(self):
        """Nothing is expected on an idle connection: what can be read there is its end."""
        socket = self._connection.sock
        if socket is None:
            return
        readable = select.poll()
        readable.register(socket, select.POLLIN | select.POLLHUP | select.POLLERR)
        if readable.poll(0):
            self._connection.close()

    def close(self):
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- functions

    def invoke(self, name, payload=b"", event=False, headers=None):
        """The response's bytes. payload: bytes, a text, or a document that becomes JSON. event=True: accepted and safely
        stored means done; such a call is not repeated, because the node would run it twice."""
        more = {"X-Amz-Invocation-Type": "Event"} if event else {REPEAT_ID: str(uuid.uuid4())}
        answered, data = self.request("POST", f"{_function(name)}/invocations", _payload(payload),
                                      {**more, **(headers or {})})
        if answered.get("X-Amz-Function-Error"):
            raise FunctionError(data)
        return data

    def deploy(self, name, folder, upload=None, share=None, **configuration):
        """Creates function `name` from a folder, or replaces its code. upload: send an archive, as is done for a node
        elsewhere; one on this machine reads the folder itself. share: a fairlead.Share. `configuration`: fields of
        CreateFunction. A share that the node cannot keep is a RequestError that says what is lacking, and changes nothing."""
        code = _archive(folder) if (not self.is_local if upload is None else upload) else \
            {"Folder": str(pathlib.Path(folder).resolve())}
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

    def remove(self, name):
        self.request("DELETE", _function(name))

    def _send(self, method, path, document):
        return self.request(method, path, json.dumps(document), {"Content-Type": "application/json"})

    # ---- kernel tasks

    def deploy_task(self, name, task, **options):
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

    def _put_constants(self, name, task, description):
        files = task.constants()
        for buffer, spec in description["buffers"].items():
            if "file" in spec:
                spec["key"] = f"{name}/{spec['file']}"
                self.objects.put(spec["key"], files[spec.pop("file")], replace=True)

    def call(self, name, outputs=None, task=None, **inputs):
        """Calls a kernel task: {output: array}. An input is an array or an ObjectRef; an output that `outputs` gives a
        key becomes an object, and its ObjectRef is answered. `task`: the description (task.json as a dict) of a task
        that this client did not deploy; without one, inputs and outputs travel as JSON."""
        description = task or self._tasks.get(name)
        if description is None:
            return self._call_by_json(name, inputs, outputs or {})
        return _BinaryCall(self, description).run(inputs, dict(outputs or {}), lambda call: self.invoke(
            name, call, headers={"Content-Type": wire.CONTENT_TYPE}))

    def run_task(self, task, outputs=None, timeout_seconds=60, **inputs):
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

    def _request_task(self, body):
        answered, data = self.request("POST", "/v1/ktasks", body,
                                      {"Content-Type": wire.CONTENT_TYPE, REPEAT_ID: str(uuid.uuid4())})
        if answered.get("X-Amz-Function-Error"):
            raise FunctionError(data)
        return data

    def _call_by_json(self, name, inputs, outputs):
        said = {key: {"key": value.key} if isinstance(value, ObjectRef) else
                {"base64": base64.b64encode(as_array(value).data).decode()} for key, value in inputs.items()}
        call = {"inputs": said, "outputs": {key: {"key": value} for key, value in outputs.items()}}
        answer = json.loads(self.invoke(name, json.dumps(call)))
        return {key: _json_output(self.objects, value) for key, value in answer["outputs"].items()}


def _json_output(objects, value):
    if "key" in value:
        return objects.ref(value["key"])
    if "base64" in value:
        return base64.b64decode(value["base64"])
    return value["values"]


class _BinaryCall:
    """One call; what is large goes by objects, which are deleted afterwards."""

    def __init__(self, client, description):
        self.client, self.buffers = client, description["buffers"]
        self.names = wire.buffer_names(description)
        self.prefix = f"calls/{uuid.uuid4()}"
        self.made = []

    def run(self, inputs, outputs, send):
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

    def _check(self, inputs, outputs):
        wanted = {name for name, spec in self.buffers.items() if spec["role"] in ("input", "inout")}
        if set(inputs) != wanted:
            raise TaskError(f"inputs given: {', '.join(sorted(inputs)) or 'none'}; "
                            f"wanted: {', '.join(sorted(wanted)) or 'none'}")
        for name in outputs:
            if self.buffers.get(name, {}).get("role") not in ("output", "inout"):
                raise TaskError(f"{name} is no output of the task")

    def _input(self, name, value):
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

    def _output(self, name, value, borrowed):
        if isinstance(value, str) and name not in borrowed:
            return self.client.objects.ref(value)
        spec = self.buffers[name]
        data = self.client.objects.get(value) if isinstance(value, str) else value
        return to_array(data, spec["type"], spec["shape"]) if "type" in spec else bytes(data)


def _payload(payload):
    """What travels. Of a type that is neither bytes nor text nor JSON: TypeError, before anything is sent."""
    if isinstance(payload, str):
        return payload.encode()
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return payload
    return json.dumps(payload).encode()


def _function(name):
    return f"/2015-03-31/functions/{urllib.parse.quote(name, safe='')}"


def _archive(folder):
    folder = pathlib.Path(folder)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return {"ZipFile": base64.b64encode(packed.getvalue()).decode()}
