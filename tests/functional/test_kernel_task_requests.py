"""One-off requests of kernel tasks: POST /v1/ktasks. Nothing is deployed, and the same task again is warm."""

import base64
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import threading

import pytest

from conftest import BUILD, ROOT, eventually
from test_kernel_tasks import EXAMPLE, N, buffer, launch, vector

KERNELS = (ROOT / "src/runtime/device_server/testing/kernels.ptx").read_bytes()
RAMP = [float(i) for i in range(N)]
KEPT = 64


def scaled(k):
    return {"buffers": {"x": vector("input"), "y": vector("output")},
            "kernels": [launch("scale", buffer("x"), buffer("y"), {"f32": k})]}


def affine(k, **constant):
    """y = k x + w"""
    return {"buffers": {"x": vector("input"), "w": vector("constant", **constant), "y": vector("output")},
            "kernels": [launch("scale", buffer("x"), buffer("y"), {"f32": k}),
                        launch("accumulate", buffer("w"), buffer("y"))]}


def only(kernel):
    return {"buffers": {"y": vector("output")}, "kernels": [launch(kernel, buffer("y"), block=1)]}


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def request(task, call=None, files=None, **more):
    files = {"kernels.ptx": KERNELS} if files is None else files
    encoded = {name: base64.b64encode(data).decode() for name, data in files.items()}
    return {"task": task, "files": encoded, "call": {"inputs": {"x": RAMP}} if call is None else call, **more}


def post(node, document, tenant=None):
    body = document if isinstance(document, (bytes, str)) else json.dumps(document)
    return node.call("POST", "/v1/ktasks", body, {"X-Fairlead-Tenant": tenant} if tenant else {})


