"""Answers that are streamed: AWS's SDK unchanged, plain HTTP, our client; what fails, waits and leaves in the middle."""

import asyncio
import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest
from conftest import BUILD, ROOT, eventually

sys.path.insert(0, str(ROOT / "python"))
from fairlead import AsyncClient, Client, FunctionError  # noqa: E402

RUNTIME = ROOT / "functions/runtime/python/fairlead_runtime.py"
SPEAKER = '''#!/usr/bin/python3
import os, pathlib, sys, time
sys.path.insert(0, "/var/task")
import fairlead_runtime

def wait_for(gate):
    while not pathlib.Path(os.environ["SOFTGPU_HOME"], gate).exists():
        time.sleep(0.005)  # sleep: between two looks

def words(event):
    for number, word in enumerate(event["words"]):
        if number and "gate" in event:
            wait_for(event["gate"] + str(number))
        yield word
    if "fail" in event:
        raise ValueError(event["fail"])
    if event.get("exit"):
        os._exit(3)

def flood(event):
    mark = pathlib.Path(os.environ["SOFTGPU_HOME"], event["mark"])
    sent = 0
    try:
        while sent < event["flood"]:
            yield b"x" * 65536
            sent += 65536
            mark.write_text(str(sent))
    finally:
        mark.with_suffix(".over").write_text(str(sent))

type_of_stream = fairlead_runtime._type_of_stream

def typed(first):
    is_http = isinstance(first, bytes) and first.startswith(b"HTTP")
    return "application/vnd.awslambda.http-integration-response" if is_http else type_of_stream(first)

fairlead_runtime._type_of_stream = typed

def http(event):
    """An answer with a head: its bytes in pieces of `size`, the first behind a mark that is not sent."""
    data = event["http"].encode("latin-1")
    yield HttpBytes(b"HTTP" + data[:event["size"]])
    for at in range(event["size"], len(data), event["size"]):
        yield data[at:at + event["size"]]
    if "fail" in event:
        raise ValueError(event["fail"])

class HttpBytes(bytes):
    pass

encode_part = fairlead_runtime._encode_part
fairlead_runtime._encode_part = lambda part: bytes(part[4:]) if isinstance(part, HttpBytes) else encode_part(part)

def handler(event):
    event = event.json()
    if "http" in event:
        return http(event)
    if event.get("whole"):
        return event["whole"]
    return flood(event) if "flood" in event else words(event)

fairlead_runtime.run(handler)
'''


@pytest.fixture(scope="module")
def speaker(shared_node, tmp_path_factory):
    folder = tmp_path_factory.mktemp("speaker")
    (folder / "bootstrap").write_text(SPEAKER)
    (folder / "bootstrap").chmod(0o755)
    (folder / "fairlead_runtime.py").write_text(RUNTIME.read_text())
    (shared_node.home / "gpu").mkdir(exist_ok=True)
    (shared_node.home / "gpu").chmod(0o777)  # functions are other users, and leave marks there
    shared_node.deploy("speaker", folder, Timeout=60)
    return shared_node


def client_of(node):
    boto3 = pytest.importorskip("boto3")
    return boto3.client("lambda", endpoint_url=node.endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")


def path(name):
    return f"/fairlead/v1/functions/{name}/stream"


def ask(node, **event):
    return Client(node.endpoint).stream("speaker", event)


def open_raw(node, event):
    where = urllib.parse.urlsplit(node.endpoint)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=120)
    connection.request("POST", path("speaker"), json.dumps(event))
    return connection, connection.getresponse()


def test_a_word_is_there_before_the_next_is_made(speaker):
    parts = ask(speaker, words=["one ", "two ", "three"], gate="before")
    assert next(parts) == b"one "
    (speaker.home / "gpu/before1").touch()
    assert next(parts) == b"two "
    (speaker.home / "gpu/before2").touch()
    assert list(parts) == [b"three"]


def test_an_sdk_reads_the_stream_unchanged(speaker):
    lambda_ = client_of(speaker)
    answer = lambda_.invoke_with_response_stream(FunctionName="speaker", Payload=json.dumps({"words": ["a", "b", "c" * 100_000]}), LogType="Tail")
    assert answer["StatusCode"] == 200 and answer["ExecutedVersion"] == "$LATEST"
    assert answer["ResponseStreamContentType"] == "application/vnd.amazon.eventstream"
    events = list(answer["EventStream"])
    assert b"".join(event["PayloadChunk"]["Payload"] for event in events[:-1]) == b"ab" + b"c" * 100_000
    assert "ErrorCode" not in events[-1]["InvokeComplete"] and events[-1]["InvokeComplete"]["LogResult"]


