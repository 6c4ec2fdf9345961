"""The Open Inference Protocol over gRPC: kernel tasks as models, called by an unchanged client of Triton, and by those who mean ill."""

import json
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading

import pytest

from conftest import BUILD, PATIENCE_S, ROOT, eventually
from test_peers import make_cluster  # noqa: F401, a fixture

numpy = pytest.importorskip("numpy")
triton = pytest.importorskip("tritonclient.grpc", reason="pip install tritonclient[grpc]")
import grpc  # noqa: E402, which tritonclient.grpc needs
from tritonclient.utils import InferenceServerException  # noqa: E402

EXAMPLE = ROOT / "examples/ktask/vector-add"
N = 8


def grpc_address(node):
    return eventually(lambda: re.search(r"gRPC at (\S+?)(?:,|$)", node.log_path.read_text(), re.M))[1]


def resident_bytes(node):
    status = (pathlib.Path("/proc") / str(node.process.pid) / "status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


def inputs(x, y):
    given = [triton.InferInput(name, list(array.shape), "FP32") for name, array in (("x", x), ("y", y))]
    for one, array in zip(given, (x, y)):
        one.set_data_from_numpy(array)
    return given


X, Y = numpy.arange(N, dtype="f"), numpy.full(N, 10, "f")


@pytest.fixture
def node(start_node):
    node = start_node("--grpc", "127.0.0.1:0")
    node.deploy("add", EXAMPLE)
    return node


@pytest.fixture
def client(node):
    with triton.InferenceServerClient(grpc_address(node)) as client:
        yield client


def test_a_client_of_triton_calls_a_kernel_task(node, client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("add")
    assert "statistics" in client.get_server_metadata().extensions
    metadata = client.get_model_metadata("add")
    assert {one.name: (one.datatype, list(one.shape)) for one in metadata.inputs} == {"x": ("FP32", [N]), "y": ("FP32", [N])}
    assert list(metadata.versions) == ["1"]
    config = client.get_model_config("add", as_json=True)["config"]
    assert config["input"][0] == {"name": "x", "data_type": "TYPE_FP32", "dims": [str(N)]}
    assert [model.name for model in client.get_model_repository_index().models] == ["add"]
    for outputs in ([triton.InferRequestedOutput("sum")], None):
        answer = client.infer("add", inputs(X, Y), outputs=outputs, request_id="7", model_version="1", client_timeout=PATIENCE_S)
        assert (answer.as_numpy("sum") == X + Y).all()
        assert answer.get_response().id == "7"
    # Counted when the function has answered, which may be after the client was answered.
    eventually(lambda: client.get_inference_statistics("add").model_stats[0].inference_count == 2)
    assert client.get_inference_statistics().model_stats[0].name == "add"


def test_calls_that_are_made_at_once(client):
    done, answers = threading.Event(), []

    def keep(result, error):
        answers.append(error or result.as_numpy("sum"))
        if len(answers) == 50:
            done.set()

    for number in range(50):
        client.async_infer("add", inputs(X, numpy.full(N, number, "f")), keep)
    assert done.wait(PATIENCE_S)
    assert sorted(float(answer[0]) for answer in answers) == list(range(50))


def test_refusals_have_the_status_of_grpc(node, client):
    def refused(call, status, text):
        with pytest.raises(InferenceServerException, match=text) as caught:
            call()
        assert caught.value.status() == f"StatusCode.{status}"

    refused(lambda: client.infer("add", inputs(X[:-1], Y)), "INVALID_ARGUMENT", r"shape of 'x' is \[7\]; the model takes \[8\]")
    refused(lambda: client.infer("add", inputs(X, Y)[:1]), "INVALID_ARGUMENT", "inputs lacks the input 'y'")
    refused(lambda: client.infer("nobody", inputs(X, Y)), "NOT_FOUND", "no model 'nobody'")
    refused(lambda: client.infer("add", inputs(X, Y), model_version="2"), "NOT_FOUND", "no version '2'")
    refused(lambda: client.infer("add", inputs(X, Y), sequence_id=3), "INVALID_ARGUMENT", "sequence_id is not supported")
    refused(lambda: client.infer("add", inputs(X, Y), compression_algorithm="gzip"), "UNIMPLEMENTED", "compressed")
    refused(lambda: client.load_model("add"), "UNIMPLEMENTED", "no such method")
    node.deploy("echo", ROOT / "functions/template-python")
    refused(lambda: client.infer("echo", inputs(X, Y)), "INVALID_ARGUMENT", "does not say which tensors it takes")
    assert (client.infer("add", inputs(X, Y)).as_numpy("sum") == X + Y).all()


# What clients without NumPy send: numbers, not bytes.
def test_tensors_may_be_numbers(node):
    from tritonclient.grpc import service_pb2, service_pb2_grpc
    with grpc.insecure_channel(grpc_address(node)) as channel:
        request = service_pb2.ModelInferRequest(model_name="add")
        for name, array in (("x", X), ("y", Y)):
            tensor = request.inputs.add(name=name, datatype="FP32", shape=[N])
            tensor.contents.fp32_contents.extend(array.tolist())
        answer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=PATIENCE_S)
        assert struct.unpack(f"<{N}f", answer.raw_output_contents[0]) == tuple(X + Y)


def check_health(channel, service=b""):
    call = channel.unary_unary("/grpc.health.v1.Health/Check")
    return call(b"\x0a" + bytes([len(service)]) + service, timeout=PATIENCE_S)


def test_load_balancers_ask_for_health(node):
    with grpc.insecure_channel(grpc_address(node)) as channel:
        assert check_health(channel) == check_health(channel, b"inference.GRPCInferenceService") == b"\x08\x01"
        with pytest.raises(grpc.RpcError) as caught:
            check_health(channel, b"another")
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def large_task(folder, count):
    """add of `count` numbers."""
    task = json.loads((EXAMPLE / "task.json").read_text())
    for buffer in task["buffers"].values():
        buffer["shape"] = [count]
    task["kernels"][0]["grid"] = [count // 32]
    task["kernels"][0]["arguments"][3] = {"u32": count}
    folder.mkdir()
    (folder / "task.json").write_text(json.dumps(task))
    (folder / "kernels.ptx").write_bytes((EXAMPLE / "kernels.ptx").read_bytes())
    return folder


def test_large_tensors_come_whole(node, client, tmp_path):
    count = 512 << 10  # 2 MiB each
    node.deploy("large", large_task(tmp_path / "large", count), Timeout=60)
    x, y = numpy.arange(count, dtype="f"), numpy.random.default_rng(1).random(count, "f")
    assert (client.infer("large", inputs(x, y)).as_numpy("sum") == x + y).all()


def test_a_deadline_ends_a_call(node, client, tmp_path):
    count = 512 << 10
    node.deploy("large", large_task(tmp_path / "large", count), Timeout=60)
    x = numpy.zeros(count, "f")
    with pytest.raises(InferenceServerException, match="Deadline|expired|EXPIRED|Timeout") as caught:
        client.infer("large", inputs(x, x), client_timeout=0.003)
    assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"
    with pytest.raises(InferenceServerException) as caught:
        client.infer("large", inputs(x, x), timeout=1)  # microseconds, the protocol's own
    assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"


def test_keys_and_tenants_count_as_over_http(start_node, tmp_path):
    certificate = tmp_path / "tls"
    subprocess.run([BUILD / "bin/fairlead", "certificate", "--host", "localhost", "--out", certificate], check=True,
                   capture_output=True, timeout=PATIENCE_S)
    secured = ["--tls-certificate", certificate / "certificate.pem", "--tls-key", certificate / "key.pem"]
    node = start_node("--grpc", "127.0.0.1:0", "--grpc", f"unix:{tmp_path}/grpc.sock", is_open=False)
    operator = f"unix:{node.state}/operator.sock"

    def new_key(tenant, *options):
        made = subprocess.run([BUILD / "bin/fairlead", "--endpoint", operator, "--json", "tenant", "add", tenant, *options],
                              check=True, capture_output=True, text=True, timeout=PATIENCE_S)
        return {"authorization": f"Bearer {json.loads(made.stdout)['token']}"}

    a, b = new_key("a", "--role", "invoker"), new_key("b", "--role", "invoker")
    deployer = new_key("a")["authorization"].removeprefix("Bearer ")
    subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "deploy", "add", EXAMPLE], check=True,
                   capture_output=True, timeout=PATIENCE_S, env={**os.environ, "FAIRLEAD_TOKEN": deployer})

    def status_of(client, **options):
        try:
            client.infer("add", inputs(X, Y), **options)
        except InferenceServerException as error:
            return error.status().removeprefix("StatusCode.")
        return "OK"

    with triton.InferenceServerClient(grpc_address(node)) as client:
        assert client.is_server_live(), "for everybody"
        assert status_of(client) == "UNAUTHENTICATED"
        assert status_of(client, headers={"authorization": "Bearer FLX.wrong"}) == "UNAUTHENTICATED"
        assert status_of(client, headers=a) == "OK"
        assert status_of(client, headers=b) == "NOT_FOUND", "another tenant's"
        assert status_of(client, headers=b | {"x-fairlead-tenant": "a"}) == "PERMISSION_DENIED"
        assert client.get_model_repository_index(headers=b).models == []
    with triton.InferenceServerClient(f"unix:{tmp_path}/grpc.sock") as client:
        assert status_of(client) == "OK", "the node's own user, or root, by a Unix socket"
    node.stop()

    node = start_node("--grpc", "127.0.0.1:0", *secured, is_open=False, keep_state=True)
    port = grpc_address(node).rsplit(":", 1)[1]
    with triton.InferenceServerClient(f"localhost:{port}", ssl=True,
                                      root_certificates=str(certificate / "certificate.pem")) as client:
        assert status_of(client, headers=a) == "OK"
        assert status_of(client) == "UNAUTHENTICATED"
    # A client that speaks HTTP/1.1 alone is told so by TLS.
    context = ssl.create_default_context(cafile=str(certificate / "certificate.pem"))
    context.set_alpn_protocols(["http/1.1"])
    with socket.create_connection(("localhost", int(port)), timeout=PATIENCE_S) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="localhost")


