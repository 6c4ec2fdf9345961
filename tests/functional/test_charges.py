"""A charge is what was used: work is charged when it has ended, whoever waits for it; idle time is nobody's; and a report
that disagrees with what the device says is replaced by what the device says."""

import contextlib
import threading
import time

import pytest
from charges import LAUNCHER, charged_ms, computed_ms, do, function, settled
from conftest import PATIENCE_S, eventually

MANY = {"kernels": 400, "rounds": 200_000}


@pytest.fixture
def node(start_node):
    """One slot, so that what is held is seen; a small window, so that charges matter soon."""
    return start_node("--slots", "1", "--over-run", "0.2")


def deploy(node, name, **document):
    node.deploy(name, LAUNCHER, Timeout=60, **document)
    do(node, name, "wait", kernels=1)  # its start, and the first launch


# The ways to put work on the device, with what the answer does not wait for.
WAYS = {"wait": {}, "leave": {}, "go-on": {}, "go-on-later": {"seconds": 0.1}, "wait-late": {"seconds": 1.0}, "launch-and-sleep": {"seconds": 1.0},
        "threads": {}, "contexts": {}, "graph": {}, "fork": {}}


def owe_the_rest(node, name, computed_before):
    """On a busy machine a function may launch its next kernel only when the device was seen without its work: its call is over,
    and what follows is owed by the next one."""
    last = [None]

    def all_is_computed():
        was, last[0] = last[0], sum(computed_ms(node).values()) - computed_before
        return last[0] == was and was > 300

    eventually(all_is_computed)
    do(node, name, "nothing")
    settled(node, name)


def charge_of_one_call(node, way):
    """(charged, computed), in milliseconds."""
    before, computed_before = charged_ms(node, "f"), sum(computed_ms(node).values())
    answered_after = do(node, "f", way, **MANY, **WAYS[way])
    settled(node, "f")
    if sum(computed_ms(node).values()) - computed_before < 300:
        owe_the_rest(node, "f", computed_before)
    charged, computed = charged_ms(node, "f") - before, sum(computed_ms(node).values()) - computed_before
    print(f"{way}: answered after {answered_after:.0f} ms, charged {charged:.1f} ms, computed {computed:.1f} ms, "
          f"ratio {charged / computed:.4f}")
    return charged, computed


@pytest.mark.parametrize("way", WAYS)
def test_a_charge_is_what_the_device_computed(node, way):
    deploy(node, "f")
    settled(node, "f")
    # On a machine that is busy otherwise the device stands still between two kernels, which the function waits for, and the end of
    # work that nobody waits for is seen late. So one call of a few has to be undisturbed.
    for _ in range(6):
        charged, computed = charge_of_one_call(node, way)
        assert computed > 300, "too little work to say anything"
        assert charged >= 0.98 * computed
        assert function(node, "f")["stats"]["gpu_time_not_reported_seconds"] == 0, "it was taken for a forger"
        if charged <= 1.02 * computed + 50:
            break
    else:
        pytest.fail(f"each call was charged more than was computed, the last one {charged:.1f} ms for {computed:.1f}")


def test_the_answer_passes_at_once_and_the_slot_is_held_until_the_work_has_ended(node):
    deploy(node, "flood")
    deploy(node, "other")
    answered_after = do(node, "flood", "leave", **MANY)
    assert function(node, "flood")["in_flight"] == 1, "its work goes on"
    begin = time.monotonic()
    do(node, "other", "nothing")
    waited = (time.monotonic() - begin) * 1e3
    settled(node, "flood")
    print(f"answered after {answered_after:.0f} ms; the other waited {waited:.0f} ms")
    assert waited > answered_after


def test_work_that_does_not_end_ends_with_the_timeout(start_node):
    node = start_node("--slots", "1")
    node.deploy("endless", LAUNCHER, Timeout=2)
    begin = time.monotonic()
    do(node, "endless", "leave", kernels=1, rounds=1 << 60)
    assert time.monotonic() - begin < 2, "the answer passes"  # wait: before the function's own timeout
    settled(node, "endless")
    assert 1.5 < charged_ms(node, "endless") / 1e3 < 5
    eventually(lambda: sum(function(node, "endless")["instances"].values()) == 0)
    assert do(node, "endless", "nothing") < 1000, "and the next call has a new instance"


def test_idle_time_after_a_bad_input_is_nobodys(node):
    node.deploy("fft", node.sample("fft"))
    assert node.invoke("fft", '{"n": 1024}')[0] == 200
    before = charged_ms(node, "fft")
    assert "X-Amz-Function-Error" in node.invoke("fft", '{"n": 3}')[1]
    time.sleep(3)  # sleep: idle time, which must cost nothing
    assert node.invoke("fft", '{"n": 1024}')[0] == 200
    settled(node, "fft")
    assert charged_ms(node, "fft") - before < 1000


def calls_in(node, name, stop, event, counts):
    while not stop.is_set():
        do(node, name, **event)
        counts[name] += 1


@contextlib.contextmanager
def competing(node, ways):
    """Calls of each function, all of them called without a pause; ways: by name what each call does. Yields the numbers of
    calls until now."""
    counts, stop = dict.fromkeys(ways, 0), threading.Event()
    threads = [threading.Thread(target=calls_in, args=(node, name, stop, event, counts))
               for name, event in ways.items() for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        stop.set()
        for thread in threads:
            thread.join()


# Two lies: that less was computed; and, at the very end of a call, that nothing is under way any more.
@pytest.mark.parametrize("forged", ["forge", "forge-end"])
def test_a_forger_gains_nothing_and_is_named(node, forged):
    work = {"kernels": 20, "rounds": 200_000}
    deploy(node, "honest")
    deploy(node, "forger")
    with competing(node, {"honest": {"what": "wait", **work}, "forger": {"what": forged, **work}}) as counts:
        eventually(lambda: function(node, "forger")["stats"]["gpu_time_not_reported_seconds"] > 0.1)
        before = dict(counts)  # what was put on the device until here is held against the forger's next calls
        eventually(lambda: counts["honest"] >= before["honest"] + 100, timeout=2 * PATIENCE_S)
        calls = {name: count - before[name] for name, count in dict(counts).items()}
    gain = calls["forger"] / calls["honest"]
    print(f"{forged}: {before} until it was found out, then {calls}, gain {gain:.3f}")
    assert gain <= 1.05
    assert function(node, "honest")["stats"]["gpu_time_not_reported_seconds"] == 0
    assert "function forger: its instance" in node.log_path.read_text()
    metrics = node.call("GET", "/metrics")[2].decode()
    assert 'fairlead_gpu_time_not_reported_seconds_total{function="honest"} 0' in metrics
    assert 'fairlead_gpu_time_not_reported_seconds_total{function="forger"} 0\n' not in metrics
