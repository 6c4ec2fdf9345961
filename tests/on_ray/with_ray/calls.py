"""Functions and kernel tasks as calls of Ray: lazily, with results that stay, and without a second run.
Kernel tasks run on node a, so that what is on that node can be looked at; a function runs at its home."""

import json
import os
import pathlib
import pickle
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
from fairlead import Client, RequestError, ktask  # noqa: E402
from fairlead.ray.ray_library import named_actor  # noqa: E402
from fairlead.types import TaskError  # noqa: E402

BIG = 2_500_000  # elements of f32: 10 MB
MOST_MEMORY = 1.2 * (1 << 30)


def on_a(task, **options):
    return fr.ktask(task, node="a", **options)


def doubling(count):
    task = ktask.Task()
    task.output("y", task.scale(task.input("x", "f32", (count,)), 2.0))
    return task


def of_two_outputs(count=64):
    task = ktask.Task()
    a, b = task.input("a", "f32", (count,)), task.input("b", "f32", (count,))
    task.output("sum", task.add(a, b))
    task.output("difference", task.sub(a, b))
    return task


@pytest.fixture(scope="module")
def client(cluster):
    with Client(f"unix:{cluster.state('a')}/operator.sock", token="") as client:
        client.deploy("misbehave", ROOT / "tests/functions/misbehave", upload=True)
        for name in cluster.names:
            until(lambda name=name: any(one["name"] == "misbehave" for one in status_of(cluster, name)["functions"]))
        yield client


@pytest.fixture
def executor(cluster):
    def alive():
        try:
            return ray.get(named_actor("executor/a").look.remote(), timeout=20)
        except ray.exceptions.RayError:
            return None

    until(alive)
    return named_actor("executor/a")


def status_of(cluster, name):
    with Client(f"unix:{cluster.state(name)}/operator.sock", token="") as client:
        return json.loads(client.request("GET", "/fairlead/v1/status")[1])


def invocations(cluster):
    """Of misbehave, on all nodes."""
    return sum(one["stats"]["invocations"] for name in cluster.names for one in status_of(cluster, name)["functions"] if one["name"] == "misbehave")


def until_it_runs(cluster, name):
    until(lambda: [one for one in status_of(cluster, name)["instances"] if one["function"] == "misbehave" and one["state"] == "busy"])


def home(client):
    """Of misbehave, and another node."""
    said = json.loads(client.request("GET", "/fairlead/v1/cluster")[1])
    here = next(one["home"] for one in said["functions"] if one["name"] == "misbehave")
    return here, next(name for name in "abc" if name != here)


@ray.remote(num_cpus=0)
def array_when(path, count, value):
    while not os.path.exists(path):
        time.sleep(0.02)  # sleep: the test opens it
    return numpy.full(count, value, "f4")


@ray.remote(num_cpus=0)
def summed(value):
    return float(fr.get(value).sum())


def test_three_nodes_with_ray_are_small(cluster):
    """First: before anything has run."""
    memory = cluster.memory_bytes()
    assert sum(memory.values()) <= MOST_MEMORY, {name: size >> 20 for name, size in memory.items()}


# ---- values

def test_arrays_go_and_come_whatever_their_size(executor):
    for count in (1, 256, BIG):
        array = numpy.arange(count, dtype="f4")
        result = ray.get(on_a(doubling(count)).remote(x=array))
        assert isinstance(result, numpy.ndarray) and result.dtype == "f4" and (result == array * 2).all()
    by_ref = ray.get(on_a(doubling(BIG)).remote(x=ray.put(array)))
    assert (by_ref == array * 2).all()


def test_several_outputs_are_refs_by_name(executor):
    a, b = numpy.full(64, 5, "f4"), ray.put(numpy.full(64, 3, "f4"))
    both = on_a(of_two_outputs()).remote(a=a, b=b)
    assert {name: value[0] for name, value in fr.get(both).items()} == {"sum": 8, "difference": 2}
    one_stays = on_a(of_two_outputs(), keep=("sum",)).remote(a=a, b=b)
    assert isinstance(ray.get(one_stays["sum"]), fr.DeviceRef) and ray.get(one_stays["difference"])[0] == 2
    assert fr.get(one_stays)["sum"][0] == 8


def test_a_pending_input_holds_up_neither_the_caller_nor_calls_after_it(executor, tmp_path):
    task, gate = on_a(doubling(256)), tmp_path / "gate"
    fr.get(task.remote(x=numpy.ones(256, "f4")))
    late = task.remote(x=array_when.remote(str(gate), 256, 3.0))  # returns, although nobody has opened the gate
    later = task.options(keep="device").remote(x=late)
    assert ray.get(task.remote(x=numpy.ones(256, "f4")))[0] == 2, "a call that came later waits for none before it"
    assert ray.wait([late, later], num_returns=2, timeout=0)[0] == []
    gate.touch()
    assert fr.get([late, later])[1][0] == 12


