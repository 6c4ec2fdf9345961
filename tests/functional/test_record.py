"""What a node remembers of its invocations, and what a simulator makes of it."""

import csv
import json
import os
import subprocess

import pytest

from conftest import BUILD, MISBEHAVE, eventually

FAIRLEAD = BUILD / "bin/fairlead"


def fairlead(*words, status=0):
    done = subprocess.run([FAIRLEAD, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    return done


def history(node):
    """Every line, as dictionaries; follows the pages."""
    lines, start = [], "0"
    while True:
        status, headers, body = node.call("GET", f"/fairlead/v1/history?from={start}")
        assert status == 200, body
        if not body:
            return lines
        start = headers["X-Fairlead-Next"]
        fields = "at_us,function,outcome,start,gpu,queue_us,start_us,run_us,gpu_us,instance_start_us".split(",")
        lines += [dict(zip(fields, row)) for row in csv.reader(body.decode().splitlines())]


def test_every_invocation_is_remembered_with_what_became_of_it(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    node.invoke("misbehave", json.dumps({"do": "echo"}))
    node.invoke("misbehave", json.dumps({"do": "echo"}))
    node.invoke("misbehave", json.dumps({"do": "exit"}))
    seen = history(node)
    assert [entry["start"] for entry in seen] == ["cold", "device-warm", "device-warm"]
    assert [entry["outcome"] for entry in seen][:2] == ["success", "success"]
    assert seen[2]["outcome"] == "crashed"
    assert int(seen[1]["run_us"]) > 0
    assert int(seen[0]["queue_us"]) >= int(seen[0]["instance_start_us"]) > 0  # the first was queued while its instance started
    assert int(seen[1]["instance_start_us"]) == 0
    assert all(int(entry["at_us"]) > 1e15 and entry["gpu"] == "1" for entry in seen)


def test_the_history_outlives_a_kill(start_node):
    node = start_node()
    node.deploy("noop", node.sample("noop"))
    for _ in range(3):
        node.invoke("noop")
    folder = node.state / "history"
    eventually(lambda: sum(len(path.read_text().splitlines()) for path in folder.iterdir()) == 3)
    node.kill()
    node = start_node(keep_state=True)
    node.invoke("noop")
    assert len(history(node)) == 4


def test_a_refused_invocation_is_demand_too(start_node):
    node = start_node("--queue-limit", "1", "--slots", "1")
    node.deploy("noop", node.sample("noop"))
    node.call("PUT", "/2017-10-31/functions/noop/concurrency", json.dumps({"ReservedConcurrentExecutions": 0}))
    assert node.invoke("noop")[0] == 429
    assert [entry["outcome"] for entry in history(node)] == ["refused"]


def test_without_a_history_there_is_nothing_to_record(start_node, tmp_path):
    node = start_node("--history", "0")
    assert node.call("GET", "/fairlead/v1/history")[0] == 404
    failed = fairlead("--endpoint", node.endpoint, "sim", "record", "--out", tmp_path / "recorded", status=3)
    assert "--history" in failed.stderr
    assert not (node.state / "history").exists()


@pytest.mark.parametrize("size", ["1MiB", "-1", "much"])
def test_a_bound_that_holds_nothing_is_refused(size):
    fairlead("serve", "--history", size, status=2)


def test_a_recording_is_simulated_and_replayed_as_it_is(start_node, tmp_path):
    node = start_node("--tenant", "vision:2:3", gpu_environment={"SOFTGPU_PROFILE": "v100-16"})
    node.deploy("noop", node.sample("noop"), Tags={"gpu:tenant": "vision", "gpu:weight": "2", "gpu:objective-ms": "250"})
    node.deploy("fft", node.sample("fft"))
    for _ in range(5):
        node.invoke("noop")
        node.invoke("fft", json.dumps({"n": 64, "batch": 1}))
    out = tmp_path / "recorded"
    recorded = fairlead("--endpoint", node.endpoint, "sim", "record", "--out", out)
    assert "10 invocations of 2 functions" in recorded.stdout
    rows = list(csv.DictReader((out / "trace.csv").open()))
    assert [row["function"] for row in rows] == ["noop", "fft"] * 5
    assert float(rows[0]["at_s"]) == 0

    scenario = (out / "scenario.toml").read_text()
    for line in ('name = "mqfq-setup"', "max_in_flight = 3", 'tenant = "vision"', "weight = 2", "objective_s = 0.25"):
        assert line in scenario
    run = json.loads(fairlead("--json", "sim", out / "scenario.toml").stdout)[0]
    assert (run["arrived"], run["cold"], run["device_warm"]) == (10, 2, 8)

    payloads = tmp_path / "payloads.json"
    payloads.write_text(json.dumps({"fft": {"n": 64, "batch": 1}}))
    live = json.loads(fairlead("--json", "--endpoint", node.endpoint, "replay", out / "trace.csv", "--payloads", payloads,
                               "--speed", 10, "--clients", 4).stdout)
    assert live["arrived"] == 10 and sum(function["answered"] for function in live["functions"]) == 10


def test_only_the_last_seconds_are_recorded_where_so_asked(start_node, tmp_path):
    node = start_node()
    node.deploy("noop", node.sample("noop"))
    node.invoke("noop")
    first = int(history(node)[0]["at_us"])
    eventually(lambda: node.invoke("noop") and int(history(node)[-1]["at_us"]) > first + 1_500_000)
    count = sum(int(entry["at_us"]) >= int(history(node)[-1]["at_us"]) - 1_000_000 for entry in history(node))
    out = tmp_path / "recorded"
    fairlead("--endpoint", node.endpoint, "sim", "record", "--out", out, "--last", 1)
    assert len((out / "trace.csv").read_text().splitlines()) == count + 1


def test_a_folder_that_cannot_be_written_is_named(start_node):
    node = start_node()
    node.deploy("noop", node.sample("noop"))
    node.invoke("noop")
    failed = fairlead("--endpoint", node.endpoint, "sim", "record", "--out", "/proc/no-such", status=6)
    assert "/proc/no-such" in failed.stderr
    assert os.listdir(node.state / "history")
