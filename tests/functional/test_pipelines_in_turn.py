"""More pipelines than slices: they share, and take turns. No call is lost for it, none is wrong, and nobody waits for ever."""

import http.client
import json
import random
import threading
import time

from conftest import eventually
from test_pipelines import Load, call, chain, component, exists, expected, folder, numbers, out, p1, pipeline  # noqa: F401

LONGEST_WAIT_S = 20  # for turns of 1 and 2 s, also on a busy machine. Who gets none waits for a minute
THREE = "1g.10gb,1g.10gb,1g.10gb"


def single(folder, name, factor, **more):  # noqa: F811
    """out = factor (x + 1), on one slice of the smallest"""
    return folder(name, [component("only", "input.image", 20, 9, **more)], "only.y", {"only": factor})


def holders(node):
    """{slice: pipelines that have a stage on it}"""
    held = {}
    for one in node.status()["pipelines"]:
        for stage in one["stages"]:
            held.setdefault(stage["gpu"], []).append(one["function"])
    return held


def test_calls_of_many_functions_share_few_slices(p1, folder):  # noqa: F811
    node = p1(THREE)
    functions = {f"f{i}": float(i + 2) for i in range(20)}
    for name, factor in functions.items():
        node.deploy(name, single(folder, name, factor))
    wrong, served, done = [], {name: 0 for name in functions}, threading.Event()

    def client(seed):
        rng = random.Random(seed)
        while not done.is_set():
            name, x = rng.choice(list(functions)), numbers(rng.randrange(17))
            reply = node.invoke(name, call(x))
            try:
                assert out(reply) == [functions[name] * (value + 1) for value in x]
                served[name] += 1
            except (AssertionError, KeyError) as problem:
                wrong.append((name, str(problem)[:300]))
    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()

    def all_served():
        assert all(len(of) == 1 for of in holders(node).values()), holders(node)
        return wrong or min(served.values()) > 1
    try:
        # Before slices were shared, three functions were served and the others' calls failed after 5 s.
        eventually(all_served)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_pipelines_that_are_always_used_take_turns(p1, folder):  # noqa: F811
    """Three, each with calls at all times, on slices for one of them."""
    node = p1("2g.20gb,1g.10gb", "--pipeline-turn", "1")
    names = ["chain", "other", "third"]
    for name in names:
        node.deploy(name, chain(folder, name=name, memory_gib=8), Timeout=60)
    loads = [Load(node, name) for name in names]
    for _ in range(2):
        before = [len(load.latencies) for load in loads]
        eventually(lambda: all(len(load.latencies) >= had + 50 for load, had in zip(loads, before)), timeout=40)
    waits = {pipeline(node, name)["state"] for name in names}
    assert len(waits) > 1, waits
    for load in loads:
        load.stop()
        assert load.wrong == []
    longest = [max(load.latencies) for load in loads]
    assert max(longest) < LONGEST_WAIT_S, longest
    assert max(longest) > 0.9, f"nobody ever waited for a turn: {longest}"


def test_one_that_needs_all_slices_gets_its_turn_among_small_ones(p1, folder):  # noqa: F811
    """It gets all slices at once, among more small ones than there are slices, all of them used at all times."""
    node = p1("1g.10gb,1g.10gb", "--pipeline-turn", "2")
    small = [f"f{i}" for i in range(3)]
    for name in small:
        node.deploy(name, single(folder, name, 2.0), Timeout=60)
    done, failed = threading.Event(), []

    def client(number):
        while not done.is_set():
            reply = node.invoke(small[number % 3], call(numbers(0)))
            if "X-Amz-Function-Error" in reply[1]:
                failed.append(reply)
    threads = [threading.Thread(target=client, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    try:
        node.deploy("chain", chain(folder, memory_gib=4), Timeout=60)
        for first in range(2):
            begin = time.monotonic()
            assert out(node.invoke("chain", call(numbers(first)))) == expected(numbers(first))
            assert time.monotonic() - begin < LONGEST_WAIT_S
            eventually(lambda: pipeline(node)["state"] == "warm")  # the small ones go on
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failed


def test_who_waits_for_a_turn_says_so_and_who_fits_nowhere_is_told(p1, folder):  # noqa: F811
    node = p1("1g.10gb")
    node.deploy("busy", single(folder, "busy", 2.0))
    out(node.invoke("busy", call(numbers(0))))
    node.deploy("waits", single(folder, "waits", 3.0))
    node.deploy("large", folder("large", [component("only", "input.image", 20, 30)], "only.y", {"only": 2.0}))
    eventually(lambda: (pipeline(node, "waits") or {}).get("state") == "waits for its turn")
    assert "in its turn" in pipeline(node, "waits")["why"]
    status, headers, body = node.invoke("large", call(numbers(0)))
    assert headers.get("X-Amz-Function-Error") and "NotPlaced" in json.dumps(json.loads(body)), body
    assert pipeline(node, "busy")["state"] == "runs", "nobody has called who waits"
    assert out(node.invoke("waits", call(numbers(0)))) == [3 * (value + 1) for value in numbers(0)]
    assert pipeline(node, "busy")["state"] == "warm"


def test_a_call_whose_client_went_away_takes_no_turn(p1, folder):  # noqa: F811
    node = p1("2g.20gb,1g.10gb", "--pipeline-turn", "45")
    for name in ("busy", "waits"):
        node.deploy(name, chain(folder, name=name, memory_gib=8), Timeout=60)
    load = Load(node, "busy")
    eventually(lambda: len(load.latencies) > 20)
    client = http.client.HTTPConnection(node.host, node.port)
    client.request("POST", "/2015-03-31/functions/waits/invocations", call(numbers(0)))
    eventually(lambda: pipeline(node, "waits")["waiting"] == 1)
    begin, pids = time.monotonic(), [stage["pid"] for stage in pipeline(node, "busy")["stages"]]
    client.close()
    eventually(lambda: pipeline(node, "waits")["waiting"] == 0)
    assert time.monotonic() - begin < 40, "before its turn"
    assert [stage["pid"] for stage in pipeline(node, "busy")["stages"]] == pids, "nobody went for it"

    # Who asks again under the id of the call that was given up is served, and not told how that ended.
    headers = {"amz-sdk-invocation-id": "11111111-2222-3333-4444-555555555555"}
    client = http.client.HTTPConnection(node.host, node.port)
    client.request("POST", "/2015-03-31/functions/waits/invocations", call(numbers(0)), headers)
    eventually(lambda: pipeline(node, "waits")["waiting"] == 1)
    client.close()
    eventually(lambda: pipeline(node, "waits")["waiting"] == 0)
    load.stop()
    assert load.wrong == []
    assert out(node.invoke("waits", call(numbers(0)), headers)) == expected(numbers(0))
    assert out(node.invoke("waits", call(numbers(0)))) == expected(numbers(0))


def test_a_killed_node_in_the_middle_of_turns_leaves_nothing(p1, folder):  # noqa: F811
    node = p1(THREE)
    for i in range(6):
        node.deploy(f"f{i}", single(folder, f"f{i}", 2.0))
    for i in (0, 1, 2, 3, 4, 5, 0, 1):
        out(node.invoke(f"f{i}", call(numbers(i))))
    pids = [stage["pid"] for one in node.status()["pipelines"] for stage in one["stages"]]
    assert pids
    node.kill()
    eventually(lambda: not any(exists(pid) for pid in pids))
