"""The console's server side over real sockets: the page, its live stream, signing in, and who else would like to (docs/how-to/console.md)."""

import gzip
import http.client
import json
import shutil
import socket
import subprocess
import sys
import threading

import pytest

from conftest import BUILD, MISBEHAVE, PATIENCE_S, ROOT, eventually

MARK = {"X-Fairlead-Console": "1"}


class Watcher:
    """GET /fairlead/v1/watch, as the console reads it: `items` is what it shows."""

    def __init__(self, node, headers=None, path="/fairlead/v1/watch"):
        self.connection = http.client.HTTPConnection(node.host, node.port, timeout=PATIENCE_S)
        self.connection.request("GET", path, headers=headers or {})
        self.answer = self.connection.getresponse()
        self.items, self.id, self.frames, self.fulls = {}, "", 0, 0

    def take(self):
        """The next frame, applied."""
        data = []
        while (line := self.answer.readline().decode().rstrip("\n")) or not data:
            if line.startswith("id: "):
                self.id = line[4:]
            elif line.startswith("data: "):
                data.append(line[6:])
        frame = json.loads("".join(data))
        if frame["full"]:
            self.items.clear()
            self.fulls += 1
        self.items.update(frame["set"])
        for name in frame["gone"]:
            del self.items[name]
        self.frames += 1
        return frame

    def until(self, condition):
        while not condition(self.items):
            self.take()

    def close(self):
        self.connection.sock and self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def has_console(node):
    return node.call("GET", "/console/")[0] == 200


