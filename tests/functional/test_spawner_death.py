"""The process that makes sandboxes dies, or hangs, while calls and events run: nothing accepted is lost, and nothing is left."""

import json
import os
import pathlib
import signal
import threading
import time

from conftest import MISBEHAVE, eventually
from test_survival import EVENT, folder_of_marks, processes_below

TIMES = int(os.environ.get("FAIRLEAD_SPAWNER_KILLS", "6"))  # `make survive`: 20


def spawner_of(node):
    """Its pid, or None while there is none."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)
        except OSError:
            continue
        state, parent = fields[1].split()[:2]
        if fields[0].endswith("(fl-spawner") and int(parent) == node.process.pid and state != "Z":
            return int(entry.name)
    return None


def has_served(pid):
    """For so long that the next one is started at once."""
    started = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started > 2


def groups_of(pids):
    """Folders of control groups that dead spawners left."""
    names = {str(pid) for pid in pids}
    # os.walk passes over folders that go while it looks: other tests' nodes make and remove groups all the time.
    return [
        f"{folder}/{name}" for folder, below, _ in os.walk("/sys/fs/cgroup") if folder.endswith("/fairlead") for name in names & set(below)
    ]


def serves(node):
    return node.call("GET", "/healthz")[0] == 200


def restarts(node):
    return node.status()["spawner"]["restarts"]


def test_killed_again_and_again_under_load_it_costs_no_event(start_node):
    node = start_node()
    for name in ("called", "marked"):
        node.deploy(name, MISBEHAVE)
    marks = folder_of_marks(node)
    accepted, answers, stop = [], [], threading.Event()

    def send():
        while not stop.is_set():
            status, headers, _ = node.invoke("marked", '{"do": "mark"}', EVENT)
            if status == 202:
                accepted.append(headers["x-amzn-RequestId"])
            stop.wait(0.02)

    def call():
        while not stop.is_set():
            status, _, body = node.invoke("called", '{"x": 1}')
            answers.append((status, body))
            stop.wait(0.02)

    senders = [threading.Thread(target=run) for run in (send, call, call)]
    for sender in senders:
        sender.start()
    killed = []
    for number in range(1, TIMES + 1):
        eventually(lambda: serves(node))
        before = len(answers)
        eventually(lambda before=before: any(status == 200 for status, _ in answers[before:]))
        killed.append(spawner_of(node))
        eventually(lambda: has_served(killed[-1]))
        os.kill(killed[-1], signal.SIGKILL)
        eventually(lambda number=number: restarts(node) == number)
    stop.set()
    for sender in senders:
        sender.join()

    assert node.invoke("called", '{"x": 2}')[2] == b'{"x": 2}'
    assert {status for status, _ in answers} <= {200, 503}
    for body in (body for status, body in answers if status == 503):
        assert "the node failed the invocation" in body.decode() or "is being started" in body.decode(), body
    eventually(lambda: all((marks / f"ran-{request_id}").exists() for request_id in accepted))
    assert len(accepted) >= TIMES
    assert json.loads(node.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"] == []
    assert groups_of(killed) == []
    assert len(set(killed)) == TIMES

    last = spawner_of(node)
    assert node.stop() == 0
    eventually(lambda: not processes_below(node.home))
    assert groups_of([last]) == []


def test_an_event_that_it_cost_has_all_its_attempts_left(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    assert node.invoke("misbehave", '{"do": "sleep", "seconds": 60}', EVENT)[0] == 202
    eventually(lambda: node.status()["functions"][0]["instances"]["busy"] == 1)
    os.kill(spawner_of(node), signal.SIGKILL)
    eventually(lambda: node.status()["events"]["node_faults"] == 1)
    eventually(lambda: node.status()["functions"][0]["instances"]["busy"] == 1)  # it runs again
    assert node.status()["events"]["retries"] == 0
    assert "it will be tried again: the spawner has ended" in node.log_path.read_text()
    node.kill()  # a graceful stop would wait for it
    eventually(lambda: not processes_below(node.home))


def test_a_call_that_it_cost_is_told_so(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    answers = []
    call = threading.Thread(target=lambda: answers.append(node.invoke("misbehave", '{"do": "sleep", "seconds": 60}')))
    call.start()
    eventually(lambda: node.status()["functions"][0]["instances"]["busy"] == 1)
    os.kill(spawner_of(node), signal.SIGKILL)
    call.join()
    status, headers, body = answers[0]
    assert status == 503 and headers["x-amzn-ErrorType"] == "ServiceException"
    assert "which had begun: the spawner has ended" in json.loads(body)["Message"]
    assert node.invoke("misbehave", '{"x": 1}')[2] == b'{"x": 1}'
