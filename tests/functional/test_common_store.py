"""Nodes on one PostgreSQL: functions deployed at one are there at all, and an accepted event is run, whichever processes die."""

import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from conftest import BUILD, MISBEHAVE, Gate, Node, eventually
from harness.node import NodeFailed
from harness.postgres import PROGRAMS, Postgres

EVENT = {"X-Amz-Invocation-Type": "Event"}
KILLS = int(os.environ.get("FAIRLEAD_STORE_KILLS", 3))  # of nodes; make survive-store: 100
SERVER_KILLS = int(os.environ.get("FAIRLEAD_STORE_SERVER_KILLS", 1))  # make survive-store: 20


@pytest.fixture
def postgres_with():
    if not (PROGRAMS / "initdb").exists():
        pytest.skip(f"no PostgreSQL server is installed ({PROGRAMS}/initdb)")
    servers = []

    def make(**options):
        servers.append(Postgres(**options))
        return servers[-1]
    yield make
    for server in servers:
        server.remove()


@pytest.fixture
def postgres(postgres_with):
    return postgres_with()


@pytest.fixture
def cluster(tmp_path, postgres):
    nodes = Nodes(tmp_path, postgres)
    yield nodes
    nodes.stop()


class Nodes:
    """By name, on one store."""

    def __init__(self, folder, postgres):
        self.folder, self.postgres, self.nodes = folder, postgres, {}

    def start(self, *names, keep_state=False, environment=None, store=None, key=None, is_open=False):
        """`key`: the cluster's; nodes that have none are open."""
        for name in names:
            options = ["--store", store or self.postgres.url, "--node-name", name]
            if key:
                path = self.folder / f"{name}.key"
                path.touch(0o600)
                path.write_text(key)
                options += ["--cluster-key", path]
            self.nodes[name] = Node(BUILD, self.folder / name, keep_state=keep_state, gpu_environment=environment, is_open=is_open or not key,
                                    options=options)
            marks = self.nodes[name].home / "gpu/marks"
            marks.mkdir(parents=True, exist_ok=True)
            marks.chmod(0o777)
        return [self.nodes[name] for name in names]

    def runs(self):
        """By request id: (begin, end) of each run that came to its end, at whichever node."""
        found = {}
        for name in self.nodes:
            for mark in (self.folder / name / "gpu/marks").glob("span-*"):
                request_id, began = mark.name.removeprefix("span-").rsplit("-", 1)
                if ended := mark.read_text():
                    found.setdefault(request_id, []).append((int(began), int(ended)))
        return found

    def logs(self):
        return "".join(node.log_path.read_text() for node in self.nodes.values())

    def stop(self):
        alive = [node for node in self.nodes.values() if node.process.poll() is None]
        for node in alive:
            node.process.send_signal(signal.SIGTERM)
        for node in alive:
            node.stop()
            shutil.rmtree(node.object_memory(), ignore_errors=True)


def deploy_everywhere(nodes, name):
    nodes[0].deploy(name, MISBEHAVE)
    for node in nodes:
        eventually(lambda node=node: node.call("GET", f"/2015-03-31/functions/{name}")[0] == 200)


def event(node, **what):
    """The request id, if it was accepted."""
    status, headers, _ = node.invoke("misbehave", json.dumps({"do": "span", **what}), EVENT)
    return headers["x-amzn-RequestId"] if status == 202 else None


def at_once(runs):
    """How many of one event's runs began before an earlier one's end."""
    runs = sorted(runs)
    return sum(later[0] < earlier[1] for earlier, later in itertools.pairwise(runs))


def assert_refused(answer):
    status, headers, body = answer
    assert status == 503 and headers["Retry-After"], body
    assert b"the store of the cluster cannot be reached" in body, body


