"""Shares of a GPU as their users meet them: asked for in tags, admitted or refused, kept started, used without a slot, given back."""

import json
import shutil
import subprocess
import threading
import urllib.parse

import pytest
from conftest import BUILD, MISBEHAVE, ROOT, Gate, eventually

from bench import shares_cut
from harness.node import NodeFailed

VECTOR_ADD = ROOT / "examples/ktask/vector-add"
TWO_GPUS = {"SOFTGPU_DEVICES": "2"}


def of(node, name):
    return next(f for f in node.status()["functions"] if f["name"] == name)


def seated(node, name):
    return [i for i in node.status()["instances"] if i["function"] == name and i["entitled"] and i["state"] == "idle"]


def tag(node, name, **tags):
    arn = urllib.parse.quote(f"arn:aws:lambda:us-east-1:000000000000:function:{name}", safe="")
    body = json.dumps({"Tags": {key.replace("_", ":", 1).replace("_", "-"): value for key, value in tags.items()}})
    return node.call("POST", f"/2017-03-31/tags/{arn}", body)


def refusal(node, name, **tags):
    with pytest.raises(NodeFailed) as failed:
        node.deploy(name, MISBEHAVE, Tags=tags)
    return str(failed.value)


def cli(node, *arguments):
    return subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, *arguments], text=True, capture_output=True,
                          timeout=60)


def test_a_third_of_a_gpu_is_there_before_anybody_calls_and_waits_for_no_slot(start_node):
    node = start_node("--slots", "1")
    assert cli(node, "deploy", "third", MISBEHAVE, "--gpu-request", "34", "--gpu-limit", "50").returncode == 0
    eventually(lambda: len(seated(node, "third")) == 1)
    node.deploy("other", MISBEHAVE)
    with Gate(node) as gate:
        call = threading.Thread(target=node.invoke, args=("other", gate.payload))
        call.start()
        eventually(lambda: node.status()["gpus"][0]["slots_in_use"] == 1)
        status, headers, body = node.invoke("third", json.dumps({"do": "attributes"}))
        assert status == 200 and json.loads(body)["sms"] == 80, "beside the only slot"
        assert of(node, "other")["in_flight"] == 1
    call.join()
    share = of(node, "third")["share"]
    assert (share["quota_request_percent"], share["quota_limit_percent"], share["seats"]) == (34, 50, [1])
    text = cli(node, "status").stdout
    assert " 34% " in text and " 1/1 " in text, text
    metrics = node.call("GET", "/metrics")[2].decode()
    assert 'fairlead_quota_request_percent{function="third"} 34' in metrics
    assert 'fairlead_seats{function="third",gpu="1"} 1' in metrics


def test_what_the_node_cannot_keep_is_refused_with_what_is_lacking(start_node):
    node = start_node()
    node.deploy("first", MISBEHAVE, Tags={"gpu:quota-request": "60"})
    said = refusal(node, "second", **{"gpu:quota-request": "50"})
    assert "400" in said and "gpu:quota-request is 110.0 % of the device's time at best, 97.0 % is the most" in said
    assert "it must be at most gpu:quota-limit" in refusal(
        node, "second", **{"gpu:quota-request": "50", "gpu:quota-limit": "40"})
    assert "between 0 and 100" in refusal(node, "second", **{"gpu:quota-request": "101"})
    assert "--sharing mps" in refusal(node, "second", **{"gpu:compute-percent": "24"})
    said = cli(node, "deploy", "second", MISBEHAVE, "--gpu-request", "50")
    assert said.returncode != 0 and "GPU 1 comes nearest" in said.stderr
    node.deploy("second", MISBEHAVE, Tags={"gpu:quota-request": "37"})
    status, _, body = tag(node, "second", gpu_quota_request="38")
    assert status == 400 and b"98.0 %" in body
    assert of(node, "second")["share"]["quota_request_percent"] == 37
    node.call("DELETE", "/2015-03-31/functions/first")
    assert tag(node, "second", gpu_quota_request="90")[0] == 204, "what was given back is free"
    eventually(lambda: len(seated(node, "second")) == 1)


