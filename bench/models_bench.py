"""One copy of a model: device memory of three instances that share it, beside three private copies, in one run.

The sizes are those of ViT-huge as FaST-GShare prints them (4735 MB an instance, 2101 MB with the model shared, of which a
context of the V100 is 300), divided by 8, as the device is. All that the device says is in use counts: contexts, the model
server's, and what is rounded up.
"""

import json
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/functional"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from bench.measure import BUILD, report  # noqa: E402
from harness.node import Node  # noqa: E402

MIB = 1 << 20
SCALE = 8
CONTEXT = 300 * MIB // SCALE
MODEL = (4735 - 2101) * MIB // SCALE
PRIVATE = (2101 - 300) * MIB // SCALE
GPU = {"SOFTGPU_PROFILE": "v100-16", "SOFTGPU_MEMORY_SCALE": str(SCALE)}
INSTANCES = 3
PATIENCE_S = 120

HOLD = """
import pathlib, time
kept_workspace = globals().get("kept_workspace") or the_store().gpu.allocate({private})
{model}
who = globals().get("who") or os.urandom(8).hex()
folder = pathlib.Path(os.environ["SOFTGPU_HOME"], "gates")
(folder / ("here-{gate}-" + who)).touch()
while not (folder / "{gate}").exists():
    time.sleep(0.01)
answer = who
"""
OWN = "kept_model = globals().get('kept_model') or the_store().gpu.allocate({model})".format(model=MODEL)
SHARED = f"the_store().store('vit', {MODEL}, lambda memory: memory.gpu.zero(memory.address, memory.bytes))"


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise TimeoutError(condition)


def used(node):
    """Once it stands still: the node looks ten times a second or less."""
    last = [None, 0.0]

    def still():
        now = node.status()["gpus"][0]["memory_used_bytes"]
        if now != last[0]:
            last[:] = [now, time.monotonic()]
        return time.monotonic() - last[1] > 1

    wait_for(still)
    return last[0]


class Calls:
    """Invocations that hold their instances until open()."""

    def __init__(self, node, name, gate, model, count):
        self.node, self.gate, self.gates = node, gate, node.home / "gpu/gates"
        self.gates.mkdir(exist_ok=True)
        self.gates.chmod(0o777)  # functions are other users
        self.answers, self.count = [], count
        payload = json.dumps({"run": HOLD.format(private=PRIVATE, model=model, gate=gate)})
        self.threads = [threading.Thread(target=self.call, args=(name, payload)) for _ in range(count)]
        for thread in self.threads:
            thread.start()
        wait_for(lambda: len(list(self.gates.glob(f"here-{gate}-*"))) == count or self.answers)

    def call(self, name, payload):
        status, headers, body = self.node.invoke(name, payload)
        self.answers.append(json.loads(body) if status == 200 else body)

    def open(self):
        (self.gates / self.gate).touch()
        for thread in self.threads:
            thread.join()
        assert all(isinstance(answer, dict) and answer.get("answer") for answer in self.answers), self.answers
        instances = {answer["answer"] for answer in self.answers}
        assert len(instances) == self.count, self.answers


def three(home, model, park):
    """Bytes in use with three instances at work; with two of them parked (None unless `park`)."""
    from models import deploy

    with Node(BUILD, home / "node", options=["--slots", str(INSTANCES + 1)], gpu_environment=GPU) as node:
        deploy(node, home, "vit", replicas=str(INSTANCES))
        deploy(node, home, "filler")
        calls = Calls(node, "vit", "all", model, INSTANCES)
        at_work = used(node)
        calls.open()
        if not park:
            return at_work, None
        calls = Calls(node, "vit", "one", model, 1)
        total = node.status()["gpus"][0]["memory_total_bytes"]
        fill = (total - at_work - CONTEXT + (INSTANCES - 1) * PRIVATE) // MIB * MIB - 24 * MIB
        status, _, body = node.invoke("filler", json.dumps({"run": f"answer = the_store().gpu.allocate({fill})"}))
        assert status == 200 and "error" not in json.loads(body), body
        parked = used(node) - fill - CONTEXT
        calls.open()
        return at_work, parked


def main():
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        private, _ = three(home / "private", OWN, False)
        shared, parked = three(home / "shared", SHARED, True)
    report("model_memory_of_three", shared / MIB, "MiB", baseline=private / MIB, bound=0.66)
    report("model_memory_two_parked", parked / MIB, "MiB", baseline=private / MIB, bound=0.36,
           note="contexts stay: the vmm backend moves allocations")
    # The same without contexts: what residency can move, and the one copy.
    contexts = INSTANCES * CONTEXT
    report("model_memory_two_parked_without_contexts", (parked - contexts - CONTEXT) / MIB, "MiB",
           baseline=(private - contexts) / MIB, bound=0.36)


if __name__ == "__main__":
    main()
