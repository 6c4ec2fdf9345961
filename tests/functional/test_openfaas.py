"""OpenFaaS's front (docs/how-to/openfaas.md): the recorded requests of an unmodified faas-cli against a node, functions that are web
applications, callbacks, logs, who may do what, and what hostile callers send. A real faas-cli where FAAS_CLI names one."""

import base64
import http.client
import http.server
import json
import os
import subprocess
import sys
import threading

import pytest

from conftest import BUILD, MISBEHAVE, PATIENCE_S, ROOT, eventually
from harness.node import Node

sys.path.insert(0, str(ROOT / "tests/images"))
import assemble  # noqa: E402

needs_images = [
    pytest.mark.skipif(assemble.missing_tool() is not None, reason=f"{assemble.missing_tool()} is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="assembling the images with their owners needs root"),
]
CLI_AGENT = {"User-Agent": "faas-cli/dev"}


class Gateway:
    """A node as faas-cli sees it, with a login or without."""

    def __init__(self, node, password=None, user="admin"):
        self.node = node
        encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.authorization = {"Authorization": f"Basic {encoded}"} if password else {}

    def __call__(self, method, path, document=None, headers=None, body=None):
        """(status, headers, body); a document is sent as JSON."""
        headers = {**CLI_AGENT, **self.authorization, **(headers or {})}
        if document is not None:
            body, headers["Content-Type"] = json.dumps(document), "application/json"
        return self.node.call(method, path, body, headers)

    def json(self, method, path, document=None):
        status, _, body = self(method, path, document)
        assert status == 200, (status, body)
        return json.loads(body)


def operator_password(node):
    key, secret = (node.state / "operator-key").read_text().split()[:2]
    return f"{key}.{secret}"


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    """A layout with the image `web`."""
    folder = tmp_path_factory.mktemp("web")
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    root.chmod(0o755)
    subprocess.run(["g++", "-std=c++20", "-O1", "-static", "-o", root / "bin/web", ROOT / "tests/images/web.cc"], check=True, timeout=PATIENCE_S)
    layout = assemble.Layout(folder / "layout")
    layout.web = layout.image("web", root, ["/bin/web"])
    (root / "bin/web").rename(root / "bin/fwatchdog")
    layout.watchdog = layout.image("watchdog", root, ["/bin/fwatchdog"])
    return layout


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A node that asks for keys and pulls no images."""
    with Node(BUILD, tmp_path_factory.mktemp("closed") / "node", options=["--registries", "none"], is_open=False) as node:
        yield node


@pytest.fixture(scope="module")
def admin(closed):
    return Gateway(closed, operator_password(closed))


@pytest.fixture(scope="module")
def web(closed, admin, layout):
    """The function `web`, deployed as faas-cli does."""
    status, _, body = admin("POST", "/system/functions", {"service": "web", "image": layout.web, "labels": {}, "annotations": {}})
    assert status == 202, body
    return "web"


# ---- what faas-cli was recorded to ask


def test_the_recorded_session_is_answered_as_faas_cli_expects(closed, admin):
    login = {"User-Agent": "Go-http-client/1.1"}
    status, headers, body = admin("GET", "/system/functions", headers=login)
    assert status == 200 and json.loads(body) == []
    info = admin.json("GET", "/system/info")
    assert info["provider"]["version"]["release"] and info["version"]["release"] and info["arch"]
    deployment = {"service": "f", "image": "reg/x:1", "envVars": {"A": "b"}, "secrets": ["s1"],
                  "labels": {"com.openfaas.scale.min": "1"}, "annotations": {"topic": "t"}, "limits": {"memory": "128Mi"}}
    assert admin("PUT", "/system/functions", deployment)[0] == 404, "faas-cli posts then"
    status, _, body = admin("POST", "/system/functions", deployment)
    assert status == 400 and b"secret 's1'" in body, body
    assert admin("POST", "/system/secrets", {"name": "s1", "value": "v"})[0] == 201
    status, _, body = admin("POST", "/system/functions", deployment)
    assert status in (400, 403) and b"registr" in body, body
    assert admin.json("GET", "/system/functions") == []
    assert closed.call("GET", "/healthz", headers=login)[0] == 200
    assert admin("GET", "/system/function/nope?usage=1")[0] == 404
    assert admin.json("GET", "/system/secrets") == [{"name": "s1", "namespace": "fairlead"}]
    assert admin("PUT", "/system/secrets", {"name": "s1", "value": "w"})[0] == 200
    assert admin("DELETE", "/system/secrets", {"name": "s1"})[0] == 202
    assert admin("DELETE", "/system/secrets", {"name": "s1"})[0] == 404
    assert admin.json("GET", "/system/namespaces") == ["fairlead"]
    assert admin("DELETE", "/system/functions", {"functionName": "f"})[0] == 404
    status, headers, _ = closed.call("GET", "/system/functions", headers={**CLI_AGENT, "Authorization": "Bearer"})
    assert status == 401 and headers["WWW-Authenticate"] == 'Basic realm="Restricted"'


@pytest.mark.usefixtures("web")
class TestWeb:
    pytestmark = needs_images

    def test_a_deployed_image_is_listed_described_scaled_and_removed(self, closed, admin, layout):
        document = {"service": "f", "image": layout.web, "envVars": {"A": "b"}, "labels": {"team": "x"}, "annotations": {"topic": "t"},
                    "limits": {"memory": "256Mi"}}
        assert admin("PUT", "/system/functions", document)[0] == 404
        assert admin("POST", "/system/functions", document)[0] == 202
        shown = admin.json("GET", "/system/function/f?usage=1")
        assert shown["name"] == "f" and shown["image"] == layout.web and shown["envVars"] == {"A": "b"}
        assert shown["labels"] == {"team": "x"} and shown["annotations"] == {"topic": "t"} and shown["limits"] == {"memory": "256Mi"}
        assert shown["availableReplicas"] == 1 and shown["usage"]["totalMemoryBytes"] >= 0
        assert admin("PUT", "/system/functions", {**document, "envVars": {"A": "c"}})[0] in (200, 202)
        assert admin("POST", "/function/f.openfaas-fn/environment/A", body="hi")[2] == b"c"
        assert next(each for each in admin.json("GET", "/system/functions") if each["name"] == "f")["invocationCount"] == 1
        assert admin("POST", "/system/scale-function/f", {"serviceName": "f", "replicas": 2})[0] == 202
        eventually(lambda: admin.json("GET", "/system/function/f")["availableReplicas"] == 2)
        assert admin("POST", "/system/scale-function/f", {"serviceName": "f", "replicas": 0})[0] == 202
        eventually(lambda: not [each for each in admin.json("GET", "/fairlead/v1/status")["instances"] if each["function"] == "f"])
        assert admin("DELETE", "/system/functions", {"functionName": "f"})[0] == 202
        assert admin("GET", "/system/function/f?usage=1")[0] == 404

    def test_method_path_query_headers_and_body_reach_the_function(self, admin):
        status, headers, body = admin("GET", "/function/web.openfaas-fn/a%2Fb?a=b", headers={"Content-Type": "text/plain", "X-A": "1"}, body="hi")
        text = body.decode()
        assert status == 200 and headers["Content-Type"] == "text/x-echo"
        assert text.startswith("GET /a%2Fb?a=b HTTP/1.1\r\n") and text.endswith("\r\nhi")
        assert "X-A: 1\r\n" in text and "X-Forwarded-For: 127.0.0.1\r\n" in text and "X-Start-Time: " in text
        assert f"X-Call-Id: {headers['X-Call-Id']}\r\n" in text and "Authorization" not in text
        assert headers["X-Duration-Seconds"] and headers["X-Served-By"] == "fairlead"
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "POST"):
            assert admin(method, "/function/web/x", body="b")[2].startswith(f"{method} /x HTTP".encode())
        status, headers, body = admin("HEAD", "/function/web")
        assert status == 200 and headers["X-Own"] == "head" and body == b""

    def test_the_functions_own_status_and_headers_are_the_answer(self, admin):
        for wanted in (201, 301, 404, 418, 500, 503):
            status, headers, body = admin("POST", f"/function/web/?status={wanted}", body="x")
            assert status == wanted and headers["X-Own"] == "yes" and headers.get_all("Set-Cookie") == ["a=1", "b=2"]
            assert body.endswith(b"x")
        assert admin("GET", "/function/web?status=204")[0] == 204
        status, _, body = admin("POST", "/function/nope", body="x")
        assert status == 404 and b"no function 'nope'" in body
        assert admin("POST", "/function/web.ns1", body="hi")[0] == 404

    def test_an_answer_goes_on_while_it_is_made(self, closed, admin):
        connection = http.client.HTTPConnection(closed.host, closed.port, timeout=PATIENCE_S)
        connection.request("GET", "/function/web/lines/20", headers=admin.authorization)
        answer = connection.getresponse()
        assert answer.readline() == b"line 0\n"
        rest = answer.read()
        assert rest.endswith(b"line 19\n") and rest.count(b"\n") == 19
        connection.close()

    def test_large_bodies_go_both_ways(self, admin):
        body = bytes(range(256)) * (12 << 12)  # 12 MiB, twice what an Invoke may have
        status, _, said = admin("POST", "/function/web/large", body=body)
        assert status == 200 and said.endswith(body)
        status, _, said = admin("POST", "/function/web/larger", body=b"x" * ((64 << 20) + 1))
        assert status == 413, said

    def test_a_function_that_ends_in_its_answer_cuts_it(self, admin):
        def is_cut():
            """Where the node sees the end of the process before it has read the answer's head, it has its own answer: 502."""
            try:
                status, _, body = admin("GET", "/function/web/exit")
            except http.client.HTTPException:
                return True
            assert status == 502, body
            return False

        eventually(is_cut)
        # A call that comes before the node has seen the end of the process is told 502.
        eventually(lambda: admin("GET", "/function/web/again")[0] == 200)

    def test_secrets_are_files(self, closed, admin, layout):
        assert admin("POST", "/system/secrets", {"name": "db-password", "value": "s3cret"})[0] == 201
        document = {"service": "s", "image": layout.web, "secrets": ["db-password"], "envVars": {}}
        assert admin("POST", "/system/functions", document)[0] == 202
        assert admin("GET", "/function/s/environment/SECRET_DB_PASSWORD")[2] == b"/run/secrets/db-password"
        for folder in ("/var/openfaas/secrets", "/run/secrets"):
            assert admin("GET", f"/function/s/file{folder}/db-password")[2] == b"s3cret"
        shown = admin.json("GET", "/system/function/s")
        assert shown["secrets"] == ["db-password"] and "s3cret" not in json.dumps(shown) and shown["envVars"] == {}

    def test_logs_are_lines_with_times_and_are_followed(self, closed, admin):
        admin("GET", "/function/web/before")
        eventually(lambda: b"asked GET /before" in admin("GET", "/system/logs?name=web")[2])
        lines = [json.loads(line) for line in admin("GET", "/system/logs?name=web&tail=-1")[2].splitlines()]
        line = next(each for each in lines if each["text"] == "asked GET /before")
        assert line["name"] == "web" and line["namespace"] == "fairlead" and line["timestamp"].startswith("20")
        assert len(admin("GET", "/system/logs?name=web&tail=2")[2].splitlines()) == 2
        assert admin("GET", "/system/logs?name=web&since=2999-01-01T00%3A00%3A00Z")[2] == b""
        connection = http.client.HTTPConnection(closed.host, closed.port, timeout=PATIENCE_S)
        connection.request("GET", "/system/logs?follow=true&name=web&tail=1", headers=admin.authorization)
        answer = connection.getresponse()
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        json.loads(answer.readline())
        admin("GET", "/function/web/followed")
        while json.loads(answer.readline())["text"] != "asked GET /followed":
            pass
        connection.close()

    def test_the_watchdogs_health_is_waited_for(self, admin, layout):
        assert admin("POST", "/system/functions", {"service": "dog", "image": layout.watchdog})[0] == 202
        assert admin("GET", "/function/dog/healths")[2] == b"3"
        assert admin("GET", "/function/dog/environment/port")[2] == b"8080"
        tagged = {"service": "tagged", "image": layout.web, "annotations": {"image:contract": "openfaas"}}
        assert admin("POST", "/system/functions", tagged)[0] == 202
        assert admin("GET", "/function/tagged/healths")[2] == b"3"


# ---- functions that are no images


def test_functions_that_know_no_http_answer_with_their_payload(shared_node, misbehave):
    gateway = Gateway(shared_node)
    status, headers, body = gateway("POST", "/function/misbehave", {"do": "echo", "text": "hi"})
    assert status == 200 and headers["X-Call-Id"], body
    status, _, body = gateway("POST", "/function/misbehave.openfaas-fn", {"do": "error"})
    assert status == 500, body
    status, _, body = gateway("POST", "/function/misbehave", {"do": "exit", "status": 3})
    assert status in (500, 502), body


# ---- callbacks


class Hook:
    """A server on loopback that keeps what is posted to it, and refuses the first `refusals` of them by closing."""

    def __init__(self, refusals=0):
        self.posts, self.left = [], refusals
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if hook.left > 0:
                    hook.left -= 1
                    self.close_connection = True
                    return
                hook.posts.append((self.path, dict(self.headers), body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_what_became_of_a_call_is_posted_to_its_callback(start_node):
    with Hook() as hook:
        node = start_node("--callbacks", hook.address)
        gateway = Gateway(node)
        node.deploy("misbehave", MISBEHAVE)
        for call_id, event in (("good", {"do": "echo", "text": "hi"}), ("bad", {"do": "error"})):
            if call_id == "bad":
                node.call("PUT", "/2019-09-25/functions/misbehave/event-invoke-config", json.dumps({"MaximumRetryAttempts": 0}))
            status, headers, body = gateway("POST", "/async-function/misbehave.openfaas-fn", event,
                                            headers={"X-Callback-Url": f"http://{hook.address}/done?x=1", "X-Call-Id": call_id})
            assert (status, headers["X-Call-Id"], body) == (202, call_id, b"")
        posts = eventually(lambda: len(hook.posts) == 2 and hook.posts)
        by_id = {headers["X-Call-Id"]: (path, headers, body) for path, headers, body in posts}
        path, headers, _ = by_id["good"]
        assert path == "/done?x=1" and headers["X-Function-Status"] == "200" and headers["X-Function-Name"] == "misbehave"
        assert float(headers["X-Duration-Seconds"]) >= 0
        assert by_id["bad"][1]["X-Function-Status"] == "500"


def test_a_hook_that_is_down_is_tried_again(start_node):
    with Hook(refusals=1) as hook:
        node = start_node("--callbacks", hook.address)
        node.deploy("misbehave", MISBEHAVE)
        Gateway(node)("POST", "/async-function/misbehave", {"do": "echo", "text": "hi"}, headers={"X-Callback-Url": f"http://{hook.address}/"})
        eventually(lambda: len(hook.posts) == 1)


def test_callbacks_to_the_nodes_own_machine_are_refused(shared_node, misbehave):
    gateway = Gateway(shared_node)
    with Hook() as hook:
        for url in (f"http://{hook.address}/", f"http://{shared_node.host}:{shared_node.port}/system/functions", "https://localhost/",
                    "https://[::1]/", "https://10.0.0.1/", "https://169.254.169.254/latest/meta-data", "file:///etc/passwd",
                    "http://x/\\r\\nHost: y"):
            status, _, body = gateway("POST", "/async-function/misbehave", {"do": "echo"}, headers={"X-Callback-Url": url})
            assert status == 400 and b"X-Callback-Url" in body, (url, status, body)
        assert hook.posts == []


# ---- who may


def new_key(node, tenant, role):
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("FAIRLEAD_", "AWS_"))}
    done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", f"unix:{node.state}/operator.sock", "--json", "tenant", "add", tenant,
                           "--role", role], capture_output=True, text=True, timeout=PATIENCE_S, env=inherited | {"HOME": str(node.home)}, check=True)
    return json.loads(done.stdout)


