"""GPUs that are cut anew for pipelines (--mig-reslice), and functions that ask for slices of a profile (gpu:mig-profile)."""

import concurrent.futures
import threading

import pytest

from conftest import MISBEHAVE, eventually
from test_pipelines import Load, call, chain, expected, folder, numbers, out, p1, pipeline, slices  # noqa: F401

SEVEN = ",".join(["1g.10gb"] * 7)


def uuids(node):
    return {gpu["uuid"]: gpu["slice"]["profile"] for gpu in node.status()["gpus"]}


def cuts(node):
    return node.status()["slice_cuts"]


def test_a_pipeline_that_fits_on_no_slice_has_some_cut_for_it(p1, folder):
    """Each of its components needs more than a 1g has. A program goes on meanwhile, on what is left."""
    node = p1(SEVEN, "--mig-reslice")
    node.deploy("f", MISBEHAVE)
    wrong, done = [], threading.Event()

    def calls():
        while not done.is_set():
            status, headers, body = node.invoke("f", "{}")
            if status != 200 or "X-Amz-Function-Error" in headers:
                wrong.append((status, body))

    client = threading.Thread(target=calls)
    client.start()
    try:
        node.deploy("chain", chain(folder, memory_gib=15))
        assert out(node.invoke("chain", call(numbers(3)))) == expected(numbers(3))
        assert "1g.10gb" not in {profile for profile, _ in slices(node)}
        eventually(lambda: cuts(node)["state"] == "idle")
        found = cuts(node)
        assert found["on"] and found["cuts"] >= 1 and found["failed"] == 0, found
        assert "become" in found["last"] and "for chain" in found["last"]
        held = {stage["gpu"] for stage in pipeline(node)["stages"]}
        assert len(held) < len(node.status()["gpus"]), "one is left to f"
    finally:
        done.set()
        client.join()
    assert wrong == []
    load = Load(node)
    load.served(10)
    load.stop()
    assert load.wrong == []


def test_what_is_busy_is_not_touched(p1, folder):
    node = p1(SEVEN, "--mig-reslice")
    node.deploy("f", MISBEHAVE, Timeout=60)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        long = pool.submit(node.invoke, "f", '{"do": "sleep", "seconds": 6}')
        busy = eventually(lambda: next((gpu["uuid"] for gpu in node.status()["gpus"] if gpu["slots_in_use"] > 0), None))
        node.deploy("chain", chain(folder, memory_gib=15))
        assert out(node.invoke("chain", call(numbers(3)))) == expected(numbers(3))
        assert not long.done(), "the call outlived the cut"
        assert busy in uuids(node)
        status, headers, _ = long.result()
        assert status == 200 and "X-Amz-Function-Error" not in headers


def test_memory_that_no_slice_has_is_used_first(p1, folder):
    """As after a node that was killed between the end of old slices and the making of new ones."""
    node = p1("1g.10gb", "--mig-reslice")
    node.deploy("f", MISBEHAVE)
    before = uuids(node)
    node.deploy("chain", chain(folder, memory_gib=15))
    assert out(node.invoke("chain", call(numbers(3)))) == expected(numbers(3))
    assert before.items() <= uuids(node).items()
    assert "free memory slices become" in cuts(node)["last"]


def test_nothing_is_cut_unless_the_operator_says_so(p1, folder):
    node = p1(SEVEN)
    node.deploy("chain", chain(folder, memory_gib=15))
    status, headers, body = node.invoke("chain", call(numbers(3)))
    assert "X-Amz-Function-Error" in headers and b"no plan fits" in body, (status, body)
    assert sorted(uuids(node).values()) == ["1g.10gb"] * 7
    assert not cuts(node)["on"]


def on(node, function):
    """Profiles of the slices that instances of the function are on."""
    profiles = {gpu["id"]: gpu["slice"]["profile"] for gpu in node.status()["gpus"]}
    return {profiles[one["gpu"]] for one in node.status()["instances"] if one["function"] == function}


def test_a_function_runs_on_slices_of_its_profile_alone(p1, tmp_path):
    node = p1("3g.40gb,2g.20gb,1g.10gb")
    node.deploy("large", MISBEHAVE, Tags={"gpu:mig-profile": "3g.40gb"})
    node.deploy("small", MISBEHAVE, Tags={"gpu:mig-profile": "1g"})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda i: node.invoke(("large", "small")[i % 2], '{"do": "sleep", "seconds": 0.2}'), range(16)))
    assert all(status == 200 and "X-Amz-Function-Error" not in headers for status, headers, _ in replies), replies
    assert on(node, "large") == {"3g.40gb"} and on(node, "small") == {"1g.10gb"}
    with pytest.raises(Exception, match="gpu:mig-profile is 4g.40gb; the node has no such slice, but 1g.10gb, 2g.20gb, 3g.40gb"):
        node.deploy("none", MISBEHAVE, Tags={"gpu:mig-profile": "4g.40gb"})
    with pytest.raises(Exception, match="tag gpu:mig-profile is 'huge'"):
        node.deploy("none", MISBEHAVE, Tags={"gpu:mig-profile": "huge"})
