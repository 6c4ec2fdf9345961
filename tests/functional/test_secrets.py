"""Secrets of functions: given once, seen by the tenant's functions alone, shown and written down nowhere (docs/how-to/secrets.md)."""

import json
import os
import subprocess

import pytest

from conftest import BUILD, MISBEHAVE, PATIENCE_S

SECRET = "s3cret of acme"
REFERENCE = "{{resolve:secret:db}}"


@pytest.fixture
def node(start_node):
    return start_node(is_open=False)


def cli(node, *arguments, token=None, text=None, fails=False):
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("FAIRLEAD_", "AWS_"))}
    inherited |= {"HOME": str(node.home)} | ({"FAIRLEAD_TOKEN": token} if token else {})
    endpoint = node.endpoint if token else f"unix:{node.state}/operator.sock"
    done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", endpoint, *map(str, arguments)], capture_output=True, text=True,
                          timeout=PATIENCE_S, env=inherited, input=text)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr if fails else done.stdout


def new_token(node, tenant, role="deployer"):
    return json.loads(cli(node, "--json", "tenant", "add", tenant, "--role", role))["token"]


def deploy(node, name, token, reference=REFERENCE, fails=False):
    return cli(node, "deploy", name, MISBEHAVE, "--env", f"DB={reference}", token=token, fails=fails)


def environment_of(node, name, token):
    answer = json.loads(cli(node, "invoke", name, "-d", json.dumps({"do": "look"}), token=token))
    return answer["environment"]


