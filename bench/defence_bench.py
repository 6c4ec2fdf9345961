"""What it costs to know who calls and to hide it from others, and what a caller waits beside one who floods. Ratios of one run."""

import argparse
import contextlib
import hashlib
import hmac
import http.client
import json
import multiprocessing
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

from bench.measure import BUILD, report, run_json
from harness.node import Node

LOAD = BUILD / "bin/node_load"
PATH = "/2015-03-31/functions/noop/invocations"
BODY = json.dumps({"pad": "x" * 1000})
ROUNDS = 9
CALLS = 20_000


# ---- keys and TLS

def bearer(key):
    return f"Authorization: Bearer {key['token']}"


def signature(key):
    """Headers of the call as an AWS SDK would send it (Signature Version 4)."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    scope = f"{stamp[:8]}/local/lambda/aws4_request"
    body = hashlib.sha256(BODY.encode()).hexdigest()
    canonical = f"POST\n{PATH}\n\nhost:localhost\nx-amz-date:{stamp}\n\nhost;x-amz-date\n{body}"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    secret = f"AWS4{key['secret']}".encode()
    for part in scope.split("/"):
        secret = hmac.digest(secret, part.encode(), "sha256")
    signed = hmac.digest(secret, to_sign.encode(), "sha256").hex()
    return [f"X-Amz-Date: {stamp}", f"Authorization: AWS4-HMAC-SHA256 Credential={key['id']}/{scope}, "
            f"SignedHeaders=host;x-amz-date, Signature={signed}"]


def operator(node, *arguments, text=None):
    done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", f"unix:{node.state}/operator.sock", *map(str, arguments)],
                          capture_output=True, text=True, input=text, check=True,
                          env={k: v for k, v in os.environ.items() if not k.startswith("FAIRLEAD_")})
    return done.stdout


def new_key(node, tenant):
    return json.loads(operator(node, "--json", "tenant", "add", tenant))


def deploy_noop(node, name="noop", tenant="default"):
    operator(node, "deploy", name, node.sample("noop"), "--tag", f"gpu:tenant={tenant}")


def warm_call(node, headers=(), ca=None):
    more = [part for header in headers for part in ("--header", header)] + (["--tls-ca", ca] if ca else [])
    return run_json(LOAD, "http", "--port", node.port, "--path", PATH, "--body", BODY, "--warm-up", 500, "--requests", 4000,
                    *more)["p50_us"]


def credentials():
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        subprocess.run([BUILD / "bin/fairlead", "certificate", "--host", "localhost", "--out", folder], check=True,
                       stdout=subprocess.DEVNULL)
        tls = ["--tls-certificate", folder / "certificate.pem", "--tls-key", folder / "key.pem"]
        start = lambda name, *options, **more: stack.enter_context(Node(BUILD, folder / name, options=options, **more))  # noqa: E731
        nodes = {"open": start("open"), "keys": start("keys", is_open=False), "tls": start("tls", *tls)}
        for node in nodes.values():
            deploy_noop(node)
        key = new_key(nodes["keys"], "default")
        ways = {"open": lambda: warm_call(nodes["open"]),
                "bearer": lambda: warm_call(nodes["keys"], [bearer(key)]),
                "sigv4": lambda: warm_call(nodes["keys"], signature(key)),
                "tls": lambda: warm_call(nodes["tls"], ca=folder / "certificate.pem")}
        times = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, call in ways.items():
                times[way].append(call())
    p50 = {way: statistics.median(taken) for way, taken in times.items()}
    for way, bound in (("bearer", 1.15), ("sigv4", 1.15), ("tls", 1.2)):
        report(f"warm_1kib_{way}_p50", p50[way], "us", baseline=p50["open"], bound=bound,
               note=f"closed loop, one kept connection, median of {ROUNDS} runs in turns; baseline: an open node, HTTP")


# ---- floods. Each sends what one process can, until it is told to stop.

def connect(port):
    return socket.create_connection(("127.0.0.1", port))


def request(path, token, method="GET", body=b""):
    return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def drain(connection, seconds=0.05):
    connection.settimeout(seconds)
    with contextlib.suppress(OSError):
        while connection.recv(1 << 20):
            pass


def pipelined(path):
    def flood(port, token):
        connection = connect(port)
        many = request(path, token) * 500
        connection.settimeout(0.5)
        while True:
            with contextlib.suppress(OSError):
                connection.sendall(many)
            drain(connection, 0.001)
    return flood


def connections(port, token):
    while True:
        with connect(port) as connection:
            connection.sendall(request("/healthz", token))
            connection.recv(4096)


def payloads(port, token):
    """5 MB each, to a function of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = json.dumps({"pad": "x" * 5_000_000})
    while True:
        connection.request("POST", "/2015-03-31/functions/flooded/invocations", body, {"Authorization": f"Bearer {token}"})
        connection.getresponse().read()


