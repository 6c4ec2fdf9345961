"""The clients, of threads and of asyncio, against a node that a test made: who runs what how often, and what is left of a failure."""

import asyncio
import json
import multiprocessing
import pathlib
import socket
import subprocess
import sys
import threading

import numpy
import pytest
from fake_node import FakeNode
from sdk_paths import ROOT

import fairlead
from fairlead.client import MOST_AT_ONCE
from fairlead.logs import ANCHOR_BYTES, LogFollower
from fairlead.transport import MOST_IDLE, Endpoint

TYPED = ["__init__", "aio", "client", "credentials", "errors", "logs", "objects", "ray", "share", "transport", "values", "author"]


@pytest.fixture
def node(tmp_path):
    node = FakeNode(tmp_path)
    node.functions["echo"] = lambda body: body
    node.functions["double"] = lambda body: json.dumps(json.loads(body) * 2).encode()
    yield node
    node.answer_gate.set()
    node.stop()


@pytest.fixture
def client(node):
    with fairlead.Client(node.url) as client:
        yield client


def calls(node):
    return [headers for _, path, headers, _ in node.received if path.endswith("/invocations")]


def test_what_is_typed_is_typed_strictly():
    files = [str(path) for name in TYPED for path in [ROOT / f"python/fairlead/{name}", ROOT / f"python/fairlead/{name}.py"] if path.exists()]
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir=/dev/null", *files],
                          capture_output=True, text=True, cwd=ROOT / "python")
    assert done.returncode == 0, done.stdout
    assert (ROOT / "python/fairlead/py.typed").is_file()


# ---- values

def test_documents_and_arrays_go_and_come_as_values(client):
    echo = client.function("echo")
    for value in ({"größe": [1, None, True]}, [], 0, "text"):
        assert echo(json.dumps(value)) == value == echo({"v": value})["v"]
    array = numpy.arange(12, dtype="f2").reshape(3, 4)[:, ::2]
    back = echo(array)
    assert back.dtype == array.dtype and (back == array).all()
    assert echo({"n": numpy.int64(3), "a": numpy.ones(2)}) == {"n": 3, "a": [1, 1]}
    assert echo(b"") is None and echo(b"\xff") == b"\xff"
    for wrong in ({"n": {1}}, object(), numpy.array([object()])):
        with pytest.raises(TypeError):
            echo(wrong)


def test_an_array_with_a_pickle_in_it_is_not_read(node, client):
    node.functions["evil"] = lambda _: (b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(127)
                                        + b"\ncos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ValueError, match="pickle"):
        client.function("evil")()


# ---- threads

def test_threads_share_a_client(node, client):
    """Each of a hundred calls gets its own answer, and no more connections are kept than may be."""
    answers = {}

    def ask(number):
        answers[number] = client.function("double")(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: 2 * number for number in range(100)}
    assert 1 <= len(client.pool.idle()) <= MOST_IDLE


def test_map_keeps_the_order_and_runs_no_more_at_once_than_it_may(node, client):
    running, most, lock = [0], [0], threading.Lock()

    def work(body):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        with lock:
            running[0] -= 1
        return body

    node.functions["work"] = work
    taken = []
    results = client.function("work").map((taken.append(n) or n for n in range(50)), at_once=4)
    assert taken == []
    assert next(results) == 0 and len(taken) == 4, "payloads are taken as they are needed"
    assert [0, *results] == list(range(50)) and most[0] <= 4
    for wrong in (0, MOST_AT_ONCE + 1):
        with pytest.raises(ValueError, match="at_once"):
            client.map("work", [1], at_once=wrong)


def test_a_failure_stands_where_its_answer_would(node, client):
    results = client.function("absent").map([1, 2], return_exceptions=True)
    assert [type(one) for one in results] == [fairlead.RequestError, fairlead.RequestError]
    mapped = client.map("absent", [1, 2])
    with pytest.raises(fairlead.RequestError, match="404"):
        next(mapped)


def test_a_future_is_of_the_standard_library(client):
    future = client.function("double").submit(21)
    assert future.result(timeout=60) == 42
    assert client.submit("echo", b"1").result(timeout=60) == b"1"


def test_a_client_goes_on_in_a_forked_process(node, client):
    assert client.function("double")(1) == 2
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=lambda: answers.put(client.function("double")(2)))
    child.start()
    assert answers.get(timeout=60) == 4
    child.join()
    assert client.function("double")(4) == 8, "its connection is its own still"


