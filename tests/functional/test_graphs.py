"""Graphs of functions on a real node: programs in sandboxes and kernel tasks over the same objects."""

import http.client
import json
import os
import re
import signal
import subprocess
import threading

import pytest

from conftest import BUILD, PATIENCE_S, ROOT, eventually

EXAMPLE = ROOT / "examples/graph"
VECTOR_ADD = ROOT / "examples/ktask/vector-add"
STEP = ROOT / "tests/functions/graph-step"


def ask(node, method, path, document=None, tenant=None):
    headers = {"X-Fairlead-Tenant": tenant} if tenant else {}
    body = document if document is None or isinstance(document, str) else json.dumps(document)
    status, _, answer = node.call(method, path, body, headers)
    return status, json.loads(answer)


def submit(node, nodes, wait=60, tenant=None, **more):
    status, run = ask(node, "POST", f"/v1/graphs?wait={wait}", {"nodes": nodes, **more}, tenant)
    assert status in (200, 202), run
    return run


def refusal(node, nodes, query="", **more):
    status, answer = ask(node, "POST", f"/v1/graphs{query}", {"nodes": nodes, **more})
    assert status in (400, 409), answer
    return answer["Message"]


def step(reads=(), writes=(), after=(), retries=0, **payload):
    """A node that reads and writes what it declares."""
    payload = {"read": list(reads), "write": {key: f"<{key}>+" for key in writes}, **payload}
    return {"function": "step", "payload": payload, "reads": list(reads), "writes": list(writes), "after": list(after),
            "retries": retries}


def states(run):
    return {name: node["state"] for name, node in run["nodes"].items()}


def get(node, key, query=""):
    status, _, body = node.call("GET", f"/v1/objects/{key}{query}")
    return status, body


def metric(node, sample):
    text = node.call("GET", "/metrics")[2].decode()
    return float(re.search(rf"^{re.escape(sample)} ([0-9.e+]+)$", text, re.M).group(1))


def deploy_example(node):
    node.deploy("vectors", EXAMPLE / "functions")
    node.deploy("total", EXAMPLE / "functions")
    node.deploy("add", VECTOR_ADD)


@pytest.fixture(scope="module")
def stepper(shared_node):
    shared_node.deploy("step", STEP)
    return shared_node


@pytest.fixture
def fairlead(stepper):
    def run(*arguments, stdin=None):
        return subprocess.run([BUILD / "bin/fairlead", "--endpoint", stepper.endpoint, *arguments], input=stdin, text=True,
                              capture_output=True, timeout=60)
    return run


