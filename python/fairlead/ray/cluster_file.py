"""cluster.toml: which machine of a Ray cluster has which node (docs/how-to/ray.md#clustertoml).

    [cluster]
    key = "/etc/fairlead/cluster.key"      # the same file on every machine

    [node]                                 # of every node
    program = "/usr/bin/fairlead"
    state = "/var/lib/fairlead"

    [node.serve]                           # settings of `fairlead serve`
    slots = 4

    [nodes.a]
    address = "https://10.0.0.1:9001"      # where the others reach it
    host = "10.0.0.1"                      # the Ray node; without: the one with the label fairlead-node=a

No Ray here."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import urllib.parse
from typing import Any, Mapping

from fairlead.ray.node_process import SOCKET, NodeSpec

LABEL = "fairlead-node"
MOST_NODES = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_STARTS = ("detached", "systemd", "never")
_OF_NODES = {"address": str, "host": str, "program": str, "state": str, "start": str, "unit": str, "drain": (int, float), "serve": dict,
             "environment": dict}
_OF_DEFAULTS = {name: kind for name, kind in _OF_NODES.items() if name not in ("address", "host")}
_OURS = ("state", "node-name", "peer", "cluster-key", "drain")  # settings that follow from the rest of the file


class ClusterFileError(ValueError):
    """The message names the file, the field, its value and what is possible."""


@dataclasses.dataclass(frozen=True)
class Place:
    """host: address of the Ray node; "": the Ray node with the label fairlead-node=NAME. address: where other nodes reach this one."""

    spec: NodeSpec
    address: str
    host: str


@dataclasses.dataclass(frozen=True)
class Cluster:
    places: dict[str, Place]
    reserve_gpus: bool = True
    executor_restarts: int = -1


def read(path: str | pathlib.Path) -> Cluster:
    """OSError: it cannot be read. ClusterFileError: it is wrong."""
    try:
        import tomllib  # noqa: PLC0415  of Python 3.11; fairlead is of 3.9
    except ImportError:
        raise ClusterFileError("cluster.toml is read by Python 3.11 or newer") from None
    text = pathlib.Path(path).read_text()
    try:
        return of(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ClusterFileError(f"{path}: {error}") from None
    except ClusterFileError as error:
        raise ClusterFileError(f"{path}: {error}") from None


def of(document: Mapping[str, Any]) -> Cluster:
    """Of what the file says."""
    _check("the file", document, {"cluster": dict, "node": dict, "nodes": dict})
    cluster, defaults, nodes = document.get("cluster", {}), document.get("node", {}), document.get("nodes", {})
    _check("cluster", cluster, {"key": str, "reserve-gpus": bool})
    _check("node", defaults, _OF_DEFAULTS)
    if not 1 <= len(nodes) <= MOST_NODES:
        raise ClusterFileError(f"nodes has {len(nodes)} nodes, 1 to {MOST_NODES} are possible")
    if len(nodes) > 1 and "key" not in cluster:
        raise ClusterFileError("cluster.key is missing: a file with a secret that all nodes have, `openssl rand -hex 32`")
    addresses: dict[str, str] = {}
    for name, node in nodes.items():
        if not _NAME.fullmatch(name):
            raise ClusterFileError(f"nodes has {name!r}, a name of 1 to 63 letters, digits, '.', '_' and '-' is wanted")
        _check(f"nodes.{name}", node, _OF_NODES)
        addresses[name] = _address(name, node)
    if len(set(addresses.values())) < len(addresses):
        raise ClusterFileError("two nodes have the same address")
    peers = list(addresses.values()) if len(nodes) > 1 else []
    places = {name: Place(_spec(name, {**defaults, **node, "serve": {**defaults.get("serve", {}), **node.get("serve", {})},
                                       "environment": {**defaults.get("environment", {}), **node.get("environment", {})}},
                                addresses[name], peers, cluster.get("key")), addresses[name], node.get("host", ""))
              for name, node in nodes.items()}
    _check_states(places)
    return Cluster(places, cluster.get("reserve-gpus", True))


def _check(where: str, found: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name, value in found.items():
        if name not in known:
            raise ClusterFileError(f"{where} has {name!r}, which is not known; known are {', '.join(known)}")
        if not isinstance(value, known[name]) or isinstance(value, bool) and known[name] is not bool:
            kinds = known[name] if isinstance(known[name], tuple) else (known[name],)
            raise ClusterFileError(f"{where}.{name} is {value!r}, {' or '.join(kind.__name__ for kind in kinds)} is wanted")


def _address(name: str, node: Mapping[str, Any]) -> str:
    address = node.get("address")
    if address is None:
        raise ClusterFileError(f"nodes.{name}.address is missing, one like http://10.0.0.1:9001 is wanted")
    parts = urllib.parse.urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or parts.path.strip("/") or parts.query or "@" in parts.netloc:
        raise ClusterFileError(f"nodes.{name}.address is {address!r}, one like http://10.0.0.1:9001 is wanted")
    return f"{parts.scheme}://{parts.netloc}"


def _spec(name: str, node: Mapping[str, Any], address: str, peers: list[str], key: str | None) -> NodeSpec:
    start, drain, state = node.get("start", "detached"), node.get("drain", 30), node.get("state", "/var/lib/fairlead")
    if start not in _STARTS:
        raise ClusterFileError(f"nodes.{name}.start is {start!r}, one of {', '.join(_STARTS)} is possible")
    if not 0 <= drain <= 3600:
        raise ClusterFileError(f"nodes.{name}.drain is {drain}, 0 to 3600 seconds is possible")
    if not state.startswith("/") or len(f"{state}/{SOCKET}".encode()) > 107:
        raise ClusterFileError(f"nodes.{name}.state is {state!r}, an absolute path of at most {106 - len(SOCKET)} bytes is wanted")
    for setting, value in node["serve"].items():
        if setting in _OURS:
            raise ClusterFileError(f"nodes.{name}.serve has {setting!r}, which follows from the rest of this file")
        if not isinstance(value, (str, int, float, list)):
            raise ClusterFileError(f"nodes.{name}.serve.{setting} is {value!r}, a text, a number, true, false or a list is wanted")
    for variable, value in node["environment"].items():
        if not isinstance(value, str):
            raise ClusterFileError(f"nodes.{name}.environment.{variable} is {value!r}, a text is wanted")
    settings = {"listen": [urllib.parse.urlsplit(address).netloc], **node["serve"], "drain": drain}
    if key is not None:
        settings |= {"cluster-key": key, "peer": peers, "advertise": address}
    return NodeSpec(name, node.get("program", "fairlead"), state.rstrip("/"), settings, start, node.get("unit", "fairlead"), drain,
                    node["environment"])


def _check_states(places: Mapping[str, Place]) -> None:
    """On one machine no two nodes have one state folder."""
    seen: dict[tuple[str, str], str] = {}
    for name, place in places.items():
        machine = urllib.parse.urlsplit(place.address).hostname or ""
        other = seen.setdefault((machine, place.spec.state), name)
        if other != name:
            raise ClusterFileError(f"nodes.{other} and nodes.{name} of {machine} have the same state folder, {place.spec.state}")