# ---- what is sent again

def test_a_call_whose_connection_ends_is_sent_again_under_one_id(node, client):
    node.swallow = 2
    assert client.function("double")(2) == 4
    ids = [headers["amz-sdk-invocation-id"] for headers in calls(node)]
    assert len(ids) == 3 and len(set(ids)) == 1
    node.swallow = 3
    with pytest.raises(ConnectionError):
        client.function("double")(2)
    node.swallow = 0
    assert client.function("double")(3) == 6


def test_a_node_that_is_busy_is_asked_again_and_a_refusal_is_not(node, client):
    node.refusals = [(429, {"Retry-After": "0"}), (503, {})]
    assert client.function("double")(2) == 4 and len({headers["amz-sdk-invocation-id"] for headers in calls(node)}) == 1
    node.refusals = [(400, {}), (200, {})]
    with pytest.raises(fairlead.RequestError, match="400"):
        client.invoke("double", b"1")
    node.refusals = [(429, {})] * 3
    with pytest.raises(fairlead.RequestError, match="429"):
        client.invoke("double", b"1")
    node.received.clear()
    node.refusals = [(429, {})]
    with pytest.raises(fairlead.RequestError, match="429"):
        client.send("double", b"1")
    assert len(node.received) == 1, "an event is not sent twice"


def test_a_lost_answer_is_asked_for_by_its_id(node, client):
    node.answer_gate.clear()
    with pytest.raises(TimeoutError):
        client.invoke("double", b"4", invocation_id="mine", timeout=0.05)
    node.answer_gate.set()
    assert client.invoke("double", b"4", invocation_id="mine") == b"8"
    assert [headers["amz-sdk-invocation-id"] for headers in calls(node)] == ["mine", "mine"]


def test_an_event_has_an_id(client):
    assert client.send("echo", {"n": 1}).request_id.startswith("event-")


def test_retries_are_bounded(node):
    for wrong in (-1, 11):
        with pytest.raises(ValueError, match="retries"):
            fairlead.Client(node.url, retries=wrong)
    with fairlead.Client(node.url, retries=0) as client:
        node.swallow = 1
        with pytest.raises(ConnectionError):
            client.invoke("echo", b"")
        assert len(node.received) == 1


# ---- addresses

def test_an_address_is_http_https_or_a_unix_socket():
    assert Endpoint.of("unix:/run/x.sock") == Endpoint.of("unix:///run/x.sock") == Endpoint("unix", path="/run/x.sock")
    assert Endpoint.of("https://gpu.example.com").port == 443 and Endpoint.of("10.0.0.1:9001").scheme == "http"
    assert Endpoint.of("http://[::1]:9001").is_local
    for wrong in ("unix:", "unix:/" + "x" * 200, "ftp://x", "http://", "http://x:99999", "http://x/path", "http://x?y"):
        with pytest.raises(ValueError, match="is wanted"):
            fairlead.Client(wrong)


def test_a_unix_socket_is_spoken_to(tmp_path):
    path = tmp_path / "node.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def answer():
        for _ in range(2):
            connection, _ = listener.accept()
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            connection.close()

    thread = threading.Thread(target=answer)
    thread.start()
    with fairlead.Client(f"unix:{path}") as client:
        assert client.request("GET", "/healthz")[1] == b"ok" and client.is_local

    async def ask():
        async with fairlead.AsyncClient(f"unix:{path}") as client:
            return (await client.request("GET", "/healthz"))[1]

    assert asyncio.run(ask()) == b"ok"
    thread.join()
    listener.close()


# ---- asyncio

def run(node, body):
    async def main():
        async with fairlead.AsyncClient(node.url) as client:
            return await asyncio.wait_for(body(client), 60)
    return asyncio.run(main())


def test_asyncio_calls_at_once_and_in_order(node):
    async def body(client):
        double = client.function("double")
        assert await asyncio.gather(*(double(n) for n in range(50))) == [2 * n for n in range(50)]
        assert [n async for n in double.map(range(30), at_once=5)] == [2 * n for n in range(30)]
        failures = [type(e).__name__ async for e in client.function("absent").map([1, 2], return_exceptions=True)]
        assert failures == ["RequestError", "RequestError"]
        assert (await client.function("echo")(numpy.ones(3)) == 1).all()
        assert await client.invoke("echo", b"x" * 3_000_000) == b"x" * 3_000_000
        assert len(client._idle) <= MOST_IDLE

    run(node, body)


