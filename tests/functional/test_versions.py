"""Versions and aliases as AWS's SDK asks for them: what is published stays, aliases lead and divide, events keep what they were accepted for,
and a function is one in queue, limit and share however many versions of it are called."""

import collections
import io
import json
import subprocess
import threading
import zipfile

import pytest

boto3 = pytest.importorskip("boto3", reason="boto3 is not installed (PyPI out of reach)")
from botocore import UNSIGNED  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

from conftest import BUILD, ROOT, eventually  # noqa: E402

RUNTIME = ROOT / "functions/runtime/python/fairlead_runtime.py"
PROGRAM = '''#!/usr/bin/python3
import os, pathlib, sys, time
sys.path.insert(0, "/var/task")
import fairlead_runtime

def handler(event):
    asked = event.json() or {}
    if "gate" in asked:
        while not pathlib.Path(os.environ["SOFTGPU_HOME"], asked["gate"]).exists():
            time.sleep(0.005)  # sleep: between two looks
    if asked.get("fail"):
        raise ValueError("as asked")
    if asked.get("mark"):
        with open(pathlib.Path(os.environ["SOFTGPU_HOME"], asked["mark"]), "a") as mark:
            mark.write("CODE ")
    return {"code": "CODE", "mode": os.environ.get("MODE"), "version": os.environ["AWS_LAMBDA_FUNCTION_VERSION"],
            "name": os.environ["AWS_LAMBDA_FUNCTION_NAME"], "arn": event.headers["lambda-runtime-invoked-function-arn"]}

fairlead_runtime.run(handler)
'''


def package(code):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in (("bootstrap", PROGRAM.replace("CODE", code)), ("fairlead_runtime.py", RUNTIME.read_text())):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)
    return buffer.getvalue()


def client_of(node):
    return boto3.client("lambda", endpoint_url=node.endpoint, region_name="us-east-1",
                        config=Config(signature_version=UNSIGNED, retries={"max_attempts": 0}, read_timeout=120))


@pytest.fixture(scope="module")
def client(shared_node):
    (shared_node.home / "gpu").mkdir(exist_ok=True)
    (shared_node.home / "gpu").chmod(0o777)  # functions are other users, and leave marks there
    return client_of(shared_node)


def create(client, name, code="one", **fields):
    return client.create_function(FunctionName=name, Role="", Runtime="provided.al2023", Handler="bootstrap", Code={"ZipFile": package(code)},
                                  **{"Timeout": 60, **fields})


@pytest.fixture
def f(client, request):
    """A function of this test's own: its name. Version 1 is code "one", version 2 code "two", $LATEST code "three"."""
    name = request.node.name[:60].replace("[", "-").replace("]", "-")
    create(client, name, "one", Environment={"Variables": {"MODE": "m1"}})
    client.publish_version(FunctionName=name)
    client.update_function_code(FunctionName=name, ZipFile=package("two"))
    client.update_function_configuration(FunctionName=name, Environment={"Variables": {"MODE": "m2"}}, Timeout=59)
    client.publish_version(FunctionName=name, Description="the second")
    client.update_function_code(FunctionName=name, ZipFile=package("three"))
    yield name
    client.delete_function(FunctionName=name)


def call(client, name, payload=None, **fields):
    answer = client.invoke(FunctionName=name, Payload=json.dumps(payload or {}), **fields)
    return answer["ExecutedVersion"], json.loads(answer["Payload"].read())


def refused(call_, **fields):
    with pytest.raises(ClientError) as raised:
        call_(**fields)
    return raised.value.response["Error"]["Code"], raised.value.response["Error"]["Message"]


