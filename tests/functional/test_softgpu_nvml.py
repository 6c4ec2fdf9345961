"""The software GPU's NVML under NVIDIA's own Python binding, which nobody here wrote, and `softgpu` beside it."""

import json
import os
import re
import subprocess
import sys

import pytest

pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed (PyPI out of reach)")

from conftest import BUILD  # noqa: E402

SOFTGPU = BUILD / "bin/softgpu"

# Functions that the library does not export: pynvml answers FUNCTION_NOT_FOUND itself.
ANSWERS = {"FunctionNotFound", "NotSupported", "InvalidArgument", "NotFound", "ArgumentVersionMismatch", "Timeout",
           "InsufficientSize", "InsufficientResources", "InUse", "NoPermission"}


@pytest.fixture
def machine(tmp_path):
    """run(python or softgpu arguments) in a machine of two A100 with a home of its own."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "lib/softgpu"), "SOFTGPU_HOME": str(tmp_path / "gpu"),
                   "SOFTGPU_PROFILE": "a100-40", "SOFTGPU_DEVICES": "2", "SOFTGPU_MEMORY_SCALE": "64"}

    def run(command, *arguments, check=True):
        line = [SOFTGPU, command, *arguments] if command != "python" else [sys.executable, "-c", *arguments]
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, done.stderr
        return done
    return run


def python(machine, code):
    """Runs code in a process whose NVML is the software GPU's; what it prints, as JSON."""
    prelude = "import json, pynvml as n\nn.nvmlInit()\ngpu = n.nvmlDeviceGetHandleByIndex(0)\n"
    return json.loads(machine("python", prelude + code).stdout)


WALK = r'''
import ctypes, inspect
outcomes = {}
mig = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
small = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 1)  # the one that the walk destroys
instance = n.nvmlDeviceGetGpuInstanceById(gpu, n.nvmlDeviceGetGpuInstanceId(small))
compute = n.nvmlGpuInstanceGetComputeInstanceById(instance, 0)
count = ctypes.c_uint(32)
# What an argument of this name may be; everything else is tried as a number.
guesses = {"handle": [gpu, mig], "device": [gpu, mig], "migDevice": [gpu, mig], "device1": [gpu], "device2": [gpu],
           "handle1": [gpu], "handle2": [gpu], "fieldIds": [[1, 82, 83, 100, 186, 9999]], "values": [[1]],
           "timeout": [0], "timeoutms": [0], "pciBusId": [b"0:1:0.0", b"00000000:01:00.0"],
           "uuid": [b"GPU-0", n.nvmlDeviceGetUUID(mig).encode()],
           "serial": [b"0"], "cpuSetSize": [1, 16], "gpuInstance": [instance], "computeInstance": [compute],
           "placementsRef": [(ctypes.c_uint * 64)(), None], "placement": [None], "countRef": [ctypes.byref(count)],
           "gpuInstancesRef": [(ctypes.c_void_p * 32)()], "computeInstancesRef": [(ctypes.c_void_p * 32)()],
           "c_info": [None], "eventSet": [n.nvmlEventSetCreate(), n.nvmlEventSetCreate()]}
skip = {"nvmlInit", "nvmlInitWithFlags", "nvmlShutdown"}
for name, function in sorted(inspect.getmembers(n, inspect.isfunction)):
    if not name.startswith("nvml") or name in skip or "Struct" in name or name in ("nvmlCheckReturn",):
        continue
    parameters = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    unknown = [p for p in parameters if p not in guesses]
    for turn in range(2):
        for number in (0, 1, 7, 1000):
            arguments = [guesses[p][turn % len(guesses[p])] if p in guesses else number for p in parameters]
            try:
                function(*arguments)
                outcome = "Success"
            except n.NVMLError as error:
                outcome = type(error).__name__.removeprefix("NVMLError_")
            except (TypeError, AttributeError, ValueError, OverflowError, __import__("ctypes").ArgumentError, NameError):
                outcome = "Binding"  # the guess is of the wrong type for the binding itself
            outcomes.setdefault(name, []).append(outcome)
            if not unknown:
                break
print(json.dumps(outcomes))
'''


def test_every_function_of_the_binding_answers(machine):
    machine("mig", "enable")
    machine("mig", "create", "3g.20gb,1g.5gb")
    outcomes = python(machine, WALK)
    assert len(outcomes) > 300
    strange = {name: seen for name, seen in outcomes.items() if set(seen) - ANSWERS - {"Success", "Binding"}}
    assert not strange
    working = {name for name, seen in outcomes.items() if "Success" in seen}
    assert len(working) >= 120, sorted(working)


