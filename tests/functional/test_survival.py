"""What the node survives: its own death, a full disk, a corrupt database, a second node on its folder."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest

from conftest import BUILD, MISBEHAVE, ROOT, eventually
from harness.node import Node, NodeFailed

EVENT = {"X-Amz-Invocation-Type": "Event"}
VECTOR_ADD = ROOT / "examples/ktask/vector-add"
KILLS = int(os.environ.get("FAIRLEAD_KILLS", 8))  # make survive: 1000


def processes_below(home):
    """Processes whose environment or command line names this node's folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if str(home).encode() in text:
            found.append(entry.name)
    return found


def gpu_memory_used(node):
    return node.status()["gpus"][0]["memory_used_bytes"]


def folder_of_marks(node):
    """Where misbehave leaves a file for each invocation."""
    marks = node.home / "gpu/marks"
    marks.mkdir()
    marks.chmod(0o777)
    return marks


def test_an_event_keeps_the_trace_id_of_its_caller(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    marks = folder_of_marks(node)
    trace_id = "Root=1-67891233-abcdef012345678912345678;Sampled=1"
    status, headers, _ = node.invoke("misbehave", '{"do": "mark"}', EVENT | {"X-Amzn-Trace-Id": trace_id})
    assert status == 202
    mark = marks / f"ran-{headers['x-amzn-RequestId']}"
    eventually(lambda: mark.exists() and mark.read_text())
    assert mark.read_text() == trace_id


def test_killed_under_load_it_loses_no_accepted_event(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    marks = folder_of_marks(node)
    accepted, stop = [], threading.Event()

    def send():
        while not stop.is_set():
            try:
                status, headers, _ = node.invoke("misbehave", '{"do": "mark"}', EVENT)
            except (OSError, http.client.HTTPException):
                return
            if status == 202:
                accepted.append(headers["x-amzn-RequestId"])

    def unmarked():
        return [request_id for request_id in accepted if not (marks / f"ran-{request_id}").exists()]

    senders = [threading.Thread(target=send) for _ in range(4)]
    for sender in senders:
        sender.start()
    eventually(lambda: node.status()["counters"]["completed"] >= 20)
    accepted.append(node.invoke("misbehave", '{"do": "mark", "delay": 2}', EVENT)[1]["x-amzn-RequestId"])
    node.kill()
    stop.set()
    for sender in senders:
        sender.join()
    eventually(lambda: not processes_below(node.home))
    assert unmarked()

    again = start_node(keep_state=True)
    eventually(lambda: not unmarked())
    assert len(accepted) >= 20
    assert json.loads(again.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"] == []


def below(node, *words):
    """Processes of this node whose command line or name has all of these words."""
    found = []
    for pid in processes_below(node.home):
        try:
            text = pathlib.Path(f"/proc/{pid}/cmdline").read_text() + pathlib.Path(f"/proc/{pid}/comm").read_text()
        except OSError:
            continue
        if int(pid) != node.process.pid and all(word in text for word in words):
            found.append(int(pid))
    return found


class Load:
    """Accepted events, calls whose answers are known, and a kernel task, on a node that may be another one after each kill."""

    def __init__(self, node):
        self.node = node
        self.accepted, self.wrong, self.answered = [], [], 0
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(one,)) for one in (self.send, self.call, self.add)]

    def run(self, one):
        while not self.stop.is_set():
            try:
                one(self.node)
            except (OSError, http.client.HTTPException):
                pass  # it is dead, or being started
            self.stop.wait(0.02)

    def send(self, node):
        status, headers, _ = node.invoke("marked", '{"do": "mark"}', EVENT)
        if status == 202:
            self.accepted.append(headers["x-amzn-RequestId"])

    def call(self, node):
        sent = json.dumps({"number": self.answered})
        status, headers, body = node.invoke("called", sent)
        if status == 200 and "X-Amz-Function-Error" not in headers:
            self.answered += 1
            if body.decode() != sent:
                self.wrong.append((sent, body))

    def add(self, node):
        number = self.answered
        status, headers, body = node.invoke("added", json.dumps({"inputs": {"x": [number] * 8, "y": [1] * 8}}))
        if status == 200 and "X-Amz-Function-Error" not in headers:
            if json.loads(body)["outputs"]["sum"]["values"] != [number + 1] * 8:
                self.wrong.append(("added", body))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def test_killed_again_and_again_whoever_it_is_no_accepted_event_is_lost(start_node):
    node = start_node()
    for name in ("called", "marked"):
        node.deploy(name, MISBEHAVE)
    node.deploy("added", VECTOR_ADD)
    marks = folder_of_marks(node)

    def kill_node():
        load.node.kill()
        eventually(lambda: not processes_below(load.node.home))
        load.node = start_node(keep_state=True)

    def kill(*words):
        def strike():
            for pid in eventually(lambda: below(load.node, *words))[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return strike

    victims = [kill_node, kill("fl-spawner"), kill("bootstrap"), kill("device-server")]
    with Load(node) as load:
        for number in range(KILLS):
            before = load.answered, len(load.accepted)
            eventually(lambda before=before: load.answered > before[0] and len(load.accepted) > before[1])
            victims[number % len(victims)]()
        eventually(lambda: load.node.call("GET", "/healthz")[0] == 200)
    node = load.node
    eventually(lambda: all((marks / f"ran-{request_id}").exists() for request_id in load.accepted))
    assert load.wrong == []
    assert json.loads(node.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"] == []
    assert node.status()["state_damage"]["findings"] == 0
    print(f"\n{KILLS} kills: 0 of {len(load.accepted)} accepted events lost, 0 of {load.answered} answers wrong")
    assert node.stop() == 0
    eventually(lambda: not processes_below(node.home))


def test_killed_it_leaves_no_process_and_no_device_memory(start_node):
    node = start_node()
    empty = gpu_memory_used(node)
    node.deploy("holder", MISBEHAVE)
    call = threading.Thread(target=lambda: pytest.raises(Exception, node.invoke, "holder",
                                                         '{"do": "hold", "bytes": 1073741824}'))
    call.start()
    eventually(lambda: gpu_memory_used(node) >= empty + (1 << 30))
    node.kill()
    call.join()
    eventually(lambda: not processes_below(node.home))
    again = start_node(keep_state=True)
    eventually(lambda: gpu_memory_used(again) <= empty)


def test_functions_are_found_again(start_node):
    node = start_node()
    node.deploy("kept", MISBEHAVE, {"COLOUR": "red"}, Timeout=17)
    assert node.stop() == 0
    again = start_node(keep_state=True)
    configuration = json.loads(again.call("GET", "/2015-03-31/functions/kept/configuration")[2])
    assert configuration["Timeout"] == 17 and configuration["Environment"]["Variables"] == {"COLOUR": "red"}
    assert again.invoke("kept")[0] == 200


def test_a_graceful_stop_finishes_what_was_accepted(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    answers = []
    calls = [threading.Thread(target=lambda: answers.append(node.invoke("misbehave", '{"do": "sleep", "seconds": 1}')))
             for _ in range(4)]
    for call in calls:
        call.start()
    eventually(lambda: node.status()["counters"]["arrived"] == 4)
    assert node.stop() == 0
    for call in calls:
        call.join()
    assert [answer[0] for answer in answers] == [200] * 4


def test_failed_events_are_tried_three_times_then_listed(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    request_id = node.invoke("misbehave", '{"do": "error"}', EVENT)[1]["x-amzn-RequestId"]
    letters = eventually(lambda: json.loads(node.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"])
    assert [letter["request_id"] for letter in letters] == [request_id]
    assert letters[0]["attempts"] == 3 and letters[0]["function"] == "misbehave"
    assert node.status()["counters"]["completed"] == 3


def test_failed_events_are_tried_as_their_function_says(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    config = "/2019-09-25/functions/misbehave/event-invoke-config"
    assert node.call("PUT", config, '{"MaximumRetryAttempts": 0}')[0] == 200
    node.kill()
    again = start_node(keep_state=True)
    assert json.loads(again.call("GET", config)[2])["MaximumRetryAttempts"] == 0
    assert again.invoke("misbehave", '{"do": "error"}', EVENT)[0] == 202
    letters = eventually(lambda: json.loads(again.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"])
    assert letters[0]["attempts"] == 1


def test_dead_letters_are_redriven(start_node):
    node = start_node()
    for name in ("fails", "other"):
        node.deploy(name, MISBEHAVE)
        assert node.call("PUT", f"/2019-09-25/functions/{name}/event-invoke-config", '{"MaximumRetryAttempts": 0}')[0] == 200
    ids = {name: node.invoke(name, '{"do": "error"}', EVENT)[1]["x-amzn-RequestId"] for name in ("fails", "other")}

    def letters():
        return json.loads(node.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"]

    eventually(lambda: len(letters()) == 2)

    def redrive(*arguments):
        return subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "dead-letters", "redrive", *arguments],
                              capture_output=True, text=True)

    before = node.status()["counters"]["completed"]
    redriven = redrive("fails")
    assert (redriven.returncode, redriven.stdout) == (0, "1 dead letter will be tried again\n"), redriven.stderr
    eventually(lambda: node.status()["counters"]["completed"] == before + 1 and len(letters()) == 2)
    assert {letter["request_id"] for letter in letters()} == set(ids.values())
    assert redrive("--all").stdout == "2 dead letters will be tried again\n"
    eventually(lambda: node.status()["counters"]["completed"] == before + 3)
    assert node.status()["events"]["redriven"] == 3
    assert redrive("unknown").returncode != 0


def test_two_nodes_on_one_folder_are_refused_and_the_first_serves_on(start_node):
    node = start_node()
    for name in ("before", "after"):
        node.deploy(name, MISBEHAVE)
    assert node.invoke("before")[0] == 200
    sockets = sorted((node.state / "instances/run").iterdir())
    assert sockets
    with pytest.raises(NodeFailed) as refused:
        start_node(keep_state=True)
    assert str(node.process.pid) in str(refused.value)
    assert node.call("GET", "/healthz")[0] == 200
    assert sorted((node.state / "instances/run").iterdir()) == sockets
    assert [node.invoke(name)[0] for name in ("before", "after")] == [200, 200]


def test_a_corrupt_database_is_refused_and_kept(start_node):
    node = start_node()
    node.deploy("kept", MISBEHAVE)
    node.stop()
    database = next(path for path in node.state.iterdir() if path.suffix in (".db", ".sqlite", ".sqlite3"))
    broken = b"garbage " * 1000
    database.write_bytes(broken)
    with pytest.raises(NodeFailed) as refused:
        start_node(keep_state=True)
    assert database.name in str(refused.value)
    assert database.read_bytes() == broken


@pytest.mark.parametrize("damage", ["flipped", "removed"])
def test_a_damaged_log_is_found_at_the_start_and_said(start_node, damage):
    node = start_node()
    node.deploy("stopped", MISBEHAVE)
    assert node.call("PUT", "/2017-10-31/functions/stopped/concurrency", '{"ReservedConcurrentExecutions": 0}')[0] == 200
    for _ in range(50):
        assert node.invoke("stopped", "{}", EVENT)[0] == 202
    node.kill()
    log = node.state / "state.db-wal"
    if damage == "flipped":
        content = bytearray(log.read_bytes())
        content[len(content) * 9 // 10] ^= 1
        log.write_bytes(content)
    else:
        log.unlink()
    again = start_node(keep_state=True)
    status = again.status()
    lost, waiting = status["state_damage"]["lost_events"], status["events"]["waiting"]
    assert lost + waiting == 50 and lost > 0 and status["state_damage"]["findings"] == 1
    assert "lacks the last" in again.log_path.read_text()
    assert f'fairlead_state_damage{{what="lost_events"}} {lost}' in again.call("GET", "/metrics")[2].decode()
    assert again.stop() == 0
    assert start_node(keep_state=True).status()["state_damage"]["findings"] == 0  # it is said once


def test_an_event_whose_record_is_damaged_is_a_dead_letter(start_node):
    node = start_node()
    node.deploy("stopped", MISBEHAVE)
    assert node.call("PUT", "/2017-10-31/functions/stopped/concurrency", '{"ReservedConcurrentExecutions": 0}')[0] == 200
    for mark in ("whole", "flipped"):
        assert node.invoke("stopped", json.dumps({"pad": mark * 50}), EVENT)[0] == 202
    assert node.stop() == 0
    database = node.state / "state.db"
    content = bytearray(database.read_bytes())
    content[content.index(b"flipped" * 50) + 100] ^= 1
    database.write_bytes(content)
    again = start_node(keep_state=True)
    assert again.status()["state_damage"]["damaged_events"] == 1 and again.status()["events"]["waiting"] == 1
    letters = json.loads(again.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"]
    assert [letter["error_type"] for letter in letters] == ["damaged"]
    redriven = json.loads(again.call("POST", "/fairlead/v1/dead-letters/redrive")[2])
    assert redriven == {"redriven": 0, "left": 0}


def test_a_full_disk_refuses_events_and_goes_on(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small disk needs the right to mount: {mounted.stderr.strip()}")
    try:
        with Node(BUILD, disk / "node", gpu_environment={"SOFTGPU_HOME": str(tmp_path / "gpu")}) as node:
            node.deploy("misbehave", MISBEHAVE)
            assert node.invoke("misbehave")[0] == 200
            filler = disk / "filler"
            with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 65536)
            statuses = {node.invoke("misbehave", json.dumps({"pad": "x" * 500_000}), EVENT)[0] for _ in range(3)}
            assert 202 not in statuses
            assert node.invoke("misbehave")[0] == 200
            filler.unlink()
            eventually(lambda: node.invoke("misbehave", "{}", EVENT)[0] == 202)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_an_idle_node_uses_no_processor(start_node):
    node = start_node()
    stat = pathlib.Path(f"/proc/{node.process.pid}/stat")

    def ticks():
        fields = stat.read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def rests():
        before, begun = ticks(), time.monotonic()
        time.sleep(2)  # sleep: the time over which use is measured; what it really took counts
        return ticks() - before <= 0.05 * (time.monotonic() - begun) * os.sysconf("SC_CLK_TCK")

    eventually(rests)


def test_events_of_a_stopped_function_wait_and_hold_nobody_back(start_node):
    node = start_node()
    for name in ("stopped", "running"):
        node.deploy(name, MISBEHAVE)
    concurrency = "/2017-10-31/functions/stopped/concurrency"
    assert node.call("PUT", concurrency, '{"ReservedConcurrentExecutions": 0}')[0] == 200
    for name in ("stopped", "running"):
        assert node.invoke(name, "{}", EVENT)[0] == 202

    def completed(name):
        return next(function["stats"]["invocations"] for function in node.status()["functions"] if function["name"] == name)

    eventually(lambda: completed("running") == 1)
    assert completed("stopped") == 0
    assert node.call("DELETE", concurrency)[0] == 204
    eventually(lambda: completed("stopped") == 1)


def test_what_goes_by_a_name_goes_with_its_function(start_node):
    node = start_node()
    node.deploy("f", MISBEHAVE, Tags={"gpu:tenant": "acme"})
    assert node.call("PUT", "/2019-09-25/functions/f/event-invoke-config", '{"MaximumRetryAttempts": 0}')[0] == 200
    assert node.invoke("f", '{"do": "error", "secret": "of acme"}', EVENT)[0] == 202

    def letters():
        return json.loads(node.call("GET", "/fairlead/v1/dead-letters?function=f")[2])["dead_letters"]

    eventually(lambda: len(letters()) == 1)
    concurrency = "/2017-10-31/functions/f/concurrency"
    assert node.call("PUT", concurrency, '{"ReservedConcurrentExecutions": 0}')[0] == 200
    assert node.invoke("f", "{}", EVENT)[0] == 202
    assert node.call("DELETE", "/2015-03-31/functions/f")[0] == 204
    node.deploy("f", MISBEHAVE, Tags={"gpu:tenant": "other"})
    assert letters() == []
    node.kill()
    again = start_node(keep_state=True)
    assert json.loads(again.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"] == []
    assert again.invoke("f", "{}", EVENT)[0] == 202
    eventually(lambda: again.status()["counters"]["completed"] == 1)
    assert again.status()["events"]["waiting"] == 0


def test_one_tenants_events_leave_memory_to_others(start_node):
    node = start_node("--event-memory", "16MiB")
    for name, tenant in (("flooded", "mallory"), ("quiet", "acme")):
        node.deploy(name, MISBEHAVE, Tags={"gpu:tenant": tenant})
        concurrency = f"/2017-10-31/functions/{name}/concurrency"
        assert node.call("PUT", concurrency, '{"ReservedConcurrentExecutions": 0}')[0] == 200
    large = json.dumps({"padding": "x" * 1_000_000})
    answers = [node.invoke("flooded", large, EVENT) for _ in range(20)]
    statuses = [answer[0] for answer in answers]
    assert statuses == [202] * 8 + [429] * 12, statuses
    assert b"of the 16777216 bytes" in answers[-1][2]
    assert node.invoke("quiet", large, EVENT)[0] == 202
    assert node.call("DELETE", "/2015-03-31/functions/flooded")[0] == 204
    assert node.invoke("quiet", large, EVENT)[0] == 202
    assert node.status()["events"]["waiting"] == 2
