"""The Python runtime library against a fake Runtime API, over both transports. Needs no GPU."""

import contextlib
import io
import json
import os
import pathlib
import sys
import threading
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "runtime" / "python")]
sys.dont_write_bytecode = True

import fairlead_runtime  # noqa: E402
from fake_runtime_api import ACCEPTED, FakeRuntimeApi, event  # noqa: E402


@contextlib.contextmanager
def running(api, handler, init=None):
    """The function in a thread of its own; ends when the connection does."""
    with mock.patch.dict(os.environ, api.environment), contextlib.redirect_stderr(io.StringIO()):
        thread = threading.Thread(target=fairlead_runtime.run, args=(handler, init))
        thread.start()
        try:
            api.accept()
            yield thread
        finally:
            api.close_connection()
            api._listener.close()
            thread.join(30)


class PythonRuntime(unittest.TestCase):
    def test_answers_one_event_after_another(self):
        for tcp in (False, True):
            with self.subTest(tcp=tcp), FakeRuntimeApi(tcp) as api, running(api, lambda e: {"got": e.json()}):
                api.expect_next(self)
                for request_id in ("a", "b", "c"):
                    path, headers, body = api.invoke(self, request_id, b'{"n": 1}')
                    self.assertEqual(path, f"invocation/{request_id}/response")
                    self.assertEqual(headers["content-type"], "application/json")
                    self.assertEqual(json.loads(body), {"got": {"n": 1}})

    def test_bytes_and_text_are_sent_as_they_are(self):
        with FakeRuntimeApi() as api, running(api, lambda e: e.payload if e.payload != b"t" else "text"):
            api.expect_next(self)
            _, headers, body = api.invoke(self, "a", b"\x00\xff")
            self.assertEqual((headers["content-type"], body), ("application/octet-stream", b"\x00\xff"))
            _, headers, body = api.invoke(self, "b", b"t")
            self.assertEqual((headers["content-type"], body), ("text/plain", b"text"))

    def test_megabytes_and_chunks(self):
        with FakeRuntimeApi(tcp=True) as api, running(api, lambda e: e.payload):
            api.expect_next(self)
            payload = bytes(range(256)) * 20000
            self.assertEqual(api.invoke(self, "big", payload)[2], payload)
            api.send(
                b"HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: c\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"5\r\nhello\r\n2;x=y\r\n!!\r\n0\r\n\r\n"
            )
            self.assertEqual(api.read_request()[3], b"hello!!")

    def test_exception_becomes_function_error(self):
        def handler(_):
            raise ValueError("n is 0; it must be positive")

        with FakeRuntimeApi() as api, running(api, handler):
            api.expect_next(self)
            path, headers, body = api.invoke(self, "a", b"")
            self.assertEqual(path, "invocation/a/error")
            self.assertEqual(headers["lambda-runtime-function-error-type"], "ValueError")
            error = json.loads(body)
            self.assertEqual((error["errorType"], error["errorMessage"]), ("ValueError", "n is 0; it must be positive"))
            self.assertIn("python_runtime_test.py", error["stackTrace"][-1])
            self.assertEqual(api.invoke(self, "b", b"")[0], "invocation/b/error")

    def test_terminal_error_ends_the_function(self):
        def handler(_):
            raise fairlead_runtime.CudaContextLost("cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS")

        with FakeRuntimeApi() as api, running(api, handler) as thread:
            api.expect_next(self)
            api.send_event("a", b"")
            self.assertEqual(api.read_request()[1], "invocation/a/error")
            api.send(ACCEPTED)
            thread.join(30)
            self.assertFalse(thread.is_alive())

    def test_failed_initialisation_is_reported(self):
        def init():
            raise RuntimeError("no weights")

        with FakeRuntimeApi() as api, running(api, None, init):
            _, path, headers, body = api.read_request()
            self.assertEqual((path, headers["lambda-runtime-function-error-type"]), ("init/error", "RuntimeError"))
            self.assertIn(b"no weights", body)
            api.send(ACCEPTED)

    def test_unacknowledged_response_is_sent_again(self):
        with FakeRuntimeApi() as api, running(api, lambda e: "precious"):
            api.expect_next(self)
            api.send_event("a", b"")
            self.assertEqual(api.read_request()[3], b"precious")
            api.accept()
            self.assertEqual(api.read_request()[3], b"precious")
            api.expect_next(self)
            api.send(ACCEPTED + event("b", b""))
            self.assertEqual(api.read_request()[1], "invocation/b/response")


if __name__ == "__main__":
    unittest.main()
