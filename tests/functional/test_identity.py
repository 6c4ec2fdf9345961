"""Who may use a node: keys, roles, tenants, the operator's socket, and a node that is open (docs/how-to/identity.md)."""

import http.client
import json
import os
import re
import shutil
import stat
import subprocess
import sys

import pytest

from conftest import BUILD, MISBEHAVE, PATIENCE_S, ROOT

boto3 = pytest.importorskip("boto3")
from botocore.config import Config  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

sys.path.insert(0, str(ROOT / "python"))
import fairlead  # noqa: E402

ECHO = json.dumps({"do": "echo", "x": 1})


@pytest.fixture
def node(start_node):
    return start_node(is_open=False)


def cli(node, *arguments, token=None, endpoint=None, status=0):
    """Standard output of `fairlead`, by the operator's socket unless told otherwise."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("FAIRLEAD_", "AWS_"))}
    environment |= {"HOME": str(node.home)} | ({"FAIRLEAD_TOKEN": token} if token else {})
    endpoint = endpoint or f"unix:{node.state}/operator.sock"
    done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", endpoint, *map(str, arguments)], capture_output=True, text=True,
                          timeout=PATIENCE_S, env=environment)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def new_key(node, tenant, *options):
    """{"id", "secret", "token", ...}"""
    return json.loads(cli(node, "--json", "tenant", "add", tenant, *options))


def call(node, method, path, token=None, body=None, **headers):
    """(status, body as JSON or text)"""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    status, _, data = node.call(method, path, body, headers)
    try:
        return status, json.loads(data)
    except ValueError:
        return status, data.decode()


def aws(node, key, **config):
    """boto3's client of the node with that key."""
    return boto3.client("lambda", endpoint_url=node.endpoint, region_name="anywhere", aws_access_key_id=key["id"],
                        aws_secret_access_key=key["secret"], config=Config(retries={"max_attempts": 0}, **config))


def deploy(node, name, token):
    cli(node, "deploy", name, MISBEHAVE, token=token, endpoint=node.endpoint)


def refusal(error):
    return error.value.response["Error"]["Code"], error.value.response["ResponseMetadata"]["HTTPStatusCode"]


def test_nobody_gets_in_without_a_key(node):
    assert call(node, "GET", "/healthz") == (200, "ok\n")
    for method, path in (("GET", "/2015-03-31/functions"), ("POST", "/2015-03-31/functions"), ("GET", "/fairlead/v1/status"),
                         ("GET", "/metrics"), ("POST", "/v1/ktasks"), ("PUT", "/v1/objects/x"), ("POST", "/v1/graphs"),
                         ("POST", "/fairlead/v1/keys"), ("POST", "/2015-03-31/functions/f/invocations")):
        status, body = call(node, method, path, X_Fairlead_Tenant="default")
        assert status == 401 and "fairlead tenant add" in body["Message"], path
    said = cli(node, "list", endpoint=node.endpoint, status=6)
    assert "fairlead tenant add" in said and "--endpoint unix:STATE/operator.sock" in said
    assert "STATE" not in cli(node, "list", endpoint=node.endpoint, token="FLKA.wrong", status=6), "who names a key is told of that key"


def test_who_started_the_node_has_a_key_and_a_socket(node):
    key_path = node.state / "operator-key"
    assert stat.S_IMODE(key_path.stat().st_mode) == 0o600
    key_id, secret = key_path.read_text().split()
    assert call(node, "GET", "/fairlead/v1/status", f"{key_id}.{secret}")[0] == 200
    assert "KEY" in cli(node, "tenant", "keys")
    for file in ("keys.json", "master-key"):
        assert secret not in (node.state / file).read_bytes().decode(errors="replace")
    log = node.log_path.read_text()
    assert f"export AWS_ACCESS_KEY_ID=$(sed -n 1p {key_path})" in log and secret not in log
    [way_in] = re.findall(r"export FAIRLEAD_ENDPOINT=(\S+)", log)
    assert way_in == f"unix:{node.state.resolve()}/operator.sock" and "up " in cli(node, "status", endpoint=way_in)


