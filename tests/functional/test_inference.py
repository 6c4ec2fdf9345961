"""The Open Inference Protocol over HTTP: kernel tasks as models, called by an unchanged client of Triton and by hand."""

import json
import os
import re
import struct
import subprocess
import threading
import urllib.parse

import pytest

from conftest import BUILD, PATIENCE_S, ROOT, eventually
from harness.node import NodeFailed

EXAMPLE = ROOT / "examples/ktask/vector-add"
N = 8


def infer(node, request, tensors=b"", model="add"):
    text = json.dumps(request).encode()
    headers = {"Inference-Header-Content-Length": str(len(text))} if tensors else {}
    return node.call("POST", f"/v2/models/{model}/infer", text + tensors, headers)


def tensor(name, **more):
    return {"name": name, "datatype": "FP32", "shape": [N], **more}


@pytest.fixture
def node(start_node):
    node = start_node()
    node.deploy("add", EXAMPLE)
    return node


def test_a_client_of_triton_calls_a_kernel_task(node):
    numpy = pytest.importorskip("numpy")
    http = pytest.importorskip("tritonclient.http", reason="pip install tritonclient[http]")
    client = http.InferenceServerClient(node.endpoint.removeprefix("http://"))
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("add")
    assert not client.is_model_ready("nobody")
    assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
    metadata = client.get_model_metadata("add")
    assert {one["name"]: (one["datatype"], one["shape"]) for one in metadata["inputs"]} == {
        "x": ("FP32", [N]), "y": ("FP32", [N])}
    assert client.get_model_config("add")["input"][0]["data_type"] == "TYPE_FP32"
    assert [model["name"] for model in client.get_model_repository_index()] == ["add"]
    x, y = numpy.arange(N, dtype="f"), numpy.full(N, 10, "f")
    for is_binary in (True, False):
        inputs = [http.InferInput(name, [N], "FP32") for name in ("x", "y")]
        for given, array in zip(inputs, (x, y)):
            given.set_data_from_numpy(array, binary_data=is_binary)
        wanted = [http.InferRequestedOutput("sum", binary_data=is_binary)]
        for outputs in (wanted, None):  # None: all of them, binary
            answer = client.infer("add", inputs, outputs=outputs, request_id="7", timeout=60_000_000)
            assert (answer.as_numpy("sum") == x + y).all()
            assert answer.get_response()["id"] == "7"
    # Counted when the function has answered, which may be after the client was answered.
    eventually(lambda: client.get_inference_statistics("add")["model_stats"][0]["inference_count"] == 4)
    from tritonclient.utils import InferenceServerException
    wrong = http.InferInput("x", [N - 1], "FP32")
    wrong.set_data_from_numpy(x[:-1])
    with pytest.raises(InferenceServerException, match=r"shape is \[7\]; the model takes \[8\]"):
        client.infer("add", [wrong])
    client.close()


def test_numbers_and_bytes_may_be_mixed(node):
    request = {"inputs": [tensor("y", parameters={"binary_data_size": 4 * N}), tensor("x", data=list(range(N)))],
               "outputs": [{"name": "sum"}]}
    status, headers, body = infer(node, request, struct.pack(f"<{N}f", *[1] * N))
    assert status == 200, body
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body)["outputs"][0]["data"] == [1 + i for i in range(N)]


PROGRAM = '''
import io, struct
import fairlead
from fairlead import safetensors  # no NumPy: the node's machine may have none


@fairlead.function(inputs={"x": "f32[-1, 2]"}, outputs={"sum": "f32[-1]"}, raw=True)
def pairs(payload):
    """The sum of each row; of rows that begin with a negative number nothing that a model says."""
    header = safetensors.read_header(io.BytesIO(payload), len(payload))
    rows = header.tensors["x"].shape[0]
    numbers = struct.unpack_from(f"<{2 * rows}f", payload, header.data_begin)
    sums = struct.pack(f"<{rows}f", *(a + b for a, b in zip(numbers[::2], numbers[1::2])))
    name = "other" if rows and numbers[0] < 0 else "sum"
    text = b'{"%s":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (name.encode(), rows, len(sums))
    return len(text).to_bytes(8, "little") + text + sums
'''


