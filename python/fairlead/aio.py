"""fairlead.Client for asyncio.

    async with fairlead.AsyncClient() as client:
        hello = client.function("hello")
        await hello({"n": 3})
        async for answer in hello.map(payloads, at_once=100): ...

Requests are written and read by asyncio itself: a thousand at once are a thousand connections and no thread. A task that is cancelled ends
its request, and the node takes a call that still waits out of its queue. What a file system does is done on threads (deploy)."""

from __future__ import annotations

import asyncio
import collections
import json
import ssl
import sys
import urllib.parse
from types import TracebackType
from typing import Any, AsyncIterator, Coroutine, Iterable, Mapping

from fairlead.client import AT_ONCE, LOG_PATIENCE_S, LOG_PERIOD_S, LOG_TAIL_BYTES, Client, invoke_headers
from fairlead.credentials import endpoint_for
from fairlead.errors import FunctionError
from fairlead.logs import MOST_TAIL_BYTES, LogFollower, Patience
from fairlead.transport import MOST_IDLE, Answer, Attempts, Body, Endpoint, may_repeat, tls_context
from fairlead.values import Payload, from_payload, to_payload

HEAD_LIMIT = 64 << 10
MOST_AT_ONCE = 10_000
PART_BYTES = 64 << 10
ONE_WRITE_BYTES = 64 << 10  # of a body that goes with its head, in one packet where it fits


class _Stream:
    """A connection with HTTP/1.1 on it, one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.is_kept = True
        self._streamed = _Headers()

    def is_quiet(self) -> bool:
        """Nothing is expected on an idle connection: what can be read there is its end, or would be taken for the next answer."""
        if self.writer.is_closing():
            return False
        look = self.reader.read(1)
        try:
            look.send(None)  # waits, so there is nothing
        except (StopIteration, OSError):
            return False
        finally:
            look.close()
        return True

    async def exchange(self, head: bytes, body: Body) -> Answer:
        self.writer.write(head + bytes(body) if body and memoryview(body).nbytes <= ONE_WRITE_BYTES else head)
        has_no_body = head.startswith(b"HEAD ")
        if not body or memoryview(body).nbytes <= ONE_WRITE_BYTES:
            await self.writer.drain()
            return await self._answer(has_no_body)
        # A node says what it does not take, and does not read the rest: its answer is read while the body is written. (One that has ended
        # the connection before the first byte of the body is a ConnectionError all the same: asyncio reads nothing after a failed write.)
        self.writer.write(body)
        reading = asyncio.ensure_future(self._answer(has_no_body))
        try:
            await self.writer.drain()
        except ConnectionError:
            answer = await reading
            self.is_kept = False
            return answer
        except BaseException:
            reading.cancel()
            raise
        return await reading

    async def _answer(self, has_no_body: bool) -> Answer:
        first, headers = await self._head()
        while first[1] == "100":
            first, headers = await self._head()
        status = int(first[1])
        self.is_kept = (headers.get("Connection") or "").lower() != "close"
        data = b"" if status in (204, 304) or has_no_body else await self._body(headers)
        return Answer(status, first[2] if len(first) > 2 else "", headers, data)

    async def _head(self) -> tuple[list[str], _Headers]:
        raw = await self.reader.readuntil(b"\r\n\r\n")
        lines = raw.decode("latin-1").split("\r\n")
        first = lines[0].split(" ", 2)
        if len(first) < 2 or not first[0].startswith("HTTP/1.") or not first[1].isdigit():
            raise ConnectionError(f"the node's answer begins with {lines[0][:80]!r}, which is not HTTP/1.1")
        headers = _Headers()
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if colon:
                headers.add(name, value.strip())
        return first, headers

    async def begin(self, head: bytes, body: Body) -> Answer:
        """The head of the answer; its body is for parts() or whole()."""
        self.writer.write(head + bytes(body) if body else head)
        await self.writer.drain()
        first, headers = await self._head()
        while first[1] == "100":
            first, headers = await self._head()
        self.is_kept = (headers.get("Connection") or "").lower() != "close"
        self._streamed = headers
        return Answer(int(first[1]), first[2] if len(first) > 2 else "", headers, b"")

    async def parts(self) -> AsyncIterator[bytes]:
        """Of the answer that was begun, as they come."""
        if (self._streamed.get("Transfer-Encoding") or "").lower() == "chunked":
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                while size:
                    part = await self.reader.read(min(size, PART_BYTES))
                    if not part:
                        raise asyncio.IncompleteReadError(b"", size)
                    size -= len(part)
                    yield part
                await self.reader.readexactly(2)
            while await self.reader.readuntil(b"\r\n") != b"\r\n":
                pass
        elif data := await self._body(self._streamed):
            yield data

    async def _body(self, headers: _Headers) -> bytes:
        if (headers.get("Transfer-Encoding") or "").lower() == "chunked":
            parts = []
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                parts.append(await self.reader.readexactly(size))
                await self.reader.readexactly(2)
            while await self.reader.readuntil(b"\r\n") != b"\r\n":
                pass
            return b"".join(parts)
        length = headers.get("Content-Length")
        if length is None:
            self.is_kept = False
            return await self.reader.read()
        return await self.reader.readexactly(int(length))


class _Headers(Mapping[str, str]):
    """By name, whatever its case."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def add(self, name: str, value: str) -> None:
        self._values[name.lower()] = value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