def test_asyncio_sends_again_what_it_may(node):
    async def body(client):
        node.swallow = 2
        assert await client.function("double")(2) == 4
        assert len({headers["amz-sdk-invocation-id"] for headers in calls(node)}) == 1
        node.refusals = [(503, {"Retry-After": "0"})]
        assert await client.function("double")(2) == 4
        node.received.clear()
        node.swallow = 1
        with pytest.raises(ConnectionError):
            await client.invoke("double", b"1", event=True)
        assert len(node.received) == 1

    run(node, body)


def test_a_cancelled_or_late_call_costs_its_connection_and_no_more(node):
    async def body(client):
        node.answer_gate.clear()
        with pytest.raises(TimeoutError):
            await client.invoke("double", b"1", timeout=0.05)
        task = asyncio.ensure_future(client.function("double")(1))
        while len(node.received) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        node.answer_gate.set()
        assert await client.function("double")(5) == 10
        with pytest.raises(ValueError, match="line's end"):
            await client.invoke("double", b"1", headers={"X": "a\r\nY: b"})

    run(node, body)


@pytest.mark.parametrize("said", [b"nonsense\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                                  b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"])
def test_a_node_that_ends_half_way_is_a_connection_error(said):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def answer():
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(said)
        connection.close()

    thread = threading.Thread(target=answer)
    thread.start()

    async def ask():
        async with fairlead.AsyncClient("http://127.0.0.1:%d" % listener.getsockname()[1], retries=0) as client:
            await client.request("GET", "/")

    with pytest.raises(ConnectionError):
        asyncio.run(ask())
    thread.join()
    listener.close()


STRANGE = [b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
           b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n"]
HALF = [b"nonsense\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"]


class Talker:
    """Says these things, one for each request, on as many connections as are opened, each of which ends when what was said is over."""

    def __init__(self, *said, keeps=False):
        self.said, self.keeps, self.connections = list(said), keeps, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while self.said:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                while connection.recv(65536) and self.said:
                    connection.sendall(self.said.pop(0))
                    if not self.keeps:
                        break

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


@pytest.mark.parametrize("said", [*HALF, *STRANGE[2:]], ids=range(6))
def test_what_is_no_answer_is_a_connection_error_to_threads_too(said):
    with Talker(said) as talker, fairlead.Client(talker.url, retries=0) as client, pytest.raises(ConnectionError):
        client.request("GET", "/")


@pytest.mark.parametrize("said", STRANGE, ids=range(4))
def test_what_is_no_answer_is_a_connection_error_to_asyncio_too(said):
    async def ask():
        async with fairlead.AsyncClient(talker.url, retries=0) as client:
            await client.request("GET", "/")

    with Talker(said) as talker, pytest.raises(ConnectionError):
        asyncio.run(ask())


def test_a_refusal_of_a_body_that_is_not_read_is_the_answer(tmp_path):
    """A node says that a body is too large, and ends the connection, before all of it has been sent; it is sent once."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    taken = []

    def refuse():
        while True:
            connection, _ = listener.accept()
            taken.append(connection)
            with connection:
                read = 0
                while read < 1 << 20:
                    read += len(connection.recv(1 << 16))
                connection.sendall(b'HTTP/1.1 413 Too Large\r\nContent-Length: 24\r\n\r\n{"Message": "too large"}')

    threading.Thread(target=refuse, daemon=True).start()
    with fairlead.Client(f"unix:{tmp_path}/s", timeout=30) as client, pytest.raises(fairlead.RequestError, match="413.*too large"):
        client.invoke("f", b"x" * (8 << 20))
    assert len(taken) == 1

    async def ask():
        async with fairlead.AsyncClient(f"unix:{tmp_path}/s", timeout=30) as client:
            await client.invoke("f", b"x" * (8 << 20))

    with pytest.raises(fairlead.RequestError, match="413.*too large"):
        asyncio.run(ask())
    assert len(taken) == 2


def test_an_event_is_not_sent_again_whatever_says_that_it_is_one(node):
    node.swallow = 1
    with fairlead.Client(node.url) as client, pytest.raises(ConnectionError):
        client.invoke("echo", b"1", headers={"x-amz-invocation-type": "Event"})
    assert len(calls(node)) == 1


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(ValueError, match="token=") as refused:
        fairlead.Client("http://user:s3cret@127.0.0.1:9001")
    assert "s3cret" not in str(refused.value)


FIRST, SECOND = (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % number for number in (1, 2))
LATE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"


def test_what_a_node_says_unasked_is_no_answer_to_the_next_request():
    """It said that it ends a connection that idles, or more than its answer's length."""
    async def ask():
        async with fairlead.AsyncClient(talker.url) as client:
            first = (await client.request("GET", "/"))[1]
            return first, (await client.request("GET", "/"))[1]

    with Talker(FIRST + LATE, SECOND) as talker, fairlead.Client(talker.url) as client:
        assert [client.request("GET", "/")[1] for _ in range(2)] == [b"1", b"2"]
    with Talker(FIRST + LATE, SECOND) as talker:
        assert asyncio.run(ask()) == (b"1", b"2") and talker.connections == 2


def submitted_in_a_fork(client, results):
    results.put(client.submit("double", 3).result(timeout=30))


def test_futures_go_on_in_a_forked_process(node, client):
    assert client.submit("double", 2).result() == b"4"  # so that there are threads, which a fork has not
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=submitted_in_a_fork, args=(client, results), daemon=True)
    process.start()
    assert results.get(timeout=60) == b"6"
    process.join()
    assert client.submit("double", 4).result() == b"8"


