"""Instances that are kept, for a time or for good, and instances that go now: the command line, boto3, and what is left after a restart."""

import json
import os
import re
import subprocess
import threading

import boto3
import botocore.config
import pytest
from conftest import BUILD, MISBEHAVE, ROOT, Gate, eventually

PAGE = ROOT / "docs/how-to/warm.md"


def cli(node, *arguments):
    return subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, *arguments], text=True, capture_output=True, timeout=60)


def instances(node, name, state="idle"):
    """With how each is held."""
    holds = {hold["id"]: hold for hold in json.loads(node.call("GET", "/fairlead/v1/warmth")[2])["instances"]}
    return [{**i, **holds.get(i["id"], {})} for i in node.status()["instances"] if i["function"] == name and i["state"] == state]


def tags(node, name):
    return json.loads(node.call("GET", f"/2015-03-31/functions/{name}")[2]).get("Tags", {})


def start_of(node, name):
    return node.invoke(name)[1]["X-Gpu-Start"]


@pytest.fixture
def node(start_node):
    node = start_node()
    node.deploy("hello", MISBEHAVE)
    return node


def test_the_page_s_commands_do_what_they_say(node):
    block = next(text for kind, text in re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL) if kind == "sh")
    environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "FAIRLEAD_ENDPOINT": node.endpoint}

    def run(line):
        return subprocess.run(["bash", "-c", line], env=environment, text=True, capture_output=True, timeout=60)

    warm, two, describe, none, unload = (line.split("  #")[0].split(" #")[0] for line in block.splitlines())
    assert "of 1 kept instances is ready" in run(warm).stdout
    eventually(lambda: len(instances(node, "hello")) == 1)
    assert start_of(node, "hello") == "device-warm", "before anybody called"
    assert "of 2 kept instances are ready" in run(two).stdout
    eventually(lambda: len(instances(node, "hello")) == 2)
    text = run(describe).stdout
    assert re.search(r"Kept started +2\b", text) and text.count(", kept") == 2 and " on GPU 1: idle" in text, text
    refused = run(unload)
    assert refused.returncode != 0 and "--instances 0" in refused.stderr
    assert "no instance is kept" in run(none).stdout and run(none).returncode == 0
    assert "gpu:replicas" not in tags(node, "hello")
    node.invoke("hello")
    assert "idle instances ended" in run(unload).stdout
    eventually(lambda: instances(node, "hello") == [])
    assert start_of(node, "hello") == "cold"


def test_what_runs_when_it_is_unloaded_runs_to_its_end(node):
    with Gate(node) as gate:
        answers = []
        call = threading.Thread(target=lambda: answers.append(node.invoke("hello", gate.payload)))
        call.start()
        eventually(lambda: instances(node, "hello", "busy"))
        assert cli(node, "unload", "hello").returncode == 0
        assert instances(node, "hello", "busy")
    call.join()
    assert answers[0][0] == 200 and "X-Amz-Function-Error" not in answers[0][1]
    eventually(lambda: not [i for i in node.status()["instances"] if i["function"] == "hello"])


def test_what_is_kept_is_kept_over_a_restart(node, start_node):
    assert cli(node, "warm", "hello").returncode == 0
    node.kill()
    again = start_node(keep_state=True)
    eventually(lambda: len(instances(again, "hello")) == 1)
    assert start_of(again, "hello") == "device-warm"


def test_boto3_provisions_concurrency_unchanged(node):
    client = boto3.client("lambda", endpoint_url=node.endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y",
                          config=botocore.config.Config(retries={"max_attempts": 1}))
    which = {"FunctionName": "hello", "Qualifier": "$LATEST"}
    with pytest.raises(client.exceptions.ProvisionedConcurrencyConfigNotFoundException):
        client.get_provisioned_concurrency_config(**which)
    put = client.put_provisioned_concurrency_config(**which, ProvisionedConcurrentExecutions=2)
    assert put["RequestedProvisionedConcurrentExecutions"] == 2 and put["Status"] in ("IN_PROGRESS", "READY")
    ready = eventually(lambda: (lambda got: got if got["Status"] == "READY" else None)(client.get_provisioned_concurrency_config(**which)))
    assert ready["AvailableProvisionedConcurrentExecutions"] == ready["AllocatedProvisionedConcurrentExecutions"] == 2
    listed = client.list_provisioned_concurrency_configs(FunctionName="hello")["ProvisionedConcurrencyConfigs"]
    assert [one["FunctionArn"] for one in listed] == ["arn:aws:lambda:us-east-1:000000000000:function:hello:$LATEST"]
    client.delete_provisioned_concurrency_config(**which)
    with pytest.raises(client.exceptions.ProvisionedConcurrencyConfigNotFoundException):
        client.get_provisioned_concurrency_config(**which)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.put_provisioned_concurrency_config(FunctionName="absent", Qualifier="$LATEST", ProvisionedConcurrentExecutions=1)
    with pytest.raises(client.exceptions.InvalidParameterValueException, match="lacking|most|room|instances"):
        client.put_provisioned_concurrency_config(**which, ProvisionedConcurrentExecutions=1000)
    assert "gpu:replicas" not in tags(node, "hello"), "nothing was changed"