def test_a_function_deployed_at_one_node_is_changed_and_deleted_at_all(cluster):
    a, b, c = cluster.start("a", "b", "c")
    deploy_everywhere([a, b, c], "misbehave")
    assert c.invoke("misbehave", '{"x": 1}')[2] == b'{"x": 1}'
    shas = {json.loads(node.call("GET", "/2015-03-31/functions/misbehave")[2])["Configuration"]["CodeSha256"] for node in (a, b, c)}
    assert len(shas) == 1
    status, _, body = b.call("PUT", "/2015-03-31/functions/misbehave/configuration", json.dumps({"Timeout": 77}))
    assert status == 200, body
    for node in (a, c):
        eventually(lambda node=node: json.loads(node.call("GET", "/2015-03-31/functions/misbehave")[2])["Configuration"]["Timeout"] == 77)
    (d,) = cluster.start("d")  # it was not there
    eventually(lambda: d.invoke("misbehave", '{"x": 2}')[2] == b'{"x": 2}')
    assert c.call("DELETE", "/2015-03-31/functions/misbehave")[0] == 204
    for node in (a, b, d):
        eventually(lambda node=node: node.call("GET", "/2015-03-31/functions/misbehave")[0] == 404)


def test_dead_letters_are_listed_and_redriven_at_any_node(cluster):
    a, b = cluster.start("a", "b")
    deploy_everywhere([a, b], "misbehave")
    a.call("PUT", "/2019-09-25/functions/misbehave/event-invoke-config", json.dumps({"MaximumRetryAttempts": 0}))
    status, headers, _ = a.invoke("misbehave", '{"do": "error"}', EVENT)
    assert status == 202
    letters = lambda node: [one["request_id"] for one in json.loads(node.call("GET", "/fairlead/v1/dead-letters")[2])["dead_letters"]]  # noqa: E731
    eventually(lambda: letters(b) == [headers["x-amzn-RequestId"]])
    assert b.call("POST", "/fairlead/v1/functions/misbehave/dead-letters/redrive")[0] in (200, 202)
    eventually(lambda: cluster.postgres.rows("SELECT count(*) FROM fairlead.events") == ["0"] and letters(a))


# ---- what nodes have together besides functions

KEY, OTHER_KEY = "k" * 64, "o" * 64  # of two clusters


