"""What people do with a cluster: up, status, drain, resume, upgrade, down. Each is safe to do again."""

from __future__ import annotations

import pathlib
import time
from typing import Any, Callable

from fairlead.ray import cluster_file
from fairlead.ray.controller import CONTROLLER, Controller, supervisor_name
from fairlead.ray.ray_library import NAMESPACE, named_actor, names_of_actors, ray_library
from fairlead.ray.routing import routing

PATIENCE_S = 180.0


class ClusterError(RuntimeError):
    """What was asked did not come about; the message says of which node and why."""


def _connect() -> Any:
    ray = ray_library()
    if not ray.is_initialized():
        ray.init(address="auto", namespace=NAMESPACE, log_to_driver=False)
    return ray


def _controller() -> Any:
    _connect()
    try:
        return named_actor(CONTROLLER)
    except ValueError:
        raise ClusterError("no controller is there: run `python -m fairlead.ray up cluster.toml`") from None


def _until(condition: Callable[[], Any], patience_s: float, what: Callable[[], str]) -> Any:
    deadline = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise ClusterError(what())
        time.sleep(0.2)  # sleep: between two looks at a condition


def up(file: str | pathlib.Path | cluster_file.Cluster, wait_s: float = PATIENCE_S) -> dict[str, Any]:
    """Brings the cluster to what the file says and answers status(): nodes that run are adopted as they are, those that lack are started, and
    none is stopped. A file that has changed is taken over; running nodes have its settings after upgrade(). wait_s: how long to wait until all
    nodes serve; 0: not at all. ClusterError names those that do not."""
    cluster = file if isinstance(file, cluster_file.Cluster) else cluster_file.read(file)
    ray = _connect()
    try:
        before = named_actor(CONTROLLER)
        if ray.get(before.cluster.remote()) == cluster:
            return _wait_for_all(wait_s)
        _end([before])
    except ValueError:
        pass
    _drop_others(cluster)
    ray.remote(Controller).options(name=CONTROLLER, namespace=NAMESPACE, lifetime="detached", get_if_exists=True, max_restarts=-1, num_cpus=0,
                                   max_concurrency=8).remote(cluster)
    return _wait_for_all(wait_s)


def _drop_others(cluster: cluster_file.Cluster) -> None:
    """Actors of nodes that are not in the file any more; their nodes go on."""
    kept = {f"{kind}/{name}" for kind in ("supervisor", "executor") for name in cluster.places} | {CONTROLLER}
    _end([named_actor(name) for name in names_of_actors() if name not in kept])


def _end(actors: list[Any]) -> None:
    """Kills them and waits until their names are free."""
    ray = ray_library()
    before = len(names_of_actors())
    for actor in actors:
        ray.kill(actor)
    _until(lambda: len(names_of_actors()) <= before - len(actors), 60, lambda: f"Ray does not end {', '.join(names_of_actors())}")


def _wait_for_all(wait_s: float) -> dict[str, Any]:
    routing.forget()
    if wait_s <= 0:
        return status()
    said: dict[str, Any] = {"nodes": []}

    def all_serve() -> bool:
        said.update(status())
        return bool(said["nodes"]) and all(node["state"] in ("serving", "drained") for node in said["nodes"])

    def missing() -> str:
        nodes = [f"{node['name']} is {node['state']} {node['message']}".strip() for node in said["nodes"] if node["state"] != "serving"]
        return f"after {wait_s:g} s not all nodes serve: {'; '.join(nodes) or 'the controller has not seen any yet'}"

    _until(all_serve, wait_s, missing)
    return said


def status() -> dict[str, Any]:
    """What the controller saw in the last second: {"nodes": [{"name", "address", "state", "pid", "version", "current", "peers", "message",
    ...}], "replacing", "message"}."""
    said: dict[str, Any] = ray_library().get(_controller().status.remote())
    return said


def drain(node: str) -> None:
    """The node finishes what it has, ends, and stays away until resume(). Waits for its end."""
    ray_library().get(_supervisor(node).drain.remote())


def resume(node: str) -> None:
    """Starts a drained node and waits until it serves."""
    ray_library().get(_supervisor(node).resume.remote())


def _supervisor(node: str) -> Any:
    _connect()
    try:
        return named_actor(supervisor_name(node))
    except ValueError:
        there = ", ".join(name.partition("/")[2] for name in names_of_actors() if name.startswith("supervisor/")) or "none"
        raise ClusterError(f"node {node} has no supervisor; there are {there}") from None


def upgrade(always: bool = False, wait_s: float = 3600.0) -> list[str]:
    """Replaces, one after the other, each node that does not run the program and the settings of the file (`always`: every node): it drains,
    ends, is started, and all nodes see it, then the next. The names of those that were replaced. ClusterError: one did not come back; the
    others are as they were."""
    controller = _controller()
    ray = ray_library()
    places = ray.get(controller.cluster.remote()).places
    marked = [name for name in places if ray.get(_supervisor(name).want_replacement.remote(always))]
    said: dict[str, Any] = {}

    def is_over() -> bool:
        said.update(status())
        if said["message"]:
            raise ClusterError(said["message"])
        left = {node["name"] for node in said["nodes"] if node["state"] == "unreachable" or node["wants_replacement"] and node["state"] != "drained"}
        return said["replacing"] is None and not left & set(marked)

    looks = status()["looks"]
    _until(lambda: status()["looks"] >= looks + 2, 60, lambda: "the controller does not look")
    _until(is_over, wait_s, lambda: f"after {wait_s:g} s not all nodes are replaced: {said}")
    return marked


def down(nodes: bool = False) -> None:
    """Ends the controller, the supervisors and the executors. Nodes go on, unless `nodes` says that they are drained and ended, too."""
    ray = _connect()
    try:
        _end([named_actor(CONTROLLER)])
    except ValueError:
        pass
    names = names_of_actors()
    if nodes:
        ray.get([named_actor(name).end.remote() for name in names if name.startswith("supervisor/")])
    _end([named_actor(name) for name in names])
    routing.forget()