async def _within(seconds: float, once: Coroutine[Any, Any, Answer]) -> Answer:
    """asyncio.TimeoutError where it takes longer. From Python 3.11 on without a task for it."""
    if sys.version_info < (3, 11):
        return await asyncio.wait_for(once, seconds)
    async with asyncio.timeout(seconds):
        return await once


def _request_head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    if any("\r" in text or "\n" in text for pair in headers.items() for text in pair) or " " in path or "\r" in path or "\n" in path:
        raise ValueError("a header or a path has a line's end in it")
    text = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    return text.encode("latin-1")


class AsyncClient:
    """Arguments as of fairlead.Client. For one event loop."""

    def __init__(self, url: str | None = None, tenant: str | None = None, timeout: float = 900, token: str | None = None,
                 retries: int = 2) -> None:
        self._client = Client(url, tenant, timeout, token, retries)  # of which credentials and deploy() are taken
        self._endpoint = Endpoint.of(url or endpoint_for())
        self._timeout, self._retries = timeout, retries
        self._context: ssl.SSLContext | None = tls_context() if self._endpoint.scheme == "https" else None
        self._idle: list[_Stream] = []

    async def request(self, method: str, path: str, body: Body = None, headers: Mapping[str, str] | None = None,
                      timeout: float | None = None) -> tuple[Mapping[str, str], bytes]:
        """(headers, body) of a success; RequestError of anything else. timeout: of all together, in seconds."""
        given = self._headers(body, headers)
        answer = await self._exchange(_request_head(method, path, given), body, may_repeat(method, given),
                                      self._timeout if timeout is None else timeout)
        answer.checked()
        return answer.headers, answer.body

    def _headers(self, body: Body, headers: Mapping[str, str] | None) -> dict[str, str]:
        return {"Host": self._host(), "Content-Length": str(memoryview(body).nbytes if body else 0), **self._client.headers, **(headers or {})}

    def _host(self) -> str:
        host = f"[{self._endpoint.host}]" if ":" in self._endpoint.host else self._endpoint.host
        return f"{host}:{self._endpoint.port}" if self._endpoint.port else host

    async def _exchange(self, head: bytes, body: Body, repeatable: bool, timeout: float) -> Answer:
        attempts = Attempts(repeatable, self._retries)
        while True:
            reused = bool(self._idle)
            try:
                answer = await _within(timeout, self._once(head, body))
            except asyncio.TimeoutError:
                raise TimeoutError(f"no answer within {timeout:g} s") from None
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                wait = attempts.after(error, reused)
                if wait is None and isinstance(error, asyncio.IncompleteReadError):
                    raise ConnectionError("the node ended the connection before its answer did") from None
                if wait is None:
                    raise
            else:
                wait = attempts.after_answer(answer)
                if wait is None:
                    return answer
            await asyncio.sleep(wait)

    async def _once(self, head: bytes, body: Body) -> Answer:
        stream = await self._take()
        try:
            answer = await stream.exchange(head, body)
        except BaseException as error:
            stream.writer.close()
            if isinstance(error, (ValueError, asyncio.LimitOverrunError)):  # a length that is no number, a head without end
                raise ConnectionError(f"the node's answer is no HTTP: {error}") from None
            raise
        self._give_back(stream)
        return answer

    def _give_back(self, stream: _Stream) -> None:
        if stream.is_kept and len(self._idle) < MOST_IDLE:
            self._idle.append(stream)
        else:
            stream.writer.close()

    async def _take(self) -> _Stream:
        while self._idle:
            stream = self._idle.pop()
            if stream.is_quiet():
                return stream
            stream.writer.close()
        return await self._connect()

    async def _connect(self) -> _Stream:
        at = self._endpoint
        if at.scheme == "unix":
            return _Stream(*await asyncio.open_unix_connection(at.path, limit=HEAD_LIMIT))
        return _Stream(*await asyncio.open_connection(at.host, at.port, ssl=self._context, limit=HEAD_LIMIT))

    async def close(self) -> None:
        for stream in self._idle:
            stream.writer.close()
        self._idle = []
        self._client.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    # ---- calls

    async def invoke(self, name: str, payload: Payload = b"", event: bool = False, headers: Mapping[str, str] | None = None,
                     invocation_id: str | None = None, timeout: float | None = None) -> bytes:
        """As Client.invoke."""
        path = f"/2015-03-31/functions/{urllib.parse.quote(name, safe='')}/invocations"
        answered, data = await self.request("POST", path, to_payload(payload), {**invoke_headers(event, invocation_id), **(headers or {})},
                                            timeout)
        if answered.get("X-Amz-Function-Error"):
            raise FunctionError(data)
        return data

    async def stream(self, name: str, payload: Payload = b"", invocation_id: str | None = None,
                     timeout: float | None = None) -> AsyncIterator[bytes]:
        """As Client.stream; the call begins when the first part is asked for. Who leaves the loop closes the iterator (contextlib.aclosing),
        or leaves that to the event loop: then the function's stream ends."""
        body, limit = to_payload(payload), self._timeout if timeout is None else timeout
        head = _request_head("POST", f"/fairlead/v1/functions/{urllib.parse.quote(name, safe='')}/stream",
                             self._headers(body, invoke_headers(False, invocation_id)))
        stream = await self._connect()  # a kept one may be closed by now, and nothing may be sent twice here
        is_over = False
        try:
            try:
                answer = await asyncio.wait_for(stream.begin(head, body), limit)
                parts = stream.parts()
                if answer.status >= 300 or answer.headers.get("X-Amz-Function-Error"):
                    said = b"".join([part async for part in parts])
                    is_over = True
                    raise FunctionError(Answer(answer.status, answer.reason, answer.headers, said).checked().body)
                while True:
                    try:
                        part = await asyncio.wait_for(parts.__anext__(), limit)
                    except StopAsyncIteration:
                        break
                    yield part
                is_over = True
            except asyncio.TimeoutError:
                raise TimeoutError(f"no part of the answer within {limit:g} s") from None
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                raise ConnectionError("the answer ended in the middle: the function failed, or the node has gone") from None
        finally:
            if is_over:
                self._give_back(stream)
            else:
                stream.writer.close()

    def function(self, name: str) -> AsyncFunction:
        return AsyncFunction(self, name)

    async def logs(self, name: str, follow: bool = False, tail: int = LOG_TAIL_BYTES) -> AsyncIterator[str]:
        """As Client.logs."""
        follower, patience, rest, size = LogFollower(), Patience(LOG_PATIENCE_S), b"", tail
        while True:
            path = f"/fairlead/v1/functions/{urllib.parse.quote(name, safe='')}/log?tail="
            try:
                seen = (await self.request("GET", f"{path}{size}"))[1]
                if not follower.reaches(seen, size):  # more than a tail was written since
                    seen = (await self.request("GET", f"{path}{MOST_TAIL_BYTES}"))[1]
                new = follower.next(seen)
                patience.was_reached()
            except ConnectionError:
                if not follow or patience.is_over():
                    raise
                await asyncio.sleep(LOG_PERIOD_S)
                continue
            *lines, rest = (rest + new).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
            if not follow:
                if rest:
                    yield rest.decode(errors="replace")
                return
            size = max(tail, LOG_TAIL_BYTES)
            await asyncio.sleep(LOG_PERIOD_S)

    # ---- functions

    async def deploy(self, name: str, folder: str, **options: Any) -> None:
        """As Client.deploy."""
        await asyncio.to_thread(self._client.deploy, name, folder, **options)

    async def remove(self, name: str) -> None:
        await self.request("DELETE", f"/2015-03-31/functions/{urllib.parse.quote(name, safe='')}")

    async def status(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((await self.request("GET", "/fairlead/v1/status"))[1])
        return said


class AsyncFunction:
    """As fairlead.client.Function."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client, self.name = client, name

    async def __call__(self, payload: Payload = b"", **options: Any) -> Any:
        return from_payload(await self._client.invoke(self.name, payload, **options))

    async def map(self, payloads: Iterable[Payload], at_once: int = AT_ONCE, return_exceptions: bool = False) -> AsyncIterator[Any]:
        """As Client.map."""
        if not 1 <= at_once <= MOST_AT_ONCE:
            raise ValueError(f"at_once is {at_once}, 1 to {MOST_AT_ONCE} is possible")
        waiting: collections.deque[asyncio.Task[Any]] = collections.deque()
        source = iter(payloads)
        try:
            while True:
                for payload in source:
                    waiting.append(asyncio.ensure_future(self(payload)))
                    if len(waiting) >= at_once:
                        break
                if not waiting:
                    return
                task = waiting.popleft()
                try:
                    result = await task
                except asyncio.CancelledError:
                    task.cancel()
                    raise
                except Exception as error:
                    if not return_exceptions:
                        raise
                    result = error
                yield result
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def __repr__(self) -> str:
        return f"AsyncFunction({self.name})"
