"""HTTP to a node: where it is, connections that are kept, and what may be sent again.

    endpoint = Endpoint.of("unix:/run/fairlead.sock")
    pool = Pool(endpoint, timeout=900, retries=2)
    answer = pool.exchange("GET", "/healthz", None, {})     # Answer(status=200, ...)

A connection carries one request at a time; a pool opens as many as there are requests at once, and keeps up to MOST_IDLE. Any thread may
use a pool. What fails on its way, or is answered 429 or 503, is sent again where a second run cannot follow from it: reads, writes of
a whole thing, and what carries an id by which the node knows a repeat (REPEAT_ID)."""

from __future__ import annotations

import dataclasses
import http.client
import json
import os
import random
import select
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Iterator, Mapping, Union, cast

from fairlead.errors import RequestError

REPEAT_ID = "amz-sdk-invocation-id"  # a node runs the invocations that have the same one once
REPEATABLE = ("GET", "HEAD", "PUT")
MOST_IDLE = 32                # connections that are kept
FIRST_WAIT_S, MOST_WAIT_S = 0.1, 10.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WANTED = "one like http://127.0.0.1:9001, https://gpu.example.com:9001 or unix:/run/fairlead/operator.sock is wanted"

Body = Union[bytes, bytearray, memoryview, None]


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """Where a node is. path: of a Unix socket; else "", and a host and a port are there."""

    scheme: str
    host: str = "localhost"
    port: int = 0
    path: str = ""

    @staticmethod
    def of(url: str) -> Endpoint:
        """ValueError names the URL and what is wanted."""
        if url.startswith("unix:"):
            path = url.removeprefix("unix:")
            path = "/" + path.lstrip("/") if path.startswith("/") else path
            if not path or len(os.fsencode(path)) > 107:
                raise ValueError(f"the address is {url}, a path of 1 to 107 bytes is wanted after unix:")
            return Endpoint("unix", path=path)
        if "@" in url:
            raise ValueError("the URL has a user or a password in it, which a node does not know; give a key as token= or FAIRLEAD_TOKEN")
        parts = urllib.parse.urlsplit(url if "//" in url else f"http://{url}")
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.path.strip("/") or parts.query:
            raise ValueError(f"the URL is {url}, {WANTED}")
        return Endpoint(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80))

    @property
    def is_local(self) -> bool:
        return self.scheme == "unix" or self.host in LOOPBACK


@dataclasses.dataclass
class Answer:
    status: int
    reason: str
    headers: Mapping[str, str]  # by name, whatever its case
    body: bytes

    def checked(self) -> Answer:
        """Itself where it is a success; RequestError of anything else."""
        if self.status < 300:
            return self
        try:
            message = json.loads(self.body).get("Message") or self.body.decode(errors="replace")
        except (ValueError, AttributeError):
            message = self.body.decode(errors="replace")
        raise RequestError(self.status, self.headers.get("x-amzn-ErrorType", self.reason), message)

    def wait_s(self, attempt: int) -> float | None:
        """How long before it is asked again; None: another time gives no other answer."""
        return wait_before(attempt, self.headers.get("Retry-After")) if self.status in (429, 503) else None


def may_repeat(method: str, headers: Mapping[str, str]) -> bool:
    said = {name.lower(): value for name, value in headers.items()}
    if said.get("x-amz-invocation-type", "").lower() == "event":  # which a node runs as often as it gets it
        return False
    return method in REPEATABLE or REPEAT_ID in said


def wait_before(attempt: int, asked: str | None = None) -> float:
    """0.1 s, 0.2 s, 0.4 s ..., half of it by chance; or what the node asks for."""
    wait = FIRST_WAIT_S * 2.0 ** min(attempt, 10)
    if asked and asked.isdigit():
        wait = max(wait, float(asked[:6]))
    return min(wait, MOST_WAIT_S) * random.uniform(0.5, 1)


def tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    if os.environ.get("FAIRLEAD_CA"):
        context.load_verify_locations(os.environ["FAIRLEAD_CA"])
    if os.environ.get("FAIRLEAD_CLIENT_CERTIFICATE"):
        context.load_cert_chain(os.environ["FAIRLEAD_CLIENT_CERTIFICATE"], os.environ.get("FAIRLEAD_CLIENT_KEY"))
    return context


class Attempts:
    """Of one request: whether it goes out again, and after how many seconds. None: it does not."""

    def __init__(self, repeatable: bool, retries: int) -> None:
        self._left = retries if repeatable else 0
        self._made = 0

    def _again(self, wait: float | None) -> float | None:
        if self._left == 0 or wait is None:
            return None
        self._left -= 1
        self._made += 1
        return wait

    def after(self, error: Exception, reused: bool) -> float | None:
        """The node may have closed the idle connection, or have died with the request: who knows. One that refuses is not there."""
        if isinstance(error, ConnectionRefusedError):
            return None
        return self._again(0.0 if reused and self._made == 0 else wait_before(self._made))

    def after_answer(self, answer: Answer) -> float | None:
        return self._again(answer.wait_s(self._made))


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except BaseException:
            self.sock.close()
            raise


