"""What is killed while requests pass through it, and what is left then: no answer is wrong or lost, stages that had ended run nothing twice,
neighbours do not notice, and rings, slices and pinned memory come back. And how much host memory pipelines may hold at all."""

import json
import os
import pathlib
import signal

import pytest

from conftest import MISBEHAVE, eventually
from test_pipeline_host import host, written
from test_pipelines import (A100, Load, call, chain, component, destroyed, error, exists, expected, family, folder, numbers, out, p1,  # noqa: F401
                            pipeline, rings_of, runs)


def shared_files(pids):
    """Files in /dev/shm that these have mapped. Other nodes' are there as well."""
    maps = (pathlib.Path(f"/proc/{pid}/maps").read_text() for pid in pids)
    return {pathlib.Path(line.split()[-1]) for text in maps for line in text.splitlines() if "/dev/shm/" in line}


def descriptors(pid):
    """Memory files of rings that the process has open."""
    count = 0
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += "fairlead-ring" in os.readlink(link)
        except FileNotFoundError:  # closed meanwhile
            continue
    return count


def held(node, name="chain"):
    return {gpu["id"] for gpu in node.status()["gpus"] if f"pipeline {name}" in gpu["reason"]}


@pytest.mark.parametrize("inside", [False, True], ids=["the jail", "the server in it"])
def test_each_stage_is_killed_under_load_and_nobody_else_notices(p1, folder, inside):  # noqa: F811
    node = p1("1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb")
    node.deploy("f", MISBEHAVE)
    node.deploy("chain", chain(folder, memory_gib=6))
    node.deploy("other", chain(folder, name="other", memory_gib=6))
    for name in ("chain", "other"):
        out(node.invoke(name, call(numbers(0))))
        assert len(pipeline(node, name)["stages"]) == 3
    before = len(rings_of(node.process.pid)), descriptors(node.process.pid), held(node)
    load, beside = Load(node), Load(node, name="other", clients=2)
    for number in range(6):
        load.served(5)
        stage = pipeline(node)["stages"][number % 3]
        os.kill(family(stage["pid"])[-1] if inside else stage["pid"], signal.SIGKILL)
        eventually(lambda: pipeline(node)["stages"][number % 3]["restarts"] == number // 3 + 1)
        eventually(lambda: all(one["ready"] for one in pipeline(node)["stages"]))
        assert node.invoke("f", "{}")[0] == 200
    load.served(5)
    load.stop()
    beside.served(5)
    beside.stop()
    assert load.wrong == [] and beside.wrong == []
    stages = pipeline(node)["stages"]
    # The first request that was made above, and each of the load's: a stage that has ended runs nothing again.
    assert [stage["requests"] for stage in stages] == [len(load.latencies) + 1] * 3
    assert all(stage["restarts"] == 0 and stage["requests"] == len(beside.latencies) + 1 for stage in pipeline(node, "other")["stages"])
    assert all(stage["ring"]["used"] == 0 for stage in stages)
    assert (len(rings_of(node.process.pid)), descriptors(node.process.pid), held(node)) == before


def test_a_request_that_kills_its_stage_ends_after_its_retries_and_others_go_on(p1, folder):  # noqa: F811
    """Its program ends itself where the first number is 13: three times, with two retries. What waits behind it is answered."""
    steps = "import os\n\ndef look(x):\n    if x[0] == 13: os.kill(os.getpid(), 9)\n    return x\n"
    components = [component("deblur", "input.image", 20, 6), host("look", "look", x="deblur.y"), component("depth", "look.y", 20, 6)]
    node = p1("1g.10gb,1g.10gb")
    node.deploy("chain", written(folder, "chain", components, "depth.y", {"deblur": 2.0, "depth": 5.0}, steps=steps))
    assert out(node.invoke("chain", call(numbers(0)))) == [5 * (2 * value + 2) + 5 for value in numbers(0)]
    said = error(node.invoke("chain", call([5.5] + numbers(0)[1:])))
    assert said["errorType"] == "Pipeline.Failed" and "after 2 retries" in said["errorMessage"] and "program look" in said["errorMessage"]
    eventually(lambda: all(stage["ready"] for stage in pipeline(node)["stages"]))
    assert sum(stage["restarts"] for stage in pipeline(node)["stages"]) == 3
    assert pipeline(node)["stages"][0]["requests"] == 2, "deblur's tensor was whole"
    assert out(node.invoke("chain", call(numbers(0)))) == [5 * (2 * value + 2) + 5 for value in numbers(0)]


def test_a_killed_node_gives_slices_rings_and_shared_memory_back(p1, folder, softgpu):  # noqa: F811
    node = p1("1g.10gb,1g.10gb,1g.10gb")
    node.deploy("chain", chain(folder, memory_gib=6))
    load = Load(node)
    load.served(5)
    processes = {pid for stage in pipeline(node)["stages"] for pid in family(stage["pid"])}
    assert sum(bool(rings_of(pid)) for pid in processes) == 3
    files = shared_files({node.process.pid, *processes})
    assert not [file for file in files if "ring" in file.name], "a ring has no name that could stay"
    load.done.set()
    node.kill()
    load.stop()
    eventually(lambda: not any(exists(pid) for pid in processes))
    # The node's objects keep their folder until it is started again.
    assert not [file for file in files if file.exists() and node.object_memory() not in file.parents]
    eventually(lambda: destroyed(softgpu, "all"))


# ---- a budget

LONG = 1 << 14
ONE = 2 * 4 * LONG + 4096  # bytes of the ring of a pipeline of one component: two slots, and the page of their words


def single(folder, name):  # noqa: F811
    """out = 5 x + 5, on one slice."""
    return folder(name, [component("depth", "input.image", 20, 1, LONG)], "depth.y", {"depth": 5.0}, LONG)


def test_a_flood_of_pipelines_holds_no_more_than_the_node_gives(p1, folder):  # noqa: F811
    """Room for two; seven are deployed, for seven slices. Those that get no memory say so, with tensor, setting, bound and what is
    wanted, and hold no bytes. One that goes makes room for one."""
    node = p1("1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb", "--pipeline-memory", str(2 * ONE))
    names = [f"p{number}" for number in range(7)]
    for name in names:
        node.deploy(name, single(folder, name))

    def running():
        return [one["function"] for one in node.status()["pipelines"] if one["state"] == "runs"]

    def lacking():
        return [one for one in node.status()["pipelines"] if "pipeline-memory is" in one["why"]]
    eventually(lambda: len(running()) == 2 and len(lacking()) == 5)
    assert f"depth.y: pipeline-memory is {2 * ONE} bytes of host memory, of which {2 * ONE} are held: {ONE} more are wanted" in lacking()[0]["why"]
    assert len(rings_of(node.process.pid)) == 2
    x = numbers(1, LONG)
    for name in running():
        assert out(node.invoke(name, call(x))) == [5 * value + 5 for value in x]
    said = error(node.invoke(lacking()[0]["function"], call(x)))
    assert said["errorType"] in ("Pipeline.NotPlaced", "Pipeline.Broken") and "pipeline-memory is" in said["errorMessage"], said
    assert node.call("DELETE", f"/2015-03-31/functions/{running()[0]}")[0] == 204
    node.deploy("late", single(folder, "late"))  # the others may have given up
    eventually(lambda: len(running()) == 2)
    assert len(rings_of(node.process.pid)) == 2


def test_one_function_holds_no_more_than_its_own_bound(p1, folder):  # noqa: F811
    node = p1("1g.10gb,1g.10gb", "--pipeline-function-memory", str(ONE - 1))
    node.deploy("chain", single(folder, "chain"))
    said = error(node.invoke("chain", call(numbers(0, LONG))))
    assert f"depth.y: pipeline-function-memory is {ONE - 1} bytes of host memory, of which 0 are held: {ONE} more" in said["errorMessage"], said
    assert rings_of(node.process.pid) == []
