"""Nodes that know each other by a list: calls go to homes, functions to all, and what happens when a node goes."""

import concurrent.futures
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from conftest import BUILD, MISBEHAVE, ROOT, Gate, Node, eventually

sys.path.insert(0, str(ROOT / "python"))
from fairlead import Client  # noqa: E402


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Cluster:
    """Nodes by name; those in `gateways` have no GPUs."""

    def __init__(self, folder, names, gateways=(), key=None):
        self.folder = folder
        self.key = folder / "cluster.key"
        self.secret = key or secrets.token_hex(32)
        self.key.write_text(self.secret + "\n")
        self.key.chmod(0o600)
        self.gateways = gateways
        self.ports = dict(zip(names, free_ports(len(names))))
        self.nodes = {}

    def start(self, place, *options, keep_state=False, peers=None, key=None, name=None):
        others = self.ports if peers is None else peers
        name = name or place
        listed = [part for other in others for part in ("--peer", f"http://127.0.0.1:{self.ports[other]}")]
        is_gateway = place in self.gateways
        self.nodes[place] = Node(BUILD, self.folder / place, software=not is_gateway, keep_state=keep_state,
                                options=["--node-name", name, "--cluster-key", key or self.key, *(["--gpus", "0"] if is_gateway else []),
                                         "--listen", f"127.0.0.1:{self.ports[place]}", *listed, *options])
        return self.nodes[place]

    def start_all(self):
        for name in self.ports:
            self.start(name)
        for name in self.ports:
            self.until_all_see({one: "alive" for one in self.ports if one != name}, [name])
        return self

    def see(self, name):
        status, _, body = self.nodes[name].call("GET", "/fairlead/v1/cluster")
        assert status == 200, body
        return json.loads(body)

    def states(self, name):
        return {member["name"]: member["state"] for member in self.see(name)["members"] if member["name"]}

    def until_all_see(self, wanted, viewers):
        eventually(lambda: all(self.states(viewer).get(name) == state for viewer in viewers for name, state in wanted.items()))

    def home(self, function, viewer):
        return next(one["home"] for one in self.see(viewer)["functions"] if one["name"] == function)

    def functions(self, name):
        return sorted(one["FunctionName"] for one in json.loads(self.nodes[name].call("GET", "/2015-03-31/functions/")[2])["Functions"])

    def ran(self, name, function):
        return next((one["stats"]["invocations"] if "stats" in one else one["invocations"]
                     for one in self.nodes[name].status()["functions"] if one["name"] == function), 0)

    def stop(self):
        for node in self.nodes.values():
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGCONT)
                node.kill()
            shutil.rmtree(node.object_memory(), ignore_errors=True)


@pytest.fixture
def make_cluster(tmp_path):
    made = []

    def make(names=("a", "b", "c"), gateways=(), **keywords):
        made.append(Cluster(tmp_path, names, gateways, **keywords))
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop()


def ok(answer):
    status, headers, body = answer
    assert status == 200, body
    assert "X-Amz-Function-Error" not in headers, body
    return body


def test_a_function_deployed_at_one_node_answers_from_all_and_from_a_gateway_without_gpus(make_cluster):
    cluster = make_cluster(("a", "b", "c", "g"), gateways=("g",)).start_all()
    cluster.nodes["a"].deploy("noop", cluster.nodes["a"].sample("noop"))
    for name in cluster.ports:  # on a busy machine a node may be suspect for a moment, and catches up
        eventually(lambda name=name: cluster.functions(name) == ["noop"])
        ok(cluster.nodes[name].invoke("noop", "{}"))
    assert [member["slots"] for member in cluster.see("g")["members"] if member["name"] == "g"] == [0]
    assert cluster.nodes["g"].status()["instances"] == []
    assert cluster.nodes["g"].call("GET", "/healthz")[0] == 200  # so that what is in front sends it calls
    home = cluster.home("noop", "g")
    assert home in "abc"
    assert {cluster.home("noop", name) for name in cluster.ports} == {home}
    # Deployed at the gateway, changed and deleted elsewhere.
    cluster.nodes["g"].deploy("other", cluster.nodes["a"].sample("noop"))
    ok(cluster.nodes["b"].invoke("other", "{}"))
    assert cluster.nodes["c"].call("PUT", "/2015-03-31/functions/other/configuration", json.dumps({"Description": "changed"}))[0] == 200
    for name in cluster.ports:
        eventually(lambda name=name: json.loads(
            cluster.nodes[name].call("GET", "/2015-03-31/functions/other/configuration")[2]).get("Description") == "changed")
    assert cluster.nodes["b"].call("DELETE", "/2015-03-31/functions/other")[0] == 204
    for name in cluster.ports:
        eventually(lambda name=name: cluster.functions(name) == ["noop"])
    # A gateway runs nothing, whatever comes.
    status, _, body = cluster.nodes["g"].call("POST", "/v1/graphs", json.dumps({"nodes": {"x": {"function": "noop"}}}))
    assert status >= 400, body
    text = cluster.nodes["g"].call("GET", "/metrics")[2].decode()
    assert 'fairlead_peer_state{peer="a",state="alive"} 1' in text
    shown = subprocess.run([BUILD / "bin/fairlead", "--endpoint", cluster.nodes["g"].endpoint, "cluster", "status"], check=True,
                           capture_output=True, text=True).stdout
    assert "noop" in shown and home in shown and "alive" in shown