def test_what_was_published_stays_what_it_was(client, f):
    for qualifier, code, mode in (("1", "one", "m1"), ("2", "two", "m2"), ("$LATEST", "three", "m2")):
        executed, said = call(client, f, Qualifier=qualifier)
        arn = f"arn:aws:lambda:us-east-1:000000000000:function:{f}" + ("" if qualifier == "$LATEST" else f":{qualifier}")
        assert executed == qualifier
        assert said == {"code": code, "mode": mode, "version": qualifier, "name": f, "arn": arn}
    assert call(client, f"{f}:2")[0] == "2"
    assert call(client, f"arn:aws:lambda:us-east-1:000000000000:function:{f}:1")[0] == "1"


def test_get_and_list_say_what_each_is(client, f):
    got = client.get_function(FunctionName=f, Qualifier="1")["Configuration"]
    assert (got["Version"], got["Timeout"], got["FunctionArn"].rsplit(":", 1)[1]) == ("1", 60, "1")
    got = client.get_function_configuration(FunctionName=f, Qualifier="2")
    assert (got["Version"], got["Timeout"], got["Description"]) == ("2", 59, "the second")
    client.create_alias(FunctionName=f, Name="live", FunctionVersion="2")
    got = client.get_function_configuration(FunctionName=f, Qualifier="live")
    assert got["Version"] == "2" and got["FunctionArn"].endswith(f"{f}:live")
    assert client.get_function(FunctionName=f)["Configuration"]["Version"] == "$LATEST"
    pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=f, PaginationConfig={"PageSize": 1})
    versions = [version for page in pages for version in page["Versions"]]
    assert [version["Version"] for version in versions] == ["$LATEST", "1", "2"]
    assert len({version["CodeSha256"] for version in versions}) == 3
    assert [entry["Version"] for entry in client.list_functions()["Functions"] if entry["FunctionName"] == f] == ["$LATEST"]


def test_nothing_new_is_no_new_version(client, f):
    third = client.publish_version(FunctionName=f)
    assert third["Version"] == "3" and client.publish_version(FunctionName=f, Description="again")["Version"] == "3"
    assert refused(client.publish_version, FunctionName=f, CodeSha256="other")[0] == "InvalidParameterValueException"
    assert refused(client.publish_version, FunctionName=f, RevisionId="old")[0] == "PreconditionFailedException"
    assert refused(client.publish_version, FunctionName="nobody")[0] == "ResourceNotFoundException"
    latest = client.get_function_configuration(FunctionName=f)
    assert client.publish_version(FunctionName=f, CodeSha256=latest["CodeSha256"], RevisionId=latest["RevisionId"])["Version"] == "3"


def test_publish_comes_with_code_too(client):
    assert create(client, "published-at-once", Publish=True)["Version"] == "1"
    try:
        answer = client.update_function_code(FunctionName="published-at-once", ZipFile=package("two"), Publish=True)
        assert answer["Version"] == "2" and call(client, "published-at-once:2")[1]["code"] == "two"
    finally:
        client.delete_function(FunctionName="published-at-once")


def test_aliases_are_made_changed_listed_and_deleted(client, f):
    made = client.create_alias(FunctionName=f, Name="live", FunctionVersion="1", Description="for all")
    assert made["AliasArn"].endswith(f":{f}:live") and "RoutingConfig" not in made
    assert refused(client.create_alias, FunctionName=f, Name="live", FunctionVersion="1")[0] == "ResourceConflictException"
    assert call(client, f, Qualifier="live")[0] == "1"
    changed = client.update_alias(FunctionName=f, Name="live", FunctionVersion="2", RevisionId=made["RevisionId"])
    assert changed["Description"] == "for all" and changed["RevisionId"] != made["RevisionId"]
    assert refused(client.update_alias, FunctionName=f, Name="live", FunctionVersion="1", RevisionId=made["RevisionId"])[0] == \
        "PreconditionFailedException"
    assert call(client, f"{f}:live")[0] == "2"
    client.create_alias(FunctionName=f, Name="next", FunctionVersion="$LATEST")
    assert call(client, f, Qualifier="next")[0] == "$LATEST"
    pages = client.get_paginator("list_aliases").paginate(FunctionName=f, PaginationConfig={"PageSize": 1})
    assert [alias["Name"] for page in pages for alias in page["Aliases"]] == ["live", "next"]
    assert [alias["Name"] for alias in client.list_aliases(FunctionName=f, FunctionVersion="2")["Aliases"]] == ["live"]
    assert client.get_alias(FunctionName=f, Name="live")["FunctionVersion"] == "2"
    client.delete_alias(FunctionName=f, Name="live")
    client.delete_alias(FunctionName=f, Name="live")  # as AWS does: gone is gone
    assert refused(client.get_alias, FunctionName=f, Name="live")[0] == "ResourceNotFoundException"
    assert refused(client.invoke, FunctionName=f, Qualifier="live")[0] == "ResourceNotFoundException"