def deploy_file(node, folder, name, text):
    (folder / f"{name}.py").write_text(text)
    done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "deploy", folder / f"{name}.py"], capture_output=True, text=True,
                          timeout=PATIENCE_S, env={**os.environ, "FAIRLEAD_CACHE": str(folder / "cache")})
    assert done.returncode == 0, done.stderr


@pytest.fixture
def program(start_node, tmp_path):
    node = start_node("--grpc", "127.0.0.1:0")
    deploy_file(node, tmp_path, "pairs", PROGRAM)
    return node


def rows_of(count, first=0):
    return [float(first + i) for i in range(2 * count)]


def call_program(node, count, numbers):
    return infer(node, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [count, 2], "data": numbers}]}, model="pairs")


def test_a_program_is_a_model_by_its_tags(program):
    status, _, body = program.call("GET", "/v2/models/pairs")
    assert status == 200 and json.loads(body)["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]
    for count in (1, 3, 0, 1000):
        status, _, body = call_program(program, count, rows_of(count))
        assert status == 200, body
        (answer,) = json.loads(body)["outputs"]
        assert answer["shape"] == [count] and answer["data"] == [float(4 * i + 1) for i in range(count)]
    status, _, body = infer(program, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [3, 1], "data": [1, 2, 3]}]}, model="pairs")
    assert status == 400 and "shape is [3, 1]; the model takes [-1, 2]" in json.loads(body)["error"]
    status, _, body = call_program(program, 1, rows_of(1, first=-7))
    assert status == 500 and json.loads(body)["error"] == "the answer lacks the output 'sum'"
    status, _, body = program.invoke("pairs", "{}")
    assert status == 200 and b"errorMessage" in body, "by Lambda's API it gets what is sent, which is no file"
    assert call_program(program, 1, rows_of(1))[0] == 200


def test_clients_of_triton_call_a_program(program):
    numpy = pytest.importorskip("numpy")
    grpc = pytest.importorskip("tritonclient.grpc", reason="pip install tritonclient[grpc]")
    http = pytest.importorskip("tritonclient.http", reason="pip install tritonclient[http]")
    address = eventually(lambda: re.search(r"gRPC at (\S+?)(?:,|$)", program.log_path.read_text(), re.M))[1]
    x = numpy.random.default_rng(1).random((500, 2), "f")
    for protocol, at in ((grpc, address), (http, program.endpoint.removeprefix("http://"))):
        with protocol.InferenceServerClient(at) as client:
            given = protocol.InferInput("x", list(x.shape), "FP32")
            given.set_data_from_numpy(x)
            assert (client.infer("pairs", [given]).as_numpy("sum") == x[:, 0] + x[:, 1]).all()


# Each row's answer is what it was given, and how many rows its call had.
TOGETHER = '''
import io, os, struct, time
import fairlead
from fairlead import safetensors


@fairlead.function(inputs={"x": "f32[-1]"}, outputs={"x": "f32[-1]", "rows": "f32[-1]"}, batch=32, replicas="1:1", raw=True)
def together(payload):
    header = safetensors.read_header(io.BytesIO(payload), len(payload))
    rows = header.tensors["x"].shape[0]
    x = payload[header.data_begin:]
    numbers = struct.unpack(f"<{rows}f", x)
    if -1 in numbers:
        raise ValueError("a row is -1")
    if -2 in numbers:
        os._exit(3)
    time.sleep(0.05)  # sleep: stands for a model; requests come meanwhile
    text = b'{"x":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]},"rows":{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]}}' % (
        rows, len(x), rows, len(x), 2 * len(x))
    return len(text).to_bytes(8, "little") + text + x + struct.pack(f"<{rows}f", *[rows] * rows)
'''


