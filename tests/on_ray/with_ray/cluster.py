"""Nodes that Ray looks after and does not own: three raylets and three nodes of one machine, each process of Ray killed under load."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest
import ray

from conftest import until

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

import fairlead.ray as fr  # noqa: E402
from fairlead import Client, ktask  # noqa: E402
from fairlead.ray.ray_library import named_actor  # noqa: E402

NAMES = ("a", "b", "c")


class Load:
    """Clients that know nothing of Ray: one for each node, a call every 20 ms. may_move: one that finds its node gone asks the next."""

    def __init__(self, cluster, may_move=False):
        self.cluster, self.may_move = cluster, may_move
        self.answered, self.errors, self._end = 0, [], threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(name,)) for name in cluster.names]

    def call(self, name):
        headers = {"Authorization": "Bearer " + ".".join((self.cluster.state(name) / "operator-key").read_text().split())}
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.ports[name], timeout=60)
        try:
            connection.request("POST", "/2015-03-31/functions/noop/invocations", b'{"n": 1}', headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200 and not answer.headers.get("X-Amz-Function-Error") and json.loads(body) == {"n": 1}, (answer.status, body)
        finally:
            connection.close()

    def run(self, name):
        places = [name, *(other for other in self.cluster.names if other != name)] if self.may_move else [name]
        while not self._end.wait(0.02):
            failures = []
            for place in places:
                try:
                    self.call(place)
                    self.answered += 1
                    break
                except (OSError, http.client.HTTPException, AssertionError) as error:
                    failures.append(f"{place}: {error!r}")
            else:
                self.errors.append(failures)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        for thread in self.threads:
            thread.join()

    def goes_on(self):
        """Every node has answered since."""
        before = self.answered
        until(lambda: self.answered > before + 10)


@pytest.fixture(scope="module")
def deployed(cluster):
    with Client(f"unix:{cluster.state('a')}/operator.sock", token="") as client:
        client.deploy("noop", ROOT / "build/functions/noop", upload=True)
        for name in NAMES:
            with Client(f"unix:{cluster.state(name)}/operator.sock", token="") as other:
                until(lambda other=other: b'"noop"' in other.request("GET", "/2015-03-31/functions/")[1])
        yield client


def all_serve(cluster):
    """The nodes' processes, once the controller sees all of them serve. None: it does not."""
    try:
        nodes = ray.get(named_actor("controller").status.remote(), timeout=20)["nodes"]
    except (ray.exceptions.RayError, ValueError):
        return None
    if len(nodes) != 3 or {node["state"] for node in nodes} != {"serving"}:
        return None
    found = {node["name"]: node["pid"] for node in nodes}
    return found if all(pathlib.Path(f"/proc/{pid}").exists() for pid in found.values()) else None  # what is seen may be two seconds old


def serving(cluster):
    """The nodes' processes. What came before may have killed one: waits until all are seen."""
    return until(lambda: all_serve(cluster))


def state_of(name):
    """None: nobody says so, for example because the controller is where a raylet has just died."""
    try:
        said = ray.get(named_actor("controller").status.remote(), timeout=20)["nodes"]
    except (ray.exceptions.RayError, ValueError):
        return None
    return next((node["state"] for node in said if node["name"] == name), None)


def executors_answer():
    try:
        return len(ray.get([named_actor(f"executor/{name}").look.remote() for name in NAMES], timeout=20)) == 3
    except (ray.exceptions.RayError, ValueError):
        return False


def test_up_is_one_endpoint_of_nodes_that_nobody_owns_and_does_nothing_twice(cluster, deployed):
    nodes = serving(cluster)
    for pid in nodes.values():
        assert int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) not in cluster.processes(), "a parent is Ray's"
        assert os.getsid(pid) == pid
    load = Load(cluster)
    for name in NAMES:
        load.call(name)
    assert "serving" in cluster.fairlead_ray("up", cluster.folder / "cluster.toml")
    assert serving(cluster) == nodes
    seen = cluster.status()
    assert [one["peers"][other] for one in seen.values() for other in NAMES if other != one["name"]] == ["alive"] * 6
    assert all(one["current"] for one in seen.values())


def test_inputs_of_several_nodes_meet_at_one(cluster, deployed):
    task = ktask.Task()
    a, b = task.input("a", "f32", (64,)), task.input("b", "f32", (64,))
    task.output("sum", task.add(a, b))
    add = fr.ktask(task, keep="device")
    ones = numpy.ones(64, "f4")
    on_b, on_c = add.options(node="b").remote(a=ones, b=ones), add.options(node="c").remote(a=ones, b=ones)
    assert [ref.node for ref in ray.get([on_b, on_c])] == ["b", "c"]
    moved = ray.get(named_actor("executor/b").look.remote())["moved"]["between_nodes"]
    assert fr.get(add.options(node="b").remote(a=on_b, b=on_c))[0] == 4
    assert ray.get(named_actor("executor/b").look.remote())["moved"]["between_nodes"] == moved + ones.nbytes
    # A call that was sent elsewhere goes to where all of its inputs are.
    followed = ray.get(add.options(node="a").remote(a=on_c, b=on_c))
    assert followed.node == "c" and fr.get(followed)[0] == 4

    @ray.remote(num_cpus=0, label_selector={"fairlead-node": "a"})
    def elsewhere(ref):
        return float(fr.get(ref[0])[0])

    assert ray.get(elsewhere.remote([on_c])) == 2