def test_weights_divide_the_calls(client, f):
    client.create_alias(FunctionName=f, Name="live", FunctionVersion="1", RoutingConfig={"AdditionalVersionWeights": {"2": 0.25}})
    counts = collections.Counter(call(client, f, Qualifier="live")[0] for _ in range(200))
    assert set(counts) == {"1", "2"} and 20 <= counts["2"] <= 85, counts
    client.update_alias(FunctionName=f, Name="live", RoutingConfig={"AdditionalVersionWeights": {}})
    assert {call(client, f, Qualifier="live")[0] for _ in range(20)} == {"1"}
    client.update_alias(FunctionName=f, Name="live", RoutingConfig={"AdditionalVersionWeights": {"2": 1.0}})
    assert {call(client, f, Qualifier="live")[0] for _ in range(20)} == {"2"}


@pytest.mark.parametrize("weights", [{"2": 0}, {"1": 0.5}, {"9": 0.5}])
def test_weights_that_are_none_are_refused(client, f, weights):
    code, message = refused(client.create_alias, FunctionName=f, Name="live", FunctionVersion="1",
                            RoutingConfig={"AdditionalVersionWeights": weights})
    assert code == ("ResourceNotFoundException" if "9" in weights else "InvalidParameterValueException"), message
    assert client.list_aliases(FunctionName=f)["Aliases"] == []


@pytest.mark.parametrize("weights", [{"2": 1.5}, {"2": -0.1}, {"2": 1e300}, {"2": "1"}, {"$LATEST": 0.5}, {"x": 0.5}, {"02": 0.5}, {"": 0.5}, [], "2"])
def test_weights_that_no_sdk_sends_are_refused(f, shared_node, weights):
    body = json.dumps({"Name": "live", "FunctionVersion": "1", "RoutingConfig": {"AdditionalVersionWeights": weights}})
    status, _, said = shared_node.call("POST", f"/2015-03-31/functions/{f}/aliases", body)
    assert status == 400 and b"AdditionalVersionWeights" in said, said


def test_names_that_are_none_are_refused(client, f):
    for name in ("1", "007", "a b", "a/b", "ä", "$LATEST", "a" * 129, "a:b", "..", "%2e", "a\nb"):
        assert refused(client.create_alias, FunctionName=f, Name=name, FunctionVersion="1")[0] == "InvalidParameterValueException", name
    for qualifier in ("0", "01", "-1", "a b", "../1", "9" * 40, "a" * 200):
        assert refused(client.invoke, FunctionName=f, Qualifier=qualifier)[0] in ("InvalidParameterValueException", "ResourceNotFoundException")
    assert refused(client.invoke, FunctionName=f, Qualifier="18446744073709551616")[0] == "InvalidParameterValueException"
    assert refused(client.invoke, FunctionName=f"{f}:1", Qualifier="2")[0] == "InvalidParameterValueException"
    client.create_alias(FunctionName=f, Name="a" * 128, FunctionVersion="1")
    assert call(client, f, Qualifier="a" * 128)[0] == "1"