# ---- logs

def test_a_follower_misses_nothing_of_a_log_that_repeats_itself():
    follower, log, given = LogFollower(), b"", b""
    for _ in range(3000):
        log += b"called\n"
        given += follower.next(log)
    assert given == log


def test_a_log_is_followed_over_a_restart(node, client, monkeypatch):
    monkeypatch.setattr("fairlead.client.LOG_PERIOD_S", 0.01)
    monkeypatch.setattr("fairlead.aio.LOG_PERIOD_S", 0.01)
    node.logs["f"] = b"before\n"
    lines = client.logs("f", follow=True)
    assert next(lines) == "before"
    port = node.server.server_port
    client.pool.close()
    node.server.shutdown()
    node.server.server_close()  # a connection is refused now
    node.logs["f"] += b"after\n"

    def come_back():
        node.server = type(node.server)(("127.0.0.1", port), node.server.RequestHandlerClass)
        node.server.daemon_threads = True
        node.server.serve_forever()

    threading.Timer(0.3, come_back).start()
    assert next(lines) == "after"
    monkeypatch.setattr("fairlead.client.LOG_PATIENCE_S", 0.05)
    lines = client.logs("f", follow=True)
    assert [next(lines), next(lines)] == ["before", "after"]
    node.server.shutdown()
    node.server.server_close()
    client.pool.close()
    with pytest.raises(ConnectionError):
        next(lines)
    threading.Thread(target=come_back, daemon=True).start()


def test_a_follower_gives_what_is_new():
    follower = LogFollower()
    assert follower.next(b"a\nb\n") == b"a\nb\n" and follower.next(b"a\nb\n") == b"" and follower.next(b"a\nb\nc\n") == b"c\n"
    long = b"x" * (2 * ANCHOR_BYTES)
    follower = LogFollower()
    assert follower.next(long) == long and follower.next(long + b"1") == b"1"
    assert follower.next(b"another log") == b"another log" and follower.next(b"") == b"" and follower.next(b"another log!") == b"!"


def test_logs_are_lines_and_may_be_followed(node, client, monkeypatch):
    node.logs["f"] = "eins\nzwei größe\nhalf".encode()
    assert list(client.logs("f")) == ["eins", "zwei größe", "half"]
    monkeypatch.setattr("fairlead.client.LOG_PERIOD_S", 0.01)
    lines = client.logs("f", follow=True)
    assert [next(lines), next(lines)] == ["eins", "zwei größe"]
    node.logs["f"] += b" and half\nmore\n"
    assert [next(lines), next(lines)] == ["half and half", "more"]


def test_the_package_says_what_it_has():
    assert "Client" in dir(fairlead) and "ktask" in dir(fairlead) and fairlead.Client is fairlead.client.Client
    with pytest.raises(AttributeError, match="Clinet"):
        fairlead.Clinet
    listed = {path.stem for path in pathlib.Path(fairlead.__file__).parent.glob("[a-z]*.py")}
    assert listed - {"logs", "transport", "values", "credentials"} <= set(dir(fairlead))