def test_an_sdk_is_told_of_an_error_after_the_first_word(speaker):
    answer = client_of(speaker).invoke_with_response_stream(FunctionName="speaker", Payload=json.dumps({"words": ["a"], "fail": "no more"}))
    events = list(answer["EventStream"])
    assert events[0]["PayloadChunk"]["Payload"] == b"a"
    assert events[-1]["InvokeComplete"] == {"ErrorCode": "Unhandled", "ErrorDetails": "ValueError: no more"}


def test_an_sdk_is_told_of_an_error_before_the_first_word(speaker):
    answer = client_of(speaker).invoke_with_response_stream(FunctionName="speaker", Payload=json.dumps({"words": [], "fail": "nothing"}))
    assert [list(event) for event in answer["EventStream"]] == [["InvokeComplete"]]


def test_a_function_that_answers_whole_is_a_stream_of_one(speaker):
    assert list(ask(speaker, whole={"x": 1})) == [b'{"x": 1}']
    events = list(client_of(speaker).invoke_with_response_stream(FunctionName="speaker", Payload='{"whole": "all"}')["EventStream"])
    assert events[0]["PayloadChunk"]["Payload"] == b"all" and len(events) == 2


def test_who_asks_for_no_stream_gets_it_whole(speaker):
    status, headers, body = speaker.invoke("speaker", json.dumps({"words": ["a", "b"]}))
    assert (status, body) == (200, b"ab") and headers["Content-Type"].startswith("text/plain")
    status, headers, body = speaker.invoke("speaker", json.dumps({"words": ["a"], "fail": "late"}))
    assert headers["X-Amz-Function-Error"] and json.loads(body)["errorMessage"] == "late"
    status, headers, body = speaker.invoke("speaker", json.dumps({"flood": 7 << 20, "mark": "whole"}))
    assert headers["X-Amz-Function-Error"] and "exceeded maximum allowed payload size" in body.decode()


def test_texts_that_look_like_events_are_server_sent_events(speaker):
    connection, answer = open_raw(speaker, {"words": ["data: 1\n\n", "data: 2\n\n"]})
    assert answer.getheader("Content-Type") == "text/event-stream" and answer.getheader("x-amzn-RequestId")
    assert answer.read() == b"data: 1\n\ndata: 2\n\n"
    connection.request("POST", path("speaker"), '{"words": ["again"]}')  # the connection goes on
    assert connection.getresponse().read() == b"again"


def test_a_failure_after_the_first_word_ends_the_connection(speaker):
    parts = ask(speaker, words=["half"], fail="so")
    assert next(parts) == b"half"
    with pytest.raises(ConnectionError, match="in the middle"):
        list(parts)
    with pytest.raises(FunctionError, match="nothing yet"):
        ask(speaker, words=[], fail="nothing yet")


def test_a_function_that_dies_in_the_middle(speaker):
    parts = ask(speaker, words=["half"], exit=True)
    assert next(parts) == b"half"
    with pytest.raises(ConnectionError):
        list(parts)
    assert b"".join(ask(speaker, words=["well"])) == b"well"


def test_its_timeout_ends_a_stream(start_node, tmp_path, speaker):
    speaker.call("PUT", "/2015-03-31/functions/speaker/configuration", '{"Timeout": 1}')
    try:
        parts = ask(speaker, words=["half", "never"], gate="nobody opens this")
        assert next(parts) == b"half"
        with pytest.raises(ConnectionError):
            list(parts)
    finally:
        speaker.call("PUT", "/2015-03-31/functions/speaker/configuration", '{"Timeout": 60}')
    assert b"".join(ask(speaker, words=["well"])) == b"well"


