"""Memory that is moved under a running program by the shim: contents, pointers, graphs and counts stay what they were."""

import os
import socket
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, eventually

sys.path.insert(0, str(ROOT / "bench"))
import shim_node  # noqa: E402

PROGRAM = BUILD / "bin/shim-swap-program"
BUFFERS = 4 * (100 + 1000 + 100_000 + 1_500_000)
ARRAY = 4 * 64


class Program:
    def __init__(self, node, folder):
        environment = dict(
            os.environ, LD_PRELOAD=str(BUILD / "lib/libfairlead-shim.so"), LD_LIBRARY_PATH=str(BUILD / "lib/softgpu"),
            FAIRLEAD_SHIM_SOCKET=str(folder / "node"), FAIRLEAD_SHIM_TOKEN="1", SOFTGPU_HOME=str(folder / "machine"),
            SOFTGPU_MEMORY_SCALE="128")
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.instance = node.accept()
        assert self.process.stdout.readline() == "ready\n"

    def order(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def say(self, word):
        self.order(word)
        return self.process.stdout.readline().strip()

    def counts(self):
        counters = self.instance.counters()
        return {name: counters[name] for name in ("held", "resident", "away", "fixed")}


@pytest.fixture
def start(tmp_path):
    """start(backend, make_room) -> (node, launch); launch() -> Program."""
    nodes, programs = [], []

    def begin(backend="vmm", make_room=lambda instance, size: False, arena=128 << 20):
        nodes.append(shim_node.Node(str(tmp_path / "node"), arena, backend, "prefetch-swap", make_room))

        def launch():
            programs.append(Program(nodes[-1], tmp_path))
            return programs[-1]

        return nodes[-1], launch

    yield begin
    for program in programs:
        program.process.kill()
        program.process.wait()
    for node in nodes:
        node.close()


@pytest.mark.parametrize("backend", ["vmm", "uvm"])
def test_a_program_does_not_notice_that_its_memory_was_away(start, backend):
    node, launch = start(backend)
    program = launch()
    before = program.counts()
    assert before["held"] >= BUFFERS + ARRAY and before["fixed"] >= ARRAY
    for _ in range(3):
        assert program.say("step") == "0"
        result, size, _, _ = program.instance.swap_out()
        assert result == "done" and size >= BUFFERS
        assert program.counts()["away"] >= BUFFERS and program.counts()["resident"] == before["fixed"]
        assert program.instance.swap_in()[0] == "done"
        assert program.counts() == before
    assert program.say("step") == "0"
    assert sum(node.arena.used) == 0


def test_a_launch_waits_for_memory_that_is_away(start):
    _, launch = start()
    program = launch()
    assert program.instance.swap_out()[0] == "done"
    program.order("step")
    eventually(program.instance.wanted.is_set)
    assert program.instance.swap_in()[0] == "done"
    assert program.process.stdout.readline() == "0\n"


def test_moves_against_launches_and_allocations_of_8_threads(start):
    node, launch = start()
    program = launch()
    held = program.counts()["held"]
    program.say("storm")
    moved = [program.instance.swap_out()[0] + "/" + program.instance.swap_in()[0] for _ in range(20)]
    assert program.say("calm") == "0"
    assert program.say("step") == "0"
    assert moved.count("done/done") > 10, moved
    assert program.counts()["held"] == held and program.counts()["away"] == 0
    assert sum(node.arena.used) == 0


def test_a_capture_and_a_kernel_that_waits_for_the_host_are_busy_and_unharmed(start):
    _, launch = start()
    program = launch()
    program.say("capture")
    assert program.instance.swap_out(deadline_ns=100_000_000)[0] == "busy"
    assert program.say("captured") == "0"
    program.say("spin")
    result = program.instance.swap_out(deadline_ns=100_000_000)
    assert result[0] == "busy" and result[3] < 5e9
    assert program.say("free") == "0"
    assert program.say("step") == "0"
    assert program.instance.swap_out()[0] == "done"


def test_a_full_arena_moves_what_it_can(start):
    _, launch = start(arena=4 << 20)
    program = launch()
    assert program.instance.swap_out()[0] in ("partly", "no room")
    assert program.instance.swap_in()[0] in ("done", "nothing")
    assert program.say("step") == "0"


def test_a_node_that_goes_away_brings_memory_back(start):
    _, launch = start()
    program = launch()
    assert program.instance.swap_out()[0] == "done"
    program.instance.connection.shutdown(socket.SHUT_RDWR)
    assert program.say("step") == "0"


def test_more_programs_than_memory_take_turns(start):
    resident = []

    def make_room(asking, _):
        for program in resident:
            if program.instance is not asking:
                resident.remove(program)
                return program.instance.swap_out()[0] == "done"
        return False

    _, launch = start(make_room=make_room)
    programs = []
    for _ in range(8):
        # A context asks nobody for its room.
        if len(resident) == 4:
            assert resident.pop(0).instance.swap_out()[0] == "done"
        programs.append(launch())
        resident.append(programs[-1])
    for program in programs:
        if program not in resident:
            assert program.instance.swap_in()[0] == "done"
            resident.append(program)
        assert program.say("step") == "0"