def test_events_and_errors_cross_the_network_too(make_cluster):
    cluster = make_cluster(("a", "g"), gateways=("g",)).start_all()
    cluster.nodes["g"].deploy("misbehave", MISBEHAVE)
    status, headers, _ = cluster.nodes["g"].invoke("misbehave", json.dumps({"do": "crash"}))
    assert status == 200 and headers["X-Amz-Function-Error"] == "Unhandled"
    status, headers, _ = cluster.nodes["g"].invoke("misbehave", "{}", {"X-Amz-Invocation-Type": "Event"})
    assert status == 202 and headers["x-amzn-RequestId"]
    assert cluster.nodes["g"].invoke("nothing", "{}")[0] == 404
    eventually(lambda: cluster.ran("a", "misbehave") >= 2)
    large = json.dumps({"do": "return", "pad": "x" * 3_000_000})
    assert cluster.nodes["g"].invoke("misbehave", large)[0] == 200


SPEAKER = """#!/usr/bin/python3
import os, pathlib, sys, time
sys.path.insert(0, "/var/task")
import fairlead_runtime

def words(event):
    try:
        for number, word in enumerate(event["words"]):
            while number and not pathlib.Path(os.environ["SOFTGPU_HOME"], "gate").exists():
                time.sleep(0.005)  # sleep: between two looks
            yield word
        while "flood" in event:
            yield b"x" * 65536
    finally:
        pathlib.Path(os.environ["SOFTGPU_HOME"], "over").write_text(event["words"][0])

fairlead_runtime.run(lambda event: words(event.json()))
"""


def test_an_answer_of_another_node_comes_part_by_part(make_cluster, tmp_path):
    cluster = make_cluster(("a", "g"), gateways=("g",)).start_all()
    folder = tmp_path / "speaker"
    folder.mkdir()
    shutil.copy(ROOT / "functions/runtime/python/fairlead_runtime.py", folder)
    (folder / "bootstrap").write_text(SPEAKER)
    (folder / "bootstrap").chmod(0o755)
    cluster.nodes["g"].deploy("speaker", folder)
    gpu = pathlib.Path(cluster.nodes["a"].gpu_environment["SOFTGPU_HOME"])
    over = gpu / "over"  # a function makes no file there, but writes into one that it may write to
    over.touch()
    over.chmod(0o666)
    client = Client(cluster.nodes["g"].endpoint)

    parts = client.stream("speaker", {"words": ["data: one\n\n", "data: two\n\n"]})
    assert next(parts) == b"data: one\n\n"  # the second is not made before the gate opens
    (gpu / "gate").touch()
    assert list(parts) == [b"data: two\n\n"]
    eventually(lambda: over.read_text() == "data: one\n\n")

    # Who leaves the gateway in the middle ends the function's answer at its home.
    parts = client.stream("speaker", {"words": ["begun"], "flood": True})
    assert next(parts).startswith(b"begun")
    parts.close()
    eventually(lambda: over.read_text() == "begun")
    eventually(lambda: cluster.nodes["a"].status()["functions"][0]["in_flight"] == 0)

    # A home that dies in the middle: no client takes the part for the whole.
    parts = client.stream("speaker", {"words": ["begun"], "flood": True})
    next(parts)
    cluster.nodes["a"].kill()
    with pytest.raises(ConnectionError):
        for _ in parts:
            pass


