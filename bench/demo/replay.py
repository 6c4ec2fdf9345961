"""Plays arrivals against a node as an open loop: each request leaves at its scheduled time, whatever happened to the
ones before, and its latency counts from that time."""

import asyncio
import time
from dataclasses import dataclass


@dataclass
class Sample:
    function: str
    at: float        # scheduled, seconds from the start
    latency: float   # scheduled time to the last byte of the answer
    service: float   # what the platform charged
    cold: bool
    ok: bool


class Connections:
    """Keep-alive connections to one node, as many as there are requests in flight."""

    def __init__(self, host, port):
        self.address = (host, port)
        self.idle = []

    async def request(self, path, body):
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection(*self.address)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        await reader.readexactly(int(headers.get("content-length", 0)))
        self.idle.append((reader, writer))
        return int(lines[0].split()[1]), headers

    def close(self):
        for _, writer in self.idle:
            writer.close()


async def _one(connections, arrival, start, samples):
    await asyncio.sleep(start + arrival.at - time.monotonic())
    try:
        status, headers = await connections.request(f"/2015-03-31/functions/{arrival.function}/invocations", b"{}")
    except (OSError, asyncio.IncompleteReadError):
        status, headers = 0, {}
    samples.append(Sample(
        function=arrival.function, at=arrival.at, latency=time.monotonic() - start - arrival.at,
        service=float(headers.get("x-gpu-exec-ms", 0)) / 1000, cold=headers.get("x-gpu-start") == "cold",
        ok=status == 200 and "x-amz-function-error" not in headers))


async def _watch(node, total, samples, utilisation, progress):
    while True:
        status = await asyncio.to_thread(node.status)
        utilisation.append(status["gpus"][0]["utilisation"])
        progress(len(samples), total, status["queued"])
        await asyncio.sleep(0.5)


async def _replay(node, arrivals, progress):
    connections = Connections(node.host, node.port)
    samples, utilisation = [], []
    start = time.monotonic() + 0.1
    watcher = asyncio.create_task(_watch(node, len(arrivals), samples, utilisation, progress))
    await asyncio.gather(*(_one(connections, arrival, start, samples) for arrival in arrivals))
    watcher.cancel()
    connections.close()
    return sorted(samples, key=lambda sample: sample.at), utilisation


def replay(node, arrivals, progress):
    """(samples in order of arrival, GPU utilisation sampled twice a second)."""
    return asyncio.run(_replay(node, arrivals, progress))