def test_what_is_of_functions_is_refused_for_versions(client, f):
    for refuse in (lambda name: refused(client.update_function_configuration, FunctionName=name, Timeout=3),
                   lambda name: refused(client.update_function_code, FunctionName=name, ZipFile=package("x")),
                   lambda name: refused(client.put_function_concurrency, FunctionName=name, ReservedConcurrentExecutions=1)):
        code, message = refuse(f"{f}:1")
        assert code == "InvalidParameterValueException" and "leave the qualifier out" in message
    assert call(client, f"{f}:1")[1]["code"] == "one"


def test_versions_are_deleted_where_no_alias_needs_them(client, f):
    client.create_alias(FunctionName=f, Name="live", FunctionVersion="1", RoutingConfig={"AdditionalVersionWeights": {"2": 0.5}})
    for version in ("1", "2"):
        code, message = refused(client.delete_function, FunctionName=f, Qualifier=version)
        assert code == "ResourceConflictException" and "live" in message
    assert refused(client.delete_function, FunctionName=f, Qualifier="$LATEST")[0] == "InvalidParameterValueException"
    assert refused(client.delete_function, FunctionName=f, Qualifier="live")[0] == "InvalidParameterValueException"
    assert refused(client.delete_function, FunctionName=f, Qualifier="7")[0] == "ResourceNotFoundException"
    client.update_alias(FunctionName=f, Name="live", RoutingConfig={"AdditionalVersionWeights": {}})
    client.delete_function(FunctionName=f, Qualifier="2")
    assert refused(client.invoke, FunctionName=f, Qualifier="2")[0] == "ResourceNotFoundException"
    assert client.publish_version(FunctionName=f)["Version"] == "3", "a number is given once"


def test_a_version_that_is_deleted_while_it_runs_is_answered(client, f, shared_node):
    said = {}
    gate = shared_node.home / "gpu/deleted-while"
    thread = threading.Thread(target=lambda: said.update(call(client, f"{f}:1", {"gate": gate.name})[1]))
    thread.start()
    eventually(lambda: any(function["name"] == f"{f}:1" and function["in_flight"] for function in shared_node.status()["functions"]))
    client_of(shared_node).delete_function(FunctionName=f, Qualifier="1")
    gate.touch()
    thread.join()
    assert said["code"] == "one"
    assert call(client, f)[1]["code"] == "three"
    eventually(lambda: all(function["name"] != f"{f}:1" for function in shared_node.status()["functions"]))


def test_events_keep_the_version_they_were_accepted_for(client, f, shared_node):
    client.create_alias(FunctionName=f, Name="live", FunctionVersion="1")
    client.put_function_concurrency(FunctionName=f, ReservedConcurrentExecutions=0)
    mark = shared_node.home / "gpu/events-keep"
    for _ in range(3):
        client.invoke(FunctionName=f, Qualifier="live", InvocationType="Event", Payload=json.dumps({"mark": mark.name}))
    client.update_alias(FunctionName=f, Name="live", FunctionVersion="2")
    client.delete_function_concurrency(FunctionName=f)
    eventually(lambda: mark.exists() and mark.read_text().count("one") == 3)
    assert mark.read_text().split() == ["one"] * 3


def test_an_event_of_a_version_that_goes_is_a_dead_letter(client, f, shared_node):
    client.put_function_concurrency(FunctionName=f, ReservedConcurrentExecutions=0)
    client.invoke(FunctionName=f, Qualifier="1", InvocationType="Event", Payload="{}")
    client.delete_function(FunctionName=f, Qualifier="1")
    client.delete_function_concurrency(FunctionName=f)

    def letters():
        return json.loads(shared_node.call("GET", f"/fairlead/v1/dead-letters?function={f}")[2])["dead_letters"]

    (letter,) = eventually(letters)
    assert "version 1 of the function was deleted" in letter["error_message"] and letter["version"] == "1"


