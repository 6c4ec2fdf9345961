"""Functions that misbehave harm only their own invocation: the client gets a clear error, the next call works, and
nothing stays behind."""

import json
import pathlib
import subprocess
import threading

import pytest

from conftest import MISBEHAVE, Gate, eventually


def do(misbehave, what, **arguments):
    node, name = misbehave
    status, headers, body = node.invoke(name, json.dumps({"do": what, **arguments}))
    return status, headers.get("X-Amz-Function-Error"), json.loads(body)


def works(misbehave):
    return do(misbehave, "echo", x=1) == (200, None, {"do": "echo", "x": 1})


@pytest.mark.parametrize("what, said", [("crash", "signal"), ("exit", "exit status 3")])
def test_a_crash_half_way_is_an_error_that_says_how_it_ended(misbehave, what, said):
    status, error, body = do(misbehave, what)
    assert (status, error, body["errorType"]) == (200, "Unhandled", "Runtime.ExitError")
    assert said in body["errorMessage"]
    assert works(misbehave)


def test_a_hang_ends_at_the_timeout(shared_node):
    shared_node.deploy("hang", MISBEHAVE, Timeout=1)
    _, headers, body = shared_node.invoke("hang", '{"do": "hang"}')
    assert headers["X-Amz-Function-Error"] == "Unhandled"
    assert "Task timed out after 1.00 seconds" in json.loads(body)["errorMessage"]
    assert json.loads(shared_node.invoke("hang", "{}")[2]) == {}


@pytest.mark.parametrize("at_start, kind, said", [
    ("exit", "Runtime.InitError", "exit status 7"),
    ("init-error", "Model.Missing", "no model"),
])
def test_a_function_that_fails_at_start_says_why(shared_node, at_start, kind, said):
    name = f"start-{at_start}"
    shared_node.deploy(name, MISBEHAVE, {"AT_START": at_start})
    for _ in range(2):
        status, headers, body = shared_node.invoke(name)
        answer = json.loads(body)
        assert status == 200 and headers["X-Amz-Function-Error"] == "Unhandled"
        assert answer["errorType"] == kind and said in answer["errorMessage"]


def test_a_bootstrap_that_cannot_run_says_why(shared_node, tmp_path):
    (tmp_path / "bootstrap").write_text("#!/nowhere/interpreter\n")
    (tmp_path / "bootstrap").chmod(0o755)
    shared_node.deploy("no-interpreter", tmp_path)
    answer = json.loads(shared_node.invoke("no-interpreter")[2])
    assert answer["errorType"] == "Runtime.InitError" and "bootstrap" in answer["errorMessage"]


def test_a_second_answer_is_refused_and_the_first_one_counts(misbehave):
    node, name = misbehave
    _, headers, body = node.invoke(name, '{"do": "twice"}')
    assert json.loads(body) == "first" and "X-Amz-Function-Error" not in headers
    eventually(lambda: b"second answer: 403" in node.call("GET", f"/fairlead/v1/functions/{name}/log?tail=2000")[2])
    assert works(misbehave)


def test_an_answer_with_a_wrong_id_is_refused(misbehave):
    assert do(misbehave, "wrong-id")[2] == {"wrong": 400}


def test_an_answer_over_six_mebibytes_is_an_error(misbehave):
    _, error, body = do(misbehave, "large", bytes=(6 << 20) + 1)
    assert error == "Unhandled" and body["errorType"] == "Function.ResponseSizeTooLarge"
    assert works(misbehave)


def test_a_log_flood_is_bounded(misbehave):
    node, name = misbehave
    assert do(misbehave, "flood", lines=400_000)[0] == 200  # 42 MB
    logs = [path for path in pathlib.Path(node.state).rglob("*") if path.is_file() and name in path.name]
    assert 0 < sum(path.stat().st_size for path in logs) < 20 << 20
    assert works(misbehave)


def test_children_left_behind_die_with_their_instance(start_node):
    node = start_node()
    node.deploy("forks", MISBEHAVE)
    node.invoke("forks", '{"do": "fork"}')
    assert len(sleepers()) >= 5
    node.call("DELETE", "/2015-03-31/functions/forks")
    eventually(lambda: not sleepers())


def sleepers():
    return subprocess.run(["pgrep", "-f", "^/bin/sleep 1000$"], capture_output=True, text=True).stdout.split()


def test_a_full_tmp_is_the_functions_own(shared_node):
    shared_node.deploy("disk", MISBEHAVE, EphemeralStorage={"Size": 64})
    answer = json.loads(shared_node.invoke("disk", '{"do": "disk"}')[2])
    assert answer["errno"] == 28 and answer["written"] <= 64 << 20


def test_allocating_past_the_device_fails_like_cuda(misbehave):
    assert do(misbehave, "allocate", bytes=1 << 40)[2] == {"code": 2}
    assert works(misbehave)


def test_a_faulting_kernel_is_the_functions_own(misbehave):
    node, _ = misbehave
    node.deploy("neighbour", MISBEHAVE)
    assert do(misbehave, "fault")[2] == {"code": 700}
    assert json.loads(node.invoke("neighbour", '{"do": "allocate", "bytes": 1024}')[2]) == {"code": 0}


def test_a_sandbox_shows_nothing_of_the_machine(misbehave):
    seen = do(misbehave, "look")[2]
    assert seen["uid"] != 0 or pathlib.Path("/proc/self/uid_map").exists()
    assert "root" not in seen["root"] and "home" not in seen["root"] and "work" not in seen["root"]
    assert set(seen["interfaces"]) <= {"lo"}
    assert "PYTEST_CURRENT_TEST" not in seen["environment"]
    assert seen["environment"]["AWS_LAMBDA_FUNCTION_NAME"] == "misbehave"


def test_functions_do_not_wait_for_a_hanging_neighbour(start_node):
    node = start_node("--slots", "2")
    node.deploy("slow", MISBEHAVE, Timeout=300)
    node.deploy("quick", MISBEHAVE)
    gate = Gate(node)
    thread = threading.Thread(target=node.invoke, args=("slow", gate.payload))
    thread.start()
    eventually(lambda: any(flow["in_flight"] for flow in node.status()["functions"] if flow["name"] == "slow"))
    assert node.invoke("quick", "{}")[0] == 200
    assert thread.is_alive()
    gate.open()
    thread.join()