def ask_together(node, numbers):
    """(status, its answer) of each, one row a request, all at once."""
    answers = {}

    def ask(number):
        status, _, body = infer(node, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [number]}]}, model="together")
        answers[number] = status, json.loads(body)

    threads = [threading.Thread(target=ask, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_requests_that_come_at_once_are_one_call(start_node, tmp_path):
    node = start_node()
    deploy_file(node, tmp_path, "together", TOGETHER)
    ask_together(node, [0])
    answers = ask_together(node, range(1, 41))
    calls = [answer["outputs"][1]["data"][0] for _, answer in answers.values()]
    assert all(status == 200 and answer["outputs"][0]["data"] == [number] for number, (status, answer) in answers.items()), answers
    assert max(calls) > 8 and max(calls) <= 32, calls
    # Who is wrong is told so alone, be it by an error or by the end of the process.
    answers = ask_together(node, [*range(1, 17), -1, -2])
    assert {number for number, (status, _) in answers.items() if status != 200} == {-1, -2}, answers
    assert "a row is -1" in answers[-1][1]["error"] and answers[-2][0] == 500
    assert all(answer["outputs"][0]["data"] == [number] for number, (status, answer) in answers.items() if number > 0)


@pytest.mark.parametrize("tags, words", [
    ({"gpu:model-inputs": "x:f32:-1"}, "gpu:model-outputs is missing"),
    ({"gpu:model-inputs": "x:f32", "gpu:model-outputs": "y:f32:1"}, "'x:f32' must be NAME:TYPE:SIZES"),
    ({"gpu:model-inputs": "x:f32:-1x8", "gpu:model-outputs": "y:f32:1", "gpu:batch": "8"}, "the tensor 'y' is not of rows"),
    ({"gpu:batch": "8"}, "gpu:model-inputs is missing"),
    ({"gpu:model-inputs": "x:f32:9000000", "gpu:model-outputs": "y:f32:1"}, "more bytes than a call may have")])
def test_tags_that_are_no_model_are_refused_when_it_is_deployed(start_node, tags, words):
    node = start_node()
    with pytest.raises(NodeFailed, match=re.escape(words)):
        node.deploy("m", ROOT / "functions/template-python", Tags=tags)


def test_a_kernel_task_has_no_tags_of_a_model(node):
    tags = {"gpu:model-inputs": "x:f32:-1", "gpu:model-outputs": "sum:f32:-1", "gpu:batch": "8"}
    with pytest.raises(NodeFailed, match="kernel tasks say their tensors by themselves"):
        node.deploy("task", EXAMPLE, Tags=tags)
    tag = urllib.parse.quote("arn:aws:lambda:us-east-1:000000000000:function:add", safe="")
    status, _, body = node.call("POST", f"/2017-03-31/tags/{tag}", json.dumps({"Tags": tags}))
    assert status == 400 and b"say their tensors by themselves" in body, body
    assert infer(node, {"inputs": [tensor("x", data=[0] * N), tensor("y", data=[0] * N)]})[0] == 200


def test_refusals_are_the_protocols(node):
    status, _, body = infer(node, {"inputs": [tensor("x", data=[0] * N)]})
    assert status == 400 and json.loads(body) == {"error": "inputs lacks the input 'y'"}
    status, _, body = infer(node, {"inputs": []}, model="nobody")
    assert status == 404 and "no model 'nobody'" in json.loads(body)["error"]
    status, _, body = node.call("GET", "/v2/what")
    assert status == 404 and "error" in json.loads(body)
    assert infer(node, {"inputs": [tensor("x", data=[0] * N), tensor("y", data=[0] * N)]})[0] == 200


def test_a_program_is_no_model_and_still_a_function(node):
    node.deploy("echo", ROOT / "functions/template-python")
    names = [one["name"] for one in json.loads(node.call("POST", "/v2/repository/index")[2])]
    assert names == ["add"]
    status, _, body = node.call("GET", "/v2/models/echo")
    assert status == 400 and "does not say which tensors it takes" in json.loads(body)["error"]
