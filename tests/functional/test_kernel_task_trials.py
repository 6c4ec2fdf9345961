"""Modules that make the driver's compiler crash or never end, in a device server of several tenants.

The driver is the software GPU's behind one entry point of a library made here (poisoned_driver.cc), and the node a copy of
`fairlead` that finds that library in the place of the other.
"""

import os
import shutil
import signal
import statistics
import subprocess
import threading
import time

import pytest

from conftest import BUILD, ROOT, Node, eventually
from test_kernel_task_isolation import BYTES, CONTENT, HEAD, VICTIM, output, victim_task, write
from test_kernel_tasks import error, metric, server_pids

FENCE = ("--task-isolation", "fence")


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """A build folder with `fairlead` and the driver that a module may poison."""
    folder = tmp_path_factory.mktemp("poisoned")
    (folder / "bin").mkdir()
    shutil.copy(BUILD / "bin/fairlead", folder / "bin/fairlead")
    libraries = folder / "lib/softgpu"
    libraries.mkdir(parents=True)
    for library in (BUILD / "lib/softgpu").iterdir():
        if not library.name.startswith("libcuda.so"):
            (libraries / library.name).symlink_to(library)
    real = BUILD / "lib/softgpu/libcuda.so.1"
    subprocess.run(["c++", "-shared", "-fPIC", "-O1", f'-DSOFTWARE_GPU="{real}"', f'-DLOADS="{folder}/loads"',
                    "-Wl,-soname,libpoisoned.so", "-o", libraries / "libcuda.so.1",
                    ROOT / "tests/functional/poisoned_driver.cc", "-Wl,--no-as-needed", real,
                    f"-Wl,-rpath,{real.parent}"], check=True)
    return folder


class Tenants:
    """A victim with a warm function, and whoever else, on one node."""

    def __init__(self, build, folder, *options):
        self.folder, self.build = folder, build
        (build / "loads").unlink(missing_ok=True)
        # The library made here writes down what it loads, and needs another one of the machine: no jail has those.
        self.node = Node(build, folder / "node", options=("--no-jail", *options))
        self.deploy("peek", "victim", "peek")
        assert self.peek() == CONTENT
        [self.server] = server_pids(self.node)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.node.stop()
        shutil.rmtree(self.node.object_memory(), ignore_errors=True)

    def deploy(self, name, tenant, kernel, **settings):
        """What peek does, in a kernel of that name: each is a module of its own."""
        task = victim_task(kernel, BYTES)
        self.node.deploy(name, write(self.folder / name, task, victim_ptx=VICTIM.replace("peek", kernel), w_bin=CONTENT),
                         Tags={"gpu:tenant": tenant}, **settings)

    def peek(self, name="peek"):
        return output(self.node.invoke(name, "{}"))

    def loads(self):
        log = self.build / "loads"
        return log.read_text().split() if log.exists() else []


def test_without_a_trial_such_a_module_ends_the_server_of_all_and_then_one_of_its_own(poisoned, tmp_path):
    with Tenants(poisoned, tmp_path, *FENCE, "--task-trial", "0") as tenants:
        tenants.deploy("crash", "mallory", "crash_the_compiler")
        assert "the device server ended twice" in error(tenants.node.invoke("crash", "{}"))
        [others] = [pid for pid in server_pids(tenants.node) if pid != tenants.server][:1]
        assert tenants.peek() == CONTENT
        assert "the device server ended twice" in error(tenants.node.invoke("crash", "{}"))
        assert tenants.peek() == CONTENT
        assert others in server_pids(tenants.node), "the next module of that kind ends nobody's server but its tenant's"


def test_a_module_that_crashes_the_compiler_is_refused_and_nobody_notices(poisoned, tmp_path):
    with Tenants(poisoned, tmp_path, *FENCE) as tenants:
        tenants.deploy("crash", "mallory", "crash_the_compiler")
        for _ in range(2):
            reply = error(tenants.node.invoke("crash", "{}"))
            assert "module victim.ptx" in reply and "signal: Aborted" in reply and "no device server has loaded it" in reply
            assert tenants.peek() == CONTENT
        assert server_pids(tenants.node) == [tenants.server]
        assert metric(tenants.node, "fairlead_device_server_restarts_total") == 0


def test_tenants_are_served_while_a_module_keeps_the_compiler_busy(poisoned, tmp_path):
    with Tenants(poisoned, tmp_path, *FENCE, "--task-trial", "12") as tenants:
        tenants.deploy("hang", "mallory", "hang_the_compiler")
        tenants.deploy("new", "victim", "another_one")
        replies = []
        attack = threading.Thread(target=lambda: replies.append(tenants.node.invoke("hang", "{}")))
        before = len(tenants.loads())
        attack.start()
        eventually(lambda: len(tenants.loads()) > before)  # it hangs now
        assert tenants.peek("new") == CONTENT  # a module that needs a trial too
        calls = []
        while len(calls) < 30:
            start = time.monotonic()
            assert tenants.peek() == CONTENT
            calls.append(time.monotonic() - start)
        assert not replies, "the trial ended before the others were served"
        print(f"beside a trial that hangs: median {statistics.median(calls) * 1e3:.2f} ms, most {max(calls) * 1e3:.2f} ms")
        attack.join()
        assert "had not loaded it after 12 s" in error(replies[0])
        assert server_pids(tenants.node) == [tenants.server]


def test_what_passed_is_not_tried_again_by_the_next_server(poisoned, tmp_path):
    with Tenants(poisoned, tmp_path, *FENCE) as tenants:
        tenants.deploy("other", "mallory", "peek")
        assert tenants.peek("other") == CONTENT
        assert len(tenants.loads()) == 4  # each tenant's: by the trial and by the server
        os.kill(tenants.server, signal.SIGKILL)
        assert tenants.peek() == tenants.peek("other") == CONTENT
        assert len(tenants.loads()) == 6


def test_a_process_of_its_own_for_each_tenant_tries_modules_where_it_is_told_to(poisoned, tmp_path):
    with Tenants(poisoned, tmp_path, "--task-trial", "30") as tenants:
        tenants.deploy("crash", "victim", "crash_the_compiler")
        assert "signal: Aborted" in error(tenants.node.invoke("crash", "{}"))
        assert server_pids(tenants.node) == [tenants.server]
        assert tenants.peek() == CONTENT


def test_what_a_trial_adds_to_a_first_call(poisoned, tmp_path):
    """Printed for docs/explanation/fencing.md: `pytest -s -k what_a_trial_adds`. Two nodes, whose first calls take turns."""
    rounds = 20
    with Tenants(poisoned, tmp_path / "with", *FENCE) as tried, \
            Tenants(poisoned, tmp_path / "without", *FENCE, "--task-trial", "0") as untried:
        times = {tried: [], untried: []}
        for i in range(rounds):
            for tenants in times:
                tenants.deploy(f"f{i}", "victim", f"kernel_{i}")
                start = time.monotonic()
                assert tenants.peek(f"f{i}") == CONTENT
                times[tenants].append((time.monotonic() - start) * 1e3)
        first, plain = statistics.median(times[tried]), statistics.median(times[untried])
    print(f"first call of a module: {first:.1f} ms with a trial, {plain:.1f} ms without, median of {rounds} each")
    assert first > plain  # or there was none