def test_a_client_that_reads_nothing_makes_the_function_wait(speaker):
    where = urllib.parse.urlsplit(speaker.endpoint)
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect((where.hostname, where.port))
    body = json.dumps({"flood": 1 << 30, "mark": "waits"})
    raw.sendall(f"POST {path('speaker')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    mark = speaker.home / "gpu/waits"
    eventually(mark.exists)
    seen = [-1]

    def stands_still():
        now = int(mark.read_text() or 0)
        still, seen[0] = now == seen[0], now
        time.sleep(0.3)  # sleep: between two looks
        return still

    eventually(stands_still)
    assert seen[0] < 16 << 20, "what is sent and not read is in the buffers of sockets"
    assert b"".join(ask(speaker, words=["others", " go on"])) == b"others go on"
    raw.close()
    eventually(lambda: (speaker.home / "gpu/waits.over").exists())  # the client has left: so ends the stream
    assert int((speaker.home / "gpu/waits.over").read_text()) < 1 << 30


def test_a_client_that_leaves_ends_the_stream_and_the_instance_goes_on(speaker):
    connection, answer = open_raw(speaker, {"flood": 1 << 40, "mark": "left"})
    answer.read(1 << 20)
    answer.close()
    connection.close()
    eventually(lambda: (speaker.home / "gpu/left.over").exists())
    assert b"".join(ask(speaker, words=["next"])) == b"next"


def test_more_than_a_stream_may_have_is_cut(speaker):
    total = 0
    with pytest.raises(ConnectionError):
        for part in ask(speaker, flood=1 << 40, mark="endless"):
            total += len(part)
    assert total <= 200 << 20


def test_a_repeat_of_a_stream_runs_nothing_again(speaker):
    client = Client(speaker.endpoint)
    assert b"".join(client.stream("speaker", {"words": ["once"]}, invocation_id="same")) == b"once"
    with pytest.raises(Exception, match="not kept"):
        client.stream("speaker", {"words": ["once"]}, invocation_id="same")
    with pytest.raises(Exception, match="not kept"):
        client.invoke("speaker", {"words": ["once"]}, invocation_id="same")


def test_what_is_refused_has_its_status(speaker):
    with pytest.raises(Exception, match="404|not found"):
        Client(speaker.endpoint).stream("nobody", {})
    status, _, body = speaker.call("POST", "/2021-11-15/functions/speaker/response-streaming-invocations", "{}",
                                   headers={"X-Amz-Invocation-Type": "Event"})
    assert status == 400 and b"no answer to stream" in body


def test_many_at_once_each_have_their_own(speaker):
    answers = {}

    def run(number):
        answers[number] = b"".join(ask(speaker, words=[str(number), ",", "x" * 1000] * 20))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"{number},{'x' * 1000}".encode() * 20 for number in range(16)}


NULS = "\0" * 8
PAGE = json.dumps({"statusCode": 404, "headers": {"Content-Type": "text/html", "X-Gpu-Start": "mine", "Content-Length": "1"}, "cookies": ["a=b"]})


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_answer_may_begin_with_its_http_head(speaker, size):
    connection, answer = open_raw(speaker, {"http": PAGE + NULS + "<p>" + "x" * 100, "size": size})
    assert (answer.status, answer.getheader("Content-Type"), answer.getheader("Set-Cookie")) == (404, "text/html", "a=b")
    assert answer.getheader("X-Gpu-Start") != "mine" and answer.getheader("Content-Length") is None
    assert answer.read() == b"<p>" + b"x" * 100
    connection.request("POST", path("speaker"), '{"words": ["again"]}')  # the connection goes on
    assert connection.getresponse().read() == b"again"


def test_an_sdk_gets_the_http_head_as_it_is(speaker):
    text = PAGE + NULS + "<p>"
    answer = client_of(speaker).invoke_with_response_stream(FunctionName="speaker", Payload=json.dumps({"http": text, "size": 5}))
    assert b"".join(event["PayloadChunk"]["Payload"] for event in answer["EventStream"] if "PayloadChunk" in event) == text.encode()


@pytest.mark.parametrize("head", ["no JSON" + NULS, json.dumps({"headers": {"A": "1\r\nB: 2"}}) + NULS, json.dumps({"statusCode": 101}) + NULS,
                                  "{}", "x" * 70_000])
def test_a_head_that_is_none_is_an_error_and_nothing_of_it_is_sent(speaker, head):
    _, answer = open_raw(speaker, {"http": head, "size": 1000})
    body = json.loads(answer.read())
    assert answer.getheader("X-Amz-Function-Error") and body["errorType"] == "Function.InvalidPrelude" and answer.getheader("B") is None
    assert b"".join(ask(speaker, words=["others", " go on"])) == b"others go on"


def test_a_head_without_a_body(speaker):
    connection, answer = open_raw(speaker, {"http": json.dumps({"statusCode": 204}) + NULS + "dropped", "size": 10})
    assert answer.status == 204 and answer.read() == b""
    connection.request("POST", path("speaker"), '{"words": ["again"]}')
    assert connection.getresponse().read() == b"again"