def test_a_share_that_is_taken_away_while_it_runs(start_node):
    node = start_node()
    node.deploy("f", MISBEHAVE, Tags={"gpu:quota-request": "60", "gpu:replicas": "1"})
    eventually(lambda: len(seated(node, "f")) == 1)
    assert tag(node, "f", gpu_quota_request="0", gpu_replicas="0:1")[0] == 204
    eventually(lambda: not seated(node, "f") and of(node, "f")["share"]["seats"] == [])
    node.deploy("g", MISBEHAVE, Tags={"gpu:quota-request": "97"})
    assert node.invoke("f", json.dumps({"do": "attributes"}))[0] == 200


def test_after_a_restart_every_function_sits_where_it_sat(start_node):
    node = start_node(gpu_environment=TWO_GPUS)
    for name, request in (("gap", 40), ("d", 57), ("c", 60)):
        node.deploy(name, MISBEHAVE, Tags={"gpu:quota-request": str(request)})
    node.call("DELETE", "/2015-03-31/functions/gap")
    for name, request in (("b", 40), ("a", 37)):
        node.deploy(name, MISBEHAVE, Tags={"gpu:quota-request": str(request)})
    before = {name: of(node, name)["share"]["seats"] for name in "abcd"}
    assert before == {"a": [2], "b": [1], "c": [2], "d": [1]}
    node.kill()
    node = start_node(gpu_environment=TWO_GPUS, keep_state=True)
    assert {name: of(node, name)["share"]["seats"] for name in "abcd"} == before
    for name in "abcd":
        eventually(lambda: len(seated(node, name)) == 1)  # noqa: B023


def test_with_other_gpus_and_one_less_a_function_is_best_effort_and_says_so(start_node):
    node = start_node(gpu_environment=TWO_GPUS)
    node.deploy("f", MISBEHAVE, Tags={"gpu:quota-request": "60", "gpu:replicas": "2"})
    node.stop()
    shutil.rmtree(node.home / "gpu")  # the machine has one GPU now, and another one
    node = start_node(keep_state=True)
    share = of(node, "f")["share"]
    assert share["seats"] == [] and "no GPU has room for number 2" in share["lacking"]
    assert "f lacks seats" in cli(node, "status").stdout
    assert node.invoke("f", json.dumps({"do": "attributes"}))[0] == 200


def test_an_instance_that_crashes_is_started_again(start_node):
    node = start_node()
    node.deploy("f", MISBEHAVE, Tags={"gpu:quota-request": "34"})
    eventually(lambda: len(seated(node, "f")) == 1)
    first = seated(node, "f")[0]["id"]
    node.invoke("f", json.dumps({"do": "crash"}))
    eventually(lambda: seated(node, "f") and seated(node, "f")[0]["id"] > first)


def test_sessions_of_kernel_tasks_have_seats_too(start_node):
    node = start_node()
    node.deploy("add", VECTOR_ADD, Tags={"gpu:replicas": "1"})
    eventually(lambda: any(i["function"] == "add" and i["state"] == "idle" for i in node.status()["instances"]))
    inputs = json.dumps({"inputs": {"a": [1, 2, 3], "b": [4, 5, 6]}})
    assert node.invoke("add", inputs)[0] == 200
    with pytest.raises(NodeFailed, match="--sharing mps or --task-isolation fence"):
        node.deploy("narrow", VECTOR_ADD, Tags={"gpu:compute-percent": "24"})


@pytest.mark.parametrize("options", [("--sharing", "mps"), ("--task-isolation", "fence")], ids=["mps", "fence"])
def test_kernel_tasks_of_a_width_share_the_same_time(start_node, tmp_path, options):
    """Eight blocks are 10 % of the software GPU's SMs."""
    node = start_node(*options, gpu_environment={"SOFTGPU_MODE": "charge"})
    tags = {"gpu:compute-percent": "10", "gpu:quota-request": "90"}
    for name in ("one", "two", "three"):
        node.deploy(name, shares_cut.task(tmp_path / name, 0.1, 2, 8), Tags=tags)
        eventually(lambda name=name: len(seated(node, name)) == 1)
        assert node.invoke(name, "{}")[0] == 200
    said = refusal(node, "wide", **{"gpu:quota-request": "90"})
    assert "180.0 %" in said, "as wide as the device it has to follow them"
    node.deploy("wider", shares_cut.task(tmp_path / "wider", 0.1, 1, 9), Tags=tags | {"gpu:quota-request": "5"})
    status, _, body = node.call("POST", "/2015-03-31/functions/wider/versions", "{}")
    assert status == 201, body
    if "fence" in options:  # one server, which keeps them to 8 SMs, of a version too
        for name in ("wider", "wider:1"):
            assert "phases_us" in json.loads(node.invoke(name, "{}")[2])
        return
    body = node.invoke("wider", "{}")[2].decode()
    assert "gpu:compute-percent is 10, and its kernels may be on 12 % of the SMs at once: say 12 or more" in body
    body = node.invoke("wider:1", "{}")[2].decode()
    assert "gpu:compute-percent is 10, and its kernels may be on 12 %" in body, "a version is held to what it is charged"


