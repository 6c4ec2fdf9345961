"""What streams cost: how much later than the function's own first byte its client has it, and what a node keeps for each of a thousand.

  python3 -m bench.streams_bench          a node on this machine, software GPU; 1,000 instances, so about 12 GiB and some minutes

Times are of one run. The function says itself how long it took until its first part, and is believed: both clocks are this machine's.
"""

import http.client
import json
import pathlib
import resource
import socket
import statistics
import tempfile
import time

from bench.measure import BUILD, report
from harness.node import Node

STREAMS, GPUS, SLOTS = 1000, 16, 63
CALLS, WARM_UP = 300, 20
OWN_MS = (0, 5, 20)
BOUND_FOR_MS = 20  # what a small language model takes for its first token

# Lambda's Runtime API over a plain socket: a thousand interpreters with nothing imported.
SPEAKER = r'''#!/usr/bin/python3 -IS
import os, socket, time
host, port = os.environ["AWS_LAMBDA_RUNTIME_API"].split(":")
node = socket.create_connection((host, int(port)))
node.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
file = node.makefile("rb")
API = b"/2018-06-01/runtime/invocation/"

def answer():
    file.readline()
    headers = {}
    while (line := file.readline().strip()):
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    return headers, file.read(int(headers[b"content-length"]))

def chunk(part):
    node.sendall(b"%x\r\n%b\r\n" % (len(part), part))

def begin(headers):
    node.sendall(b"POST " + API + headers[b"lambda-runtime-aws-request-id"] + b"/response HTTP/1.1\r\nHost: localhost\r\n"
                 b"Lambda-Runtime-Function-Response-Mode: streaming\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n")

while True:
    node.sendall(b"GET " + API + b"next HTTP/1.1\r\nHost: localhost\r\n\r\n")
    headers, body = answer()
    began = time.monotonic()
    kind, _, number = body.decode().strip('"').partition(" ")
    if kind == "first":  # after so many ms, and says how long it took
        time.sleep(float(number) / 1000)
        own = time.monotonic() - began
        begin(headers)
        chunk(b"%.9f\n" % own)
    else:
        begin(headers)
    if kind == "words":  # so many bytes in pieces of 20, as tokens come
        for _ in range(int(number) // 20):
            chunk(b"nineteen characters\n")
            time.sleep(0.2)
    if kind == "flood":
        try:
            for _ in range(int(number) // 65536):
                chunk(b"x" * 65536)
        except OSError:
            pass
    node.sendall(b"0\r\n\r\n")
    answer()
'''


def deploy(node, folder):
    folder.mkdir()
    (folder / "bootstrap").write_text(SPEAKER)
    (folder / "bootstrap").chmod(0o755)
    node.deploy("speaker", folder, Timeout=900)


def first_bytes(node, own_ms):
    """[(until the client has the first byte, what the function says)] in seconds, one call after another."""
    connection = http.client.HTTPConnection(node.host, node.port, timeout=60)
    taken = []
    for _ in range(WARM_UP + CALLS):
        began = time.monotonic()
        connection.request("POST", "/fairlead/v1/functions/speaker/stream", json.dumps(f"first {own_ms}"))
        answer = connection.getresponse()
        line = answer.readline()
        taken.append((time.monotonic() - began, float(line)))
        answer.read()
    return taken[WARM_UP:]


class Stream:
    """One client that has the head of its answer, and reads what it is told to."""

    def __init__(self, node, event):
        body = json.dumps(event).encode()
        self.socket = socket.create_connection((node.host, node.port))
        self.socket.sendall(b"POST /fairlead/v1/functions/speaker/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    def begin(self):
        self.socket.settimeout(600)
        head = b""
        while b"\r\n\r\n" not in head:
            read = self.socket.recv(64)
            if not read:
                raise ConnectionError(head)
            head += read
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(head)

    def drain(self):
        """What is there now."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(65536):
                pass
        except BlockingIOError:
            pass


def resident_kib(pid):
    """Of the process, without what it shares with files."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise KeyError("RssAnon")


def thousand(node, kind):
    """KiB of the node while STREAMS are open at once, and how many were."""
    streams = [Stream(node, f"{kind} {100_000_000}") for _ in range(STREAMS)]
    for stream in streams:
        stream.begin()
    most = 0
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if kind == "words":
            for stream in streams:
                stream.drain()
        most = max(most, resident_kib(node.process.pid))
        time.sleep(0.1)
    in_flight = node.status()["functions"][0]["in_flight"]
    for stream in streams:
        stream.socket.close()
    while node.status()["functions"][0]["in_flight"] > 0:
        time.sleep(0.1)
    return most, in_flight


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(16384, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        home = pathlib.Path(folder)
        with Node(BUILD, home / "one") as node:
            deploy(node, home / "speaker")
            for own_ms in OWN_MS:
                taken = first_bytes(node, own_ms)
                report(f"first_byte_after_{own_ms}_ms_p50", 1e3 * statistics.median(client for client, _ in taken), "ms",
                       baseline=1e3 * statistics.median(own for _, own in taken), bound=1.3 if own_ms == BOUND_FOR_MS else None,
                       note=f"{CALLS} calls, one at a time; baseline: from delivery to the function's own first part, as it says")
        options = ["--slots", SLOTS, "--pool", SLOTS + 1]
        with Node(BUILD, home / "many", options=options, gpu_environment={"SOFTGPU_DEVICES": str(GPUS)}) as node:
            deploy(node, home / "speaker-2")
            before = resident_kib(node.process.pid)  # no instance is there: what a thousand add is their streams' at most
            for kind, who in (("words", "clients read what comes"), ("flood", "nobody reads, and functions write what they can")):
                kib, in_flight = thousand(node, kind)
                report(f"stream_{kind}_memory", (kib - before) / STREAMS, "KiB", bound=64,
                       note=f"of the node, for each of {in_flight} at once, its instance's place included; {who}")


if __name__ == "__main__":
    main()