def test_a_node_that_was_away_catches_up_and_what_was_deleted_stays_deleted(make_cluster):
    cluster = make_cluster(("a", "b")).start_all()
    noop = cluster.nodes["a"].sample("noop")
    cluster.nodes["a"].deploy("stays", noop)
    cluster.nodes["a"].deploy("goes", noop)
    cluster.nodes["b"].kill()
    cluster.nodes["a"].deploy("comes", noop)
    assert cluster.nodes["a"].call("DELETE", "/2015-03-31/functions/goes")[0] == 204
    cluster.start("b", keep_state=True)
    eventually(lambda: cluster.functions("b") == ["comes", "stays"])
    eventually(lambda: cluster.functions("a") == ["comes", "stays"])
    ok(cluster.nodes["b"].invoke("comes", "{}"))


def test_a_node_is_emptied_and_taken_back(make_cluster):
    cluster = make_cluster(("a", "b")).start_all()
    cluster.nodes["a"].deploy("misbehave", MISBEHAVE)
    home = cluster.home("misbehave", "a")
    other = "b" if home == "a" else "a"

    def say(*arguments):
        return subprocess.run([BUILD / "bin/fairlead", "--endpoint", cluster.nodes[home].endpoint, "cluster", *arguments], capture_output=True, text=True)

    with Gate(cluster.nodes[home]) as gate, concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(cluster.nodes[home].invoke, "misbehave", gate.payload)
        eventually(lambda: cluster.nodes[home].status()["functions"][0]["in_flight"] == 1)
        early = say("drain", "--wait", "0")
        assert early.returncode == 6, early
        assert "1 calls still wait or run" in early.stderr
        cluster.until_all_see({home: "draining"}, [other])
        ok(cluster.nodes[home].invoke("misbehave", "{}"))  # the other node runs it
        assert cluster.ran(other, "misbehave") == 1
        assert cluster.nodes[home].call("GET", "/healthz")[0] == 503  # so that what is in front sends nobody
        gate.open()
        ok(running.result())
    done = say("drain")
    assert done.returncode == 0 and "it may be stopped" in done.stdout, done
    assert say("resume").stdout == f"{home} takes calls again\n"
    cluster.until_all_see({home: "alive"}, [other])
    assert cluster.nodes[home].call("GET", "/healthz")[0] == 200
    assert cluster.home("misbehave", other) == home


def test_a_repeat_through_another_gateway_runs_once(make_cluster):
    cluster = make_cluster().start_all()
    cluster.nodes["a"].deploy("noop", cluster.nodes["a"].sample("noop"))
    home = cluster.home("noop", "a")
    ok(cluster.nodes[home].invoke("noop", "{}"))
    before = cluster.ran(home, "noop")
    answers = [cluster.nodes[name].invoke("noop", "{}", {"amz-sdk-invocation-id": "11111111-2222-4333-8444-555555555555"})
               for name in "abc"]
    assert len({headers["x-amzn-RequestId"] for _, headers, _ in answers}) == 1
    assert cluster.ran(home, "noop") == before + 1
    assert sum(cluster.ran(name, "noop") for name in "abc") == before + 1


def test_a_caller_that_goes_takes_its_queued_call_along(make_cluster):
    cluster = make_cluster(("a", "g"), gateways=("g",))
    cluster.start("a", "--slots", "1")
    cluster.start("g")
    cluster.until_all_see({"a": "alive"}, ["g"])
    cluster.until_all_see({"g": "alive"}, ["a"])
    cluster.nodes["g"].deploy("misbehave", MISBEHAVE)
    with Gate(cluster.nodes["a"]) as gate, concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(cluster.nodes["g"].invoke, "misbehave", gate.payload)
        eventually(lambda: cluster.nodes["a"].status()["functions"][0]["in_flight"] == 1)
        connection = http.client.HTTPConnection(cluster.nodes["g"].host, cluster.nodes["g"].port)
        connection.request("POST", "/2015-03-31/functions/misbehave/invocations", "{}")
        eventually(lambda: cluster.nodes["a"].status()["functions"][0]["queued"] == 1)
        connection.close()
        eventually(lambda: cluster.nodes["a"].status()["functions"][0]["queued"] == 0)
        gate.open()
        ok(running.result())
    eventually(lambda: all(member.get("calls", 0) == 0 for member in cluster.see("g")["members"]))


class Load:
    """Calls of `functions` through `node`, from threads, each remembered: (when it began, seconds, status, body)."""

    def __init__(self, node, functions, threads=3):
        self.node, self.functions = node, functions
        self.calls, self.over = [], threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(threads)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        while not self.over.is_set():
            function = self.functions[number % len(self.functions)]
            number += 1
            began = time.monotonic()
            status, _, body = self.node.invoke(function, "{}")
            self.calls.append((began, time.monotonic() - began, function, status, body))

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        return self.calls


