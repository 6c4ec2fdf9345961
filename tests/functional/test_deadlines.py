"""A caller says how long it waits: what has not begun by then never does, and what runs is ended."""

import json
import re
import threading

import pytest

from conftest import MISBEHAVE, Gate, eventually

HEADER = "X-Fairlead-Deadline-Ms"


@pytest.fixture
def busy(start_node):
    """(node, gate): a node whose one slot is taken until the gate opens."""
    node = start_node("--slots", "1")
    node.deploy("misbehave", MISBEHAVE)
    with Gate(node) as gate:
        caller = threading.Thread(target=node.invoke, args=("misbehave", gate.payload))
        caller.start()
        eventually(lambda: node.status()["functions"][0]["in_flight"] == 1)
        yield node, gate
    caller.join()


def outcomes(node):
    """(outcome, start) of all invocations that are over."""
    lines = node.call("GET", "/fairlead/v1/history")[2].decode().splitlines()
    return [tuple(line.split(",")[2:4]) for line in lines]


def test_what_waits_at_its_deadline_is_answered_at_once_and_never_started(busy):
    node, gate = busy
    status, headers, body = node.invoke("misbehave", "{}", {HEADER: "200"})
    assert status == 200 and headers["X-Amz-Function-Error"] == "Unhandled"
    assert json.loads(body)["errorType"] == "Sandbox.DeadlineExceeded"
    assert "was not started: its deadline passed after 0." in json.loads(body)["errorMessage"]
    assert node.status()["functions"][0]["queued"] == 0, "the gate is shut: the answer did not wait for the slot"
    gate.open()
    assert "X-Amz-Function-Error" not in node.invoke("misbehave")[1]
    assert eventually(lambda: len(outcomes(node)) == 3) and ("expired", "") in outcomes(node)


def test_an_event_that_waits_at_its_deadline_becomes_a_dead_letter(busy):
    node, gate = busy
    status, headers, _ = node.invoke("misbehave", "{}", {HEADER: "200", "X-Amz-Invocation-Type": "Event"})
    assert status == 202
    letters = eventually(lambda: json.loads(node.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"])
    assert [(letter["request_id"], letter["error_type"], letter["attempts"]) for letter in letters] == \
        [(headers["x-amzn-RequestId"], "expired", 0)]
    assert json.loads(letters[0]["error_message"])["errorType"] == "Sandbox.DeadlineExceeded"


def test_what_runs_at_its_deadline_ends_as_by_a_timeout(misbehave):
    node, name = misbehave
    node.invoke(name)  # warm
    status, headers, body = node.invoke(name, '{"do": "hang"}', {HEADER: "2000"})
    assert status == 200 and headers["X-Amz-Function-Error"] == "Unhandled"
    assert json.loads(body)["errorType"] == "Sandbox.Timedout"
    assert re.search(r"timed out after [012]\.", json.loads(body)["errorMessage"]), "not after the function's minute"
    assert "X-Amz-Function-Error" not in node.invoke(name, "{}", {HEADER: "100000"})[1]


@pytest.mark.parametrize("value", ["0", "-5", "soon", "1e3", "86400001"])
def test_a_deadline_that_is_none_is_refused(misbehave, value):
    node, name = misbehave
    status, headers, body = node.invoke(name, "{}", {HEADER: value})
    assert status == 400 and headers["x-amzn-ErrorType"] == "InvalidParameterValueException"
    assert json.loads(body)["Message"] == f"{HEADER} is '{value}'; it must be between 1 and 86400000"
