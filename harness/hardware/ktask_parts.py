"""Part of tools/hardware-check that runs kernel tasks: graphs of the driver, cuBLAS, and the cost of the fence."""

import array
import base64
import importlib.machinery
import importlib.util
import json
import random
import statistics
import time

from harness.hardware.driver_parts import NO_DEVICE, run_tool
from harness.hardware.node_parts import command_line
from harness.hardware.setting import Unexpected, invoke
from harness.node import REPOSITORY

EXAMPLE = REPOSITORY / "examples/ktask/vector-add"
CALL = {"inputs": {"x": [1, 2, 3, 4, 5, 6, 7, 8], "y": [10] * 8}}
SUM = [11, 12, 13, 14, 15, 16, 17, 18]
GRAPH_KERNELS = 64
CALLS = 100
NO_GRAPH = "kernel by kernel instead of as a graph"
SIDE = 301  # of the matrices that gpu-check multiplies
CHECKED = 24  # elements of a product that are computed again here


def chain(setting, kernels):
    """A folder with the example's kernel so many times in a row; from eight on the node makes a CUDA graph of them."""
    folder = setting.folder / f"chain-{kernels}"
    folder.mkdir(exist_ok=True)
    task = json.loads((EXAMPLE / "task.json").read_text())
    task["kernels"] *= kernels
    (folder / "task.json").write_text(json.dumps(task))
    (folder / "kernels.ptx").write_text((EXAMPLE / "kernels.ptx").read_text())
    return folder


def timed(node, name):
    """(seconds, phases) of a warm call with the right result."""
    begin = time.perf_counter()
    answer, _, _ = invoke(node, name, **CALL)
    if answer["outputs"]["sum"]["values"] != SUM:
        raise Unexpected(f"{name} answered {answer['outputs']['sum']}")
    return time.perf_counter() - begin, answer["phases_us"]


def examples(setting, rows):
    with setting.node() as node:
        output = json.loads(command_line(setting, node, "ktask", "run", EXAMPLE, "--data", json.dumps(CALL)))
        rows.expect_equal("`fairlead ktask run` of vector-add", output["outputs"]["sum"]["values"], SUM)
        medians = {}
        for kernels in (1, GRAPH_KERNELS):
            node.deploy(f"chain-{kernels}", chain(setting, kernels))
            cold_s, _ = timed(node, f"chain-{kernels}")
            calls = [timed(node, f"chain-{kernels}") for _ in range(setting.repetitions(CALLS))]
            medians[kernels] = statistics.median(seconds for seconds, _ in calls)
            rows.expect(f"{kernels} kernels: right results", "all", "all", len(calls) > 0)  # timed() refuses any other
            rows.record(f"{kernels} kernels: cold call / warm call", round(cold_s / medians[kernels], 2))
        rows.record(f"warm call of {GRAPH_KERNELS} kernels / of 1", round(medians[GRAPH_KERNELS] / medians[1], 2))
        rows.expect(f"{GRAPH_KERNELS} kernels as a CUDA graph", "refused" if NO_GRAPH in node.log_path.read_text() else "made",
                    "made", NO_GRAPH not in node.log_path.read_text())


