"""The Python client against a real node: the programs of its page, addresses, and that what is sent again runs once."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading

import pytest
from conftest import BUILD, MISBEHAVE, ROOT, eventually

sys.path.insert(0, str(ROOT / "python"))
import fairlead  # noqa: E402

PAGE = ROOT / "docs/how-to/python-client.md"
COUNTING = """
import fairlead, threading
runs = []
@fairlead.function
def counting(event):
    runs.append(event)
    return {"runs": len(runs), "event": event}
"""


@pytest.fixture
def client(shared_node, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "cache"))
    with fairlead.Client(shared_node.endpoint) as client:
        yield client


def deployed(client, tmp_path, text):
    (tmp_path / "counting.py").write_text(text)
    return client.deploy_function(tmp_path / "counting.py")


def test_the_programs_of_the_page_run_as_printed(shared_node, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    calls, function, asynchronous = blocks
    (tmp_path / "echo.py").write_text(function)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "FAIRLEAD_ENDPOINT": shared_node.endpoint,
                   "FAIRLEAD_CACHE": str(tmp_path / "cache")}
    said = [subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, cwd=tmp_path, env=environment, timeout=120)
            for program in (calls, asynchronous)]
    assert [one.returncode for one in said] == [0, 0], said[0].stderr + said[1].stderr
    lines = said[0].stdout.splitlines()
    assert lines[:4] == ["{'n': 3}", str([{"n": n} for n in range(5)]), "{'n': 4}", "None"]
    eventually(lambda: b"called with {'n': 3}" in shared_node.call("GET", "/fairlead/v1/functions/echo/log")[2])
    assert said[1].stdout.splitlines() == ["[1, 2]", str(list(range(100)))]


class CutProxy:
    """Passes requests on to a node, and cuts the first answers off before a byte of them has come."""

    def __init__(self, node, cuts):
        self.node, self.cuts = node, cuts
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(connection,), daemon=True).start()

    @staticmethod
    def request_of(client):
        """All of it, in however many pieces it comes."""
        data = b""
        while data.find(b"\r\n\r\n") < 0 or len(data) < data.find(b"\r\n\r\n") + 4 + int(re.search(rb"(?i)content-length: (\d+)", data)[1]):
            more = client.recv(1 << 20)
            if not more:
                return b""
            data += more
        return data

    def carry(self, client):
        with client, socket.create_connection((self.node.host, self.node.port)) as node:
            while request := self.request_of(client):
                node.sendall(request)
                answer = node.recv(1 << 20)
                if self.cuts > 0:
                    self.cuts -= 1
                    return
                client.sendall(answer)


def test_a_call_whose_answers_are_lost_runs_once(shared_node, client, tmp_path):
    deployed(client, tmp_path, COUNTING)
    proxy = CutProxy(shared_node, cuts=2)
    with fairlead.Client(proxy.url) as cut:
        assert cut.function("counting")({"n": 1}) == {"runs": 1, "event": {"n": 1}}
    assert client.function("counting")({"n": 2})["runs"] == 2, "the first call ran once, though it was sent three times"

    async def ask():
        proxy.cuts = 2
        async with fairlead.AsyncClient(proxy.url) as cut:
            return await cut.function("counting")({"n": 3})

    assert asyncio.run(ask())["runs"] == 3
    assert client.function("counting")({"n": 4})["runs"] == 4
    proxy.listener.close()


def test_a_late_answer_is_asked_for_by_the_id_of_its_call(shared_node, client):
    shared_node.deploy("misbehave-late", MISBEHAVE)
    path = shared_node.home / "gpu/late"
    payload = {"do": "gate", "gate": "late"}
    with pytest.raises(TimeoutError):
        client.invoke("misbehave-late", payload, invocation_id="one", timeout=2)
    path.touch()
    assert client.invoke("misbehave-late", payload, invocation_id="one")
    function = next(f for f in shared_node.status()["functions"] if f["name"] == "misbehave-late")
    assert function["stats"]["invocations"] == 1


def test_a_node_s_unix_socket_and_its_operator(start_node, tmp_path):
    node = start_node(is_open=False)
    with fairlead.Client(f"unix:{node.state}/operator.sock") as client:
        assert client.is_local and client.request("GET", "/fairlead/v1/status")[0]

    async def ask():
        async with fairlead.AsyncClient(f"unix:{node.state}/operator.sock") as client:
            return await client.status()

    assert asyncio.run(ask())["version"]
    with fairlead.Client(node.endpoint, token="FLKnothing.at-all") as client, pytest.raises(fairlead.RequestError, match="401|403"):
        client.request("GET", "/fairlead/v1/status")


def test_https_is_spoken_to_whom_a_certificate_says(start_node, tmp_path, monkeypatch):
    subprocess.run([BUILD / "bin/fairlead", "certificate", "--host", "127.0.0.1", "--out", tmp_path / "tls"], check=True, capture_output=True)
    node = start_node("--tls-certificate", tmp_path / "tls/certificate.pem", "--tls-key", tmp_path / "tls/key.pem")
    url = f"https://127.0.0.1:{node.port}"
    with fairlead.Client(url, retries=0) as client, pytest.raises(OSError, match="certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
        client.request("GET", "/healthz")
    monkeypatch.setenv("FAIRLEAD_CA", str(tmp_path / "tls/certificate.pem"))
    with fairlead.Client(url) as client:
        assert client.request("GET", "/healthz")[1] == b"ok\n"

    async def ask():
        async with fairlead.AsyncClient(url) as client:
            return (await client.request("GET", "/healthz"))[1]

    assert asyncio.run(ask()) == b"ok\n"


def test_an_event_that_failed_for_good_says_so(start_node):
    node = start_node(event_retry=0.05)
    node.deploy("misbehave", MISBEHAVE)
    with fairlead.Client(node.endpoint) as client:
        good, bad = client.send("misbehave", {"do": "echo"}), client.send("misbehave", {"do": "crash"})
        letter = eventually(bad.failure)
        assert letter["request_id"] == bad.request_id and letter["attempts"] == 3
        assert good.failure() is None


def test_logs_follow_a_function(shared_node, client, tmp_path):
    counting = deployed(client, tmp_path, COUNTING.replace("    runs.append(event)", "    runs.append(event); print('saw', event)"))
    counting({"n": 1})
    lines = counting.logs(follow=True)
    assert any("saw {'n': 1}" in line for line in iter(lines.__next__, None) if "saw" in line)
    counting({"n": 2})
    assert next(line for line in lines if "saw" in line) == "saw {'n': 2}"


def test_a_thousand_calls_at_once_of_one_process(client, tmp_path):
    deployed(client, tmp_path, COUNTING)

    async def ask():
        async with fairlead.AsyncClient(client_url) as many:
            function = many.function("counting")
            return [answer async for answer in function.map(range(1000), at_once=200)]

    client_url = f"http://{client.pool.endpoint.host}:{client.pool.endpoint.port}"
    answers = asyncio.run(ask())
    assert [answer["event"] for answer in answers] == list(range(1000))