def test_an_input_that_failed_is_the_failure_of_the_call(executor):
    @ray.remote(num_cpus=0, max_retries=0)
    def fails():
        raise KeyError("not today")

    with pytest.raises(ray.exceptions.RayTaskError, match="not today"):
        ray.get(on_a(doubling(256)).remote(x=fails.remote()))


def test_what_is_wrong_is_said_where_it_is_written_or_by_the_call(executor, client):
    task = on_a(doubling(256))
    with pytest.raises(TaskError, match="inputs given: z; wanted: x"):
        task.remote(z=1)
    with pytest.raises(TaskError, match="keep has 'q'"):
        task.options(keep="q")
    with pytest.raises(TypeError, match="no option speed"):
        task.options(speed=3)
    with pytest.raises(ValueError, match="timeout is 0"):
        task.options(timeout=0)
    with pytest.raises(fr.NoExecutor, match="node z has no executor; there are a"):
        task.options(node="z").remote(x=numpy.ones(256, "f4"))
    with pytest.raises(ray.exceptions.RayTaskError, match=r"shape \(7,\), \(256,\) is wanted"):
        ray.get(task.remote(x=numpy.ones(7, "f4")))
    with pytest.raises(ray.exceptions.RayTaskError) as refused:
        ray.get(fr.function("absent").remote(b""))
    assert isinstance(refused.value.cause, RequestError) and refused.value.cause.status == 404
    kept = fr.get(on_a(doubling(8), keep="device").remote(x=numpy.ones(8, "f4")))
    wrong = on_a(doubling(8), keep="device").remote(x=numpy.ones(8, "f4"))
    with pytest.raises(ray.exceptions.RayTaskError, match=r"input x is a DeviceRef of f32 \(8,\), f32 \(256,\) is wanted"):
        ray.get(task.remote(x=wrong))
    assert kept[0] == 2


# ---- what stays

def test_a_chain_with_device_refs_moves_nothing(executor, client):
    array = numpy.ones(BIG, "f4")
    task = on_a(doubling(BIG), keep="device")
    before = ray.get(executor.look.remote())["moved"]
    made = [task.remote(x=array)]
    for _ in range(5):
        made.append(task.remote(x=made[-1]))
    last = ray.get(made[-1])
    moved = ray.get(executor.look.remote())["moved"]
    assert {name: moved[name] - before[name] for name in moved} == {"to_node": array.nbytes, "from_node": 0, "between_nodes": 0}
    states = [client.objects.info(ray.get(ref).key)["state"] for ref in made]
    assert states == ["on-device"] * 6, "no output of the chain has left the GPU"
    assert fr.get(last)[0] == 64 and ray.get(summed.remote(made[1])) == 4.0 * BIG
    fr.free(made)
    fr.free(made)  # twice is once
    with pytest.raises(fr.DeviceRefLost, match="run the call that made it again"):
        fr.get(last)
    with pytest.raises(ray.exceptions.RayTaskError, match="DeviceRefLost"):
        ray.get(task.remote(x=last))


def test_calls_leave_nothing_on_the_node(executor, client):
    ray.get([on_a(doubling(BIG)).remote(x=numpy.ones(BIG, "f4")) for _ in range(2)])
    with pytest.raises(ray.exceptions.RayTaskError):
        fr.get(on_a(of_two_outputs(BIG)).remote(a=numpy.ones(BIG, "f4"), b=numpy.ones(3, "f4")))
    kept = on_a(doubling(8), keep="device").remote(x=numpy.ones(8, "f4"))
    key = ray.get(kept).key
    keys = [one["key"] for one in client.objects.list("ray/ray-")]
    assert key in keys
    client.objects.put("mine", b"x")
    until(lambda: ray.get(executor.sweep.remote(0.0)) == 0 or None)
    assert client.objects.list("ray/ray-") == [] and client.objects.info("mine")["bytes"] == 1


def test_constants_that_are_gone_are_put_again(executor, client):
    task = ktask.Task()
    x, w = task.input("x", "f32", (BIG,)), task.constant("w", numpy.full(BIG, 5, "f4"))  # too large to travel with each call
    task.output("y", task.add(x, w))
    plus, ones = on_a(task), numpy.ones(BIG, "f4")
    assert ray.get(plus.remote(x=ones))[-1] == 6
    constants = client.objects.list("ray/constants/")
    assert constants
    ray.get(plus.remote(x=ones))
    assert client.objects.list("ray/constants/")[0]["key"] == constants[0]["key"], "once for a node"
    for one in constants:
        client.objects.delete(one["key"])
    for value in (2, 3):
        assert ray.get(plus.remote(x=numpy.full(BIG, value, "f4")))[0] == value + 5


# ---- handles