@pytest.mark.parametrize("options, words", [(["--grpc", "0.0.0.0:0"], "--no-tls"),
                                            (["--grpc", "0.0.0.0:0", "--no-tls", "--open"], "fairlead tenant add"),
                                            (["--grpc", "nowhere"], "--grpc is 'nowhere'")])
def test_other_machines_are_let_in_only_when_asked_for(tmp_path, options, words):
    done = subprocess.run([BUILD / "bin/fairlead", "serve", "--softgpu", "--state", tmp_path / "state", *options],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and words in done.stderr


def test_calls_under_way_end_when_the_node_goes(node, client):
    client.infer("add", inputs(X, Y))
    answers = []
    client.async_infer("add", inputs(X, Y), lambda result, error: answers.append(error or result.as_numpy("sum")[0]))
    os.kill(node.process.pid, signal.SIGTERM)
    assert node.process.wait(PATIENCE_S) == 0
    eventually(lambda: answers)
    # Whether the call was in before the node left is the machine's choice; nothing else may have happened to it.
    assert answers[0] == 10 or answers[0].status() == "StatusCode.UNAVAILABLE", answers


def test_a_gateway_without_gpus_serves_models_of_the_cluster(make_cluster):  # noqa: F811
    cluster = make_cluster(("a", "g"), gateways=("g",))
    cluster.start("a")
    gateway = cluster.start("g", "--grpc", "127.0.0.1:0")
    cluster.until_all_see({"a": "alive"}, ["g"])
    cluster.nodes["a"].deploy("add", EXAMPLE)
    with triton.InferenceServerClient(grpc_address(gateway)) as client:
        eventually(lambda: [model.name for model in client.get_model_repository_index().models] == ["add"])
        assert (client.infer("add", inputs(X, Y)).as_numpy("sum") == X + Y).all()
    assert cluster.ran("g", "add") == 0


# ---- bytes that no client sends

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, HEADERS, CONTINUATION, DATA, RST = 4, 6, 1, 9, 0, 3


def frame(kind, payload=b"", flags=0, stream=0):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header field that needs no table (RFC 7541, 6.2.2), of fewer than 127 bytes each."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


HEAD = b"".join(literal(*field) for field in (
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/inference.GRPCInferenceService/ServerLive"),
    (b":authority", b"localhost"), (b"content-type", b"application/grpc")))


def is_cut_off(connection, data):
    """Whether the node ends the connection, sooner or later, when it gets this, or takes no more of it."""
    connection.settimeout(PATIENCE_S if len(data) < 1 << 20 else 3)  # wait: what is not taken within so long is not read
    try:
        connection.sendall(data)
    except (ConnectionResetError, BrokenPipeError, socket.timeout):
        return True
    connection.settimeout(PATIENCE_S)
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    except socket.timeout:
        return False
    return True


@pytest.mark.parametrize("what, data", [
    ("no preface", b"\x00" * 1000),
    ("HTTP/1.1", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a frame of 16 MiB", PREFACE + frame(SETTINGS) + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01"),
    ("a table that is not there", PREFACE + frame(SETTINGS) + frame(HEADERS, b"\xff\xff\xff\xff\x0f", 5, 1)),
    ("data of no call", PREFACE + frame(SETTINGS) + frame(DATA, b"x" * 100, 0, 1)),
    ("headers without an end", PREFACE + frame(SETTINGS) + frame(HEADERS, HEAD, 0, 1) +
     frame(CONTINUATION, literal(b"a", b"b" * 100) * 100, 0, 1) * 1000),
    ("pings without taking answers", PREFACE + frame(SETTINGS) + frame(PING, b"12345678") * 1_000_000),
    ("settings without taking answers", PREFACE + frame(SETTINGS) * 1_000_000),
    ("calls that are cancelled", PREFACE + frame(SETTINGS) + b"".join(
        frame(HEADERS, HEAD, 4, 2 * i + 1) + frame(RST, b"\0\0\0\x08", 0, 2 * i + 1) for i in range(20_000))),
], ids=lambda value: value if isinstance(value, str) else "")
def test_whoever_breaks_the_protocol_is_cut_off(node, client, what, data):
    client.infer("add", inputs(X, Y))
    address = grpc_address(node)
    host, port = address.rsplit(":", 1)
    resident = resident_bytes(node)
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        assert is_cut_off(connection, data), what
    assert (client.infer("add", inputs(X, Y)).as_numpy("sum") == X + Y).all()
    assert resident_bytes(node) < 1.5 * resident, what


# Each of them holds what a call may hold, and nothing more comes.
def test_calls_that_do_not_come_hold_little(node, client):
    client.infer("add", inputs(X, Y))
    host, port = grpc_address(node).rsplit(":", 1)
    resident = resident_bytes(node)
    connections = []
    for _ in range(50):
        connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        connection.sendall(PREFACE + frame(SETTINGS) + b"".join(
            frame(HEADERS, HEAD, 4, 2 * i + 1) + frame(DATA, b"\0\0\x60\0\0", 0, 2 * i + 1) for i in range(100)))
        connections.append(connection)
    assert (client.infer("add", inputs(X, Y)).as_numpy("sum") == X + Y).all()
    assert resident_bytes(node) < 1.5 * resident
    for connection in connections:
        connection.close()