def test_a_function_gets_the_secret_and_nobody_else_sees_it(node):
    token = new_token(node, "acme")
    cli(node, "secret", "set", "db", token=token, text=SECRET + "\n")
    deploy(node, "f", token)
    assert environment_of(node, "f", token)["DB"] == SECRET
    running = [path for path in node.state.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert running == [], "an instance runs"
    for shown in (cli(node, "--json", "describe", "f", token=token), cli(node, "secret", "list", token=token),
                  cli(node, "--json", "secret", "list"), cli(node, "--json", "status")):
        assert SECRET not in shown
    assert REFERENCE in cli(node, "--json", "describe", "f", token=token)
    node.stop()
    written = [path for path in node.state.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert written == [] and SECRET not in node.log_path.read_text()


def test_a_secret_is_a_file_of_the_instance_alone(node):
    token = new_token(node, "acme")
    cli(node, "secret", "set", "db", token=token, text=SECRET)
    cli(node, "secret", "set", "other", token=token, text="another\nof two lines")
    cli(node, "deploy", "f", MISBEHAVE, "--env", "DB={{resolve:secret-file:db}}", "--env", "AGAIN={{resolve:secret-file:db}}",
        "--env", "OTHER={{resolve:secret-file:other}}", token=token)
    cli(node, "deploy", "g", MISBEHAVE, token=token)
    seen = {name: json.loads(cli(node, "invoke", name, "-d", json.dumps({"do": "look"}), token=token)) for name in "fg"}
    assert seen["f"]["environment"]["DB"] == seen["f"]["environment"]["AGAIN"] == "/run/secrets/db"
    texts = {"db": SECRET, "other": "another\nof two lines"}
    assert seen["f"]["secrets"] == {"written": [], "texts": {f"{folder}/{name}": text for folder in (
        "/run/secrets", "/var/openfaas/secrets") for name, text in texts.items()}}
    assert seen["g"]["secrets"] == {"written": [], "texts": {}}, "another instance has none of it"
    assert SECRET not in json.dumps(seen["f"]["environment"])
    assert "{{resolve:secret-file:db}}" in cli(node, "--json", "describe", "f", token=token)
    written = [path for path in node.state.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert written == [], "an instance runs"
    cli(node, "secret", "remove", "db", token=token)
    refused = cli(node, "deploy", "h", MISBEHAVE, "--env", "DB={{resolve:secret-file:db}}", token=token, fails=True)
    assert "'DB'" in refused and "has no secret 'db'" in refused


def test_a_secret_is_its_tenants(node):
    acme, other = new_token(node, "acme"), new_token(node, "other")
    cli(node, "secret", "set", "db", token=acme, text=SECRET)
    assert "'DB'" in deploy(node, "thief", other, fails=True), "it refers to a secret that its tenant does not have"
    cli(node, "secret", "set", "db", token=other, text="mine")
    deploy(node, "thief", other)
    assert environment_of(node, "thief", other)["DB"] == "mine"
    assert "acme" not in cli(node, "--json", "secret", "list", token=other)
    cli(node, "secret", "remove", "db", "--tenant", "acme", token=other, fails=True)
    assert json.loads(cli(node, "--json", "secret", "list", token=acme))["secrets"][0]["bytes"] == len(SECRET)
    reader = new_token(node, "acme", "reader")
    cli(node, "secret", "set", "db", token=reader, text="x", fails=True)
    assert json.loads(cli(node, "--json", "secret", "list", token=reader))["secrets"][0]["name"] == "db"


def test_new_instances_see_a_changed_secret_and_one_that_is_gone_is_named(node):
    token = new_token(node, "acme")
    cli(node, "secret", "set", "db", token=token, text="before")
    deploy(node, "f", token)
    assert environment_of(node, "f", token)["DB"] == "before"
    cli(node, "secret", "set", "db", token=token, text="after")
    deploy(node, "g", token)
    assert environment_of(node, "g", token)["DB"] == "after"
    assert environment_of(node, "f", token)["DB"] == "before", "an instance that runs keeps what it was started with"
    cli(node, "secret", "remove", "db", token=token)
    inherited = json.loads(cli(node, "--json", "describe", "f", token=token))
    assert inherited, "the function is there still"
    document = {"Environment": {"Variables": {"DB": REFERENCE, "NEW": "1"}}}
    status, _, body = node.call("PUT", "/2015-03-31/functions/f/configuration", json.dumps(document),
                                {"Authorization": f"Bearer {token}"})
    assert status == 400 and b"'db'" in body


def test_a_start_without_its_secret_fails_with_its_name(node):
    token = new_token(node, "acme")
    cli(node, "secret", "set", "db", token=token, text="x")
    deploy(node, "f", token)
    cli(node, "secret", "remove", "db", token=token)
    assert "has no secret 'db'" in cli(node, "invoke", "f", "-d", json.dumps({"do": "look"}), token=token, fails=True)


def test_the_largest_secrets_reach_a_function(node):
    token = new_token(node, "acme")
    for name, letter in (("first", "a"), ("second", "b"), ("third", "c")):
        cli(node, "secret", "set", name, token=token, text=letter * 16_384)
    arguments = [f"--env={letter}={{{{resolve:secret:{name}}}}}" for name, letter in (("first", "A"), ("second", "B"))]
    cli(node, "deploy", "f", MISBEHAVE, *arguments, token=token)
    environment = environment_of(node, "f", token)
    assert environment["A"] == "a" * 16_384 and environment["B"] == "b" * 16_384
    refused = cli(node, "deploy", "g", MISBEHAVE, *arguments, "--env=C={{resolve:secret:third}}", token=token, fails=True)
    assert "'C'" in refused and "49152 bytes" in refused
    assert "16385 bytes" in cli(node, "secret", "set", "first", token=token, text="a" * 16_385, fails=True)


def test_the_key_may_lie_elsewhere(start_node, tmp_path):
    key = tmp_path / "key"
    key.write_text("ab" * 32 + "\n")
    node = start_node("--secret-key-command", f"cat {key}", is_open=False)
    cli(node, "secret", "set", "db", text=SECRET)
    assert not (node.state / "secret-key").exists()
    node.stop()
    refused = subprocess.run([BUILD / "bin/fairlead", "serve", "--softgpu", "--state", node.state, "--listen", "127.0.0.1:0"],
                             capture_output=True, text=True, timeout=PATIENCE_S)
    assert refused.returncode != 0 and "--secret-key" in refused.stderr
    absent = subprocess.run([BUILD / "bin/fairlead", "serve", "--softgpu", "--state", tmp_path / "new", "--listen", "127.0.0.1:0",
                             "--secret-key", tmp_path / "not mounted"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert absent.returncode != 0 and "not mounted" in absent.stderr
    assert not (tmp_path / "new/secret-key").exists()


def test_a_reference_that_is_none_is_refused(node):
    token = new_token(node, "acme")
    assert "'DB'" in deploy(node, "f", token, reference="{{resolve:ssm:db}}", fails=True)
