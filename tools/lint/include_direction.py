#!/usr/bin/env python3
"""Includes go one way: a folder includes itself and the folders named for it here, nothing else.

The rooms of decide/ see values and each other only as named here, so that a simulator and a test can run them; the software GPU sees nothing of the platform; whatever runs inside a function's process sees next to nothing.
"""
import re

import tree

DECISIONS = {"decide/queueing", "decide/placement", "decide/sharing", "decide/residency"}
VALUES = {"base", "model"}

# folder -> folders it may include, and does (include_arrows.py). abi/ (plain C declarations) is open to all.
ALLOWED = {
    "base": set(),
    "model": {"base"},
    "decide/batching": {"base"},
    "decide/graph": VALUES,
    **{layer: VALUES for layer in DECISIONS},
    "decide/pacing": VALUES,
    "decide/packing": {"base", "decide/pacing"},
    "decide/profiling": {"base"},
    "decide/scaling": VALUES | {"decide/profiling"},
    "decide/pipeline": VALUES,
    "decide/cluster": {"base"},
    "decide/core": VALUES | DECISIONS,
    "gpu": VALUES,
    "gpu/fence": {"base"},
    "wire": VALUES | {"decide/graph", "decide/pipeline"},
    "net": {"base"},
    "runtime": VALUES | {"decide/residency", "decide/pipeline", "net", "wire", "gpu", "gpu/fence"},
    "store": VALUES,
    "identity": VALUES,
    "edge": VALUES | {"decide/core", "decide/graph", "decide/scaling", "net", "store", "identity"},
    "edge/lambda": VALUES | {"net", "edge"},
    "edge/native": VALUES | {"wire", "net", "store", "identity", "edge"},
    "edge/inference": VALUES | {"decide/batching", "wire", "net", "edge"},
    "edge/metrics": {"edge"},
    "edge/console": VALUES | {"net", "identity", "edge"},
    "edge/openfaas": VALUES | {"net", "identity", "edge"},
    "sim": VALUES | DECISIONS | {"decide/core", "node"},
    "sim/cluster": {"base", "decide/cluster", "sim"},
    "sim/pipelines": {"base", "decide/pipeline"},
    "sim/shares": {"base", "decide/pacing", "decide/scaling", "sim"},
    "sim/scaling": {"base", "decide/packing", "decide/profiling", "decide/scaling", "sim", "sim/shares"},
    "node": VALUES | {"decide/queueing", "decide/sharing", "decide/residency", "decide/core", "decide/graph", "decide/pacing", "decide/packing", "decide/pipeline", "decide/cluster", "gpu", "wire", "net", "runtime", "store", "identity", "edge", "decide/scaling"},
    "cli": VALUES | {"decide/queueing", "decide/core", "decide/pacing", "gpu", "gpu/fence", "wire", "net", "runtime", "store", "identity", "edge", "edge/native", "node", "sim", "sim/cluster", "sim/pipelines", "sim/shares", "sim/scaling", "decide/pipeline"},
    "shim": {"wire", "base"},
    "softgpu": set(),
    "functions": set(),
    "abi": set(),
}

# The software GPU's rooms, from the ground up. A room sees those above its row that it names, and the files at the root
# (mutex.h and the like). device and ptx are one room each: their folders still reach one another; only the
# instructions (ptx/ops) stand apart.
SOFTGPU = {
    "softgpu/ptx": set(),
    "softgpu/ptx/ops": {"softgpu/ptx"},
    "softgpu/device": {"softgpu/ptx"},
    # The driver: its ground floor (process, handles, log), contexts with their streams, stream and event handles, memory,
    # modules, launches, graphs, and the entry points that concern no single one of these.
    "softgpu/driver": {"softgpu/device"},
    "softgpu/driver/context": {"softgpu/ptx", "softgpu/device", "softgpu/driver"},
    "softgpu/driver/stream": {"softgpu/device", "softgpu/driver", "softgpu/driver/context"},
    "softgpu/driver/memory": {"softgpu/ptx", "softgpu/device", "softgpu/driver", "softgpu/driver/context", "softgpu/driver/stream"},
    "softgpu/driver/code": {"softgpu/ptx", "softgpu/device", "softgpu/driver", "softgpu/driver/context", "softgpu/driver/stream",
                            "softgpu/driver/memory"},
    "softgpu/driver/launch": {"softgpu/device", "softgpu/driver/context", "softgpu/driver/stream", "softgpu/driver/memory",
                              "softgpu/driver/code"},
    "softgpu/driver/graph": {"softgpu/device", "softgpu/driver", "softgpu/driver/context", "softgpu/driver/stream",
                             "softgpu/driver/memory", "softgpu/driver/code", "softgpu/driver/launch"},
    "softgpu/driver/entry": {"softgpu/device", "softgpu/driver", "softgpu/driver/context", "softgpu/driver/stream",
                             "softgpu/driver/code"},
    "softgpu/nvml": {"softgpu/device"},
    "softgpu/cudart": {"softgpu/driver/code"},
    "softgpu/mps": {"softgpu/device", "softgpu/driver"},
    "softgpu/tools": {"softgpu/ptx", "softgpu/device", "softgpu/driver/code"},
    "softgpu/conformance": set(),
}