def test_all_versions_have_one_reserved_concurrency(client, f, shared_node):
    client.put_function_concurrency(FunctionName=f, ReservedConcurrentExecutions=1)
    gate = shared_node.home / "gpu/reserved"
    done = []
    threads = [threading.Thread(target=lambda name=name: done.append(call(client_of(shared_node), name, {"gate": gate.name})[0]))
               for name in (f, f"{f}:1", f"{f}:2")]
    for thread in threads:
        thread.start()

    def flows():
        return [function for function in shared_node.status()["functions"] if function["name"].split(":")[0] == f]

    eventually(lambda: sum(flow["in_flight"] for flow in flows()) == 1 and sum(flow["queued"] for flow in flows()) == 2)
    assert done == []
    gate.touch()
    for thread in threads:
        thread.join()
    assert sorted(done) == ["$LATEST", "1", "2"]
    client.put_function_concurrency(FunctionName=f, ReservedConcurrentExecutions=0)
    assert refused(client.invoke, FunctionName=f, Qualifier="1")[0] == "TooManyRequestsException"


def test_a_dry_run_and_a_stream_of_a_version(client, f):
    assert client.invoke(FunctionName=f, Qualifier="2", InvocationType="DryRun")["StatusCode"] == 204
    assert refused(client.invoke, FunctionName=f, Qualifier="7", InvocationType="DryRun")[0] == "ResourceNotFoundException"
    answer = client.invoke_with_response_stream(FunctionName=f, Qualifier="2", Payload="{}")
    assert answer["ExecutedVersion"] == "2"
    assert b'"two"' in b"".join(event["PayloadChunk"]["Payload"] for event in answer["EventStream"] if "PayloadChunk" in event)


def test_there_are_so_many_and_no_more(client):
    create(client, "many")
    try:
        for number in range(100):
            client.update_function_configuration(FunctionName="many", Description=str(number), Timeout=1 + number % 900)
            assert client.publish_version(FunctionName="many")["Version"] == str(number + 1)
            client.create_alias(FunctionName="many", Name=f"a{number}", FunctionVersion="1")
        client.update_function_configuration(FunctionName="many", Timeout=500)
        code, message = refused(client.publish_version, FunctionName="many")
        assert code == "InvalidParameterValueException" and "100" in message and "delete" in message
        code, message = refused(client.create_alias, FunctionName="many", Name="more", FunctionVersion="1")
        assert code == "InvalidParameterValueException" and "100" in message
    finally:
        client.delete_function(FunctionName="many")
    create(client, "many")
    assert client.list_aliases(FunctionName="many")["Aliases"] == [] and len(client.list_versions_by_function(FunctionName="many")["Versions"]) == 1
    assert client.publish_version(FunctionName="many")["Version"] == "1"
    client.delete_function(FunctionName="many")


def test_all_of_it_is_there_after_a_kill(start_node):
    node = start_node()
    client = client_of(node)
    create(client, "f", "one")
    client.publish_version(FunctionName="f")
    client.update_function_code(FunctionName="f", ZipFile=package("two"), Publish=True)
    client.update_function_code(FunctionName="f", ZipFile=package("three"))
    client.create_alias(FunctionName="f", Name="live", FunctionVersion="1", RoutingConfig={"AdditionalVersionWeights": {"2": 0.5}})
    client.put_function_concurrency(FunctionName="f", ReservedConcurrentExecutions=0)
    client.invoke(FunctionName="f", Qualifier="1", InvocationType="Event", Payload='{"mark": "after-a-kill"}')
    node.kill()
    again = start_node(keep_state=True)
    (again.home / "gpu").chmod(0o777)  # functions are other users, and leave marks there
    client = client_of(again)
    assert client.get_alias(FunctionName="f", Name="live")["RoutingConfig"] == {"AdditionalVersionWeights": {"2": 0.5}}
    client.delete_function_concurrency(FunctionName="f")
    mark = again.home / "gpu/after-a-kill"
    eventually(lambda: mark.exists() and mark.read_text().split() == ["one"])
    assert [call(client, f"f:{version}")[1]["code"] for version in (1, 2)] == ["one", "two"]
    client.delete_alias(FunctionName="f", Name="live")
    client.delete_function(FunctionName="f", Qualifier="2")
    again.kill()
    client = client_of(start_node(keep_state=True))
    assert [version["Version"] for version in client.list_versions_by_function(FunctionName="f")["Versions"]] == ["$LATEST", "1"]
    assert client.publish_version(FunctionName="f")["Version"] == "3", "a number is given once, over restarts too"