def functions_by_home(cluster, viewer, count=12):
    for number in range(count):
        cluster.nodes[viewer].deploy(f"f{number}", cluster.nodes[viewer].sample("noop"))
    homes = {}
    for one in cluster.see(viewer)["functions"]:
        homes.setdefault(one["home"], []).append(one["name"])
    return homes


def test_a_home_is_killed_under_load(make_cluster):
    cluster = make_cluster(("a", "b", "c")).start_all()
    homes = functions_by_home(cluster, "a")
    victim = next(name for name in ("b", "c") if len(homes.get(name, [])) > 1)
    mine, others = homes[victim][0], [name for home, names in homes.items() if home != victim for name in names]
    for function in (mine, others[0]):
        ok(cluster.nodes["a"].invoke(function, "{}"))
    load = Load(cluster.nodes["a"], [mine, others[0], mine])
    eventually(lambda: len(load.calls) > 50)
    cluster.nodes[victim].kill()
    killed = time.monotonic()
    eventually(lambda: cluster.states("a")[victim] == "dead")
    eventually(lambda: sum(call[0] > killed + 4 and call[2] == mine for call in load.calls) > 50)
    calls = load.stop()
    wrong = [call for call in calls if call[3] != 200]
    # At most what was under way when it died, each with the node named; nothing of functions that live elsewhere.
    assert len(wrong) <= 3, wrong
    assert all(call[2] == mine and call[0] <= killed and call[3] >= 500 and f"'{victim}'".encode() in call[4] for call in wrong), wrong
    late = sorted(call[1] for call in calls if call[0] > killed + 10) or [0]
    assert late[int(len(late) * 0.99)] < 1.0
    print(f"killed: {len(calls)} calls, {len(wrong)} errors, slowest after it {max(c[1] for c in calls if c[0] > killed):.3f} s")
    assert cluster.home(mine, "a") != victim
    cluster.start(victim, keep_state=True)
    cluster.until_all_see({victim: "alive"}, ["a"])
    # What runs elsewhere by now stays where it is warm; what nobody called is at home there again.
    eventually(lambda: cluster.home(homes[victim][-1], "a") == victim)
    ok(cluster.nodes["a"].invoke(mine, "{}"))


def test_a_node_that_is_stopped_is_suspect_and_calls_go_elsewhere_until_it_goes_on(make_cluster):
    cluster = make_cluster(("a", "b", "c")).start_all()
    homes = functions_by_home(cluster, "a")
    victim = next(name for name in ("b", "c") if homes.get(name))
    mine = homes[victim][0]
    ok(cluster.nodes["a"].invoke(mine, "{}"))
    cluster.nodes[victim].process.send_signal(signal.SIGSTOP)
    eventually(lambda: cluster.states("a")[victim] in ("suspect", "dead"))
    ok(cluster.nodes["a"].invoke(mine, "{}"))
    assert cluster.home(mine, "a") != victim
    eventually(lambda: cluster.states("a")[victim] == "dead")
    cluster.nodes[victim].process.send_signal(signal.SIGCONT)
    cluster.until_all_see({victim: "alive"}, ["a"])
    # It slept itself, so it does not think that the others died.
    assert set(cluster.states(victim).values()) == {"alive"}
    eventually(lambda: cluster.home(mine, "a") == victim)
    ok(cluster.nodes["a"].invoke(mine, "{}"))


def test_a_call_under_way_on_a_node_that_hangs_ends_with_an_error_that_names_it(make_cluster):
    cluster = make_cluster(("a", "g"), gateways=("g",)).start_all()
    cluster.nodes["g"].deploy("misbehave", MISBEHAVE)
    with Gate(cluster.nodes["a"]) as gate, concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(cluster.nodes["g"].invoke, "misbehave", gate.payload)
        eventually(lambda: cluster.nodes["a"].status()["functions"][0]["in_flight"] == 1)
        cluster.nodes["a"].process.send_signal(signal.SIGSTOP)
        status, _, body = running.result()
        assert status == 503 and b"'a'" in body and b"may have run" in body, body
        status, _, body = cluster.nodes["g"].invoke("misbehave", "{}")
        assert status == 503 and b"no node can take a call" in body, body
        cluster.nodes["a"].process.send_signal(signal.SIGCONT)


