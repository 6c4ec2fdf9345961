"""Deployable folders as black boxes: starts DIR/<name>/bootstrap against a fake Runtime API and a GPU.

Usage: bootstrap_test.py DIR. Needs libcuda.so.1 on the library path, the software GPU's or a real one.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True

from fake_runtime_api import ACCEPTED, FakeRuntimeApi  # noqa: E402

FUNCTIONS = pathlib.Path(sys.argv.pop(1))


@contextlib.contextmanager
def deployed(name, tcp=False, **environment):
    """The Runtime API with the function connected to it."""
    with FakeRuntimeApi(tcp) as api:
        process = subprocess.Popen(
            [FUNCTIONS / name / "bootstrap"],
            env={**os.environ, **api.environment, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            api.accept()
            yield api
        finally:
            process.kill()
            api.log = process.communicate()[1]


class Bootstrap(unittest.TestCase):
    def invoke(self, api, request_id, **parameters):
        path, _, body = api.invoke(self, request_id, json.dumps(parameters).encode())
        self.assertEqual(path, f"invocation/{request_id}/response", body)
        return json.loads(body)

    def test_noop_returns_its_payload(self):
        for tcp in (False, True):
            with self.subTest(tcp=tcp), deployed("noop", tcp) as api:
                api.expect_next(self)
                self.assertEqual(api.invoke(self, "a", b"\x00any bytes\xff")[2], b"\x00any bytes\xff")

    def test_cpp_template_adds(self):
        with deployed("hello-cpp") as api:
            api.expect_next(self)
            self.assertEqual(self.invoke(api, "a"), {"n": 1000, "last": 2997})
            self.assertEqual(self.invoke(api, "b", n=5), {"n": 5, "last": 12})

    def test_python_template_adds(self):
        with deployed("hello-python") as api:
            api.expect_next(self)
            self.assertEqual(self.invoke(api, "a", a=[1, 2, 3], b=[10, 20, 30]), {"sum": [11, 22, 33]})
            path, headers, body = api.invoke(self, "b", b'{"a": [1], "b": []}')
            self.assertEqual(path, "invocation/b/error")
            self.assertIn("both need the same count", json.loads(body)["errorMessage"])

    def test_samples_answer_and_repeat_themselves(self):
        small = {
            "imagenet": {"batch": 1, "side": 16},
            "roberta": {"text": "all hands", "length": 4},
            "ffmpeg": {"frames": 2, "width": 32, "height": 16},
            "fft": {"n": 64, "batch": 2},
            "isoneural": {"steps": 1},
            "lud": {"n": 32},
            "needle": {"n": 64},
            "pathfinder": {"rows": 5, "columns": 100},
        }
        for name, parameters in small.items():
            with self.subTest(name), deployed(name, FUNCTION_MEMORY_MIB="1") as api:
                api.expect_next(self)
                first = self.invoke(api, "a", **parameters)
                second = self.invoke(api, "b", **parameters)
                self.assertEqual(first["function"], name)
                self.assertGreaterEqual(first.pop("gpu_ms"), 0)
                second.pop("gpu_ms")
                self.assertEqual(first, second)

    def test_bad_parameter_is_a_function_error_that_names_it(self):
        with deployed("fft") as api:
            api.expect_next(self)
            path, headers, body = api.invoke(self, "a", b'{"n": 1000}')
            self.assertEqual(path, "invocation/a/error")
            self.assertEqual(headers["lambda-runtime-function-error-type"], "Runtime.InvalidParameter")
            self.assertEqual(
                json.loads(body)["errorMessage"], 'parameter "n" is 1000; it must be a power of two, 2 to 65536'
            )
            self.assertEqual(self.invoke(api, "b", n=64)["n"], 64)

    def test_pause_is_logged_as_what_it_is(self):
        with deployed("fft", FUNCTION_INIT_PAUSE_MS="1") as api:
            api.expect_next(self)
        self.assertIn("after a pause of 1 ms that stands for loading libraries", api.log)

    def test_device_memory_that_does_not_exist_fails_the_initialisation(self):
        with deployed("fft", FUNCTION_MEMORY_MIB="1000000") as api:
            _, path, headers, body = api.read_request()
            self.assertEqual(path, "init/error")
            self.assertEqual(headers["lambda-runtime-function-error-type"], "Gpu.CUDA_ERROR_OUT_OF_MEMORY")
            self.assertIn(b"1048576000000 bytes", body)
            api.send(ACCEPTED)


if __name__ == "__main__":
    unittest.main()