def test_nobody_gets_in_without_a_key(closed):
    nobody = Gateway(closed)
    for method, path in (("GET", "/system/functions"), ("GET", "/system/info"), ("POST", "/system/functions"), ("GET", "/system/logs?name=f"),
                         ("GET", "/system/secrets"), ("POST", "/function/web"), ("POST", "/async-function/web")):
        status, headers, _ = nobody(method, path, {} if method == "POST" else None)
        assert status == 401 and headers["WWW-Authenticate"].startswith("Basic"), (method, path, status)
    for user, password in (("admin", "wrong"), ("admin", ""), ("", "x"), ("root", operator_password(closed))):
        assert Gateway(closed, password or " ", user)("GET", "/system/functions")[0] == 401
    status, _, _ = Gateway(closed, operator_password(closed))("GET", "/system/functions", headers={"Origin": "https://evil.example"})
    assert status == 403, "a browser that knows the password is led here by another page"


def test_a_tenants_key_has_its_own_namespace(closed, admin):
    key = new_key(closed, "acme", "deployer")
    acme = Gateway(closed, key["secret"], key["id"])
    assert acme.json("GET", "/system/namespaces") == ["acme"]
    assert acme("POST", "/system/secrets", {"name": "mine", "value": "v"})[0] == 201
    assert acme.json("GET", "/system/secrets") == [{"name": "mine", "namespace": "acme"}]
    assert admin.json("GET", "/system/secrets?namespace=acme") == [{"name": "mine", "namespace": "acme"}]
    assert all(each["name"] != "mine" for each in admin.json("GET", "/system/secrets"))
    assert acme("POST", "/system/secrets", {"name": "x", "value": "v", "namespace": "other"})[0] == 403
    assert acme("GET", "/system/functions?namespace=other")[0] == 403
    reader = Gateway(closed, new_key(closed, "acme", "reader")["token"])
    assert reader("GET", "/system/functions")[0] == 200
    assert reader("POST", "/system/secrets", {"name": "x", "value": "v"})[0] == 403
    assert reader("POST", "/function/web", body="x")[0] == 403