def test_a_node_that_drains_is_announced_and_loses_no_call(make_cluster):
    cluster = make_cluster(("a", "b", "c")).start_all()
    homes = functions_by_home(cluster, "a")
    victim = next(name for name in ("b", "c") if homes.get(name))
    load = Load(cluster.nodes["a"], homes[victim][:1])
    eventually(lambda: len(load.calls) > 30)
    assert cluster.nodes[victim].stop() == 0
    gone = time.monotonic()
    eventually(lambda: sum(call[0] > gone for call in load.calls) > 30)
    wrong = [call for call in load.stop() if call[3] != 200]
    assert not wrong, wrong


# ---- those who are no nodes


def field(letter, value):
    return f"{letter}{len(value)}:{value}"


def seal(key, purpose, *parts):
    text = purpose + "".join(f"\n{len(part)}:{part}" for part in parts)
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


class Impostor:
    """Speaks as a node, with the cluster's key or another."""

    def __init__(self, node, key, name):
        self.node, self.key, self.name, self.number = node, key, name, 0

    def hello(self):
        nonce = secrets.token_hex(16)
        body = field("n", self.name) + field("o", nonce) + field("u", "")
        body += field("s", seal(self.key, "fairlead-peer-hello-1", self.name, nonce, ""))
        status, _, answer = self.node.call("POST", "/fairlead/v1/peers/hello", body)
        if status == 200:
            text = answer.decode()
            self.session = text[text.index("i32:") + 4:][:32]
        return status

    def send(self, target, head, body="", number=None, session=None, key=None):
        self.number += 1
        number = self.number if number is None else number
        session = session or self.session
        headers = {"X-Fairlead-Peer": f"{session} {number} "
                   + seal(key or self.key, "fairlead-peer-request-1", session, str(number), target, head),
                   "X-Fairlead-Head": str(len(head))}
        return self.node.call("POST", target, head + body, headers)


CALL = "/fairlead/v1/peers/call"
WORD = "/fairlead/v1/peers/word"


def call_head(function="noop", tenant="default", hops="1"):
    return field("f", function) + field("t", tenant) + field("r", "operator") + field("h", hops) + field("k", "0")


def word_head(name, number="1", tokens="2", backlog="0", incarnation="1"):
    return (field("n", name) + field("i", incarnation) + field("m", number) + field("t", tokens) + field("b", backlog) + field("f", "0")
            + field("k", "0"))


def test_who_has_no_key_is_no_node_and_hops_are_counted(make_cluster):
    cluster = make_cluster(("a", "b")).start_all()
    node = cluster.nodes["a"]
    node.deploy("noop", node.sample("noop"))
    # A client's headers have no effect: its call is one of a client, and the peers' paths are closed to it.
    forged = {"X-Fairlead-Hop": "1", "X-Fairlead-Peer": f"{'0' * 32} 1 {'0' * 64}", "X-Fairlead-Head": "5"}
    ok(node.invoke("noop", "{}", forged))
    for path in ("word", "call", "versions", "function", "changed"):
        assert node.call("POST", f"/fairlead/v1/peers/{path}", "12345", forged)[0] == 401
        assert node.call("POST", f"/fairlead/v1/peers/{path}", "12345")[0] == 401
    assert Impostor(node, "another key, which is as long as needs be", "x").hello() == 401
    assert Impostor(node, cluster.secret, "a").hello() == 200  # learns the name that is there, and may not speak under it
    assert Impostor(node, cluster.secret, "a b").hello() == 400

    peer = Impostor(node, cluster.secret, "x")
    assert peer.hello() == 200
    status, _, body = peer.send(CALL, call_head(), "{}")
    assert status == 200, body
    # Copied, sealed for other bytes, with another key, of another session.
    assert peer.send(CALL, call_head(), "{}", number=peer.number)[0] in (401, 409)
    assert peer.send(CALL, call_head(), "{}", number=1)[0] == 409
    assert peer.send(CALL, call_head(), "{}", key="another")[0] == 401
    assert peer.send(CALL, call_head(), "{}", session="0" * 32)[0] == 401
    # Two hops are impossible, and another tenant's function is not there.
    ran = sum(cluster.ran(name, "noop") for name in "ab")
    assert peer.send(CALL, call_head(hops="2"), "{}")[0] == 400
    assert peer.send(CALL, call_head(tenant="other"), "{}")[0] == 421
    assert peer.send(CALL, call_head(function="nothing"), "{}")[0] == 421
    assert sum(cluster.ran(name, "noop") for name in "ab") == ran


