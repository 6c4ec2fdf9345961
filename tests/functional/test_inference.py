"""The Open Inference Protocol over HTTP: kernel tasks as models, called by an unchanged client of Triton and by hand."""

import json
import struct

import pytest

from conftest import ROOT, eventually

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