def test_a_tenant_sees_no_version_of_another(start_node):
    node = start_node("--tenant", "a:1", "--tenant", "b:1", is_open=False)

    def fairlead(*arguments):
        return subprocess.run([BUILD / "bin/fairlead", "--endpoint", f"unix:{node.state}/operator.sock", "--json", *arguments], check=True,
                              capture_output=True, text=True, timeout=120).stdout

    clients = {}
    for tenant in "ab":
        key = json.loads(fairlead("tenant", "add", tenant, "--role", "deployer"))
        clients[tenant] = boto3.client("lambda", endpoint_url=node.endpoint, region_name="us-east-1", aws_access_key_id=key["id"],
                                       aws_secret_access_key=key["secret"], config=Config(retries={"max_attempts": 0}))
    create(clients["a"], "f", Publish=True)
    clients["a"].create_alias(FunctionName="f", Name="live", FunctionVersion="1")
    b = clients["b"]
    for refuse in (lambda: refused(b.invoke, FunctionName="f", Qualifier="1"), lambda: refused(b.invoke, FunctionName="f:live"),
                   lambda: refused(b.publish_version, FunctionName="f"), lambda: refused(b.list_versions_by_function, FunctionName="f"),
                   lambda: refused(b.get_alias, FunctionName="f", Name="live"), lambda: refused(b.list_aliases, FunctionName="f"),
                   lambda: refused(b.create_alias, FunctionName="f", Name="x", FunctionVersion="1"),
                   lambda: refused(b.update_alias, FunctionName="f", Name="live", FunctionVersion="$LATEST"),
                   lambda: refused(b.delete_alias, FunctionName="f", Name="live"),
                   lambda: refused(b.delete_function, FunctionName="f", Qualifier="1"),
                   lambda: refused(b.get_function, FunctionName="f", Qualifier="1")):
        assert refuse()[0] == "ResourceNotFoundException"
    assert call(clients["a"], "f:live")[0] == "1"
    status = json.loads(fairlead("status"))
    assert {tenant["name"]: tenant["functions"] for tenant in status["tenants"]}["a"] == 1, "a version is no function more"


def test_the_command_line_publishes_leads_and_rolls_back(client, f, shared_node):
    def fairlead(*arguments, status=0):
        ran = subprocess.run([BUILD / "bin/fairlead", "--endpoint", shared_node.endpoint, *arguments], capture_output=True, text=True, timeout=120)
        assert ran.returncode == status, ran.stderr
        return ran.stdout + ran.stderr

    assert fairlead("version", "publish", f) == f"{f} has version 3\n"
    assert "live leads to version 3, and in part to 2: 10%" in fairlead("alias", "set", f, "live", "3", "--weight", "2=10")
    assert "live" in fairlead("version", "list", f)
    assert fairlead("invoke", f, "--qualifier", "3").count("three")
    assert "live leads to version 2 (it led to 3)" in fairlead("alias", "rollback", f, "live")
    assert json.loads(fairlead("--json", "alias", "list", f))[0]["FunctionVersion"] == "2"
    fairlead("alias", "rollback", f, "live")
    assert "none before it" in fairlead("alias", "rollback", f, "live", status=3)
    assert "VERSION=PERCENT" in fairlead("alias", "set", f, "live", "3", "--weight", "2:10", status=2)
    assert "is deleted" in fairlead("version", "delete", f, "3") and "is deleted" in fairlead("alias", "delete", f, "live")