def test_the_time_to_the_first_byte_is_shown(speaker):
    gate = speaker.home / "gpu/first1"
    gate.unlink(missing_ok=True)
    connection, answer = open_raw(speaker, {"words": ["one", "two"], "gate": "first"})
    first_ms = float(answer.getheader("X-Gpu-First-Byte-Ms"))
    assert first_ms >= float(answer.getheader("X-Gpu-Queue-Ms")) >= 0 and answer.getheader("X-Gpu-Device") == "1"
    request = answer.getheader("x-amzn-RequestId")
    gate.touch()
    assert answer.read() == b"onetwo"

    def report():
        log = speaker.call("GET", "/fairlead/v1/functions/speaker/log?tail=1000000")[2].decode(errors="replace")
        return re.search(rf"REPORT RequestId: {request}.*Time to First Byte: ([0-9.]+) ms", log)

    assert float(eventually(report).group(1)) <= first_ms + 1
    stats = next(function for function in speaker.status()["functions"] if function["name"] == "speaker")["stats"]
    assert stats["streamed"] >= 1 and stats["first_byte_seconds"] > 0
    metrics = speaker.call("GET", "/metrics")[2].decode()
    assert f'fairlead_first_byte_seconds_count{{function="speaker"}} {stats["streamed"]}' in metrics
    shown = subprocess.run([BUILD / "bin/fairlead", "--endpoint", speaker.endpoint, "top", "--once"], capture_output=True, text=True, timeout=120)
    assert "speaker streamed" in shown.stdout and "first byte" in shown.stdout


def test_the_command_line_prints_parts_as_they_come(speaker):
    (speaker.home / "gpu/line1").unlink(missing_ok=True)
    process = subprocess.Popen([BUILD / "bin/fairlead", "--endpoint", speaker.endpoint, "invoke", "speaker", "--stream", "--log", "-d",
                                json.dumps({"words": ["one", "two"], "gate": "line"})], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.read(3) == b"one"
    (speaker.home / "gpu/line1").touch()
    rest, said = process.communicate(timeout=120)
    assert rest == b"two" and process.returncode == 0 and b"first byte after" in said

    def fairlead(event, *options):
        return subprocess.run([BUILD / "bin/fairlead", "--endpoint", speaker.endpoint, *options, "invoke", "speaker", "--stream", "-d",
                               json.dumps(event)], capture_output=True, text=True, timeout=120)

    done = fairlead({"words": ["a", "b"]}, "--json")
    *parts, end = map(json.loads, done.stdout.splitlines())
    assert "".join(part["part"] for part in parts) == "ab" and end["first_byte_ms"] >= 0 and end["version"] == "$LATEST"
    done = fairlead({"words": [], "fail": "nothing"})
    assert done.returncode == 1 and "nothing" in done.stdout
    done = fairlead({"words": ["half"], "fail": "late"})
    assert done.returncode != 0 and done.stdout == "half" and "before the answer did" in done.stderr
    assert subprocess.run([BUILD / "bin/fairlead", "--endpoint", speaker.endpoint, "invoke", "nobody", "--stream"], capture_output=True,
                          timeout=120).returncode == 3


def test_asyncio_reads_the_parts_as_they_come(speaker):
    gates = [speaker.home / f"gpu/async{number}" for number in (1, 2)]
    for gate in gates:
        gate.unlink(missing_ok=True)

    async def run():
        async with AsyncClient(speaker.endpoint) as client:
            got = []
            async for part in client.stream("speaker", {"words": ["one", "two", "three"], "gate": "async"}):
                got.append(part)
                if len(got) < 3:
                    gates[len(got) - 1].touch()
            assert b"".join(got) == b"onetwothree" and len(got) == 3
            assert [part async for part in client.stream("speaker", {"whole": {"x": 1}})] == [b'{"x": 1}']
            with pytest.raises(FunctionError, match="nothing yet"):
                [part async for part in client.stream("speaker", {"words": [], "fail": "nothing yet"})]
            got = []
            with pytest.raises(ConnectionError, match="in the middle"):
                async for part in client.stream("speaker", {"words": ["half"], "fail": "late"}):
                    got.append(part)
            assert got == [b"half"]
            with pytest.raises(TimeoutError):
                [part async for part in client.stream("speaker", {"words": ["a", "b"], "gate": "nobody opens this either"}, timeout=1)]
            answers = await asyncio.gather(*[collect(client, str(number)) for number in range(50)])
            assert answers == [str(number).encode() * 3 for number in range(50)]

    async def collect(client, word):
        return b"".join([part async for part in client.stream("speaker", {"words": [word] * 3})])

    asyncio.run(run())


def test_an_asyncio_client_that_leaves_ends_the_stream(speaker):
    async def run():
        async with AsyncClient(speaker.endpoint) as client:
            async with contextlib.aclosing(client.stream("speaker", {"flood": 1 << 40, "mark": "async-left"})) as parts:
                async for _ in parts:
                    break

    asyncio.run(run())
    eventually(lambda: (speaker.home / "gpu/async-left.over").exists())
