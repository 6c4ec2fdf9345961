"""Where a part of tools/hardware-check runs: the build, the device, a folder of its own, and the nodes it starts there."""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

from harness.node import REPOSITORY, Node

MIB = 1 << 20
DEVICE = pathlib.Path(__file__).with_name("device.py")
FUNCTIONS = REPOSITORY / "tests/functions"
PATIENCE_S = 60
LOG_CHARACTERS = 3000
numbers = itertools.count()


class Unexpected(RuntimeError):
    """A call that failed, with what the node answered."""


@dataclasses.dataclass
class Setting:
    build: pathlib.Path
    folder: pathlib.Path
    software: bool  # the rehearsal: everything on the software GPU
    quick: bool     # few repetitions, small sizes, some of the programs

    def environment(self, **gpu):
        """For programs that use the GPU and are not below a node."""
        if not self.software:
            return dict(os.environ)
        return {**os.environ, "LD_LIBRARY_PATH": str(self.build / "lib/softgpu"), "SOFTGPU_HOME": str(self.folder / "gpu"), **gpu}

    def node(self, *options, gpu=None):
        """A context manager: a node in a folder of its own. gpu: what the software GPU is like."""
        return Node(self.build, self.folder / f"node-{next(numbers)}", options=options, software=self.software,
                    gpu_environment=gpu if self.software else None)

    def repetitions(self, count):
        return max(3, count // 10) if self.quick else count

    def describe_device(self):
        (self.folder / "gpu").mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run([sys.executable, DEVICE, "describe"], env=self.environment(), capture_output=True, text=True,
                                  timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Unexpected(f"no GPU: the driver did not answer within {PATIENCE_S} s") from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or [f"the program that asks the driver ended with {done.returncode}"]
            raise Unexpected(f"no GPU: {said[-1]}")
        return json.loads(done.stdout)

    def logs(self):
        """The ends of what the nodes and their functions wrote, by file."""
        return {str(path.relative_to(self.folder)): path.read_text(errors="replace")[-LOG_CHARACTERS:]
                for path in sorted(self.folder.rglob("*.log")) if path.is_file() and path.stat().st_size > 0}

    @contextlib.contextmanager
    def only_free(self, size):
        """Lets a real GPU have `size` bytes free, by a process that holds the rest. A software GPU is made small instead."""
        if self.software:
            yield
            return
        with subprocess.Popen([sys.executable, DEVICE, "ballast", str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as ballast:
            try:
                if ballast.stdout.readline().strip() != "ready":
                    raise Unexpected("the process that holds device memory did not get it")
                yield
            finally:
                ballast.kill()


def eventually(condition, timeout=PATIENCE_S):
    """The first true value of condition()."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise Unexpected(f"not within {timeout} s: {condition.__name__}")


def invoke(node, name, **event):
    """(answer, kind of start, seconds) of a call that must succeed."""
    begin = time.perf_counter()
    status, headers, body = node.invoke(name, json.dumps(event))
    seconds = time.perf_counter() - begin
    if status != 200 or "X-Amz-Function-Error" in headers:
        raise Unexpected(f"{name}: {status} {body.decode(errors='replace')[:400]}")
    answer = json.loads(body)
    if isinstance(answer, dict) and "error" in answer:
        raise Unexpected(f"{name}: {answer['error']}")
    return answer, headers["X-Gpu-Start"], seconds


def function(node, name):
    return next(entry for entry in node.status()["functions"] if entry["name"] == name)


def settled(node, name):
    """Until nothing of the function is charged any more."""
    def nothing_in_flight():
        return function(node, name)["in_flight"] == 0

    eventually(nothing_in_flight)
