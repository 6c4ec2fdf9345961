"""What a call costs that another node answers, beside one that is answered where it came in; and what gossip costs with 63 others.

  python3 -m bench.peer_bench            a node and a gateway without GPUs on this machine, software GPU; the peers of the gossip are simulated

Ratios of one run, taken in turns.
"""

import asyncio
import hashlib
import hmac
import os
import pathlib
import secrets
import socket
import statistics
import sys
import tempfile
import threading
import time

from bench.measure import BUILD, report, run_json
from harness.node import Node

LOAD = BUILD / "bin/node_load"
ROUNDS, WARM_CALLS, BUSY_CALLS, BUSY_CONNECTIONS = 5, 2000, 4000, 8
SIMULATED, GOSSIP_SECONDS = 63, 20
FUNCTION = "/2015-03-31/functions/noop/invocations"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


def key_file(folder):
    key = pathlib.Path(folder) / "cluster.key"
    key.write_text(secrets.token_hex(32))
    key.chmod(0o600)
    return key


def wait_for(condition, patience=60):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not so within {patience} s: {condition}")
        time.sleep(0.05)


def load(node, requests, connections):
    numbers = run_json(LOAD, "http", "--host", node.host, "--port", node.port, "--path", FUNCTION, "--body", "{}", "--requests", requests,
                       "--warm-up", 200, "--connections", connections)
    if numbers["failures"]:
        sys.exit(f"{numbers['failures']} of {requests} calls failed")
    return numbers


def forwarding():
    with tempfile.TemporaryDirectory() as folder:
        key, ports = key_file(folder), {"home": free_port(), "gate": free_port()}
        peers = [part for port in ports.values() for part in ("--peer", f"http://127.0.0.1:{port}")]

        def node(name, *options, **keywords):
            return Node(BUILD, pathlib.Path(folder) / name, options=["--node-name", name, "--cluster-key", key, *peers, "--listen",
                                                                     f"127.0.0.1:{ports[name]}", *options], **keywords)

        with node("home") as home, node("gate", "--gpus", "0", software=False) as gate:
            wait_for(lambda: b'"home"' in gate.call("GET", "/fairlead/v1/cluster")[2])
            wait_for(lambda: b'"gate"' in home.call("GET", "/fairlead/v1/cluster")[2])
            home.deploy("noop", home.sample("noop"))
            wait_for(lambda: gate.invoke("noop")[0] == 200)
            warm, busy = [], []
            for _ in range(ROUNDS):
                warm.append((load(home, WARM_CALLS, 1), load(gate, WARM_CALLS, 1)))
                busy.append((load(home, BUSY_CALLS, BUSY_CONNECTIONS), load(gate, BUSY_CALLS, BUSY_CONNECTIONS)))
    for what in ("p50_us", "p99_us"):
        local, forwarded = (statistics.median(pair[i][what] for pair in warm) for i in (0, 1))
        report(f"forwarded_warm_{what.removesuffix('_us')}", forwarded, "us", baseline=local, bound=1.6,
               note=f"median of {ROUNDS} rounds of {WARM_CALLS}, one connection")
    local, forwarded = (statistics.median(pair[i]["per_second"] for pair in busy) for i in (0, 1))
    report("forwarded_calls_per_second", forwarded, "1/s", baseline=local, bound=0.7, at_least=True,
           note=f"{BUSY_CONNECTIONS} connections; gateway, home, function and load share {os.cpu_count()} cores")


# ---- gossip


def field(letter, value):
    return f"{letter}{len(value)}:{value}"


def seal(key, purpose, *parts):
    text = purpose + "".join(f"\n{len(part)}:{part}" for part in parts)
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def fields(text):
    found = {}
    while text:
        size, _, rest = text[1:].partition(":")
        found[text[0]], text = rest[:int(size)], rest[int(size):]
    return found


class SimulatedPeer:
    """Answers hellos and words, as a node that has next to nothing to do."""

    def __init__(self, name, key):
        self.name, self.key, self.number, self.words = name, key, 0, 0
        self.boot = secrets.token_hex(16)

    def answer(self, target, body):
        if target.endswith("/hello"):
            hello, session = fields(body), secrets.token_hex(16)
            welcome = seal(self.key, "fairlead-peer-welcome-1", self.name, hello["n"], hello["o"], session)
            return field("n", self.name) + field("b", self.boot) + field("i", session) + field("s", welcome)
        if target.endswith("/word"):
            self.number += 1
            self.words += 1
            return (field("n", self.name) + field("i", "1") + field("m", str(self.number)) + field("t", "16") + field("b", "0.5")
                    + field("f", fields(body)["f"]) + field("k", "0"))
        return ""

    async def serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                size = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length"))
                answer = self.answer(lines[0].split()[1], (await reader.readexactly(size)).decode("latin1")).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def cpu_seconds(pid):
    parts = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def share_of_a_core(node, peers):
    before, began, words = cpu_seconds(node.process.pid), time.monotonic(), sum(peer.words for peer in peers)
    time.sleep(GOSSIP_SECONDS)
    passed = time.monotonic() - began
    return (cpu_seconds(node.process.pid) - before) / passed, (sum(peer.words for peer in peers) - words) / passed


def gossip():
    with tempfile.TemporaryDirectory() as folder:
        key = key_file(folder)
        peers = [SimulatedPeer(f"peer-{number}", key.read_text()) for number in range(SIMULATED)]
        ports, loop = [], asyncio.new_event_loop()

        async def listen():
            for peer in peers:
                server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
                ports.append(server.sockets[0].getsockname()[1])

        loop.run_until_complete(listen())
        threading.Thread(target=loop.run_forever, daemon=True).start()
        shares = []
        for listed in ([], ports):
            options = ["--node-name", "a", "--cluster-key", key]
            options += [part for port in listed for part in ("--peer", f"http://127.0.0.1:{port}")]
            with Node(BUILD, pathlib.Path(folder) / "node", options=options) as node:
                wait_for(lambda: node.call("GET", "/fairlead/v1/cluster")[2].count(b'"alive"') == len(listed) + 1)
                shares.append(share_of_a_core(node, peers if listed else []))
        loop.call_soon_threadsafe(loop.stop)
    alone, among = shares
    report("gossip_of_64_nodes", 100 * (among[0] - alone[0]), "% of a core", bound=0.5,
           note=f"beyond a node of a cluster of one ({100 * alone[0]:.2f} %); {among[1]:.0f} words exchanged per second, each both ways")


if __name__ == "__main__":
    forwarding()
    gossip()
