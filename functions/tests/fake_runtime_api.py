"""A Runtime API played by hand, for tests: accept, read a request, send an answer. Every step fails after 30 seconds."""

import os
import socket
import tempfile


class FakeRuntimeApi:
    """Listens on a Unix socket or, with tcp=True, on loopback; `environment` tells a function where."""

    def __init__(self, tcp=False):
        self._folder = None
        if tcp:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.environment = {"AWS_LAMBDA_RUNTIME_API": "127.0.0.1:%d" % self._listener.getsockname()[1]}
        else:
            self._folder = tempfile.TemporaryDirectory()
            path = os.path.join(self._folder.name, "api.sock")
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
            self._listener.listen()
            self.environment = {"FAIRLEAD_RUNTIME_SOCKET": path}
        self._listener.settimeout(30)
        self._connection = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close_connection()
        self._listener.close()
        if self._folder is not None:
            self._folder.cleanup()

    def accept(self):
        self.close_connection()
        self._connection, _ = self._listener.accept()
        self._connection.settimeout(30)
        self._reader = self._connection.makefile("rb")

    def close_connection(self):
        if self._connection is not None:
            self._reader.close()
            self._connection.close()
            self._connection = None

    def read_request(self):
        """(method, path below /2018-06-01/runtime/, headers in lower case, body)"""
        method, path, _ = self._reader.readline().decode().split(" ")
        headers = {}
        while line := self._reader.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = self._reader.read(int(headers.get("content-length", "0")))
        return method, path.removeprefix("/2018-06-01/runtime/"), headers, body

    def expect_next(self, test):
        method, path, _, _ = self.read_request()
        test.assertEqual((method, path), ("GET", "invocation/next"))

    def send(self, data):
        self._connection.sendall(data)

    def send_event(self, request_id, payload):
        self.send(event(request_id, payload))

    def invoke(self, test, request_id, payload):
        """A whole round: event out, answer and next request in, answer acknowledged. Returns (path, headers, body)."""
        self.send_event(request_id, payload)
        method, path, headers, body = self.read_request()
        test.assertEqual(method, "POST")
        self.expect_next(test)
        self.send(ACCEPTED)
        return path, headers, body


ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"


def event(request_id, payload):
    head = "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: %s\r\nLambda-Runtime-Deadline-Ms: 1700000000123\r\n"
    return (head % request_id).encode() + b"Content-Length: %d\r\n\r\n" % len(payload) + payload