def test_the_command_line_finds_the_key_of_its_user(node):
    home = node.home / "elsewhere"
    (home / ".local/state/fairlead").mkdir(parents=True)
    shutil.copy(node.state / "operator-key", home / ".local/state/fairlead/operator-key")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("FAIRLEAD_", "XDG_"))}
    done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "list"], env=environment | {"HOME": str(home)},
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_an_aws_sdk_signs_with_the_key(node):
    key = new_key(node, "acme")
    client = aws(node, key)
    deploy(node, "echo", key["token"])
    assert client.get_function(FunctionName="echo")["Tags"]["gpu:tenant"] == "acme"
    for name in ("echo", "arn:aws:lambda:local:000000000000:function:echo"):  # a path that has to be encoded
        answer = client.invoke(FunctionName=name, Payload=ECHO, Qualifier="$LATEST", LogType="Tail")
        assert answer["StatusCode"] == 200 and "FunctionError" not in answer
    assert client.invoke(FunctionName="echo", InvocationType="Event", Payload=ECHO)["StatusCode"] == 202
    client.tag_resource(Resource="echo", Tags={"a b/c": "d+e"})
    client.untag_resource(Resource="echo", TagKeys=["a b/c", "x&y"])
    assert [f["FunctionName"] for f in client.list_functions(MaxItems=5)["Functions"]] == ["echo"]
    for bad in ({**key, "secret": "another"}, {**key, "id": "FLKNOBODY"}):
        with pytest.raises(ClientError) as error:
            aws(node, bad).list_functions()
        assert refusal(error) == ("UnrecognizedClientException", 401)