# folder -> its headers that nobody else includes. A policy's order and the books are the queue's own (decide/queueing/policy.h).
PRIVATE = {
    "decide/queueing": {"order.h", "keyed_order.h", "gpu_order.h", "mqfq_sticky.h", "exclusive.h", "flow_group.h", "tenant_level.h",
                 "residency_index.h", "fifo.h"},
}

# Where the node is wired: these files see edges, which are told of the node and not the other way round.
WIRING = {
    "src/node/serve.cc": {"edge/lambda"},  # what failures are called
    "src/node/front_door.cc": {"edge/lambda", "edge/native", "edge/inference", "edge/metrics", "edge/console", "edge/openfaas"},
    "src/node/grpc_door.cc": {"edge/inference"},
    "src/node/object_sockets.cc": {"edge/native"},
}

# external header prefix -> folders that may include it
EXTERNAL = {
    "boost/beast": {"net"},
    "boost/": {"net", "store", "runtime", "edge", "edge/lambda", "edge/openfaas", "node", "cli"},
    "spdlog/": set(ALLOWED) - DECISIONS - {"decide/core", "shim", "softgpu", "functions", "abi"},
    "sqlite3.h": {"store"},
    "nghttp2/": {"net"},
    "google/protobuf/": {"edge/inference"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def folder_of(path):
    """The row of ALLOWED a file falls under, or None: tests/, fuzz/ and the like see everything."""
    parts = path.parts
    if parts[0] == "src":
        return room_of(parts[1:]) if len(parts) > 2 else None
    return parts[0] if parts[0] in ALLOWED else None


def room_of(parts):
    """The folder's own row, where it has one, else that of the folder it lies in."""
    nested = "/".join(parts[:2])
    return nested if len(parts) > 2 and nested in ALLOWED else parts[0]


def internal_problem(root, path, folder, name):
    if (root / path.parent / name).is_file():
        return None
    target = room_of(name.removeprefix("src/").split("/"))
    if folder in ("softgpu", "functions", "abi") and (root / folder / name).is_file():
        return None  # inside softgpu, "ptx/machine.h" is its own
    if target != folder and name.split("/")[-1] in PRIVATE.get(target, ()):
        return f'{folder} may not include "{name}"; {target} keeps it to itself'
    if target not in ALLOWED or target in {folder, "abi"} | ALLOWED[folder] | WIRING.get(str(path), set()):
        return None
    sees = ", ".join(sorted(ALLOWED[folder])) or "nothing else"
    return f'{folder} may not include "{name}"; it sees {sees}'


def softgpu_room(parts):
    """The row of SOFTGPU a file below softgpu/ falls under; "softgpu" for those at its root, None for a folder without a row."""
    if len(parts) <= 2:
        return "softgpu"
    nested = "/".join(parts[:3])
    room = nested if len(parts) > 3 and nested in SOFTGPU else "/".join(parts[:2])
    return room if room in SOFTGPU else None


def softgpu_problem(path, name):
    """What is wrong with an include from one room of softgpu of another. Tests see everything."""
    if not name.startswith("softgpu/") or tree.is_test(path) or "testing" in path.stem:
        return None
    room, target = softgpu_room(path.parts), softgpu_room(name.split("/"))
    if room is None:
        return f"{'/'.join(path.parts[:2])} has no row in SOFTGPU of tools/lint/include_direction.py"
    if target is None or target in {"softgpu", room} | SOFTGPU.get(room, set()):
        return None
    sees = ", ".join(sorted(SOFTGPU.get(room, ()))) or "nothing else"
    return f'{room} may not include "{name}"; it sees {sees}'


def upward(rows):
    """Rows that name a room further down the table: with none of them there is no circle."""
    order = list(rows)
    return [(room, seen) for room in order for seen in sorted(rows[room]) if order.index(seen) >= order.index(room)]


def external_problem(path, folder, name):
    for prefix, folders in EXTERNAL.items():
        if not name.startswith(prefix):
            continue
        if folder not in folders and not tree.is_test(path):
            return f"{folder} may not include <{name}>; only {', '.join(sorted(folders))} may"
        if prefix == "boost/beast" and path.suffix == ".h":
            return f"<{name}> in a header costs every includer 9 s of compiling; include it in one .cc"
        return None
    return None


def check(root):
    problems = [f"SOFTGPU of tools/lint/include_direction.py: {room} stands above {seen} and may not see it"
                for room, seen in upward(SOFTGPU)]
    for path in tree.files(root, *tree.CPP):
        folder = folder_of(path)
        if folder is None:
            continue
        if folder not in ALLOWED:
            problems.append(f"{path}: folder src/{folder} has no row in tools/lint/include_direction.py")
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            kind, name = found.groups()
            problem = (external_problem(path, folder, name) if kind == "<" else None) \
                or (softgpu_problem(path, name) if folder == "softgpu" else None) \
                or internal_problem(root, path, folder, name)
            if problem:
                problems.append(f"{path}:{number}: {problem}")
    return problems


if __name__ == "__main__":
    tree.main(check, __doc__)
