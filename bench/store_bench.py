"""What it costs to accept an event with a common store, beside bare commits to the same PostgreSQL.

  python3 -m bench.store_bench            a server of its own at a Unix socket, one node on the software GPU

32 connections each. The server's own program pgbench commits rows of the same size, one a transaction; the node answers 202 once a row is
committed. In turns, ratios of one run. Load, node and server share this machine's cores. pgbench's rows are made at the server; an event's
payload has to come there, so that bare commits which send theirs are measured too.
"""

import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from bench.measure import BUILD, report, run_json
from harness.node import Node
from harness.postgres import PROGRAMS, Postgres

CONNECTIONS, ROUNDS, SECONDS, EVENTS, BYTES = 32, 3, 5, 8000, 1024
PATH = "/2015-03-31/functions/later/invocations"


def bare_commits(server, folder, payload):
    script = folder / "insert.sql"
    script.write_text(f"INSERT INTO bare (payload) VALUES ({payload});\n")
    run = subprocess.run([PROGRAMS / "pgbench", "--no-vacuum", f"--client={CONNECTIONS}", "--jobs=2", f"--time={SECONDS}", "--protocol=prepared",
                          f"--define=payload={'x' * BYTES}", f"--file={script}", server.url], check=True, capture_output=True, text=True, timeout=120)
    return float(re.search(r"tps = ([0-9.]+)", run.stdout).group(1))


def accepted_events(node):
    numbers = run_json(BUILD / "bin/node_load", "http", "--host", node.host, "--port", node.port, "--path", PATH, "--header",
                       "X-Amz-Invocation-Type: Event", "--body", json.dumps({"filler": "x" * BYTES}), "--requests", EVENTS, "--warm-up", 200,
                       "--connections", CONNECTIONS)
    if numbers["failures"]:
        sys.exit(f"{numbers['failures']} of {EVENTS} events were not accepted")
    return numbers["per_second"]


def main():
    if not (PROGRAMS / "initdb").exists():
        sys.exit(f"no PostgreSQL server is installed ({PROGRAMS}/initdb)")
    server = Postgres()
    try:
        server.rows("CREATE TABLE bare (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), payload bytea NOT NULL)")
        with tempfile.TemporaryDirectory() as folder, Node(BUILD, pathlib.Path(folder) / "node", options=["--store", server.url]) as node:
            node.deploy("later", node.sample("noop"))
            # Accepted, and not run meanwhile: what is measured is the acceptance.
            node.call("PUT", "/2017-10-31/functions/later/concurrency", json.dumps({"ReservedConcurrentExecutions": 0}))
            bare, sent, accepted = [], [], []
            for _ in range(ROUNDS):
                bare.append(bare_commits(server, pathlib.Path(folder), f"decode(repeat('78', {BYTES}), 'hex')"))
                accepted.append(accepted_events(node))
                sent.append(bare_commits(server, pathlib.Path(folder), ":payload::text::bytea"))
            accepted, bare, sent = map(statistics.median, (accepted, bare, sent))
            report("events accepted by 32 connections / bare commits", accepted, "1/s", baseline=bare, bound=0.6, at_least=True)
            report("events accepted by 32 connections / bare commits that send their payload", accepted, "1/s", baseline=sent)
    finally:
        server.remove()


if __name__ == "__main__":
    main()