def test_a_large_body_is_signed_too(node):
    key = new_key(node, "acme")
    code = {"ZipFile": os.urandom(1 << 20)}  # no zip file: refused, but by the handler
    with pytest.raises(ClientError) as error:
        aws(node, key).create_function(FunctionName="f", Role="", Runtime="provided.al2023", Handler="x", Code=code)
    assert refusal(error)[1] == 400
    with pytest.raises(ClientError) as error:
        aws(node, {**key, "secret": "x"}).create_function(FunctionName="f", Role="", Runtime="provided.al2023", Handler="x", Code=code)
    assert refusal(error)[1] == 401


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_signs_with_the_key(node):
    key = new_key(node, "acme")
    for secret, wanted in ((key["secret"], "200"), ("wrong", "401")):
        done = subprocess.run(["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "--aws-sigv4", "aws:amz:local:lambda", "--user",
                               f"{key['id']}:{secret}", f"{node.endpoint}/2015-03-31/functions?Marker=a%2Fb&MaxItems=5"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.stdout == wanted


def test_a_tenant_sees_and_changes_its_own_things_alone(node):
    acme, other = new_key(node, "acme"), new_key(node, "other")
    deploy(node, "secret", acme["token"])
    path = "/2015-03-31/functions/secret"
    assert call(node, "GET", path, acme["token"])[0] == 200
    for method, asked, body in (("GET", path, None), ("DELETE", path, None), ("POST", path + "/invocations", ECHO),
                                ("GET", path + "/configuration", None), ("PUT", path + "/configuration", "{}"),
                                ("PUT", path + "/code", json.dumps({"ZipFile": ""})), ("GET", "/2017-03-31/tags/secret", None),
                                ("POST", "/2017-03-31/tags/secret", json.dumps({"Tags": {"a": "b"}})),
                                ("DELETE", "/2017-03-31/tags/secret?tagKeys=a", None),
                                ("PUT", "/2017-10-31/functions/secret/concurrency", json.dumps({"ReservedConcurrentExecutions": 0})),
                                ("DELETE", "/2017-10-31/functions/secret/concurrency", None),
                                ("GET", "/2019-09-30/functions/secret/concurrency", None),
                                ("GET", "/fairlead/v1/functions/secret/log", None),
                                ("GET", "/fairlead/v1/dead-letters?function=secret", None),
                                ("POST", "/fairlead/v1/functions/secret/dead-letters/redrive", None),
                                ("PUT", "/2019-09-25/functions/secret/event-invoke-config", "{}"),
                                ("POST", "/2019-09-25/functions/secret/event-invoke-config", "{}"),
                                ("GET", "/2019-09-25/functions/secret/event-invoke-config", None),
                                ("GET", "/2019-09-25/functions/secret/event-invoke-config/list", None),
                                ("DELETE", "/2019-09-25/functions/secret/event-invoke-config", None)):
        status, answer = call(node, method, asked, other["token"], body)
        assert status == 404 and "Function not found" in answer["Message"], asked
    graph = json.dumps({"nodes": {"n": {"function": "secret"}}})
    status, answer = call(node, "POST", "/v1/graphs", other["token"], graph)
    assert status == 404 and "nodes.n.function" in answer["Message"]
    assert call(node, "GET", "/2015-03-31/functions", other["token"])[1]["Functions"] == []
    assert call(node, "PUT", "/v1/objects/x", acme["token"], "acme's")[0] == 201
    assert call(node, "GET", "/v1/objects/x", other["token"])[0] == 404
    assert call(node, "GET", "/v1/objects/x", other["token"], X_Fairlead_Tenant="acme")[0] == 403
    for everything in ("/fairlead/v1/status", "/metrics", "/fairlead/v1/history", "/fairlead/v1/keys", "/fairlead/v1/dead-letters"):
        assert call(node, "GET", everything, other["token"])[0] == 403
    assert call(node, "POST", "/fairlead/v1/dead-letters/redrive", other["token"])[0] == 403
    assert "is a key of tenant 'other'" in cli(node, "deploy", "mine", MISBEHAVE, "--tag", "gpu:tenant=acme", token=other["token"],
                                               endpoint=node.endpoint, status=6)
    assert call(node, "POST", path + "/invocations", acme["token"], ECHO)[0] == 200, "nothing has changed"


def test_a_role_is_a_bound(node):
    reader, invoker = new_key(node, "acme", "--role", "reader"), new_key(node, "acme", "--role", "invoker")
    deploy(node, "echo", new_key(node, "acme")["token"])
    invoke = "/2015-03-31/functions/echo/invocations"
    assert call(node, "GET", "/2015-03-31/functions/echo", reader["token"])[0] == 200
    status, answer = call(node, "POST", invoke, reader["token"], ECHO)
    assert status == 403 and "has the role reader; this needs invoker" in answer["Message"]
    assert call(node, "POST", invoke, invoker["token"], ECHO)[0] == 200
    assert call(node, "DELETE", "/2015-03-31/functions/echo", invoker["token"])[0] == 403
    folder = json.dumps({"Folder": str(MISBEHAVE)})
    assert call(node, "PUT", "/2015-03-31/functions/echo/code", new_key(node, "acme")["token"], folder)[0] == 400, "the node's files"
    watcher = new_key(node, "*", "--role", "reader")
    assert call(node, "GET", "/metrics", watcher["token"])[0] == 200
    assert call(node, "POST", invoke, watcher["token"], ECHO)[0] == 403


def test_keys_end_rotate_and_outlive_the_node(start_node):
    node = start_node(is_open=False)
    old, short = new_key(node, "acme"), new_key(node, "acme", "--note", "ci")
    fresh = json.loads(cli(node, "--json", "tenant", "rotate", old["id"], "--grace", "1h"))
    listed = {key["id"]: key for key in json.loads(cli(node, "--json", "tenant", "keys"))["keys"]}
    assert listed[fresh["id"]]["expires_ms"] is None and listed[old["id"]]["expires_ms"] > 0 and listed[short["id"]]["note"] == "ci"
    assert "secret" not in listed[old["id"]]
    cli(node, "tenant", "revoke", short["id"])
    assert call(node, "GET", "/2015-03-31/functions", short["token"])[0] == 401
    node.kill()
    node = start_node(is_open=False, keep_state=True)
    for key, wanted in ((old, 200), (fresh, 200), (short, 401)):
        assert call(node, "GET", "/2015-03-31/functions", key["token"])[0] == wanted
    assert "it must be a whole number and s, m, h or d" in cli(node, "tenant", "add", "acme", "--expires", "soon", status=2)
    assert "role is 'king'" in cli(node, "tenant", "add", "acme", "--role", "king", status=2)


def test_who_rotates_the_operators_key_is_not_locked_out(start_node, monkeypatch):
    node = start_node(is_open=False)
    old = (node.state / "operator-key").read_text().split()
    monkeypatch.setenv("FAIRLEAD_SERVE_STATE", str(node.state))  # where clients look for the key
    for name in ("FAIRLEAD_TOKEN", "FAIRLEAD_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    socket = f"unix:{node.state}/operator.sock"

    def fairlead_cli(*arguments):
        return subprocess.run([BUILD / "bin/fairlead", *arguments], capture_output=True, text=True, timeout=PATIENCE_S)

    rotated = fairlead_cli("--json", "--endpoint", socket, "tenant", "rotate", old[0], "--grace", "0s")
    assert rotated.returncode == 0, rotated.stderr
    assert call(node, "GET", "/fairlead/v1/status", ".".join(old))[0] == 401
    for endpoint in (["--endpoint", socket], []):  # the second finds the socket
        done = fairlead_cli(*endpoint, "tenant", "keys")
        assert done.returncode == 0, done.stderr
    with fairlead.Client(socket) as client:
        assert client.request("GET", "/fairlead/v1/status")[1]
    node.kill()
    node = start_node(is_open=False, keep_state=True)
    new = (node.state / "operator-key").read_text().split()
    assert new[0] != old[0]
    for token in (".".join(new), json.loads(rotated.stdout)["token"]):
        assert call(node, "GET", "/fairlead/v1/status", token)[0] == 200
    done = fairlead_cli("--endpoint", node.endpoint, "tenant", "keys")
    assert done.returncode == 0, done.stderr
    with fairlead.Client(node.endpoint) as client:
        assert client.request("GET", "/fairlead/v1/status")[1]


def test_a_key_says_whose_it_is(node):
    def made(body):
        return call(node, "POST", "/fairlead/v1/keys", ".".join((node.state / "operator-key").read_text().split()),
                    body if body is None else json.dumps(body))

    for body in (None, {}, {"tenant": None}, {"role": "reader"}):
        status, answer = made(body)
        assert status == 400 and "tenant is missing" in answer["Message"], body
    for body, words in (({"tennant": "acme"}, "'tennant' is none of a key's members; they are tenant, role, expires_seconds, note"),
                        ({"tenant": "acme", "expires": 60}, "'expires' is none"),
                        ({"tenant": ""}, "tenant is ''"), ({"tenant": 1}, "tenant must be a string"),
                        ({"tenant": "acme", "role": "operator"}, "an operator's key is for all tenants"),
                        ({"tenant": "acme", "expires_seconds": 99999 * 86400}, "it must be a whole number between 0 and 315360000"),
                        ({"tenant": "acme", "expires_seconds": -1}, "expires_seconds is -1; it must"),
                        ({"tenant": "acme", "expires_seconds": 1.5}, "expires_seconds is 1.5; it must")):
        status, answer = made(body)
        assert status == 400 and words in answer["Message"], (body, answer)
    status, answer = made({"tenant": "acme"})
    assert (status, answer["tenant"], answer["role"], answer["expires_ms"]) == (201, "acme", "deployer", None)
    status, answer = made({"tenant": "*", "role": "reader", "expires_seconds": 60})
    assert status == 201 and answer["tenant"] is None and answer["expires_ms"] > 0
    assert new_key(node, "*")["tenant"] is None, "as the command line asks for it"


def test_a_name_that_another_tenant_has_is_taken(node):
    deploy(node, "theirs", new_key(node, "acme")["token"])
    said = cli(node, "deploy", "theirs", MISBEHAVE, token=new_key(node, "other")["token"], endpoint=node.endpoint, status=6)
    assert "already exist" in said


def test_changes_are_in_the_audit_log(node):
    key = new_key(node, "acme")
    deploy(node, "echo", key["token"])
    call(node, "POST", "/2015-03-31/functions/echo/invocations", key["token"], ECHO)
    call(node, "DELETE", "/2015-03-31/functions/echo", new_key(node, "acme", "--role", "reader")["token"])
    lines = [json.loads(line) for line in (node.state / "audit.log").read_text().splitlines()]
    assert [(line["who"].split()[0], line["method"], line["path"], line["status"]) for line in lines if line["path"] != "/fairlead/v1/keys"] == [
        (key["id"], "POST", "/2015-03-31/functions", 201), (lines[-1]["who"], "DELETE", "/2015-03-31/functions/echo", 403)]
    assert lines[0]["who"] == f"uid {os.getuid()}" and lines[0]["status"] == 201
    assert key["secret"] not in (node.state / "audit.log").read_text()


def from_page(node, host, origin=None):
    """Status of what a page that a browser shows makes it send."""
    connection = http.client.HTTPConnection(node.host, node.port, timeout=PATIENCE_S)
    connection.putrequest("POST", "/2015-03-31/functions", skip_host=True)
    connection.putheader("Host", host)
    if origin:
        connection.putheader("Origin", origin)
    connection.putheader("Content-Length", "2")
    connection.endheaders(b"{}")
    return connection.getresponse().status


def test_web_pages_do_not_get_into_an_open_node(start_node):
    node = start_node()
    assert from_page(node, f"127.0.0.1:{node.port}") == 400, "whoever is on this machine does"
    assert from_page(node, f"127.0.0.1:{node.port}", "https://evil.example") == 403
    assert from_page(node, f"evil.example:{node.port}") == 403, "DNS rebinding"
    assert aws(node, {"id": "test", "secret": "test"}).list_functions()["Functions"] == [], "AWS SDKs send some key"


@pytest.mark.parametrize("options, words", [(["--listen", "0.0.0.0:0"], "--no-tls"), (["--listen", "[::]:0"], "--no-tls"),
                                            (["--listen", "0.0.0.0:0", "--no-tls", "--open"], "fairlead tenant add")])
def test_other_machines_are_let_in_only_when_asked_for(tmp_path, options, words):
    done = subprocess.run([BUILD / "bin/fairlead", "serve", "--softgpu", "--state", tmp_path / "state", *options],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and words in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_of_the_machine_does_not_get_in(node):
    socket_path = f"{node.state}/operator.sock"
    for folder in [node.state, *node.state.parents]:  # even if somebody opens the folders
        if folder.stat().st_uid == 0 and str(folder) not in ("/", "/tmp"):
            folder.chmod(0o755)
    os.chmod(socket_path, 0o777)
    script = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
              "s.sendall(b'GET /fairlead/v1/status HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(s.recv(99).split()[1].decode())")
    for user, wanted in ((0, "200"), (65534, "401")):
        done = subprocess.run(["python3", "-c", script, socket_path], user=user, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.stdout.strip() == wanted, done.stderr