def test_boto3_provisions_concurrency_of_an_alias_that_moves_and_over_a_restart(node, start_node):
    """What AWS SAM's AutoPublishAlias with ProvisionedConcurrencyConfig, or Terraform, asks for."""
    def client_of(which):
        return boto3.client("lambda", endpoint_url=which.endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")

    def is_ready(client):
        return client.get_provisioned_concurrency_config(FunctionName="hello", Qualifier="live")["Status"] == "READY"

    def answered_warm(client, version):
        answer = client.invoke(FunctionName="hello", Qualifier="live", Payload=b'{"do": "echo"}')
        assert answer["ExecutedVersion"] == version
        assert answer["ResponseMetadata"]["HTTPHeaders"]["x-gpu-start"] == "device-warm", "its first call since it started"

    client = client_of(node)
    assert client.publish_version(FunctionName="hello")["Version"] == "1"
    client.create_alias(FunctionName="hello", Name="live", FunctionVersion="1")
    client.put_provisioned_concurrency_config(FunctionName="hello", Qualifier="live", ProvisionedConcurrentExecutions=2)
    eventually(lambda: is_ready(client))
    answered_warm(client, "1")

    client.update_function_configuration(FunctionName="hello", Environment={"Variables": {"MODE": "new"}})
    assert client.publish_version(FunctionName="hello")["Version"] == "2"
    client.update_alias(FunctionName="hello", Name="live", FunctionVersion="2")
    eventually(lambda: is_ready(client))
    answered_warm(client, "2")

    node.kill()
    again = start_node(keep_state=True)
    client = client_of(again)
    eventually(lambda: is_ready(client))
    answered_warm(client, "2")
    kept = cli(again, "unload", "hello")
    assert kept.returncode != 0 and "hello:live" in kept.stderr, kept.stderr
    client.delete_alias(FunctionName="hello", Name="live")
    assert "gpu:provisioned" not in tags(again, "hello")
    assert client.list_provisioned_concurrency_configs(FunctionName="hello")["ProvisionedConcurrencyConfigs"] == []


def test_what_does_not_start_says_why_and_is_ready_once_it_does(node):
    client = boto3.client("lambda", endpoint_url=node.endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
    which = {"FunctionName": "broken", "Qualifier": "$LATEST"}
    node.deploy("broken", MISBEHAVE, Environment={"Variables": {"AT_START": "init-error"}}, Tags={"gpu:replicas": "1"})

    def status(wanted):
        got = client.get_provisioned_concurrency_config(**which)
        return got if got["Status"] == wanted else None

    failed = eventually(lambda: status("FAILED"))
    assert failed["StatusReason"] == "FUNCTION_ERROR_INIT_FAILURE: the last instance did not get ready: no model"
    assert "broken does not start: no model" in cli(node, "status").stdout
    client.update_function_configuration(FunctionName="broken", Environment={"Variables": {}})
    assert "StatusReason" not in eventually(lambda: status("READY"))
    assert "does not start" not in cli(node, "status").stdout


def test_the_command_line_keeps_a_version(node):
    assert cli(node, "version", "publish", "hello").returncode == 0
    assert "hello:1: " in cli(node, "warm", "hello", "--qualifier", "1").stdout
    eventually(lambda: len(instances(node, "hello:1")) == 1)
    assert instances(node, "hello") == []
    gone = cli(node, "warm", "hello", "--qualifier", "1", "--instances", "0")
    assert gone.returncode == 0 and "hello:1: no instance is kept started" in gone.stdout
    assert cli(node, "warm", "hello", "--qualifier", "1", "--instances", "0").returncode == 0
    for arguments, words in ((("--qualifier", "7"), ":7"), (("--qualifier", "1", "--pin", "host"), "of $LATEST")):
        refused = cli(node, "warm", "hello", *arguments)
        assert refused.returncode != 0 and words in refused.stderr, refused.stderr


def test_a_most_that_somebody_set_stays(node):
    assert cli(node, "deploy", "hello", MISBEHAVE, "--replicas", "0:3").returncode == 0
    assert cli(node, "warm", "hello", "--instances", "2").returncode == 0
    assert tags(node, "hello")["gpu:replicas"] == "2:3"
    assert cli(node, "warm", "hello", "--instances", "0").returncode == 0
    assert tags(node, "hello")["gpu:replicas"] == "0:3"


def test_what_cannot_be_is_refused(node):
    for arguments in (("warm", "hello", "--instances", "1001"), ("warm", "hello", "--instances", "-1")):
        assert cli(node, *arguments).returncode == 2, arguments
    for arguments in (("warm", "absent"), ("warm", "absent", "--instances", "0"), ("unload", "absent")):
        done = cli(node, *arguments)
        assert done.returncode == 3 and "absent" in done.stderr, done.stderr


def test_the_page_s_commands_of_holding_do_what_they_say(node):
    block = [text for kind, text in re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL) if kind == "sh"][1]
    keep, host, device, show, none = (line.split("  #")[0].split()[1:] for line in block.splitlines())
    assert "kept after a call: 10m" in cli(node, *keep).stdout
    assert not node.status()["instances"], "to be kept is no start"
    node.invoke("hello")
    before = eventually(lambda: instances(node, "hello"))[0]
    assert 500 < before["kept_seconds"] <= 600 and before["pinned"] == "host"
    assert "pinned: device" in cli(node, *device).stdout
    assert instances(node, "hello")[0]["pinned"] == "device"
    assert "pinned: host" in cli(node, *host).stdout
    table = cli(node, *show).stdout
    assert re.search(r"hello +default +\d+ +(host|GPU 1) .* \d+m \d\ds +host\n", table) and "1 instances hold" in table, table
    described = cli(node, "describe", "hello").stdout
    assert re.search(r"ends in \d+m \d\ds, pinned: host", described), described
    assert cli(node, *none).returncode == 0
    after = instances(node, "hello")[0]
    assert after["id"] == before["id"] and after["pinned"] == "none" and "kept_seconds" not in after, "no instance was touched"
    assert "gpu:keep" not in tags(node, "hello")
    shown = json.loads(cli(node, *show, "--json").stdout)
    assert shown["functions"][0]["function"] == "hello" and shown["functions"][0]["instances"][0]["pinned"] == "none"


def test_kept_for_no_time_an_instance_ends_with_its_call_and_for_a_second_after_that(node):
    for keep in ("0", "1s"):
        assert cli(node, "warm", "hello", "--keep", keep).returncode == 0
        assert start_of(node, "hello") == "cold"
        eventually(lambda: node.status()["instances"] == [])


def test_a_pin_starts_an_instance_now_and_when_the_node_is_started(node, start_node):
    assert cli(node, "warm", "hello", "--pin", "host").returncode == 0
    eventually(lambda: instances(node, "hello"))
    assert start_of(node, "hello") == "device-warm"
    node.kill()
    again = start_node(keep_state=True)
    eventually(lambda: [i for i in instances(again, "hello") if i["pinned"] == "host"])


def test_the_pinned_instance_is_killed_and_the_next_call_starts_one_that_is_held(node):
    cli(node, "warm", "hello", "--pin", "device")
    first = eventually(lambda: instances(node, "hello"))[0]
    assert node.invoke("hello", json.dumps({"do": "crash"}))[0] == 200
    eventually(lambda: first["id"] not in [i["id"] for i in node.status()["instances"]])
    node.invoke("hello")
    eventually(lambda: [i for i in instances(node, "hello") if i["pinned"] == "device" and i["id"] != first["id"]])


def test_a_pinned_function_is_changed_unloaded_and_deleted(node):
    cli(node, "warm", "hello", "--pin", "device")
    first = eventually(lambda: instances(node, "hello"))[0]
    refused = cli(node, "unload", "hello")
    assert refused.returncode != 0 and "--pin none" in refused.stderr
    assert cli(node, "deploy", "hello", MISBEHAVE, "--timeout", "7").returncode == 0
    eventually(lambda: [i for i in instances(node, "hello") if i["id"] != first["id"] and i["pinned"] == "device"])
    assert cli(node, "remove", "hello").returncode == 0
    eventually(lambda: node.status()["instances"] == [])


def test_pins_of_all_are_bounded_and_the_bound_is_named(start_node):
    node = start_node("--pin-memory", "10", "--pin-quota", "50")
    for name in ("a", "b", "c"):
        node.deploy(name, MISBEHAVE)
    memory = node.status()["gpus"][0]["memory_total_bytes"] >> 20
    most = memory // 10
    assert cli(node, "deploy", "a", MISBEHAVE, "--tag", f"gpu:memory-mib={most + 1}").returncode == 0
    refused = cli(node, "warm", "a", "--pin", "device")
    assert refused.returncode == 2 and f"gpu:pin is device with gpu:memory-mib {most + 1}" in refused.stderr and f"may take {most} MiB" in refused.stderr
    for name in ("a", "b"):
        assert cli(node, "deploy", name, MISBEHAVE, "--tag", f"gpu:memory-mib={most * 6 // 10}").returncode == 0
    assert cli(node, "warm", "a", "--pin", "device").returncode == 0
    refused = cli(node, "warm", "b", "--pin", "device")
    assert refused.returncode == 2 and "all that is pinned on the GPUs may take" in refused.stderr
    assert "gpu:pin" not in tags(node, "b"), "nothing was changed"
    assert cli(node, "remove", "a").returncode == 0
    assert cli(node, "warm", "b", "--pin", "device").returncode == 0


@pytest.mark.parametrize("arguments, words", [
    (("hello", "--keep", "36500d"), "--keep is '36500d'; it must be a time from 0 to 365d"),
    (("hello", "--keep", "soon"), "--keep is 'soon'"),
    (("hello", "--pin", "gpu"), "device,host,none"),
    (("--pin", "device"), "fairlead warm NAME"),
    (("absent", "--pin", "host"), "not found"),
])
def test_what_cannot_be_held_is_refused(node, arguments, words):
    refused = cli(node, "warm", *arguments)
    assert refused.returncode in (2, 3) and words in refused.stderr, refused.stderr
