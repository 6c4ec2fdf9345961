"""The least of a node that the client can be tried against: functions that are kernel tasks, and objects. It reads the
wire form by itself, from the words of src/wire/kernel_task_codec.h, and runs tasks with the local executor."""

import base64
import http.server
import io
import json
import struct
import threading
import urllib.parse
import zipfile

from fairlead import ktask


def take_length(stream):
    value = shift = 0
    while True:
        byte = stream.read(1)[0]
        value += (byte % 128) << shift
        shift += 7
        if byte < 128:
            return value


def put_text(text):
    size, out = len(text), b""
    while size > 127:
        out, size = out + bytes([size % 128 + 128]), size // 128
    return out + bytes([size]) + text


class FakeNode:
    def __init__(self, folder):
        self.folder = folder
        self.tasks, self.configurations, self.objects, self.tenants = {}, {}, {}, set()
        self.functions, self.logs = {}, {}  # name: what answers its payload; name: what it wrote
        self.refusals = []  # (status, headers) of the next answers, instead of theirs
        self.close_after_answer = False
        self.swallow = 0  # requests that are taken and never answered: their connection ends instead
        self.answer_gate = threading.Event()  # answers wait for it
        self.answer_gate.set()
        self.received = []  # (method, path, headers, body) of every request
        self.memory_is_shared = True
        self.requested, self.timeouts = [], []  # of one-off requests: (task.json, files), and what they said
        self.sent = []  # keys of objects that went by HTTP

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(handler):
                body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
                self.tenants.add(handler.headers.get("X-Fairlead-Tenant"))
                self.received.append((handler.command, handler.path, handler.headers, body))
                if self.swallow:
                    self.swallow -= 1
                    handler.close_connection = True
                    return
                self.answer_gate.wait()
                status, headers, data = self.handle(handler.command, handler.path, body, handler.headers)
                handler.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    handler.send_header(name, value)
                handler.end_headers()
                handler.wfile.write(data)
                handler.close_connection = self.close_after_answer

            do_GET = do_PUT = do_POST = do_DELETE = answer

            def log_message(handler, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def handle(self, method, path, body, headers):
        if self.refusals:
            status, more = self.refusals.pop(0)
            return status, more, b'{"Message": "later"}'
        path, _, query = path.partition("?")
        path = urllib.parse.unquote(path)
        if path.endswith("/log"):
            return 200, {}, self.logs[path.split("/")[-2]]
        if path.startswith("/v1/objects"):
            return self.handle_object(method, path.removeprefix("/v1/objects").removeprefix("/"), body, query)
        if path == "/v1/ktasks":
            return self.run_request(body, headers)
        if path.startswith("/2017-03-31/tags/"):
            return 204, {}, b""
        name = path.removeprefix("/2015-03-31/functions").strip("/").split("/")[0]
        if path.endswith("/invocations"):
            return self.invoke(name, body, headers)
        document = json.loads(body) if body else {}
        if method == "DELETE":
            del self.tasks[name]
            return 204, {}, b""
        if method == "POST" and document["FunctionName"] in self.tasks:
            return self.error(409, "ResourceConflictException", "it exists")
        name = name or document["FunctionName"]
        if "Code" in document or path.endswith("/code"):
            self.take_code(name, document.pop("Code", document))
        self.configurations.setdefault(name, {}).update(document)
        return 200, {}, b"{}"

    def take_code(self, name, code):
        folder = code.get("Folder")
        if folder is None:
            folder = self.folder / name
            zipfile.ZipFile(io.BytesIO(base64.b64decode(code["ZipFile"]))).extractall(folder)
        task = json.loads((ktask.local.pathlib.Path(folder) / "task.json").read_text())
        constants = {key: self.objects[spec["key"]] for key, spec in task["buffers"].items() if "key" in spec}
        self.tasks[name] = ktask.load(folder, constants=constants)

    def handle_object(self, method, key, body, query):
        query = {name: values[0] for name, values in urllib.parse.parse_qs(query, keep_blank_values=True).items()}
        if method == "GET" and not key:
            return self.list_objects(query)
        if method == "PUT" or "create" in query:
            if key in self.objects:
                return self.error(409, "ResourceConflictException", f"object {key} exists")
            self.objects[key] = body if method == "PUT" else bytes(int(query["create"]))
            if method == "PUT":
                return 201, {}, b"{}"
            self.path_of(key).write_bytes(self.objects[key])
            return 201, {}, json.dumps({"key": key, "state": "pending", "path": self.said_path(key)}).encode()
        if key not in self.objects:
            return self.error(404, "ResourceNotFoundException", f"there is no object {key}")
        if method == "DELETE":
            del self.objects[key]
            return 204, {}, b""
        if "seal" in query:
            self.objects[key] = self.path_of(key).read_bytes()
            return 200, {}, b"{}"
        if "info" in query:
            self.path_of(key).write_bytes(self.objects[key])
            return 200, {}, json.dumps({"key": key, "state": "sealed", "bytes": len(self.objects[key]),
                                        "path": self.said_path(key)}).encode()
        self.sent.append(key)
        return 200, {}, self.objects[key]

    def list_objects(self, query):
        """Two at a time."""
        keys = [key for key in sorted(self.objects) if key.startswith(query["prefix"]) and key > query.get("after", "")]
        page = {"objects": [{"key": key, "bytes": len(self.objects[key])} for key in keys[:2]]}
        if len(keys) > 2:
            page["next_after"] = keys[1]
        return 200, {}, json.dumps(page).encode()

    def path_of(self, key):
        return self.folder / key.replace("/", "%")

    def said_path(self, key):
        return str(self.path_of(key)) if self.memory_is_shared else "/nowhere/" + key

    def invoke(self, name, body, headers):
        if headers.get("X-Amz-Invocation-Type") == "Event":
            return 202, {"x-amzn-RequestId": f"event-{len(self.received)}"}, b""
        if name in self.functions:
            return 200, {}, self.functions[name](body)
        if name not in self.tasks:
            return self.error(404, "ResourceNotFoundException", f"there is no function {name}")
        return self.call(self.tasks[name], body)

    def run_request(self, body, headers):
        stream = io.BytesIO(body)
        assert headers["Content-Type"] == "application/vnd.fairlead.kernel-task" and stream.read(6) == b"FLKT\1\4"
        text = stream.read(take_length(stream))
        files = []
        for _ in range(take_length(stream)):
            name = stream.read(take_length(stream)).decode()
            files.append((name, stream.read(take_length(stream))))
        assert files == sorted(files)
        self.requested.append((text, files))
        self.timeouts.append(struct.unpack("<I", stream.read(4))[0])
        call = stream.read(take_length(stream))
        assert not stream.read()
        with ktask.LocalTask(json.loads(text), dict(files).__getitem__) as task:
            return self.call(task, call)

    def call(self, task, body):
        names = sorted(task.buffers)
        try:
            inputs, outputs = self.read_call(names, body)
            results = task(**inputs)
        except (ktask.TaskError, KeyError) as error:
            failure = {"errorType": "KernelTask.BadCall", "errorMessage": str(error)}
            return 200, {"X-Amz-Function-Error": "Unhandled"}, json.dumps(failure).encode()
        self.objects.update((key, results[output].tobytes()) for output, key in outputs.items())
        if not body.startswith(b"FLKT"):
            return 200, {}, json.dumps({"outputs": {
                output: {"key": outputs[output]} if output in outputs else {"values": value.tolist()}
                for output, value in results.items()}}).encode()
        answer = b"FLKT\1\3" + bytes([len(results)])
        for output, value in results.items():
            key, data = (outputs[output].encode(), b"") if output in outputs else (b"", value.tobytes())
            answer += struct.pack("<I", names.index(output)) + put_text(key) + put_text(data)
        return 200, {}, answer + struct.pack("<6q", *range(6))

    def read_call(self, names, body):
        if not body.startswith(b"FLKT"):
            call = json.loads(body)
            inputs = {name: base64.b64decode(v["base64"]) if "base64" in v else self.objects[v["key"]]
                      for name, v in call["inputs"].items()}
            return inputs, {name: v["key"] for name, v in call["outputs"].items() if v}
        stream = io.BytesIO(body)
        assert stream.read(6) == b"FLKT\1\2"
        sides = []
        for _ in range(2):
            side = {}
            for _ in range(take_length(stream)):
                index, = struct.unpack("<I", stream.read(4))
                key = stream.read(take_length(stream)).decode()
                data = stream.read(take_length(stream))
                side[names[index]] = key or data
            sides.append(side)
        assert not stream.read()
        inputs = {name: self.objects[v] if isinstance(v, str) else v for name, v in sides[0].items()}
        return inputs, sides[1]

    @staticmethod
    def error(status, type, message):
        return status, {"x-amzn-ErrorType": type}, json.dumps({"Type": "User", "Message": message}).encode()