def cli(node, *arguments, token=None, text=None, fails=False):
    """By the operator's socket, or with a key."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("FAIRLEAD_", "AWS_"))}
    inherited |= {"HOME": str(node.home)} | ({"FAIRLEAD_TOKEN": token} if token else {})
    endpoint = node.endpoint if token else f"unix:{node.state}/operator.sock"
    done = subprocess.run([BUILD / "bin/fairlead", "--json", "--endpoint", endpoint, *map(str, arguments)], capture_output=True,
                          text=True, timeout=60, env=inherited, input=text)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr if fails else json.loads(done.stdout or "null")


def new_token(node, tenant, *options):
    return cli(node, "tenant", "add", tenant, *options)["token"]


def is_good(node, token, path="/2015-03-31/functions"):
    return node.call("GET", path, None, {"Authorization": f"Bearer {token}"})[0] == 200


def removes(node, token, path):
    return node.call("DELETE", path, None, {"Authorization": f"Bearer {token}"})[0] == 204


def test_a_key_is_good_at_all_nodes_until_it_is_revoked_at_one(cluster):
    a, b = cluster.start("a", "b", key=KEY)
    (stranger,) = cluster.start("stranger", key=OTHER_KEY)
    token, other = new_token(a, "acme"), new_token(b, "other", "--role", "reader")
    identity = token.split(".")[0]
    assert is_good(a, token) and is_good(b, other), "at once, where it was made"
    eventually(lambda: is_good(b, token) and is_good(a, other))
    assert not is_good(stranger, token), "it has another cluster's key"
    eventually(lambda: "are not believed" in stranger.log_path.read_text())
    assert {key["id"]: (key["tenant"], key["role"], key["nodes"]) for key in cli(b, "tenant", "keys")["keys"]}[identity] == \
        ("acme", "deployer", "all")
    own = (a.state / "operator-key").read_text().split()
    assert is_good(a, ".".join(own)) and not is_good(b, ".".join(own)), "the first key is its node's"
    rotated = cli(b, "tenant", "rotate", identity, "--grace", "0s")["token"]
    eventually(lambda: is_good(a, rotated) and not is_good(a, token))
    cli(a, "tenant", "revoke", rotated.split(".")[0])
    assert not is_good(a, rotated)
    eventually(lambda: not is_good(b, rotated))
    assert "there is no key" in cli(b, "tenant", "rotate", rotated.split(".")[0], fails=True)
    assert is_good(a, other)


def test_an_open_node_makes_no_key_and_no_secret_of_all_nodes(cluster):
    (a,) = cluster.start("a", key=KEY)
    (everyones,) = cluster.start("everyones", key=KEY, is_open=True)
    made = cli(everyones, "tenant", "add", "*", "--role", "operator")
    assert made["nodes"] == "this"
    cli(everyones, "secret", "set", "db", text="x")
    assert cluster.postgres.rows("SELECT count(*) FROM fairlead.documents") == ["0"]
    assert not is_good(a, made["token"])


def test_keys_are_known_without_the_store_and_none_is_made(cluster):
    a, b = cluster.start("a", "b", key=KEY)
    token = new_token(a, "acme")
    eventually(lambda: is_good(b, token))
    cluster.postgres.kill()
    assert "the store of the cluster cannot be reached" in cli(a, "tenant", "add", "acme", fails=True)
    assert "the store of the cluster cannot be reached" in cli(a, "tenant", "revoke", token.split(".")[0], fails=True)
    assert is_good(a, token) and is_good(b, token)
    b.kill()
    (b,) = cluster.start("b", key=KEY, keep_state=True)
    assert is_good(b, token), "from its own folder"
    cluster.postgres.start_again()
    own = ".".join((a.state / "operator-key").read_text().split())
    eventually(lambda: removes(a, own, f"/fairlead/v1/keys/{token.split('.')[0]}"))
    eventually(lambda: not is_good(b, token))


def test_who_writes_to_the_store_makes_no_key_and_changes_none(cluster):
    a, b = cluster.start("a", "b", key=KEY)
    invoker, reader = new_token(a, "acme", "--role", "invoker"), new_token(a, "acme", "--role", "reader")
    eventually(lambda: is_good(b, invoker) and is_good(b, reader))
    change = "UPDATE fairlead.document_clock SET revision = revision + 1"
    cluster.postgres.rows(f"UPDATE fairlead.documents SET body = replace(body, 'invoker', 'operator'); {change}")
    eventually(lambda: not is_good(a, invoker) and not is_good(b, invoker))
    for node in (a, b):
        assert not is_good(node, invoker, "/fairlead/v1/keys") and is_good(node, reader)
    ids = [token.split(".")[0] for token in (invoker, reader)]
    cluster.postgres.rows(f"DELETE FROM fairlead.documents WHERE name = '{ids[1]}'; "
                          f"UPDATE fairlead.documents SET name = '{ids[1]}'; {change}")
    eventually(lambda: not is_good(a, reader) and not is_good(b, reader))


def test_a_secret_is_set_at_one_node_and_given_to_functions_at_all(cluster):
    a, b = cluster.start("a", "b", key=KEY)
    token = new_token(a, "acme")
    eventually(lambda: is_good(b, token))
    cli(a, "secret", "set", "db", token=token, text="first of acme")
    eventually(lambda: cli(b, "secret", "list", token=token)["secrets"])

    def seen(node, name):
        cli(node, "deploy", name, MISBEHAVE, "--env", "DB={{resolve:secret:db}}", token=token)
        return json.loads(subprocess.run(
            [BUILD / "bin/fairlead", "--endpoint", node.endpoint, "invoke", name, "-d", '{"do": "look"}'], capture_output=True, text=True,
            timeout=60, env=os.environ | {"FAIRLEAD_TOKEN": token}).stdout)["environment"]["DB"]
    assert seen(b, "f") == "first of acme"
    cli(b, "secret", "set", "db", token=token, text="second of acme")
    assert seen(b, "g") == "second of acme"
    eventually(lambda: cli(a, "secret", "list", token=token)["secrets"][0]["bytes"] == len("second of acme"))
    assert seen(a, "h") == "second of acme"
    assert "of acme" not in "".join(cluster.postgres.rows("SELECT body FROM fairlead.documents"))
    for node in (a, b):
        assert [path for path in node.state.rglob("cluster-secrets.json") if b"of acme" in path.read_bytes()] == []
    cluster.postgres.kill()
    assert "the store of the cluster cannot be reached" in cli(a, "secret", "set", "db", token=token, text="third", fails=True)
    b.kill()
    (b,) = cluster.start("b", key=KEY, keep_state=True)
    assert cli(b, "secret", "list", token=token)["secrets"][0]["nodes"] == "all"
    cluster.postgres.start_again()
    eventually(lambda: removes(b, token, "/fairlead/v1/secrets/db"))
    eventually(lambda: not cli(a, "secret", "list", token=token)["secrets"])


def test_a_node_that_cannot_reach_the_store_says_so_and_serves_what_it_knows(cluster):
    a, b = cluster.start("a", "b")
    deploy_everywhere([a, b], "misbehave")
    running = event(a, delay=6)
    eventually(lambda: b"misbehave" in (b.state / "store-answers").read_bytes())
    cluster.postgres.kill()
    eventually(lambda: event(a) is None)
    assert_refused(a.invoke("misbehave", '{"do": "span"}', EVENT))
    assert_refused(a.call("PUT", "/2015-03-31/functions/misbehave/configuration", json.dumps({"Timeout": 9})))
    with pytest.raises(NodeFailed, match="the store of the cluster cannot be reached"):
        a.deploy("another", MISBEHAVE)
    assert a.invoke("misbehave", '{"x": 1}')[2] == b'{"x": 1}', "synchronous calls go on"
    eventually(lambda: running in cluster.runs())  # by then every lease has run out
    b.kill()
    (b,) = cluster.start("b", keep_state=True)
    assert b.invoke("misbehave", '{"x": 2}')[2] == b'{"x": 2}', "of a node that is started meanwhile, too"
    assert_refused(b.invoke("misbehave", '{"do": "span"}', EVENT))
    cluster.postgres.start_again()
    later = [eventually(lambda node=node: event(node)) for node in (a, b)]
    eventually(lambda: set(later) <= set(cluster.runs()))
    eventually(lambda: cluster.postgres.rows("SELECT count(*) FROM fairlead.events") == ["0"])
    assert len(cluster.runs()[running]) == 1
    assert "did not renew its lease" not in cluster.logs(), "nobody could"
    assert a.stop() == 0


def test_a_slow_server_delays_and_a_hung_one_is_refused(cluster):
    a, b = cluster.start("a", "b")
    deploy_everywhere([a, b], "misbehave")

    def calls_go_on(until):
        answered = 0
        while not until():
            assert a.invoke("misbehave", '{"x": 1}')[2] == b'{"x": 1}'
            answered += 1
        assert answered >= 3, "each waited for the store"

    with concurrent.futures.ThreadPoolExecutor() as pool:
        with cluster.postgres.hung():
            slow = [pool.submit(event, node) for node in (a, b)]
            resumed = time.monotonic() + 3  # wait: so slow is it
            calls_go_on(lambda: time.monotonic() > resumed)
        assert all(one.result() for one in slow)
        with cluster.postgres.hung():
            refused = [pool.submit(a.invoke, "misbehave", '{"do": "span"}', EVENT),
                       pool.submit(a.call, "PUT", "/2015-03-31/functions/misbehave/configuration", json.dumps({"Timeout": 9}))]
            calls_go_on(lambda: all(one.done() for one in refused))
            for one in refused:
                assert_refused(one.result())
    later = [eventually(lambda node=node: event(node)) for node in (a, b)]
    eventually(lambda: {one.result() for one in slow} | set(later) <= set(cluster.runs()))
    eventually(lambda: cluster.postgres.rows("SELECT count(*) FROM fairlead.events") == ["0"])
    assert "did not renew its lease" not in cluster.logs(), "nobody could"


# Of the time of day alone.
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, now);
  const char* ahead = getenv("CLOCK_AHEAD_S");
  if (clock == CLOCK_REALTIME && ahead) now->tv_sec += atol(ahead);
  return result;
}
"""


