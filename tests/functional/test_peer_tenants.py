"""A tenant's fair share over nodes: who waits on two nodes is behind on the one where another waits, which waits nowhere else."""

import contextlib
import itertools
import json
import subprocess
import threading

from conftest import BUILD, MISBEHAVE, eventually
from test_peers import make_cluster, ok  # noqa: F401, a fixture

CALL = json.dumps({"do": "sleep", "seconds": 0.03})
CALLERS = 3  # of each function: of one slot, some always wait


def deploy_at_home(cluster, home, tenant):
    """A function of the tenant's that is at home there."""
    for number in itertools.count():
        name = f"{tenant}-{home}-{number}"
        cluster.nodes[home].deploy(name, MISBEHAVE, Tags={"gpu:tenant": tenant})
        if cluster.home(name, home) == home:
            return name


@contextlib.contextmanager
def callers(cluster, functions):
    """Of each (node, function): several that call it without a pause."""
    is_over = threading.Event()

    def call_on(node, function):
        while not is_over.is_set():
            node.invoke(function, CALL)

    threads = [threading.Thread(target=call_on, args=(cluster.nodes[node], function)) for node, function in functions for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def served(cluster):
    """GPU seconds by (tenant, node)."""
    return {(tenant["name"], name): tenant["service_seconds"]
            for name, node in cluster.nodes.items() for tenant in node.status()["tenants"]}


def after(cluster, seconds):
    """What was served while all were served so many GPU seconds together."""
    before = served(cluster)
    now = eventually(lambda: (lambda now: sum(now.values()) - sum(before.values()) >= seconds and now)(served(cluster)))
    return {who: now[who] - before.get(who, 0) for who in now}


def test_who_waits_on_one_node_is_served_as_much_as_who_waits_on_two(make_cluster):  # noqa: F811
    cluster = make_cluster(("a", "b"))
    for name in cluster.ports:
        cluster.start(name, "--slots", "1")
    cluster.until_all_see({"b": "alive"}, "a")
    cluster.until_all_see({"a": "alive"}, "b")
    functions = [("a", deploy_at_home(cluster, "a", "wide")), ("b", deploy_at_home(cluster, "b", "wide")),
                 ("a", deploy_at_home(cluster, "a", "narrow"))]
    for node, function in functions:
        ok(cluster.nodes[node].invoke(function, "{}"))  # their starts are not what is asked
    with callers(cluster, functions):
        after(cluster, 3)  # the first exchanges
        given = after(cluster, 8)
        factors = {one["name"]: one["cluster"]["factor"] for one in cluster.nodes["a"].status()["tenants"]}
        shown = subprocess.run([BUILD / "bin/fairlead", "--endpoint", cluster.nodes["a"].endpoint, "cluster", "status"], check=True,
                               capture_output=True, text=True).stdout
        metrics = cluster.nodes["a"].call("GET", "/metrics")[2].decode()
    assert given[("narrow", "b")] < 0.1 * given[("narrow", "a")], f"calls were given to another node than their home: {given}"
    wide = given[("wide", "a")] + given[("wide", "b")]
    # Each node for itself: half of one node beside one and a half, 0.33.
    assert 0.7 < given[("narrow", "a")] / wide < 1.4, given
    assert factors["wide"] < 0.7 and factors["narrow"] > 1.4, factors
    assert "FACTOR" in shown and "narrow" in shown, shown
    assert 'fairlead_peer_tenant_factor{tenant="wide"} 0.' in metrics