def test_handles_travel_into_tasks_and_a_deployed_task_has_one(executor, client):
    task = ktask.Task()
    x, w = task.input("x", "f32", (4,)), task.constant("w", numpy.full(4, 10, "f4"))
    task.output("y", task.add(x, w))
    task.deploy(client, "layer")
    layer = on_a("layer")
    assert ray.get(layer.remote(x=numpy.ones(4, "f4"))).tolist() == [11] * 4
    large = ktask.Task()  # whose constant is an object of the node
    x, w = large.input("x", "f32", (BIG * 2,)), large.constant("w", numpy.full(BIG * 2, 7, "f4"))
    large.output("y", large.add(x, w))
    large.deploy(client, "large")
    assert "key" in client._tasks["large"]["buffers"]["w"]
    assert ray.get(on_a("large").remote(x=numpy.ones(BIG * 2, "f4")))[-1] == 8

    @ray.remote(num_cpus=0)
    def inside(handle, ref):
        return ray.get(handle.remote(x=ref[0]))

    assert ray.get(inside.remote(layer, [ray.put(numpy.full(4, 2, "f4"))])).tolist() == [12] * 4
    assert pickle.loads(pickle.dumps(layer.options(tenant="ann", keep="device")))._options.tenant == "ann"


def test_a_deployment_of_ray_serve_calls_functions_and_tasks(executor, client):
    from ray import serve

    @serve.deployment(ray_actor_options={"num_cpus": 0})
    class Front:
        def __init__(self, task):
            self.task, self.function = task, fr.function("misbehave")

        async def __call__(self, value):
            array = await self.task.remote(x=numpy.full(256, value, "f4"))
            return float(array[0]), await self.function.remote({"do": "echo", "value": value})

    serve.start(proxy_location="Disabled")  # which would listen at port 8000
    handle = serve.run(Front.bind(on_a(doubling(256))), route_prefix=None)
    try:
        first, answer = handle.remote(4).result(timeout_s=60)
        assert first == 8 and answer
    finally:
        serve.shutdown()


# ---- repeats

def test_a_call_whose_executor_is_killed_runs_once(cluster, executor, client):
    before, (here, _) = invocations(cluster), home(client)
    gate = cluster.folder / f"gpu-{here}/gate-executor"
    ref = fr.function("misbehave").remote({"do": "gate", "gate": gate.name})
    until_it_runs(cluster, here)
    killed = cluster.kill("executor")
    until(lambda: len(set(cluster.pids("executor")) - set(killed)) == 3)
    gate.touch()
    ray.get(ref, timeout=120)
    assert invocations(cluster) == before + 1


@pytest.mark.parametrize("through_its_own", [True, False], ids=["own-executor", "another-executor"])
def test_a_function_whose_node_is_killed_may_have_run_and_says_so(cluster, executor, client, through_its_own):
    """In the second case the executor's node lives, and says that the home of the function does not."""
    here, other = home(client)
    gate = f"gate-node-{through_its_own}"
    task, payload = fr.function("misbehave", patience=60, node=here if through_its_own else other), {"do": "gate", "gate": gate}
    lost = task.remote(payload)
    until_it_runs(cluster, here)
    again = task.options(idempotent=True).remote(payload)
    until(lambda: ray.get(named_actor(f"executor/{here if through_its_own else other}").load.remote()) == 2)
    os.kill(ray.get(named_actor(f"supervisor/{here}").look.remote()).pid, signal.SIGKILL)
    with pytest.raises(ray.exceptions.RayTaskError, match="(?s)NodeLost.*may have run"):
        ray.get(lost, timeout=120)
    for name in cluster.names:
        (cluster.folder / f"gpu-{name}" / gate).touch()
    ray.get(again, timeout=120)
    until(lambda: ray.get(named_actor(f"supervisor/{here}").look.remote()).state == "serving")


def test_kernel_tasks_survive_executors_and_their_node(cluster, executor):
    """Kills while forty calls are on their way; every answer is right."""
    task = on_a(doubling(BIG // 10), patience=60)
    refs = []

    def call():
        for number in range(40):
            refs.append(task.remote(x=numpy.full(BIG // 10, number, "f4")))
            time.sleep(0.05)  # sleep: the calls are spread over the kills

    caller = threading.Thread(target=call)
    caller.start()
    until(lambda: len(refs) > 5)
    cluster.kill("executor")
    until(lambda: len(refs) > 15)
    os.kill(until(lambda: ray.get(named_actor("supervisor/a").look.remote()).pid), signal.SIGKILL)
    caller.join()
    assert [value[-1] for value in ray.get(refs, timeout=120)] == [2 * number for number in range(40)]


def test_figure_1_of_kaas_computes_what_plain_ray_tasks_compute(cluster, executor):
    done = subprocess.run([sys.executable, ROOT / "examples/ray/figure1.py", "3"], env={**cluster.environment}, capture_output=True, text=True,
                          timeout=240)
    assert done.returncode == 0, done.stderr
    assert "kernel tasks" in done.stdout and "plain Ray tasks" in done.stdout