def test_an_operator_may_open_functions_and_nothing_else(start_node):
    node = start_node("--open-functions", is_open=False)
    key = operator_password(node)
    cli_environment = {key_: value for key_, value in os.environ.items() if not key_.startswith(("FAIRLEAD_", "AWS_"))}
    subprocess.run([BUILD / "bin/fairlead", "--endpoint", f"unix:{node.state}/operator.sock", "deploy", "misbehave", MISBEHAVE], check=True,
                   capture_output=True, timeout=PATIENCE_S, env=cli_environment | {"HOME": str(node.home)})
    nobody = Gateway(node)
    assert nobody("POST", "/function/misbehave", {"do": "echo", "text": "x" * 100_000})[0] == 200, "bodies count for callers without a key"
    assert nobody("POST", "/async-function/misbehave", {"do": "echo"})[0] == 202
    assert nobody("GET", "/system/functions")[0] == 401
    assert nobody("POST", "/2015-03-31/functions/misbehave/invocations", {"do": "echo"})[0] == 401
    assert Gateway(node, key)("GET", "/system/functions")[0] == 200


# ---- hostile


@pytest.mark.parametrize("document", [
    {"service": "../../etc", "image": "x"}, {"service": "f", "image": "x" * 10_000}, {"service": "f\u0000", "image": "x"}, {"service": 7},
    {"service": "f", "image": "reg/x:1", "namespace": "../x"}, {"service": "f", "image": "reg/x:1", "namespace": "a.b"},
    {"service": "f", "image": "reg/x:1", "limits": {"memory": "-1"}}, {"service": "f", "image": "reg/x:1", "limits": {"memory": "9" * 1000}},
    {"service": "f", "image": "reg/x:1", "limits": {"memory": "1e999"}}, {"service": "f", "image": "reg/x:1", "envVars": {"LD PRELOAD": "x"}},
    {"service": "f", "image": "reg/x:1", "envVars": {"AWS_REGION": "x"}}, {"service": "f", "image": "reg/x:1", "envVars": {"A": "x" * 5000}},
    {"service": "f", "image": "reg/x:1", "annotations": {"gpu:tenant": "other"}},
    {"service": "f", "image": "reg/x:1", "labels": {str(i): "x" for i in range(60)}},
    {"service": "f", "image": "file:///etc/passwd"}, {"service": "f", "image": "oci:../x:1"},
], ids=range(16))
def test_what_is_no_deployment_is_refused_with_a_line(shared_node, document):
    gateway = Gateway(shared_node)
    status, headers, body = gateway("POST", "/system/functions", document)
    assert status == 400 and 0 < len(body) < 2000 and body.count(b"\n") == 1, (status, body)
    assert headers["Content-Type"].startswith("text/plain")


def test_a_body_that_is_too_large_or_too_deep_is_refused(shared_node):
    gateway = Gateway(shared_node)
    assert gateway("POST", "/system/functions", body=b" " * ((1 << 20) + 1))[0] == 413
    assert gateway("POST", "/system/functions", body=b"[" * 100_000)[0] == 400
    assert gateway("POST", "/system/functions", body=b"\xff\xfe")[0] == 400


# ---- faas-cli itself


@pytest.mark.skipif("FAAS_CLI" not in os.environ, reason="FAAS_CLI names no faas-cli")
def test_faas_cli_itself(closed, admin, layout, tmp_path):
    def cli(*arguments, text=None):
        done = subprocess.run([os.environ["FAAS_CLI"], *arguments, "--gateway", closed.endpoint], input=text, capture_output=True, text=True,
                              timeout=PATIENCE_S, env={**os.environ, "HOME": str(tmp_path)})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    cli("login", "--username", "admin", "--password-stdin", text=operator_password(closed))
    cli("deploy", "--image", layout.web, "--name", "real", "--env", "A=b")
    assert "real" in cli("list") and "Ready" in cli("describe", "real")
    assert admin("GET", "/function/real/environment/A")[2] == b"b"
    cli("remove", "real")