def length(value):
    """LEB128, as in the binary form."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def binary_request(task):
    """A request in the binary form with this text as its task.json, no files and no call."""
    text = task.encode()
    return b"FLKT\x01\x04" + length(len(text)) + text + length(0) + struct.pack("<I", 60) + length(0)


def result(reply):
    status, headers, body = reply
    assert status == 200 and "X-Amz-Function-Error" not in headers, (status, body)
    return json.loads(body)


def values(reply):
    return result(reply)["outputs"]["y"]["values"]


def refusal(reply, status=400):
    assert reply[0] == status, reply
    return json.loads(reply[2])["Message"]


def error(reply):
    assert reply[0] == 200 and "X-Amz-Function-Error" in reply[1], reply
    return json.loads(reply[2])["errorMessage"]


def requested_name(tenant, task, files, timeout_seconds=60):
    """What the node calls it: src/node/kept_tasks.h."""
    digest = hashlib.sha256()
    for part in (tenant.encode(), json.dumps(task, sort_keys=True, separators=(",", ":")).encode(), timeout_seconds,
                 len(files), *(part for name, data in sorted(files.items()) for part in (name.encode(), data))):
        digest.update(struct.pack("<Q", part if isinstance(part, int) else len(part)))
        digest.update(b"" if isinstance(part, int) else part)
    return "request:" + digest.hexdigest()


def kept(node):
    return node.status()["task_requests"]["kept"]


def server_pids(node):
    return [int(pid) for pid in re.findall(r"device server (\d+) of tenant", node.log_path.read_text())]


def everything_under(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_socket())


def test_the_first_call_is_cold_and_the_next_finds_its_session(start_node):
    node = start_node()
    first = post(node, request(scaled(2)))
    assert values(first) == [2 * x for x in RAMP]
    assert first[1]["X-Gpu-Start"] == "cold" and result(first)["phases_us"]["kernel_init"] > 0
    second = post(node, request(scaled(2), call={"inputs": {"x": [1] * N}}))
    assert values(second) == [2] * N
    assert second[1]["X-Gpu-Start"] == "device-warm" and result(second)["phases_us"]["kernel_init"] == 0
    other = post(node, request(scaled(3)))
    assert values(other) == [3 * x for x in RAMP] and other[1]["X-Gpu-Start"] == "cold"
    counted = node.status()["task_requests"]
    assert (counted["kept"], counted["requests"], counted["cold_starts"]) == (2, 3, 2)
    assert counted["service_seconds"] > 0
    metrics = node.call("GET", "/metrics")[2].decode()
    assert "fairlead_task_requests_kept 2" in metrics and 'fairlead_task_requests_total{outcome="success"} 3' in metrics


def test_constants_travel_as_files_and_are_no_objects(start_node):
    node = start_node()
    files = {"kernels.ptx": KERNELS, "w.bin": floats([7] * N)}
    for _ in range(2):
        assert values(post(node, request(affine(2, file="w.bin"), files=files))) == [2 * x + 7 for x in RAMP]
    assert values(post(node, request(affine(2, file="w.bin"), files={**files, "w.bin": floats([1] * N)}))) == \
        [2 * x + 1 for x in RAMP]
    assert json.loads(node.call("GET", "/v1/objects")[2])["objects"] == []
    answer = result(post(node, request(affine(2, file="w.bin"), files=files,
                                       call={"inputs": {"x": RAMP}, "outputs": {"y": {"key": "made"}}})))
    assert answer["outputs"]["y"] == {"key": "made", "bytes": 4 * N}
    assert node.call("GET", "/v1/objects/made")[2] == floats([2 * x + 7 for x in RAMP])


def test_a_large_constant_is_read_from_memory_too(start_node):
    node = start_node()
    large = floats([3] * (1 << 19)) + floats([5] * N)  # above what a device server pins
    task = {"buffers": {"x": vector("input"), "w": {"role": "constant", "file": "w", "bytes": len(large)},
                        "y": vector("output")},
            "kernels": [launch("scale", buffer("x"), buffer("y"), {"f32": 1.0}),
                        launch("accumulate", {"buffer": "w", "offset": len(large) - 4 * N}, buffer("y"))]}
    for _ in range(2):
        assert values(post(node, request(task, files={"kernels.ptx": KERNELS, "w": large}))) == [x + 5 for x in RAMP]


def test_two_tenants_with_the_same_request_share_nothing(start_node):
    node = start_node()
    for tenant in "ab":
        assert node.call("PUT", "/v1/objects/w", floats([{"a": 1, "b": 2}[tenant]] * N),
                         {"X-Fairlead-Tenant": tenant})[0] == 201
    document = request(affine(1, key="w"))
    for tenant, start in (("a", "cold"), ("b", "cold"), ("a", "device-warm"), ("b", "device-warm")):
        reply = post(node, document, tenant)
        assert reply[1]["X-Gpu-Start"] == start
        assert values(reply) == [x + {"a": 1, "b": 2}[tenant] for x in RAMP]
    assert kept(node) == 2
    assert len(set(server_pids(node))) == 2


def test_a_tenants_limit_holds_for_requests_too(start_node):
    node = start_node("--tenant", "small:1:1", "--slots", "4")
    for reply in (post(node, request(scaled(k)), "small") for k in (2, 3)):
        result(reply)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda i: post(node, request(scaled(2 + i % 2)), "small"), range(64)))
    assert [values(reply)[1] for reply in replies] == [2.0 + i % 2 for i in range(64)]
    tenants = {tenant["name"]: tenant for tenant in node.status()["tenants"]}
    assert tenants["small"]["functions"] == 0 and tenants["small"]["service_seconds"] > 0


def test_modules_of_one_name_are_told_apart_by_their_code(start_node):
    node = start_node()
    other = KERNELS.replace(b"mul.f32", b"add.f32")
    for _ in range(2):
        assert values(post(node, request(scaled(2)))) == [2 * x for x in RAMP]
        assert values(post(node, request(scaled(2), files={"kernels.ptx": other}))) == [x + 2 for x in RAMP]
    assert kept(node) == 2


def without(document, field):
    return {name: value for name, value in document.items() if name != field}


def changed(task, kernel=None, **fields):
    task = json.loads(json.dumps(task))
    task["kernels"][0].update(kernel or {})
    return {**task, **fields}


MALFORMED = {
    "no JSON": ("{", "the request: parse error at line 1"),
    "no object": ("[]", "must be an object with task, files, call, timeout_seconds"),
    "no task": (without(request(scaled(1)), "task"), "has no 'task'"),
    "unknown field": (request(scaled(1), modules={}), "'modules', which is not known"),
    "unknown field of the task": (request(changed(scaled(1), iteration=1)), "task.json: the document has 'iteration'"),
    "bad base64": ({**request(scaled(1)), "files": {"kernels.ptx": "a b"}},
                   "files.kernels.ptx has 3 characters that are not base64"),
    "missing module": (request(scaled(1), files={}), "a kernel's module is 'kernels.ptx': there is no such file"),
    "missing constant": (request(affine(1, file="w.bin")), "buffers.w.file is 'w.bin': there is no such file"),
    "constant of a wrong size": (request(affine(1, file="w.bin"), files={"kernels.ptx": KERNELS, "w.bin": b"1234"}),
                                 "buffers.w has 1024 bytes, its file 4"),
    "file of nobody": (request(scaled(1), files={"kernels.ptx": KERNELS, "README": b""}),
                       "files has 'README', which the task does not name"),
    "module of the library": (request(changed(scaled(1), {"module": "fairlead:nonsense"}), files={}),
                              "fairlead:nonsense"),
    "no code": (request(scaled(1), files={"kernels.ptx": b"nonsense"}), "kernels.ptx: "),
    "unknown kernel": (request(changed(scaled(1), {"kernel": "missing"})), "has no kernel of that name"),
    "wide block": (request(changed(scaled(1), {"block": [4096]})), "4096"),
    "overlap: an input is written": (
        request(changed(scaled(1), {"arguments": [{"buffer": "y"}, {"buffer": "x", "access": "write"}, {"f32": 1}]})),
        "kernels[0]"),
    "too few arguments": (request(changed(scaled(1), {"arguments": []})), "kernels[0] (scale)"),
    "timeout": (request(scaled(1), timeout_seconds=0), "timeout_seconds is 0, it must be a whole number between 1 and 900"),
    "call of a wrong size": (request(scaled(1), call={"inputs": {"x": [1, 2]}}),
                             "call: inputs.x has 2 elements; 256 are needed"),
    "call without an input": (request(scaled(1), call={}), "call: inputs: buffer 'x' is not bound"),
    "call with a strange buffer": (request(scaled(1), call={"inputs": {"x": RAMP, "z": RAMP}}), "call: "),
    "two outputs of one key": (
        request({"buffers": {"x": vector("input"), "y": vector("output"), "z": vector("output")},
                 "kernels": [launch("scale", buffer("x"), buffer("y"), {"f32": 1}),
                             launch("scale", buffer("x"), buffer("z"), {"f32": 1})]},
                call={"inputs": {"x": RAMP}, "outputs": {"y": {"key": "k"}, "z": {"key": "k"}}}), "call: "),
    "binary, cut off": (b"FLKT\x01\x04\x05", "byte 7: task has 5 bytes, but 0 bytes are left"),
    "binary of another kind": (b"FLKT\x01\x02\x00\x00", "kind is 2, it must be 4"),
    "binary, nested deep": (binary_request('{"buffers": ' + "[" * 200_000 + "]" * 200_000 + "}"),
                            "task.json: it is nested deeper than 64 levels"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_request_is_refused_and_nothing_runs(shared_node, what):
    document, message = MALFORMED[what]
    before = shared_node.status()["counters"]["arrived"]
    assert message in refusal(post(shared_node, document))
    after = shared_node.status()
    assert after["counters"]["arrived"] == before and after["instances"] == []


def test_what_is_too_large_is_refused_with_its_bound(shared_node):
    large = request(scaled(1), files={"kernels.ptx": KERNELS, "w": bytes(33 << 20)})
    assert "files have together" in (message := refusal(post(shared_node, large), 413)) and "33554432" in message
    inputs = {"inputs": {"x": {"base64": "A" * (7 << 20)}}}
    assert "6291456" in refusal(post(shared_node, request(scaled(1), call=inputs)), 413)
    assert "at most 256 are possible" in refusal(
        post(shared_node, request(scaled(1), files={str(i): b"" for i in range(257)})), 413)
    assert refusal(post(shared_node, b" " * (60 << 20)), 413)


def test_a_wrong_call_of_a_warm_task_is_refused_the_same(start_node):
    node = start_node()
    wrong = request(scaled(2), call={"inputs": {"x": [1]}})
    cold = refusal(post(node, wrong))
    result(post(node, request(scaled(2))))
    assert refusal(post(node, wrong)) == cold
    assert "nowhere" in error(post(node, request(scaled(2), call={"inputs": {"x": {"key": "nowhere"}}})))


def test_the_binary_form_is_answered_in_binary(start_node, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "python"))
    from fairlead.ktask import wire
    node = start_node()
    names = ["x", "y"]
    call = wire.encode_call(names, {"x": floats(RAMP)}, {})
    body = wire.encode_request(json.dumps(scaled(2)), {"kernels.ptx": KERNELS}, call, timeout_seconds=5)
    for init_is_over in (False, True):
        status, headers, answer = post(node, body)
        assert status == 200 and headers["Content-Type"] == wire.CONTENT_TYPE, answer
        outputs, phases = wire.decode_answer(names, answer)
        assert bytes(outputs["y"]) == floats([2 * x for x in RAMP])
        assert not init_is_over or phases["kernel_init"] == 0


def test_more_tasks_than_are_kept_all_run_and_the_oldest_go(start_node):
    node = start_node()
    for k in range(KEPT + 6):
        assert values(post(node, request(scaled(k))))[1] == k
    assert kept(node) == KEPT
    assert values(post(node, request(scaled(0))))[1] == 0
    assert kept(node) == KEPT
    assert len(node.status()["instances"]) <= KEPT


def test_tasks_in_use_are_not_dropped_for_others(start_node):
    node = start_node("--slots", "1")
    with concurrent.futures.ThreadPoolExecutor(1 + KEPT + 8) as pool:
        spinning = pool.submit(post, node, request(only("spin"), call={}, timeout_seconds=20))
        eventually(lambda: node.status()["task_requests"]["in_flight"] == 1)
        waiting = []
        for k in range(KEPT - 1):
            waiting.append(pool.submit(post, node, request(scaled(k))))
            eventually(lambda: kept(node) > len(waiting) - 8)  # a tenant may have sixteen that are being read
        eventually(lambda: kept(node) == KEPT)
        assert "64 different one-off tasks" in refusal(post(node, request(scaled(1000))), 429)
        assert "timed out" in error(spinning.result())
        assert [values(future.result())[1] for future in waiting] == [float(k) for k in range(KEPT - 1)]
    assert values(post(node, request(scaled(1000))))[1] == 1000


def test_the_same_new_task_from_many_at_once_is_read_once(start_node):
    node = start_node()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda i: post(node, request(scaled(5), call={"inputs": {"x": [i] * N}})), range(32)))
    assert [values(reply) for reply in replies] == [[5.0 * i] * N for i in range(32)]
    assert kept(node) == 1


def test_what_was_requested_is_no_function(start_node):
    node = start_node()
    result(post(node, request(scaled(2))))
    assert json.loads(node.call("GET", "/2015-03-31/functions")[2])["Functions"] == []
    assert node.status()["functions"] == []
    listing = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "list"], capture_output=True, text=True)
    assert "request:" not in listing.stdout
    name = requested_name("default", scaled(2), {"kernels.ptx": KERNELS})
    assert name.replace(":", "-")[:64] in node.call("GET", "/fairlead/v1/history?from=0")[2].decode()
    path = f"/2015-03-31/functions/{name.replace(':', '%3A')}"
    for method, tail in (("POST", "/invocations"), ("GET", ""), ("DELETE", "")):
        assert node.call(method, path + tail, "{}" if method == "POST" else None)[0] in (400, 404)
    body = {"FunctionName": name, "Role": "", "Handler": "x", "Code": {"Folder": str(EXAMPLE)}}
    assert node.call("POST", "/2015-03-31/functions", json.dumps(body))[0] in (400, 404)
    graph = {"nodes": {"a": {"function": name}}}
    assert node.call("POST", "/v1/graphs?wait=5", json.dumps(graph))[0] in (400, 404)
    assert post(node, request(scaled(2)))[1]["X-Gpu-Start"] == "device-warm"


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_node_that_ends_in_the_middle_leaves_nothing_behind(start_node, how):
    node = start_node()
    empty = everything_under(node.state)
    files = {"kernels.ptx": KERNELS, "w.bin": floats([7] * N)}
    result(post(node, request(affine(2, file="w.bin"), files=files)))
    spinning = threading.Thread(target=lambda: attempt(node), daemon=True)
    spinning.start()
    eventually(lambda: node.status()["task_requests"]["in_flight"] == 1)
    pids = server_pids(node)
    if how == "kill":
        node.kill()
    else:
        node.stop()
    spinning.join(30)
    eventually(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids))
    grown = set(everything_under(node.state)) - set(empty)
    assert not [path for path in grown if "history" not in path and "log" not in path and "db" not in path], grown
    again = start_node(keep_state=True)
    assert kept(again) == 0 and again.status()["functions"] == []
    assert json.loads(again.call("GET", "/v1/objects")[2])["objects"] == []
    reply = post(again, request(affine(2, file="w.bin"), files=files))
    assert values(reply) == [2 * x + 7 for x in RAMP] and reply[1]["X-Gpu-Start"] == "cold"


def attempt(node):
    try:
        post(node, request(only("spin"), call={}, timeout_seconds=5))
    except OSError:
        pass


def test_a_killed_device_server_is_not_noticed(start_node):
    node = start_node()
    files = {"kernels.ptx": KERNELS, "w.bin": floats([7] * N)}
    document = request(affine(2, file="w.bin"), files=files)
    result(post(node, document))
    done, failures, stop = [0], [], threading.Event()

    def use():
        while not stop.is_set():
            reply = post(node, document)
            if reply[0] != 200 or "X-Amz-Function-Error" in reply[1] or values(reply) != [2 * x + 7 for x in RAMP]:
                failures.append(reply)
            done[0] += 1

    users = [threading.Thread(target=use) for _ in range(3)]
    for user in users:
        user.start()
    for _ in range(2):
        before = done[0]
        eventually(lambda: done[0] >= before + 10)
        os.kill(server_pids(node)[-1], signal.SIGKILL)
    before = done[0]
    eventually(lambda: done[0] >= before + 10)
    stop.set()
    for user in users:
        user.join()
    assert not failures
    assert len(server_pids(node)) == 3


def test_the_history_of_requests_makes_a_trace(start_node, tmp_path):
    node = start_node()
    for k in (1, 1, 2):
        result(post(node, request(scaled(k))))
    cli = [BUILD / "bin/fairlead", "--endpoint", node.endpoint]
    subprocess.run([*cli, "sim", "record", "--out", tmp_path / "record"], check=True, timeout=60)
    trace = (tmp_path / "record/trace.csv").read_text()
    assert len(set(re.findall(r"request-[0-9a-f]{56}", trace))) == 2
    summary = subprocess.run([*cli, "status"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "one-off tasks 2 kept  0 queued  0 running  requests 3  errors 0  cold 2" in summary


def test_a_faulting_task_fails_alone(start_node):
    node = start_node()
    assert "700" in error(post(node, request(only("wild"), call={})))
    assert values(post(node, request(scaled(2)))) == [2 * x for x in RAMP]


def test_the_command_line_runs_a_folder_and_leaves_nothing(start_node, tmp_path):
    node = start_node()

    def run(folder, *arguments):
        return subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "ktask", "run", folder, *arguments],
                              capture_output=True, text=True, timeout=60)

    for _ in range(2):
        ran = run(EXAMPLE, "-d", json.dumps({"inputs": {"x": [1, 2, 3, 4, 5, 6, 7, 8], "y": [10] * 8}}))
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout)["outputs"]["sum"]["values"] == [11, 12, 13, 14, 15, 16, 17, 18]
    assert kept(node) == 1 and node.status()["functions"] == []
    assert json.loads(ran.stdout)["phases_us"]["kernel_init"] == 0
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "task.json").write_text(json.dumps(affine(1, file="w.bin")))
    (folder / "kernels.ptx").write_bytes(KERNELS)
    assert "buffers.w.file is 'w.bin': there is no such file" in run(folder).stderr
    (folder / "w.bin").write_bytes(floats([1] * N))
    (folder / "README").write_text("not the task's")
    call = json.dumps({"inputs": {"x": RAMP}})
    assert json.loads(run(folder, "-d", call).stdout)["outputs"]["y"]["values"] == [x + 1 for x in RAMP]
    wrong = run(folder, "-d", "{}")
    assert wrong.returncode != 0 and "buffer 'x' is not bound" in wrong.stderr
    assert "has no task.json" in run(tmp_path).stderr


def test_python_runs_a_task_without_deploying_it(start_node, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "python"))
    numpy = pytest.importorskip("numpy")
    for name in [name for name in sys.modules if name.split(".")[0] == "fairlead"]:
        monkeypatch.delitem(sys.modules, name)
    from fairlead import Client, ktask
    task = ktask.Task()
    x = task.input("x", "f32", (5, 7))
    w = numpy.arange(21, dtype="f").reshape(7, 3) - 10
    task.output("y", task.relu(x @ task.constant("w", w)))
    given = numpy.arange(35, dtype="f").reshape(5, 7) - 17
    node = start_node()
    with Client(node.endpoint, tenant="ann") as client:
        for _ in range(2):
            assert numpy.array_equal(client.run_task(task, x=given)["y"], numpy.maximum(given @ w, 0))
        made = client.run_task(task, outputs={"y": "made"}, x=client.objects.put("x", given))["y"]
        assert numpy.array_equal(made.get("f32", (5, 3)), numpy.maximum(given @ w, 0))
    counted = node.status()["task_requests"]
    assert (counted["kept"], counted["requests"], counted["cold_starts"]) == (1, 3, 1)