@pytest.fixture
def closed_node(start_node):
    """A node that asks for keys, and new_key(tenant, role) -> {"Authorization": ...}."""
    node = start_node(is_open=False)

    def new_key(tenant, role):
        made = subprocess.run([BUILD / "bin/fairlead", "--endpoint", f"unix:{node.state}/operator.sock", "--json", "tenant", "add", tenant, "--role",
                               role], check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout
        return {"Authorization": f"Bearer {json.loads(made)['token']}"}

    return node, new_key


def sign_in(node, key):
    """{"Cookie": ...}"""
    status, headers, body = node.call("POST", "/console/session", headers={**key, **MARK})
    assert status == 200, body
    return {"Cookie": headers["Set-Cookie"].split(";")[0]}


def test_the_page_is_small_kept_and_in_nobodys_frame(shared_node):
    status, headers, body = shared_node.call("GET", "/console/", headers={"Accept-Encoding": "gzip"})
    if status == 501:
        assert b"tools/console-vendor" in body
        pytest.skip("this build has no vendor files of the console")
    assert status == 200 and headers["Content-Security-Policy"].startswith("default-src 'self'")
    page = gzip.decompress(body).decode()
    sizes = {}
    for name in ["", "app.js", "app.css", "icon.svg", "vendor/preact.js", "vendor/hooks.js", "vendor/htm.js", "vendor/uplot.js", "vendor/uplot.css"]:
        status, headers, body = shared_node.call("GET", f"/console/{name}", headers={"Accept-Encoding": "gzip"})
        assert status == 200 and headers["Content-Encoding"] == "gzip", name
        assert name in page or name.startswith("vendor/"), name
        sizes[name] = len(body)
        status, _, rest = shared_node.call("GET", f"/console/{name}", headers={"If-None-Match": headers["ETag"]})
        assert (status, rest) == (304, b"")
    assert sum(sizes.values()) <= 50 << 10, sizes
    assert shared_node.call("GET", "/console")[0] == 308
    assert "MIT" in shared_node.call("GET", "/console/licenses.txt")[2].decode()


def test_a_watcher_sees_all_at_first_and_then_what_changes(start_node):
    node = start_node()
    watcher = Watcher(node)
    assert watcher.answer.headers["Content-Type"] == "text/event-stream"
    assert watcher.take()["full"] and {"node", "gpu/1"} <= set(watcher.items)
    node.deploy("f", MISBEHAVE)
    assert node.invoke("f", "{}")[0] == 200
    watcher.until(lambda items: items.get("fn/f", {}).get("stats", {}).get("calls") == 1)
    function = watcher.items["fn/f"]
    assert function["stats"]["cold"] == 1 and sum(function["stats"]["durations"]) == 1
    assert any(item.startswith("inst/") for item in watcher.items)
    assert watcher.fulls == 1
    seen, before = watcher.id, dict(watcher.items)
    watcher.close()
    assert node.invoke("f", "{}")[0] == 200
    back = Watcher(node, {"Last-Event-ID": seen})
    back.items = before
    back.until(lambda items: items["fn/f"]["stats"]["calls"] == 2)
    assert back.fulls == 0, "who comes back soon gets what changed"
    assert node.call("DELETE", "/2015-03-31/functions/f")[0] == 204
    back.until(lambda items: "fn/f" not in items)
    stranger = Watcher(node, {"Last-Event-ID": "1.1-999999"})
    assert stranger.take()["full"]


def test_viewers_are_bounded_and_those_that_read_nothing_hold_nobody_up(start_node):
    node = start_node()
    watchers = [Watcher(node) for _ in range(32)]
    assert all(watcher.answer.status == 200 for watcher in watchers)
    refused = Watcher(node)
    assert refused.answer.status == 429 and b"32 watch" in refused.answer.read()
    node.deploy("f", MISBEHAVE)
    watchers[31].until(lambda items: "fn/f" in items)  # the other 31 read nothing
    assert node.invoke("f", "{}")[0] == 200
    for watcher in watchers:
        watcher.close()
    assert eventually(lambda: Watcher(node).answer.status == 200)


def test_the_last_calls_of_a_function_are_listed(misbehave):
    node, name = misbehave
    node.invoke(name, "{}")
    node.invoke(name, json.dumps({"do": "crash"}))
    status, _, body = node.call("GET", f"/fairlead/v1/recent?function={name}&limit=2")
    calls = json.loads(body)["calls"]
    assert status == 200 and [call["outcome"] for call in calls] == ["crashed", "success"]
    assert all(call["function"] == name and call["gpu"] == 1 for call in calls)
    assert node.call("GET", f"/fairlead/v1/requests/{calls[0]['id']}")[0] == 200
    assert node.call("GET", "/fairlead/v1/recent?limit=0")[0] == 400


def test_a_session_is_for_the_console_and_for_nobody_elses_page(closed_node):
    node, new_key = closed_node
    cookie = sign_in(node, new_key("a", "invoker"))
    invoke = "/2015-03-31/functions/f/invocations"
    assert node.call("GET", "/console/session", headers={**cookie, **MARK})[0] == 200
    assert node.call("POST", invoke, "{}", {**cookie, **MARK})[0] == 404, "let in; there is no such function"
    own = f"http://{node.host}:{node.port}"
    assert node.call("POST", invoke, "{}", {**cookie, **MARK, "Origin": own})[0] == 404
    # What a page of another origin can have a browser send: a form, a link, an image, a script's request without the node's permission.
    for headers in ({}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Content-Type": "text/plain"}):
        assert node.call("POST", invoke, "{}", {**cookie, **headers})[0] == 401
        assert node.call("GET", "/fairlead/v1/watch", headers={**cookie, **headers})[0] == 401
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"http://{node.host}:1"}, {"Sec-Fetch-Site": "same-site"}):
        assert node.call("POST", invoke, "{}", {**cookie, **MARK, **headers})[0] == 403
    preflight = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-fairlead-console"}
    status, headers, _ = node.call("OPTIONS", invoke, headers=preflight)
    assert status in (404, 405) and not [name for name in headers if name.lower().startswith("access-control")]
    assert node.call("DELETE", "/2015-03-31/functions/f", headers={**cookie, **MARK})[0] == 403
    assert node.call("POST", "/fairlead/v1/keys", "{}", {**cookie, **MARK})[0] == 403


def test_a_reader_changes_nothing(closed_node):
    node, new_key = closed_node
    cookie = {**sign_in(node, new_key("*", "reader")), **MARK}
    watcher = Watcher(node, cookie)
    assert "gpu/1" in watcher.take()["set"]
    for path in ("/2015-03-31/functions/f/invocations", "/fairlead/v1/functions/f/dead-letters/redrive", "/fairlead/v1/dead-letters/redrive",
                 "/2015-03-31/functions", "/fairlead/v1/keys"):
        assert node.call("POST", path, "{}", cookie)[0] == 403, path


def test_a_session_ends_with_its_key_and_so_does_its_stream(closed_node):
    node, new_key = closed_node
    key = new_key("*", "reader")
    cookie = {**sign_in(node, key), **MARK}
    watcher = Watcher(node, cookie)
    watcher.take()
    key_id = key["Authorization"].split()[1].split(".")[0]
    subprocess.run([BUILD / "bin/fairlead", "--endpoint", f"unix:{node.state}/operator.sock", "tenant", "revoke", key_id], check=True,
                   capture_output=True, timeout=PATIENCE_S)
    watcher.answer.read()  # to its end
    assert node.call("GET", "/console/session", headers=cookie)[0] == 401
    assert node.call("GET", "/fairlead/v1/watch", headers=cookie)[0] == 401


