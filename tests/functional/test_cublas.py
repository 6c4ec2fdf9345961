"""Matrix products of the built-in library by cuBLAS: a library of the tests that computes what cuBLAS documents."""

import os
import pathlib
import shutil
import subprocess

import numpy
import pytest

from conftest import BUILD, ROOT
from test_kernel_task_requests import post, request, values

FAKE = BUILD / "src/runtime/device_server/libcublas_fake.so"
M, N, K, BATCHES = 37, 41, 53, 2
RANDOM = numpy.random.default_rng(11)
A = RANDOM.normal(size=(BATCHES, M, K)).astype(numpy.float32)
B = RANDOM.normal(size=(BATCHES, N, K)).astype(numpy.float32)  # transposed
BIAS = RANDOM.normal(size=N).astype(numpy.float32)
EXPECTED = numpy.maximum(0.5 * A @ B.transpose(0, 2, 1) + BIAS, 0)


def tensor(role, array):
    return {"role": role, "type": "f32", "shape": list(array.shape)}


def product(depth=K):
    """relu(0.5 A B' + bias) by gemm_f32_small."""
    strides = (K, 1, M * K, 1, K, N * K, N, M * N)
    arguments = [{"buffer": "y"}, {"buffer": "a"}, {"buffer": "b"}, {"u64": 0}, {"buffer": "bias"},
                 *({"s32": size} for size in (M, N, depth)), *({"s64": stride} for stride in strides),
                 {"f32": 0.5}, {"f32": 0}, {"s32": 1}, {"s32": 1}]
    return {"buffers": {"a": tensor("input", A), "b": tensor("input", B), "bias": tensor("input", BIAS),
                        "y": tensor("output", EXPECTED)},
            "kernels": [{"module": "fairlead:gemm", "kernel": "gemm_f32_small", "block": [64],
                         "grid": [-(-N // 32), -(-M // 32), BATCHES], "arguments": arguments}]}


def multiply(node, task):
    inputs = {name: array.ravel().tolist() for name, array in (("a", A), ("b", B), ("bias", BIAS))}
    return numpy.array(values(post(node, request(task, call={"inputs": inputs}, files={}))), numpy.float32)


@pytest.fixture
def cublas(tmp_path):
    """(the library, the file that it writes its products to)"""
    library = tmp_path / "libcublas_fake.so"
    shutil.copy(FAKE, library)
    calls = tmp_path / "libcublas_fake.so.calls"
    calls.touch()
    return library, calls


@pytest.mark.parametrize("isolation", ["process", "fence"])
def test_a_product_is_one_call_of_cublas(start_node, cublas, isolation):
    library, calls = cublas
    node = start_node("--cublas", library, "--task-isolation", isolation, "--no-jail")  # it writes beside itself
    for _ in range(2):
        numpy.testing.assert_allclose(multiply(node, product()).reshape(EXPECTED.shape), EXPECTED, rtol=1e-5, atol=1e-5)
    assert calls.read_text().splitlines() == [f"f32 {N} x {M} over {K}, {BATCHES} times"] * 2
    assert f"matrix products of kernel tasks use cuBLAS 12.3.4 ({library})" in node.log_path.read_text()


def test_a_product_that_ends_behind_its_buffers_is_none_of_cublas(start_node, cublas):
    library, calls = cublas
    node = start_node("--cublas", library, "--task-isolation", "fence", "--no-jail")
    assert multiply(node, product(depth=K + 1)).size == EXPECTED.size
    assert calls.read_text() == ""


def test_a_server_in_a_jail_loads_it(start_node, cublas, tmp_path):
    library, _ = cublas
    (tmp_path / "secret").write_text("beside it")
    node = start_node("--cublas", library)
    numpy.testing.assert_allclose(multiply(node, product()).reshape(EXPECTED.shape), EXPECTED, rtol=1e-5, atol=1e-5)
    assert f"matrix products of kernel tasks use cuBLAS 12.3.4 ({library})" in node.log_path.read_text()
    servers = [path.parent for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
               if path.read_bytes().split(b"\0")[1:2] == [b"device-server"]]
    assert servers and not any((server / "root" / str(tmp_path).lstrip("/") / "secret").exists() for server in servers)


@pytest.mark.parametrize("option", ["auto", "off"])
def test_the_software_gpu_has_the_built_in_kernels(start_node, option):
    node = start_node("--cublas", option)
    numpy.testing.assert_allclose(multiply(node, product()).reshape(EXPECTED.shape), EXPECTED, rtol=1e-5, atol=1e-5)
    assert "cuBLAS" not in node.log_path.read_text()


@pytest.mark.parametrize("content, why", [(None, "No such file"), (b"no library", "")])
def test_a_file_that_cannot_be_loaded_is_named_at_the_start(tmp_path, content, why):
    path = tmp_path / "libcublas.so.12"
    if content:
        path.write_bytes(content)
    ended = subprocess.run([BUILD / "bin/fairlead", "serve", "--softgpu", "--state", tmp_path / "state", "--cublas", path],
                           capture_output=True, text=True, timeout=20)
    assert ended.returncode != 0
    assert "--cublas" in ended.stderr and str(path) in ended.stderr and why in ended.stderr
    assert "--cublas off" in ended.stderr


def test_the_tool_compares_both_in_every_type(cublas):
    library, calls = cublas
    compared = subprocess.run([ROOT / "tools/gpu-check", "--build", BUILD, "--self", "--side", "64", "--cublas", library],
                              capture_output=True, text=True, timeout=60, env=os.environ | {"FAIRLEAD_SERVE_NO_JAIL": "true"})
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert [f"gemm_{element}: apart by" in compared.stdout for element in ("f32", "f64", "c64")] == [True] * 3
    assert {line.split()[0] for line in calls.read_text().splitlines()} == {"f32", "f64", "c64"}
