"""A part of tools/hardware-check: one copy of a model on the GPU for several instances, and PyTorch where it is installed."""

import shutil
import subprocess

from harness.hardware.setting import FUNCTIONS, MIB, Unexpected, eventually, invoke
from harness.node import REPOSITORY

SIZE, SIZE_IN_SOFTWARE = 1024 * MIB, 64 * MIB
KNOWN = "hashlib.blake2b(pattern(1, {size}), digest_size=32).digest()"
OPEN = """
import time
known = {known}
begin = time.monotonic()
memory = the_store().{how}
opened = time.monotonic()
answer = [hashlib.sha256(memory.gpu.download(memory.address, {sample})).hexdigest(), memory.read_only, opened - begin]
"""
FILL = "store('base', {size}, lambda memory: memory.gpu.upload(memory.address, pattern(1, {size})))"
WRITE = """
memory = the_store().get('base')
memory.gpu.upload(memory.address, b'x' * 16)
answer = "written"
"""


def deploy(setting, node, name):
    folder = setting.folder / name
    shutil.copytree(FUNCTIONS / "models", folder)
    shutil.copytree(REPOSITORY / "python/fairlead", folder / "fairlead", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "functions/runtime/python/fairlead_runtime.py", folder)
    (folder / "who").write_text(name)  # so that each function is a version of its own
    node.deploy(name, folder, MemorySize=8192, Timeout=120)


def run(node, name, code):
    answer = invoke(node, name, run=code)[0]
    return answer["answer"]


def used_mib(node):
    return node.status()["gpus"][0]["memory_used_bytes"] / MIB


def models(setting, rows):
    """Stored by one program, mapped by another of the same content; what that costs, and whether it can be written to."""
    size = SIZE_IN_SOFTWARE if setting.software else SIZE
    for sharing in ([] , ["--sharing", "mps"]):
        if sharing and not setting.software and not shutil.which("nvidia-cuda-mps-control"):
            rows.skip("mps: models", "nvidia-cuda-mps-control is not on this machine")
            continue
        with setting.node("--slots", "4", *sharing) as node:
            share_between_two(setting, rows, node, "mps: " if sharing else "", size)


def share_between_two(setting, rows, node, what, size):
    names = [f"{'mps' if what else 'plain'}-{name}" for name in ("first", "second")]
    for name in names:
        deploy(setting, node, name)
    sample = min(size, 16 * MIB)
    digest, read_only, store_s = run(node, names[0], OPEN.format(how=FILL.format(size=size), known=None, sample=sample))
    by_digest = f"store('base', {size}, None, known)"
    other = run(node, names[1], OPEN.format(how=by_digest, known=KNOWN.format(size=size), sample=sample))
    rows.expect(f"{what}the second program finds what the first stored", other[0] == digest, "the same bytes", other[0] == digest)
    rows.record(f"{what}mapped read only", read_only)
    rows.record(f"{what}open of {size // MIB} MiB that are there / store", round(other[2] / store_s, 3))

    def is_one():
        models_now = node.status()["models"][0]
        return models_now["models"] == 1 and models_now["holders"] == 2 and models_now["bytes"] - models_now["lingering_bytes"] < 2 * size

    try:
        rows.expect(f"{what}models on the GPU", eventually(is_one, 10), "one, of two holders", True)
    except Unexpected:
        rows.expect(f"{what}models on the GPU", str(node.status()["models"][0]), "one, of two holders", False)
    answer = invoke_raw(node, names[1], WRITE)
    rows.record(f"{what}a write to it", answer)


def invoke_raw(node, name, code):
    try:
        return invoke(node, name, run=code)[0]["answer"]
    except Unexpected as error:
        return str(error)[:120]


TORCH = """#!{python}
import os, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
begin = time.monotonic()
import torch
import fairlead_runtime
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 16)).eval().cuda()
inputs = torch.ones(8, 4096)
with torch.no_grad():
    expected = model.cpu()(inputs); model.cuda()
started = time.monotonic() - begin

def handle(event):
    with torch.no_grad():
        out = model(inputs.cuda()).cpu()
    return {{"close": bool(torch.allclose(out, expected, atol=1e-2)), "device": torch.cuda.get_device_name(), "start_s": started}}

fairlead_runtime.run(handle)
"""


ASK_FOR_TORCH = "import torch, sys; print(sys.prefix, sys.base_prefix); sys.exit(not torch.cuda.is_available())"


def find_torch():
    """(the Python of this machine that has PyTorch for its GPU, the folders that it needs beside /usr), or None."""
    for python in dict.fromkeys(filter(None, (shutil.which("python3"), "/usr/bin/python3"))):
        done = subprocess.run([python, "-c", ASK_FOR_TORCH], capture_output=True, text=True)
        if done.returncode == 0:
            return python, [folder for folder in dict.fromkeys(done.stdout.split()) if not (folder + "/").startswith("/usr/")]
    return None


def torch_function(setting, rows):
    """A function of PyTorch as its author has it, unchanged: cold, then warm, without a quota and with one."""
    found = None if setting.software else find_torch()
    if found is None:
        return rows.skip("a function of PyTorch", "no PyTorch for a GPU on this machine" if not setting.software else "needs a GPU")
    python, needed = found
    volumes = {f"v{number}": path for number, path in enumerate(needed)}
    options = [word for name, path in volumes.items() for word in ("--volume", f"{name}={path}")]
    folder = setting.folder / "torch-function"
    folder.mkdir()
    (folder / "bootstrap").write_text(TORCH.format(python=python))
    (folder / "bootstrap").chmod(0o755)
    shutil.copy(REPOSITORY / "functions/runtime/python/fairlead_runtime.py", folder)
    with setting.node("--slots", "2", *options) as node:
        for name in ("torch", "torch-limited"):
            tags = {"gpu:quota-limit": "30"} if name == "torch-limited" else {}
            if volumes:
                tags["gpu:volumes"] = " ".join(volumes)
            node.deploy(name, folder, MemorySize=10240, Timeout=120, Tags=tags)
            answer, start, cold_s = invoke(node, name)
            rows.expect(f"{name}: the answer is PyTorch's on the CPU", answer["close"], "within 0.01", answer["close"])
            rows.expect_equal(f"{name}: first start", start, "cold")
            rows.record(f"{name}: device", answer["device"])
            warm = [invoke(node, name) for _ in range(20)]
            rows.expect(f"{name}: right warm answers", sum(call[0]["close"] for call in warm), "all 20", all(call[0]["close"] for call in warm))
            rows.expect_equal(f"{name}: starts of warm calls", sorted({call[1] for call in warm}), ["device-warm"])
            rows.record(f"{name}: cold call / least of the warm calls", round(cold_s / min(call[2] for call in warm), 1))


def models_and_torch(setting, rows):
    for step in (torch_function, models):
        try:
            step(setting, rows)
        except (Exception, SystemExit) as error:  # the steps do not need each other
            rows.expect(step.__name__, f"{type(error).__name__}: {error}"[-400:], "no error", False)