def load_gpu_check():
    loader = importlib.machinery.SourceFileLoader("gpu_check", str(REPOSITORY / "tools/gpu-check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    loader.exec_module(module)
    return module


def factors(code, parts):
    """Two square matrices, as arrays of their elements' parts."""
    draw = random.Random(7)
    return [array.array(code, (draw.gauss(0, 1) for _ in range(SIDE * SIDE * parts))) for _ in "ab"]


def elements(numbers, parts):
    return numbers if parts == 1 else [complex(*numbers[at:at + 2]) for at in range(0, len(numbers), 2)]


def error_of_product(matrices, parts):
    """The largest error over some elements of C = A B', relative to the sum of the magnitudes. matrices: A, B, C."""
    a, b, c = (elements(matrix, parts) for matrix in matrices)
    pick, worst = random.Random(1), 0.0
    for _ in range(CHECKED):
        row, column = pick.randrange(SIDE), pick.randrange(SIDE)
        terms = [x * y for x, y in zip(a[row * SIDE:(row + 1) * SIDE], b[column * SIDE:(column + 1) * SIDE])]
        worst = max(worst, abs(sum(terms) - c[row * SIDE + column]) / sum(map(abs, terms)))
    return worst


def multiply(gpu_check, node, element):
    """(A, B, C) of one product by the node."""
    parts, code, _, _ = gpu_check.PRODUCTS[element]
    a, b = factors(code, parts)
    inputs = {name: {"base64": base64.b64encode(matrix).decode()} for name, matrix in (("a", a), ("b", b))}
    answer = gpu_check.run_product(node, gpu_check.product(element, SIDE, "input", 1), inputs)
    return a, b, array.array(code, base64.b64decode(answer["outputs"]["c"]["base64"]))


def products(setting, rows):
    """The built-in library's products against this program's own arithmetic, then against cuBLAS's."""
    gpu_check = load_gpu_check()
    for cublas in ("off", "auto"):
        with setting.node("--cublas", cublas) as node:
            for element in ("f32",) if setting.quick else gpu_check.PRODUCTS:
                parts, *_, tolerance = gpu_check.PRODUCTS[element]
                rows.expect_between(f"--cublas {cublas}: gemm_{element}, largest relative error",
                                    error_of_product(multiply(gpu_check, node, element), parts), None, tolerance)
    if setting.software:
        return rows.skip("cuBLAS beside the built-in library", "the software GPU has no cuBLAS")
    status, lines = run_tool(setting, "gpu-check", "--cublas", "--side", "2048")
    if status == NO_DEVICE:
        return rows.skip("cuBLAS beside the built-in library", "no cuBLAS on this machine")
    rows.expect("cuBLAS beside the built-in library", " / ".join(lines[-4:]), "exit status 0", status == 0)


def fence(setting, rows):
    """Calls of the same tasks in turns on two nodes, one with a device server for all tenants and one without."""
    with setting.node("--task-isolation", "process") as apart, setting.node("--task-isolation", "fence") as fenced:
        for kernels in (1, GRAPH_KERNELS):
            name = f"chain-{kernels}"
            times = {apart: [], fenced: []}
            for node in times:
                node.deploy(name, chain(setting, kernels))
                timed(node, name)
            for _ in range(setting.repetitions(CALLS)):
                for node, calls in times.items():
                    seconds, phases = timed(node, name)
                    calls.append((seconds, phases["kernel_run"]))
            # The least of each: what else the machine does lengthens single calls, and medians of few.
            calls, on_gpu = (min(call[i] for call in times[fenced]) / min(call[i] for call in times[apart]) for i in range(2))
            rows.expect_between(f"{kernels} kernels: warm call with fence / with process", calls, None, 1.5)
            rows.record(f"{kernels} kernels: time on the GPU with fence / with process", round(on_gpu, 3))


def widths(setting, rows):
    """A product whose blocks fill the device, as it is and kept to a part of the SMs (gpu:compute-percent: a green context's)."""
    side, percent = (256, 10) if setting.software else (2048, 25)
    folder = setting.folder / "square"
    folder.mkdir(exist_ok=True)
    (folder / "task.json").write_text(json.dumps(load_gpu_check().product("f32", side, "temporary", 4)))
    for cublas in ("off",) if setting.software else ("off", "auto"):
        took = {}
        with setting.node("--task-isolation", "fence", "--cublas", cublas) as node:
            for name, tags in (("whole", {}), ("kept", {"gpu:compute-percent": str(percent)})):
                node.deploy(name, folder, Tags=tags)
                took[name] = min(invoke(node, name)[0]["phases_us"]["kernel_run"] for _ in range(setting.repetitions(20)))
        what = f"--cublas {cublas}: kernels kept to {percent} % of the SMs: time on the GPU / on all of them"
        ratio = took["kept"] / took["whole"]
        if setting.software:  # kernels take their own time there, and no modelled one
            rows.record(what, round(ratio, 2))
        else:
            rows.expect_between(what, ratio, 2, None)


def kernel_tasks(setting, rows):
    for step in (examples, products, fence, widths):
        try:
            step(setting, rows)
        except (Exception, SystemExit) as error:  # the steps do not need each other
            rows.expect(step.__name__, f"{type(error).__name__}: {error}"[-400:], "no error", False)