def test_words_that_cannot_be_true_are_refused(make_cluster):
    cluster = make_cluster(("a", "b")).start_all()
    node = cluster.nodes["a"]
    peer = Impostor(node, cluster.secret, "x")
    assert peer.hello() == 200
    before = cluster.see("a")["words_refused"]
    lies = [word_head("x", tokens="-1"), word_head("x", tokens="nan"), word_head("x", tokens="inf"), word_head("x", backlog="-0.5"),
            word_head("x", backlog="nan"), word_head("x", backlog=str(2**63)), word_head("x", number=str(2**63)),
            word_head("x", incarnation=str(2**64)), word_head("b"), word_head("a"), word_head("x y"), word_head(""), "n99:x", "n",
            word_head("x") + field("w", "1234567"), field("n", "x") * 100]
    for lie in lies:
        assert peer.send(WORD, lie)[0] == 400, lie
    assert cluster.see("a")["words_refused"] >= before + len(lies)
    # Too much of it, with the key and without.
    assert peer.send(WORD, word_head("x") + field("w", "x" * (1 << 20)))[0] == 413
    assert node.call("POST", WORD, "x" * (1 << 20))[0] in (401, 413)
    with contextlib.suppress(ConnectionError):  # hung up on while it was sent
        assert node.call("POST", WORD, "x" * (80 << 20))[0] in (401, 413)
    assert peer.send(WORD, word_head("x"))[0] == 200
    cluster.until_all_see({"b": "alive"}, ["a"])  # on a busy machine it may be suspect for a moment


def test_there_are_at_most_so_many_nodes(make_cluster):
    cluster = make_cluster(("a", "b")).start_all()
    statuses = [Impostor(cluster.nodes["a"], cluster.secret, f"x{number}").hello() for number in range(80)]
    assert statuses.count(200) == 62 and set(statuses) == {200, 429}
    cluster.until_all_see({"b": "alive"}, ["a"])  # on a busy machine it may be suspect for a moment


def test_two_nodes_of_one_name_are_told_apart_and_told_off(make_cluster):
    cluster = make_cluster(("a", "b"))
    cluster.start("a")
    cluster.start("b", name="a")
    eventually(lambda: "own name" in cluster.nodes["a"].log_path.read_text())
    assert [member["name"] for member in cluster.see("a")["members"]] == ["a", ""]


def test_a_node_that_is_not_listed_says_where_it_is(make_cluster):
    cluster = make_cluster(("a", "b"))
    cluster.start("a", peers=())
    cluster.start("b", "--advertise", f"http://127.0.0.1:{cluster.ports['b']}", peers=("a",))
    cluster.until_all_see({"b": "alive"}, ["a"])
    cluster.until_all_see({"a": "alive"}, ["b"])


def refused(*options, tmp_path):
    run = subprocess.run([BUILD / "bin/fairlead", "serve", "--softgpu", "--state", tmp_path / "state", "--listen", "127.0.0.1:0", *options],
                         capture_output=True, text=True, timeout=120)
    assert run.returncode != 0
    return run.stderr


def test_what_would_go_in_the_clear_or_without_a_key_is_refused(tmp_path):
    key = tmp_path / "key"
    key.write_text("k" * 40)
    key.chmod(0o600)
    assert "--cluster-key" in refused("--peer", "http://127.0.0.1:1", tmp_path=tmp_path)
    assert "in the clear" in refused("--peer", "http://192.0.2.1:1", "--cluster-key", key, tmp_path=tmp_path)
    assert "in the clear" in refused("--advertise", "http://192.0.2.1:1", "--cluster-key", key, tmp_path=tmp_path)
    assert "no address" in refused("--peer", "ftp://x", "--cluster-key", key, tmp_path=tmp_path)
    assert "--node-name" in refused("--node-name", "a b", "--cluster-key", key, tmp_path=tmp_path)
    key.chmod(0o644)
    assert "chmod 600" in refused("--cluster-key", key, tmp_path=tmp_path)
    key.write_text("short")
    key.chmod(0o600)
    assert "32" in refused("--cluster-key", key, tmp_path=tmp_path)
    run = subprocess.run([BUILD / "bin/fairlead", "serve", "--gpus", "0", "--state", tmp_path / "state"], capture_output=True, text=True)
    assert run.returncode != 0 and "--cluster-key" in run.stderr