def test_times_are_the_stores_whatever_the_nodes_clocks_say(cluster, tmp_path):
    shim = tmp_path / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, "-x", "c", "-", "-ldl"], input=CLOCK, text=True, check=True)
    ahead = {"a": 7200, "b": -7200}
    nodes = [cluster.start(name, environment={"LD_PRELOAD": str(shim), "CLOCK_AHEAD_S": str(by)})[0] for name, by in ahead.items()]
    deploy_everywhere(nodes, "misbehave")
    aged = json.dumps({"MaximumEventAgeInSeconds": 60})
    assert nodes[0].call("PUT", "/2019-09-25/functions/misbehave/event-invoke-config", aged)[0] == 200
    eventually(lambda: nodes[1].call("GET", "/2019-09-25/functions/misbehave/event-invoke-config")[0] == 200)
    for first in range(1 if KILLS <= 3 else 2):
        victim, heir = nodes[first], nodes[1 - first]
        heir.call("PUT", "/2017-10-31/functions/misbehave/concurrency", json.dumps({"ReservedConcurrentExecutions": 0}))
        name = victim.home.name
        waiting = {event(victim) for _ in range(5)}
        assert None not in waiting
        age_ms = "SELECT abs(max(accepted_ms) - (extract(epoch FROM now()) * 1000)::bigint) FROM fairlead.events"
        assert int(cluster.postgres.rows(age_ms)[0]) < 60_000
        victim.kill()
        heir.call("PUT", "/2017-10-31/functions/misbehave/concurrency", json.dumps({"ReservedConcurrentExecutions": 10}))
        eventually(lambda waiting=waiting: waiting <= set(cluster.runs()))
        nodes[first] = cluster.start(name, keep_state=True, environment={"LD_PRELOAD": str(shim), "CLOCK_AHEAD_S": str(ahead[name])})[0]
    assert cluster.postgres.rows("SELECT count(*) FROM fairlead.dead_letters") == ["0"]