def test_monitors_read_what_the_tool_reads(machine):
    seen = python(machine, r'''
memory = n.nvmlDeviceGetMemoryInfo(gpu)
print(json.dumps({
    "count": n.nvmlDeviceGetCount(), "name": n.nvmlDeviceGetName(gpu), "uuid": n.nvmlDeviceGetUUID(gpu),
    "total": memory.total, "used": memory.used, "gpu": n.nvmlDeviceGetUtilizationRates(gpu).gpu,
    "bus": n.nvmlDeviceGetPciInfo(gpu).busId, "capability": n.nvmlDeviceGetCudaComputeCapability(gpu),
    "serial": n.nvmlDeviceGetSerial(gpu), "architecture": n.nvmlDeviceGetArchitecture(gpu),
    "driver": n.nvmlSystemGetDriverVersion(), "processes": len(n.nvmlDeviceGetComputeRunningProcesses(gpu)),
    "power": n.nvmlDeviceGetPowerUsage(gpu), "limit": n.nvmlDeviceGetPowerManagementLimit(gpu),
    "clocks": len(n.nvmlDeviceGetSupportedGraphicsClocks(gpu, n.nvmlDeviceGetSupportedMemoryClocks(gpu)[0])),
    "energy": n.nvmlDeviceGetFieldValues(gpu, [83])[0].nvmlReturn,
    "v2": n.nvmlDeviceGetMemoryInfo(gpu, n.nvmlMemory_v2).total}))
''')
    tool = json.loads(machine("smi", "--json").stdout)["gpus"]
    assert seen["count"] == len(tool) == 2
    assert seen["name"] == tool[0]["name"] == "NVIDIA A100-SXM4-40GB"
    assert seen["uuid"] == tool[0]["uuid"]
    assert seen["total"] == seen["v2"] == tool[0]["memory_total_bytes"]
    assert seen["used"] == seen["gpu"] == seen["processes"] == 0
    assert seen["capability"] == [8, 0] and seen["architecture"] == pynvml.NVML_DEVICE_ARCH_AMPERE
    assert seen["bus"] == "00000000:01:00.0" and re.fullmatch(r"\d{13}", seen["serial"])
    assert seen["power"] == 50_000 and seen["limit"] == 400_000 and seen["clocks"] > 50 and seen["energy"] == 0


def test_a_scheduler_partitions_through_the_binding(machine):
    seen = python(machine, r'''
n.nvmlDeviceSetMigMode(gpu, n.NVML_DEVICE_MIG_ENABLE)
info = n.nvmlDeviceGetGpuInstanceProfileInfo(gpu, n.NVML_GPU_INSTANCE_PROFILE_2_SLICE)
instance = n.nvmlDeviceCreateGpuInstance(gpu, info.id)
compute = n.nvmlGpuInstanceCreateComputeInstance(instance, n.NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE)
mig = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
number = lambda value: getattr(value, "value", value)  # some functions of the binding return a c_uint
seen = {"profile": info.name, "slices": info.sliceCount, "name": n.nvmlDeviceGetName(mig),
        "uuid": n.nvmlDeviceGetUUID(mig), "is_mig": number(n.nvmlDeviceIsMigDeviceHandle(mig)),
        "id": number(n.nvmlDeviceGetGpuInstanceId(mig)),
        "most": number(n.nvmlDeviceGetMaxMigDeviceCount(gpu)), "sms": n.nvmlDeviceGetAttributes(mig).multiprocessorCount}
print(json.dumps(seen))
''')
    tool = json.loads(machine("smi", "--json").stdout)["gpus"][0]
    assert tool["mig"] == "enabled"
    assert [device["uuid"] for device in tool["mig_devices"]] == [seen["uuid"]]
    assert seen["name"] == "NVIDIA A100-SXM4-40GB MIG 2g.10gb" and seen["profile"] == "MIG 2g.10gb"
    assert (seen["is_mig"], seen["most"], seen["sms"], seen["slices"]) == (1, 7, 28, 2)
    assert tool["mig_devices"][0]["gpu_instance"] == seen["id"]
    machine("mig", "destroy", "all")
    machine("mig", "disable")
    assert json.loads(machine("smi", "--json").stdout)["gpus"][0]["mig_devices"] == []


def test_the_tool_explains_what_cannot_be(machine):
    for arguments, words in ((["mig", "create", "1g.5gb"], "MIG mode is off"),
                             (["mig", "create", "9g.1gb"], "no profile of this GPU"),
                             (["mig", "enable", "--gpu", "5"], "--gpu"),
                             (["mig", "destroy", "3"], "no such instance"),
                             (["mig"], "usage")):
        done = machine(*arguments, check=False)
        assert done.returncode == 1 and words in done.stderr
    machine("mig", "enable", "--gpu", "1")
    assert "fit" in machine("mig", "create", "--gpu", "1", "4g.20gb,4g.20gb", check=False).stderr
    assert "GPU instance" not in machine("mig", "list", "--gpu", "1").stdout