def test_kernels_that_fill_the_device_are_kept_to_the_sms_that_their_author_says(start_node, tmp_path):
    node = start_node("--task-isolation", "fence", gpu_environment={"SOFTGPU_MODE": "charge"})

    def deploy(name, **tags):
        node.deploy(name, shares_cut.task(tmp_path / name, 0.2, 10, 800), Tags=tags)

    def run_us(name):
        """Of ten kernels: where nobody is kept to SMs they are a graph."""
        return json.loads(node.invoke(name, "{}")[2])["phases_us"]["kernel_run"]
    # Time that the device models is never less, and more on a busy machine.
    deploy("whole")
    eventually(lambda: run_us("whole") < 4_000)  # 2 ms on all SMs
    deploy("quarter", **{"gpu:compute-percent": "25"})
    assert min(run_us("quarter") for _ in range(5)) > 7_600, "four times as long on a quarter of the SMs"
    deploy("tenth", **{"gpu:compute-percent": "10"})
    assert min(run_us("tenth") for _ in range(5)) > 19_000
    node.deploy("speck", shares_cut.task(tmp_path / "speck", 0.1, 1, 800), Tags={"gpu:compute-percent": "1"})
    assert "may be on 3 % of the SMs at once: say 3 or more" in node.invoke("speck", "{}")[2].decode(), "two SMs are the least"


def test_long_kernels_that_are_kept_to_sms_go_on_in_pieces(start_node, tmp_path):
    """Beside somebody who is promised time, of whom none waits for a whole call of 80 ms."""
    node = start_node("--task-isolation", "fence", gpu_environment={"SOFTGPU_MODE": "charge"})
    node.deploy("reserved", shares_cut.task(tmp_path / "reserved", 1, 5, 2560), Timeout=60, Tags={"gpu:quota-request": "20"})
    node.deploy("long", shares_cut.task(tmp_path / "long", 20, 1, 256_000), Timeout=60,
                Tags={"gpu:compute-percent": "25", "gpu:quota-request": "40", "gpu:replicas": "1"})
    for _ in range(4):  # from the second or third on it is cut
        assert json.loads(node.invoke("long", "{}")[2])["phases_us"]["kernel_run"] > 60_000

    def has_a_short_place():
        told = json.loads(cli(node, "--json", "frames").stdout)[0]
        ids = {one["id"] for one in told["instances"] if one["function"] == "long"}
        return any(place["begin_us_ago"] - place["end_us_ago"] < 40_000 for place in told["places"] if place["id"] in ids)
    with shares_cut.Load(node, ["long", "reserved"]) as load:  # which is as wide as the device: they take turns
        eventually(lambda: min(load.calls.values()) >= 5, 60)
        eventually(has_a_short_place, 60)  # whole, a call of 80 ms has one place
    assert not load.failed


def test_narrow_instances_share_the_same_time_under_mps(start_node):
    node = start_node("--sharing", "mps")
    node.deploy("narrow", MISBEHAVE,
                Tags={"gpu:compute-percent": "24", "gpu:quota-request": "90", "gpu:replicas": "4", "gpu:memory-mib": "512"})
    eventually(lambda: len(seated(node, "narrow")) == 4)
    assert json.loads(node.invoke("narrow", json.dumps({"do": "attributes"}))[2]) == {"sms": 20, "mps": 1}
    said = refusal(node, "more", **{"gpu:quota-request": "90"})
    assert "180.0 %" in said, "as wide as the device it has to follow them"
    node.deploy("beside", MISBEHAVE, Tags={"gpu:compute-percent": "4", "gpu:quota-request": "90"})