def test_nodes_and_their_clients_notice_no_death_of_a_process_of_ray(cluster, deployed):
    nodes = serving(cluster)
    with Load(cluster) as load:
        killed = {kind: cluster.kill(kind) for kind in ("supervisor", "executor", "controller")}
        assert [len(pids) for pids in killed.values()] == [3, 3, 1]
        for kind, pids in killed.items():
            until(lambda kind=kind, pids=pids: len(set(cluster.pids(kind)) - set(pids)) == len(pids))
        until(lambda: all_serve(cluster) and executors_answer())
        load.goes_on()
        # A raylet, and with it its actors; another one of the same machine adopts its node.
        os.kill(cluster.raylet_of("c"), signal.SIGKILL)
        until(lambda: state_of("c") == "unreachable")
        load.goes_on()
        cluster.start_raylet("c")
        until(lambda: all_serve(cluster) and executors_answer())
        # Ray's truth, for some seconds, with what it had on disk.
        start_again = cluster.restart_gcs()
        load.goes_on()
        start_again()
        until(lambda: all_serve(cluster))
        load.goes_on()
    assert load.errors == [] and load.answered > 500
    assert serving(cluster) == nodes, "the same processes as before"


def test_a_node_that_hangs_or_dies_is_started_again(cluster, deployed):
    nodes = serving(cluster)
    os.kill(nodes["b"], signal.SIGSTOP)
    os.kill(nodes["c"], signal.SIGKILL)
    now = until(lambda: (found := all_serve(cluster)) and found["b"] != nodes["b"] and found["c"] != nodes["c"] and found)
    assert now["a"] == nodes["a"]


def test_a_drained_node_stays_away_until_it_is_wanted(cluster, deployed):
    with Load(cluster, may_move=True) as load:
        fr.drain("b")
        until(lambda: state_of("b") == "drained")
        killed = cluster.kill("supervisor")
        until(lambda: len(set(cluster.pids("supervisor")) - set(killed)) == 3)
        until(lambda: state_of("b") == "drained")
        load.goes_on()
        fr.resume("b")
        until(lambda: all_serve(cluster))
    assert load.errors == []
    with pytest.raises(RuntimeError, match="node z has no supervisor; there are a, b, c"):
        fr.drain("z")


def test_an_upgrade_goes_from_node_to_node_under_load(cluster, deployed):
    nodes = serving(cluster)
    # What would not start is refused before anything is stopped.
    fr.up(cluster.write_file(policy="no-such-policy"))
    with pytest.raises(ray.exceptions.RayTaskError, match="no-such-policy"):
        fr.upgrade()
    assert serving(cluster) == nodes
    with Load(cluster, may_move=True) as load:
        fr.up(cluster.write_file(history="16MiB"))
        until(lambda: not any(one["current"] for one in fr.status()["nodes"]))
        away = []

        def watch():
            while not done.wait(0.1):
                seen = ray.get(named_actor("controller").status.remote())["nodes"]
                away.append(sum(node["state"] != "serving" for node in seen))

        done = threading.Event()
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            assert "replaced: a, b, c" in cluster.fairlead_ray("upgrade")
        finally:
            done.set()
            watcher.join()
    assert load.errors == []
    assert max(away) <= 1, "one at a time"
    now = serving(cluster)
    assert not set(now.values()) & set(nodes.values()) and all(one["current"] for one in fr.status()["nodes"])
    assert fr.upgrade() == []


def test_the_head_may_be_lost_for_good_and_down_leaves_nodes_alone(cluster, deployed):
    """Last: Ray is another one afterwards."""
    nodes = serving(cluster)
    with Load(cluster) as load:
        ray.shutdown()
        for kind in ("gcs", "raylet"):
            cluster.kill(kind)
        until(lambda: not cluster.pids("supervisor") and not cluster.pids("controller"))
        load.goes_on()
        shutil.rmtree(cluster.folder / "gcs")
        cluster.start()
        ray.init(address=cluster.address, log_to_driver=False, _node_ip_address="127.0.0.1")
        said = fr.up(cluster.folder / "cluster.toml")
        assert {node["name"]: node["pid"] for node in said["nodes"]} == nodes, "adopted"
        fr.down()
        until(lambda: not cluster.pids("supervisor"))
        load.goes_on()
    assert load.errors == []
    assert set(nodes.values()) <= set(cluster.pids("node"))
    fr.up(cluster.folder / "cluster.toml")
    cluster.fairlead_ray("down", "--nodes")
    assert not set(nodes.values()) & set(cluster.pids("node"))
    missing = subprocess.run([sys.executable, "-m", "fairlead.ray", "up", cluster.folder / "absent.toml"], env=cluster.environment,
                             capture_output=True, text=True)
    assert missing.returncode == 2 and "absent.toml" in missing.stderr