def test_a_tenant_sees_what_is_its_own(closed_node):
    node, new_key = closed_node
    keys = {tenant: new_key(tenant, "deployer") for tenant in ("a", "b")}
    for tenant, name in (("a", "mine"), ("b", "others-secret")):
        document = {"FunctionName": name, "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap", "Code": {"Folder": str(MISBEHAVE)},
                    "Tags": {"gpu:tenant": tenant}}
        subprocess.run(["curl", "-sSf", "--unix-socket", f"{node.state}/operator.sock", "-d", json.dumps(document), "http://x/2015-03-31/functions"],
                       check=True, capture_output=True, timeout=PATIENCE_S)
        assert node.invoke(name, "{}", keys[tenant])[0] == 200
    cookie = {**sign_in(node, keys["a"]), **MARK}
    watcher = Watcher(node, cookie)
    shown = watcher.take()
    assert set(shown["set"]) == {"node", "fn/mine"} and shown["set"]["node"]["tenant"] == "a"
    said = json.dumps(shown)
    for secret in ("others-secret", '"b"', "gvt_s", "vt_s", "policy", "gpu"):
        assert secret not in said.replace("gpu_s", ""), secret
    calls = json.loads(node.call("GET", "/fairlead/v1/recent", headers=cookie)[2])["calls"]
    assert {call["function"] for call in calls} == {"mine"}
    assert json.loads(node.call("GET", "/fairlead/v1/recent?function=others-secret", headers=cookie)[2])["calls"] == []
    for path in ("/fairlead/v1/status", "/fairlead/v1/cluster", "/fairlead/v1/events"):
        assert node.call("GET", path, headers=cookie)[0] in (403, 404), path
    assert node.call("GET", "/fairlead/v1/functions/others-secret/log", headers=cookie)[0] == 404
    watchers = [Watcher(node, cookie) for _ in range(3)]
    assert all(one.answer.status == 200 for one in watchers)
    assert Watcher(node, cookie).answer.status == 429, "no tenant takes all places"
    assert Watcher(node, new_key("*", "reader")).answer.status == 200


def test_watching_does_not_stop_a_node_that_ends(start_node):
    node = start_node()
    watcher = Watcher(node)
    watcher.take()
    ended = threading.Thread(target=node.stop)
    ended.start()
    ended.join(PATIENCE_S)
    assert not ended.is_alive() and node.process.returncode == 0


# ---- what goes into the program

CONSOLE = ROOT / "src/edge/console"


def embed(site, vendor, output):
    return subprocess.run([sys.executable, ROOT / "cmake/embed_site.py", site, CONSOLE / "vendor.json", vendor, output], capture_output=True, text=True,
                          timeout=PATIENCE_S)


def test_a_build_without_vendor_files_names_them(tmp_path):
    assert embed(CONSOLE / "site", tmp_path / "nothing", tmp_path / "site_files.cc").returncode == 0
    source = (tmp_path / "site_files.cc").read_text()
    assert 'std::array<std::string_view, 3> kMissing = {"preact ' in source and '"uplot ' in source


def test_a_vendor_file_of_another_digest_is_refused(tmp_path):
    (tmp_path / "vendor").mkdir()
    package = json.loads((CONSOLE / "vendor.json").read_text())[0]
    path = tmp_path / "vendor" / f"{package['name']}-{package['version']}.tgz"
    path.write_bytes(b"not what it was")
    done = embed(CONSOLE / "site", tmp_path / "vendor", tmp_path / "site_files.cc")
    assert done.returncode != 0 and "SHA-512" in done.stderr and str(path) in done.stderr


@pytest.mark.parametrize("line", ["export default 1;", 'import * as ui from "./ui.js";', 'import {live as other} from "./live.js";'])
def test_a_module_in_a_form_that_is_not_known_is_refused(tmp_path, line):
    shutil.copytree(CONSOLE / "site", tmp_path / "site")
    with (tmp_path / "site/now.js").open("a") as module:
        module.write(line + "\n")
    done = embed(tmp_path / "site", tmp_path / "nothing", tmp_path / "site_files.cc")
    assert done.returncode != 0 and line in done.stderr