class Pool:
    """Connections to one node. close() ends those that are idle; those in use end with their request."""

    def __init__(self, endpoint: Endpoint, timeout: float, retries: int) -> None:
        if not 0 <= retries <= 10:
            raise ValueError(f"retries is {retries}, 0 to 10 is possible")
        self.endpoint, self.timeout, self.retries = endpoint, timeout, retries
        self._context = tls_context() if endpoint.scheme == "https" else None
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._pid = os.getpid()

    def exchange(self, method: str, path: str, body: Body, headers: Mapping[str, str], timeout: float | None = None) -> Answer:
        """The node's last answer. OSError: there is none; a ConnectionError, where what came is none of HTTP or ended half way."""
        attempts = Attempts(may_repeat(method, headers), self.retries)
        while True:
            connection = self._take()
            reused = connection.sock is not None
            try:
                answer = self._once(connection, method, path, body, headers, timeout)
            except ConnectionError as error:
                wait = attempts.after(error, reused)
                if wait is None:
                    raise
            else:
                wait = attempts.after_answer(answer)
                if wait is None:
                    return answer
            time.sleep(wait)  # sleep: the node asked for it, or has to come back

    def _once(self, connection: http.client.HTTPConnection, method: str, path: str, body: Body, headers: Mapping[str, str],
              timeout: float | None) -> Answer:
        """Whatever happens, the connection is kept for the next request or closed."""
        limit = self.timeout if timeout is None else timeout
        connection.timeout = limit
        if connection.sock is not None:
            connection.sock.settimeout(limit)
        is_whole = True
        try:
            try:
                connection.request(method, path, body=body, headers=dict(headers))
            except (BrokenPipeError, ConnectionResetError):
                is_whole = False  # a node says what it does not take, and does not read the rest
            response = connection.getresponse()
            answer = Answer(response.status, response.reason, cast("Mapping[str, str]", response.headers), response.read())
        except BaseException as error:
            connection.close()
            if isinstance(error, http.client.HTTPException) and not isinstance(error, (OSError, http.client.InvalidURL)):
                raise ConnectionError(f"the node's answer is no HTTP, or ended half way: {error}") from None
            raise
        if is_whole:
            self._give_back(connection)
        else:
            connection.close()
        return answer

    def stream(self, method: str, path: str, body: Body, headers: Mapping[str, str], timeout: float | None = None) -> Streamed:
        """An answer that is read as it comes. Sent once: what has begun to come cannot be asked for again."""
        connection = self._new()  # a kept one may have been closed by the node a moment ago, and nothing may be sent twice here
        connection.timeout = self.timeout if timeout is None else timeout
        try:
            connection.request(method, path, body=body, headers=dict(headers))
            response = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        return Streamed(response, lambda: self._give_back(connection), connection.close)

    def _take(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if self._pid != os.getpid():  # a fork: the connections are the parent's
                    self._idle, self._pid = [], os.getpid()
                if not self._idle:
                    break
                connection = self._idle.pop()
            if _is_quiet(connection):
                return connection
            connection.close()
        return self._new()

    def _new(self) -> http.client.HTTPConnection:
        if self.endpoint.scheme == "unix":
            return _UnixConnection(self.endpoint.path, self.timeout)
        if self._context:
            return http.client.HTTPSConnection(self.endpoint.host, self.endpoint.port, timeout=self.timeout, context=self._context)
        return http.client.HTTPConnection(self.endpoint.host, self.endpoint.port, timeout=self.timeout)

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if connection.sock is not None and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def idle(self) -> list[Any]:
        """Sockets of the connections that are kept."""
        with self._lock:
            return [connection.sock for connection in self._idle]


class Streamed:
    """An answer as it comes. Iterate over it once, to the end, or close() it: the node is then told that nobody reads on."""

    def __init__(self, response: http.client.HTTPResponse, done: Callable[[], None], drop: Callable[[], None]) -> None:
        self.status, self.reason = response.status, response.reason
        self.headers = cast("Mapping[str, str]", response.headers)
        self._response, self._done, self._drop = response, done, drop

    def whole(self) -> Answer:
        return Answer(self.status, self.reason, self.headers, b"".join(self))

    def __iter__(self) -> Iterator[bytes]:
        is_whole = False
        try:
            while part := self._response.read1(64 << 10):
                yield part
            is_whole = True
        except http.client.HTTPException as error:
            raise ConnectionError(f"the answer ended in the middle: {error!r}") from None
        finally:
            (self._done if is_whole else self._drop)()

    def close(self) -> None:
        self._drop()


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Nothing is expected on an idle connection: what can be read there is its end."""
    if connection.sock is None:
        return False
    readable = select.poll()
    readable.register(connection.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
    return not readable.poll(0)