def test_passwords_are_not_said_and_names_are_taken_as_they_are(tmp_path, postgres_with):
    secret, database = "p%40ss'w\"rd", "we\"ird 'db'?"
    server = postgres_with(password=secret)
    server.rows('CREATE DATABASE "{}"'.format(database.replace('"', '""')))
    file = tmp_path / "password"

    def start(name, password=secret, mode=0o600):
        file.write_text(password + "\n")
        file.chmod(mode)
        return Node(BUILD, tmp_path / name, options=["--store", server.url_of(database), "--store-password-file", file])

    node = start("a")
    node.deploy("misbehave", MISBEHAVE)
    assert server.rows("SELECT name FROM fairlead.functions", database) == ["misbehave"]
    assert node.stop() == 0
    assert secret not in node.log_path.read_text()
    with pytest.raises(NodeFailed, match="password authentication failed") as failed:
        start("b", password="not-" + secret)
    assert secret not in str(failed.value)
    with pytest.raises(NodeFailed, match="chmod 600"):
        start("c", mode=0o640)
    for url in ("postgresql://fairlead:geheim@/postgres", "postgresql://fairlead@/postgres?password=geheim", "postgresql://u:ge/geheim@/db"):
        with pytest.raises(NodeFailed, match="has a password in it") as failed:
            Node(BUILD, tmp_path / "d", options=["--store", url])
        assert "geheim" not in str(failed.value)
    with pytest.raises(NodeFailed, match="no URL of PostgreSQL") as failed:
        Node(BUILD, tmp_path / "d", options=["--store", "mysql://u:geheim@/db"])
    assert "geheim" not in str(failed.value)
    server.rows("UPDATE fairlead.schema_version SET version = 99", database)
    with pytest.raises(NodeFailed, match="schema version 99"):
        start("e")
    for path in node.state.rglob("*"):
        if stat.S_ISREG(path.lstat().st_mode):
            assert secret.encode() not in path.read_bytes(), path


class Way:
    """To a server at a Unix socket, through one of its own; it can be cut."""

    def __init__(self, folder, server):
        folder.mkdir()
        self.server, self.folder, self.open, self.sockets = server, folder, True, []
        self.listener = socket.create_server(str(folder / ".s.PGSQL.5432"), family=socket.AF_UNIX)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.socket(socket.AF_UNIX)
                if not self.open:
                    near.close()
                    continue
                far.connect(str(self.server.folder / ".s.PGSQL.5432"))
                self.sockets += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        self.open = False
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    @property
    def url(self):
        return f"postgresql://fairlead@/postgres?host={self.folder}"