def documents(port, token):
    """60 MB of JSON that is no function."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = '{"FunctionName": [' + "[1]," * 15_000_000 + "1]}"
    while True:
        connection.request("POST", "/2015-03-31/functions", body, {"Authorization": f"Bearer {token}"})
        connection.getresponse().read()


def calls(port, token):
    connection = connect(port)
    many = request("/2015-03-31/functions/flooded/invocations", token, "POST", b"{}") * 16
    while True:
        connection.sendall(many)
        connection.recv(1 << 20)


def events(port, token):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Authorization": f"Bearer {token}", "X-Amz-Invocation-Type": "Event"}
    while True:
        connection.request("POST", "/2015-03-31/functions/flooded/invocations", b"{}", headers)
        connection.getresponse().read()


FLOODS = {"metrics": pipelined("/metrics"), "lists": pipelined("/2015-03-31/functions"), "connections": connections,
          "payloads": payloads, "documents": documents, "calls": calls, "events": events}


def burn(share):
    """As much of a processor as the flood's client takes, and nothing for the node to do."""
    while True:
        begin = time.monotonic()
        while time.monotonic() - begin < 0.002 * share:
            pass
        time.sleep(0.002 * (1 - share))


class Beside:
    """A process that goes on while something else is measured; then `share` is what it took of a processor."""

    def __init__(self, target, *arguments):
        self.process = multiprocessing.get_context("fork").Process(target=target, args=arguments, daemon=True)

    def __enter__(self):
        self.process.start()
        self.begin = time.monotonic()
        return self

    def __exit__(self, *_):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        self.share = min(1.0, seconds / (time.monotonic() - self.begin))
        self.process.kill()
        self.process.join()


def victims_p99(node, key):
    result = run_json(LOAD, "http", "--port", node.port, "--path", PATH, "--warm-up", 200, "--requests", CALLS, "--header",
                      bearer(key), timeout=600)
    assert result["failures"] == 0, result
    return result["p99_us"]


def flood_beside(node, name, key, flooder, rounds=ROUNDS):
    """Median ratio of a victim's p99 beside the flood to that beside as much work that asks nothing of the node."""
    pairs = []
    for _ in range(rounds):
        with Beside(FLOODS[name], node.port, flooder["token"]) as flood:
            flooded = victims_p99(node, key)
        with Beside(burn, flood.share):
            burned = victims_p99(node, key)
        pairs.append((flooded, burned))
    return sorted(pairs, key=lambda pair: pair[0] / pair[1])[len(pairs) // 2]


def floods(names=tuple(FLOODS), rounds=ROUNDS):
    with tempfile.TemporaryDirectory() as folder, Node(BUILD, pathlib.Path(folder) / "node", is_open=False) as node:
        deploy_noop(node, tenant="victim")
        deploy_noop(node, "flooded", tenant="flooder")
        key, flooder = new_key(node, "victim"), new_key(node, "flooder")
        flooder_all = json.loads(operator(node, "--json", "tenant", "add", "*", "--role", "reader"))
        for name in names:
            flooded, burned = flood_beside(node, name, key, flooder_all if name == "metrics" else flooder, rounds)
            report(f"beside_flood_{name}_p99", flooded, "us", baseline=burned, bound=1.1,
                   note=f"a tenant's warm calls, {CALLS} a run, median of {rounds} pairs; baseline: beside a process that burns as "
                        "much of a processor as the flood's client and sends nothing")


def main():
    credentials()
    floods()


if __name__ == "__main__":
    """python3 -m bench.defence_bench payloads calls --rounds 3: these floods alone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("floods", nargs="*", choices=[[], *FLOODS], default=[])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    floods(chosen.floods or tuple(FLOODS), chosen.rounds)