def test_the_example_end_to_end_by_command_line_and_by_python(start_node):
    node = start_node()
    deploy_example(node)
    ran = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "graph", "run", EXAMPLE / "graph.json",
                          "--wait"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    rows = [line.split()[:3] for line in ran.stdout.splitlines()]
    assert rows[0] == ["NODE", "FUNCTION", "STATE"]
    # By the times of the node, in which two may end in the same millisecond.
    assert sorted(rows[1:4]) == [["add", "add", "done"], ["make", "vectors", "done"], ["total", "total", "done"]]
    run = json.loads(node.call("GET", f"/v1/graphs/{rows[4][1].rstrip(':')}")[2])
    assert run["nodes"]["total"]["result"] == {"total": sum(range(8)) + 80}
    assert run["nodes"]["add"]["started_ms"] >= run["nodes"]["make"]["ended_ms"]
    # The same graph again: its objects are others.
    python = subprocess.run(["python3", EXAMPLE / "sum.py", node.endpoint], capture_output=True, text=True, timeout=60,
                            env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert python.returncode == 0, python.stderr
    assert "its total: 108.0" in python.stdout and "[10.0, 11.0," in python.stdout
    assert metric(node, 'fairlead_graph_runs_total{outcome="done"}') == 2
    assert metric(node, 'fairlead_graph_nodes_total{outcome="done"}') == 6


def test_a_kernel_tasks_output_is_never_read_before_it_is_there(start_node):
    node = start_node()
    deploy_example(node)
    nodes = {"total": {"function": "total", "payload": {"read": "{run}/2"}, "reads": ["{run}/2"]}}
    for index in range(3):
        x = {"key": f"{{run}}/{index - 1}"} if index else {"values": [1] * 8}
        nodes[f"add{index}"] = {"function": "add", "payload": {"inputs": {"x": x, "y": {"values": [1] * 8}},
                                                               "outputs": {"sum": {"key": f"{{run}}/{index}"}}}}
    run = submit(node, nodes)
    assert run["state"] == "done", run
    assert run["nodes"]["total"]["result"] == {"total": 32}


def test_a_graph_waits_for_inputs_that_come_later(stepper):
    run = submit(stepper, {"a": step(["late/one", "late/two"], ["late/out"])}, wait=0)
    assert states(run) == {"a": "waiting"}
    assert ask(stepper, "POST", "/v1/graphs?check", {"nodes": {"a": step(["late/x"])}})[1] == {"nodes": 1, "inputs": ["late/x"]}
    stepper.call("PUT", "/v1/objects/late/one", b"1")
    assert states(ask(stepper, "GET", f"/v1/graphs/{run['run']}?wait=0.1")[1]) == {"a": "waiting"}
    # The output is a reference already, and may be waited for.
    assert json.loads(get(stepper, "late/out", "?info")[1])["state"] == "pending"
    got = []
    reader = threading.Thread(target=lambda: got.append(get(stepper, "late/out", "?wait=60")))
    reader.start()
    stepper.call("PUT", "/v1/objects/late/two", b"2")
    reader.join()
    assert got == [(200, b"<late/out>12")]
    assert ask(stepper, "GET", f"/v1/graphs/{run['run']}?wait=60")[1]["state"] == "done"


def test_one_graph_waits_for_another(stepper):
    second = submit(stepper, {"b": step(["chain/a"], ["chain/b"])}, wait=0)
    third = submit(stepper, {"c": step(["chain/bad"])}, wait=0)
    first = submit(stepper, {"a": step([], ["chain/a"]), "bad": step([], ["chain/bad"], fail="no")})
    assert first["state"] == "failed"
    assert ask(stepper, "GET", f"/v1/graphs/{second['run']}?wait=60")[1]["nodes"]["b"]["state"] == "done"
    third = ask(stepper, "GET", f"/v1/graphs/{third['run']}?wait=60")[1]
    assert third["nodes"]["c"]["state"] == "skipped"
    assert "input 'chain/bad' failed" in third["nodes"]["c"]["error"] and "ValueError: no" in third["nodes"]["c"]["error"]


def test_a_failure_reaches_those_that_need_it_with_its_cause(stepper):
    run = submit(stepper, {"a": step([], ["fail/a"], fail="broken pipe of tea"), "b": step(["fail/a"], ["fail/b"]),
                           "c": step(["fail/b"]), "other": step([], ["fail/other"])})
    assert run["state"] == "failed"
    assert states(run) == {"a": "failed", "b": "skipped", "c": "skipped", "other": "done"}
    assert run["nodes"]["a"]["error"] == "node a failed: ValueError: broken pipe of tea"
    assert run["nodes"]["c"]["error"] == "node c was not run: node a failed: ValueError: broken pipe of tea"
    # It had written its object before it failed.
    for key in ("fail/a", "fail/b"):
        status, body = get(stepper, key)
        assert status == 503 and b"broken pipe of tea" in body
    assert get(stepper, "fail/other")[0] == 200


def test_a_node_that_does_not_write_what_it_was_to_write_failed(stepper):
    run = submit(stepper, {"a": {"function": "step", "writes": ["promised"]}, "b": step(["promised"])})
    assert "function 'step' answered, but did not write 'promised'" in run["nodes"]["a"]["error"]
    assert run["nodes"]["b"]["state"] == "skipped"


def test_cancelling_ends_a_run_at_once(stepper):
    run = submit(stepper, {"a": step(sleep=20), "b": step(after=["a"], writes=["cancelled/b"])}, wait=0)
    got = []
    reader = threading.Thread(target=lambda: got.append(get(stepper, "cancelled/b", "?wait=60")))
    reader.start()
    eventually(lambda: states(ask(stepper, "GET", f"/v1/graphs/{run['run']}")[1])["a"] == "running")
    status, run = ask(stepper, "DELETE", f"/v1/graphs/{run['run']}")
    reader.join(PATIENCE_S)
    assert any(instance["state"] == "busy" for instance in stepper.status()["instances"]), "what runs was waited for"
    assert (status, run["state"]) == (200, "cancelled")
    assert run["nodes"]["b"]["error"] == "node b was not run: the run was cancelled"
    assert run["nodes"]["a"]["state"] == "failed"
    assert got[0][0] == 503 and b"cancelled" in got[0][1]
    assert ask(stepper, "DELETE", f"/v1/graphs/{run['run']}")[1]["state"] == "cancelled"
    assert ask(stepper, "GET", "/v1/graphs/nonesuch")[0] == 404


def test_the_deadline_ends_a_run(stepper):
    run = submit(stepper, {"a": step(["never"]), "b": step([], ["deadline/b"])}, deadline_seconds=10)
    assert run["state"] == "failed" and run["error"] == "the run's deadline of 10 s is over"
    assert states(run) == {"a": "skipped", "b": "done"}


def test_what_is_wrong_is_named_and_nothing_runs(stepper):
    stepper.call("PUT", "/v1/objects/refused/there", b"x")
    cycle = {"a": step(["refused/z"], ["refused/x"]), "b": step(["refused/x"], ["refused/y"]),
             "c": step(["refused/y"], ["refused/z"])}
    assert "'a' needs 'c' needs 'b' needs 'a'" in refusal(stepper, cycle)
    assert "'a' needs 'c'" in refusal(stepper, cycle, "?check")
    assert "nodes.a.function is 'nobody'; there is no such function" in refusal(stepper, {"a": {"function": "nobody"}})
    assert "nodes.b.writes has 'k', which node 'a' writes too" in refusal(stepper, {"a": step([], ["k"]), "b": step([], ["k"])})
    assert "nodes.a.writes[0]" in refusal(stepper, {"a": step([], ["../k"])})
    assert "nodes.a has 'reeds', which is not known" in refusal(stepper, {"a": {"function": "step", "reeds": []}})
    assert "refused/there" in refusal(stepper, {"a": step([], ["refused/there"])})
    assert "nodes has 4097 members" in refusal(stepper, {f"n{i}": {"function": "step"} for i in range(4097)})
    assert "tenant 'default'" in ask(stepper, "POST", "/v1/graphs", {"nodes": {"a": step(["x"])}}, tenant="acme")[1]["Message"]
    assert get(stepper, "refused/x")[0] == 404


def test_a_key_is_written_by_one_run_at_a_time(stepper):
    first = submit(stepper, {"a": step(["one/never"], ["one/out"])}, wait=0)
    assert f"which run '{first['run']}' is about to write" in refusal(stepper, {"b": step([], ["one/out"])})
    ask(stepper, "DELETE", f"/v1/graphs/{first['run']}")
    assert submit(stepper, {"b": step([], ["one/out"])})["state"] == "done"


def test_a_run_is_resumed_after_the_node_was_killed(start_node):
    node = start_node()
    node.deploy("step", STEP)
    nodes = {"a": step([], ["{run}/a"]), "b": step(["{run}/a"], ["{run}/b"]), "c": step(["{run}/b", "{run}/later"], ["{run}/c"])}
    submit(node, nodes, wait=0, run="mine")
    assert get(node, "mine/b", "?wait=60") == (200, b"<mine/b><mine/a>")
    node.kill()
    node = start_node(keep_state=True)
    assert ask(node, "GET", "/v1/graphs/mine")[0] == 404
    assert "resume" in refusal(node, nodes, run="mine")
    run = submit(node, nodes, wait=0, run="mine", resume=True)
    assert (run["nodes"]["a"]["attempts"], run["nodes"]["b"]["state"]) == (0, "done")
    node.call("PUT", "/v1/objects/mine/later", b"!")
    run = ask(node, "GET", "/v1/graphs/mine?wait=60")[1]
    assert run["state"] == "done" and run["nodes"]["c"]["attempts"] == 1
    assert get(node, "mine/c")[1] == b"<mine/c><mine/b><mine/a>!"
    # What is half there runs again.
    node.call("DELETE", "/v1/objects/mine/a")
    two = {"a": step([], ["{run}/a", "{run}/c"])}
    run = submit(node, two, run="mine", resume=True)
    assert run["nodes"]["a"]["attempts"] == 1 and get(node, "mine/c")[1] == b"<mine/c>"


def test_a_graceful_end_cancels_and_says_how_to_go_on(start_node):
    node = start_node()
    node.deploy("step", STEP)
    run = submit(node, {"a": step(["never"])}, wait=0)
    reader = http.client.HTTPConnection(node.host, node.port, timeout=PATIENCE_S)
    reader.request("GET", f"/v1/graphs/{run['run']}?wait=60")
    for _ in range(2):  # the node reads in the order of arrival: answered twice, it has read what came before
        assert node.call("GET", "/healthz")[0] == 200
    assert node.stop() == 0
    ended = json.loads(reader.getresponse().read())
    assert ended["state"] == "cancelled" and "shutting down" in ended["error"]


def test_a_killed_instance_fails_its_node_or_is_tried_again(stepper):
    run = submit(stepper, {"a": step([], ["killed/a"], sleep=30), "b": step(["killed/a"])}, wait=0)
    instances = eventually(lambda: [pid for pid in children_named(stepper, "graph-step") if pid])
    eventually(lambda: get(stepper, "killed/a")[0] == 200)
    for pid in instances:
        os.kill(pid, signal.SIGKILL)
    run = ask(stepper, "GET", f"/v1/graphs/{run['run']}?wait=60")[1]
    assert states(run) == {"a": "failed", "b": "skipped"}
    assert "Runtime.ExitError" in run["nodes"]["a"]["error"]
    assert get(stepper, "killed/a")[0] == 503
    run = submit(stepper, {"a": step([], ["flaky/a"], flaky="flaky/mark", retries=1), "b": step(["flaky/a"])})
    assert run["state"] == "done", run
    assert run["nodes"]["a"]["attempts"] == 2 and run["nodes"]["b"]["result"]["read"] == "<flaky/a>"
    run = submit(stepper, {"a": step([], ["flaky/no"], exit=3, retries=1)})
    assert "(2 attempts)" in run["nodes"]["a"]["error"]


def children_named(node, word):
    """Processes of this node's instances whose command line has the word, or whose program is a bootstrap of Python."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read()
            with open(f"/proc/{entry}/environ", "rb") as file:
                environment = file.read()
        except OSError:
            continue
        if b"AWS_LAMBDA_FUNCTION_NAME=step" in environment and b"bootstrap" in command and of_node(entry, node.process.pid):
            found.append(int(entry))
    return found


def of_node(pid, ancestor):
    while int(pid) > 1:
        if int(pid) == ancestor:
            return True
        with open(f"/proc/{pid}/stat") as file:
            pid = file.read().rsplit(")", 1)[1].split()[1]
    return False


def test_500_nodes_in_layers(stepper):
    """A ladder: each rung reads the two objects of the rung before."""
    nodes = {}
    for rung in range(250):
        for side in "lr":
            before = [f"{{run}}/{rung - 1}{other}" for other in "lr"] if rung else []
            nodes[f"{rung}{side}"] = {"function": "step", "payload": {"write": {f"{{run}}/{rung}{side}": str(rung)}},
                                      "reads": before, "writes": [f"{{run}}/{rung}{side}"]}
    run = submit(stepper, nodes, wait=300, concurrency=8)
    assert run["state"] == "done" and run["counts"]["done"] == 500
    for rung in range(1, 250):
        earlier = max(run["nodes"][f"{rung - 1}{side}"]["ended_ms"] for side in "lr")
        assert all(run["nodes"][f"{rung}{side}"]["started_ms"] >= earlier for side in "lr")
    assert get(stepper, f"{run['run']}/249r") == (200, b"249")
    print(f"500 nodes in {run['ended_ms'] - run['created_ms']} ms")


def test_500_nodes_at_once(stepper):
    nodes = {f"n{i}": {"function": "step", "payload": {"write": {f"{{run}}/{i}": str(i)}}, "writes": [f"{{run}}/{i}"]}
             for i in range(499)}
    nodes["all"] = {"function": "step", "payload": {"read": [f"{{run}}/{i}" for i in range(499)]},
                    "reads": [f"{{run}}/{i}" for i in range(499)]}
    run = submit(stepper, nodes, wait=300)
    assert run["state"] == "done", run["counts"]
    assert run["nodes"]["all"]["result"]["read"] == "".join(str(i) for i in range(499))


def test_large_results_are_left_out_and_runs_are_listed_by_tenant(stepper):
    stepper.call("PUT", "/v1/objects/large/in", b"x" * 70_000)
    run = submit(stepper, {"a": step(["large/in"])}, name="large")
    assert "result" not in run["nodes"]["a"] and run["nodes"]["a"]["result_bytes"] > 70_000
    listed = ask(stepper, "GET", "/v1/graphs")[1]["runs"]
    assert listed[0]["run"] == run["run"] and listed[0]["name"] == "large" and "nodes" not in listed[0]
    assert ask(stepper, "GET", "/v1/graphs", tenant="acme")[1] == {"runs": []}
    assert ask(stepper, "GET", f"/v1/graphs/{run['run']}", tenant="acme")[0] == 404


def test_the_command_line(fairlead, tmp_path):
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps({"nodes": {"a": step([], ["cli/{run}"], fail="no"), "b": step(["cli/{run}"])}}))
    assert fairlead("graph", "check", graph).stdout == "valid: 2 nodes\n"
    failed = fairlead("graph", "run", graph, "--wait")
    assert failed.returncode == 1 and "fairlead: node a failed: ValueError: no" in failed.stderr
    assert re.search(r"^b +step +skipped +-$", failed.stdout, re.M), failed.stdout
    started = fairlead("graph", "run", "-", stdin=json.dumps({"nodes": {"a": step(["cli/never"])}}))
    run = started.stdout.strip()
    assert started.returncode == 0 and run in fairlead("graph", "list").stdout
    assert "waiting" in fairlead("graph", "show", run).stdout
    assert "cancelled" in fairlead("graph", "cancel", run).stdout
    assert json.loads(fairlead("graph", "show", run, "--json").stdout)["state"] == "cancelled"
    wrong = fairlead("graph", "run", "-", stdin='{"nodes": {}}')
    assert wrong.returncode == 2 and "nodes has 0 members" in wrong.stderr


def test_a_full_queue_is_a_reason_to_wait(start_node):
    node = start_node("--queue-limit", "4")
    node.deploy("step", STEP)
    run = submit(node, {f"n{i}": step(sleep=0.01) for i in range(100)}, concurrency=16)
    assert run["state"] == "done", run["counts"]
    assert all(one["attempts"] == 1 for one in run["nodes"].values())
    assert metric(node, "fairlead_rejected_total") > 0


def test_a_kernel_that_faults_fails_its_node_and_readers_hear_why(start_node, tmp_path):
    node = start_node()
    folder = tmp_path / "wild"
    folder.mkdir()
    (folder / "kernels.ptx").write_text((ROOT / "src/runtime/device_server/testing/kernels.ptx").read_text())
    (folder / "task.json").write_text(json.dumps({
        "buffers": {"y": {"role": "output", "type": "f32", "shape": [256]}},
        "kernels": [{"module": "kernels.ptx", "kernel": "wild", "grid": [1], "block": [1], "arguments": [{"buffer": "y"}]}]}))
    node.deploy("wild", folder)
    node.deploy("total", EXAMPLE / "functions")
    nodes = {"bad": {"function": "wild", "payload": {"outputs": {"y": {"key": "{run}/y"}}}, "retries": 1},
             "total": {"function": "total", "payload": {"read": "{run}/y"}, "reads": ["{run}/y"]}}
    run = submit(node, nodes, wait=0, run="faulty")
    status, body = get(node, "faulty/y", "?wait=60")
    assert status == 503 and b"node bad failed" in body and b"(2 attempts)" in body
    run = ask(node, "GET", "/v1/graphs/faulty?wait=60")[1]
    assert states(run) == {"bad": "failed", "total": "skipped"}


def test_a_killed_device_server_is_survived_by_a_chain_of_kernel_tasks(start_node):
    """What was on the device is gone: a node that needs it fails and says so, and resuming computes it again."""
    node = start_node()
    deploy_example(node)
    one = {"values": [1] * 8}

    def add(x, out):
        return {"function": "add", "payload": {"inputs": {"x": x, "y": one}, "outputs": {"sum": {"key": out}}}}

    nodes = {"a": add(one, "{run}/a"), "b": add({"key": "{run}/a"}, "{run}/b"),
             "c": {**add({"key": "{run}/b"}, "{run}/c"), "reads": ["go"]}}
    submit(node, nodes, wait=0, run="k")
    eventually(lambda: states(ask(node, "GET", "/v1/graphs/k")[1])["b"] == "done")
    for pid in device_servers(node):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: get(node, "k/b")[0] == 503)
    node.call("PUT", "/v1/objects/go", b"")
    run = ask(node, "GET", "/v1/graphs/k?wait=60")[1]
    assert run["nodes"]["c"]["state"] == "failed" and "lost with its device server" in run["nodes"]["c"]["error"]
    run = submit(node, nodes, run="k", resume=True)
    assert run["state"] == "done", run
    assert [run["nodes"][name]["attempts"] for name in "abc"] == [1, 1, 1]
    assert get(node, "k/c")[1] == bytes.fromhex("00008040") * 8  # 4.0


def device_servers(node):
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if file.read().split(b"\0")[1:2] == [b"device-server"] and of_node(entry, node.process.pid):
                    found.append(int(entry))
        except OSError:
            pass
    return found