def test_a_node_that_is_cut_off_starts_no_event_and_others_run_them_once(cluster, postgres, tmp_path):
    way = Way(tmp_path / "way", postgres)
    a, b = cluster.start("a", store=way.url)[0], cluster.start("b")[0]
    deploy_everywhere([a, b], "misbehave")
    assert a.call("PUT", "/2017-10-31/functions/misbehave/concurrency", json.dumps({"ReservedConcurrentExecutions": 1}))[0] == 200
    gate = Gate(a)  # until it is opened at a, one runs there, and the others wait for that in the core
    (b.home / "gpu" / gate.path.name).touch()
    assert a.invoke("misbehave", gate.payload, EVENT)[0] == 202
    eventually(lambda: a.status()["events"]["running"] >= 1)
    waiting = {event(a) for _ in range(5)}
    assert None not in waiting
    way.cut()
    eventually(lambda: waiting <= set(cluster.runs()))
    assert_refused(a.invoke("misbehave", '{"do": "span"}', EVENT))
    gate.open()
    assert a.invoke("misbehave", '{"x": 1}')[2] == b'{"x": 1}'
    way.open = True
    later = eventually(lambda: event(a))
    eventually(lambda: later in cluster.runs())
    eventually(lambda: postgres.rows("SELECT count(*) FROM fairlead.events") == ["0"])
    runs = cluster.runs()
    assert all(len(runs[one]) == 1 for one in waiting)
    assert len(list((a.home / "gpu/marks").glob("span-*"))) == 1, "what came later"


class Load:
    """Events at all nodes that answer; what was accepted is remembered."""

    def __init__(self, cluster):
        self.cluster, self.accepted, self.lock, self.ends = cluster, [], threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.send, args=(name,)) for name in list(cluster.nodes) for _ in range(2)]

    def send(self, name):
        while not self.ends.is_set():
            try:
                request_id = event(self.cluster.nodes[name], delay=0.05)
                if request_id:
                    with self.lock:
                        self.accepted.append(request_id)
            except (OSError, http.client.HTTPException):
                pass  # it is dead, or being started
            self.ends.wait(0.02)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()


def test_nodes_and_server_killed_again_and_again_lose_no_accepted_event(cluster):
    names = ["a", "b", "c"]
    deploy_everywhere(cluster.start(*names), "misbehave")
    with Load(cluster) as load:
        for kill in range(KILLS):
            before = len(load.accepted)
            eventually(lambda before=before: len(load.accepted) >= before + 10)
            name = names[kill % len(names)]
            cluster.nodes[name].kill()
            if kill * SERVER_KILLS // KILLS != (kill + 1) * SERVER_KILLS // KILLS:
                cluster.postgres.kill()
                cluster.postgres.start_again()
            cluster.start(name, keep_state=True)
    eventually(lambda: set(load.accepted) <= set(cluster.runs()))
    victim = cluster.nodes["a"]  # and one that stays away
    last = [eventually(lambda: event(victim, delay=0.5)) for _ in range(20)]
    killed = time.monotonic()
    victim.kill()
    left = set(last) - set(cluster.runs())
    eventually(lambda: left & set(cluster.runs()))
    taken_over_s = time.monotonic() - killed
    eventually(lambda: left <= set(cluster.runs()))
    eventually(lambda: cluster.postgres.rows("SELECT count(*) FROM fairlead.events") == ["0"])
    assert cluster.postgres.rows("SELECT count(*) FROM fairlead.dead_letters") == ["0"]
    runs = cluster.runs()
    assert sum(at_once(spans) for spans in runs.values()) == 0
    print(f"{KILLS} kills of nodes, {SERVER_KILLS} of PostgreSQL: {len(load.accepted)} accepted, 0 lost, 0 run by two at once, "
          f"{sum(len(spans) > 1 for spans in runs.values())} run again, taken over after {taken_over_s:.1f} s")
