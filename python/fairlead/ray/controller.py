"""The controller: one detached actor that sees to it that every machine of cluster.toml which Ray has, has a supervisor and an executor.

    every second:  Ray's nodes ──> actors that lack, on the machine they belong to
                   supervisors' views ──> plan.next_replacement ──> one node replaced

It holds no truth. Killed, it is started again by Ray with the same file; what an upgrade has still to do stands with the nodes
(supervisor.py). Without it nothing is repaired and nothing else changes: nodes, executors and calls go on."""

from __future__ import annotations

import threading
import time
from typing import Any

from fairlead.ray.cluster_file import LABEL, Cluster, Place
from fairlead.ray.device import executor_name
from fairlead.ray.executor import Executor
from fairlead.ray.plan import NodeView, next_replacement
from fairlead.ray.ray_library import NAMESPACE, named_actor, ray_library
from fairlead.ray.supervisor import Supervisor, of_program

CONTROLLER = "controller"
PERIOD_S = 1.0
ANSWER_LIMIT_S = 5.0


def supervisor_name(node: str) -> str:
    return f"supervisor/{node}"


class Controller:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._views: list[NodeView] = []
        self._told: set[str] = set()       # supervisors that have this file's specification
        self._replacing: tuple[str, Any] | None = None
        self._message = ""
        self._looks = 0
        threading.Thread(target=self._reconcile_for_ever, name="fairlead-controller", daemon=True).start()

    # ---- what is asked

    def cluster(self) -> Cluster:
        return self._cluster

    def status(self) -> dict[str, Any]:
        """{"nodes": [...], "replacing": name or None, "message": text, "looks": how often it has looked}"""
        with self._lock:
            return {"nodes": [{"address": self._cluster.places[view.name].address, **of_program(view)} for view in self._views],
                    "replacing": self._replacing[0] if self._replacing else None, "message": self._message, "looks": self._looks}

    # ---- what it does

    def _reconcile_for_ever(self) -> None:
        ray = ray_library()
        while True:
            try:
                self._reconcile()
            except (ray.exceptions.RayError, ValueError) as error:  # ValueError: an actor has gone between two questions
                self._message = f"{type(error).__name__}: {error}"[:500]
            time.sleep(PERIOD_S)  # sleep: the period of looking

    def _reconcile(self) -> None:
        """All nodes at once: a machine that does not answer holds up no other."""
        machines = ray_nodes(self._cluster)
        asked = {name: self._ask(place, machines[name]) for name, place in self._cluster.places.items() if name in machines}
        if asked:
            ray_library().wait(list(asked.values()), num_returns=len(asked), timeout=ANSWER_LIMIT_S)
        views = [self._view(place, machines.get(name), asked.get(name)) for name, place in self._cluster.places.items()]
        with self._lock:
            self._views = views
            self._looks += 1
        self._replace(views)

    def _ask(self, place: Place, machine: dict[str, Any]) -> Any:
        """Makes both actors of a node where they lack; an ObjectRef of what its supervisor sees."""
        name = place.spec.name
        gpus = machine["Resources"].get("GPU", 0) if self._cluster.reserve_gpus else 0
        supervisor = self._actor(Supervisor, supervisor_name(name), machine, (place.spec,), max_concurrency=8, num_gpus=gpus)
        self._actor(Executor, executor_name(name), machine, (name, place.spec.state), max_concurrency=1000, max_task_retries=3)
        if name not in self._told:
            supervisor.take.remote(place.spec)  # it may be one of an earlier file
        return supervisor.look.remote()

    def _view(self, place: Place, machine: dict[str, Any] | None, looked: Any) -> NodeView:
        ray, name = ray_library(), place.spec.name
        if machine is None:
            self._told.discard(name)
            return NodeView(name, "unreachable", message=f"no Ray node has {_wanted(place)}")
        try:
            view: NodeView = ray.get(looked, timeout=0)
        except ray.exceptions.RayError as error:
            self._told.discard(name)
            return NodeView(name, "unreachable", message=f"its supervisor does not answer: {type(error).__name__}", ray_node=machine["NodeID"])
        self._told.add(name)
        if view.ray_node != machine["NodeID"]:  # of a Ray node that has gone: its name is free when it has ended
            self._told.discard(name)
            for kind in (supervisor_name, executor_name):
                _kill(kind(name))
        return view

    def _actor(self, kind: type, name: str, machine: dict[str, Any], arguments: tuple[Any, ...], **options: Any) -> Any:
        try:
            return named_actor(name)
        except ValueError:
            pinned = ray_library().util.scheduling_strategies.NodeAffinitySchedulingStrategy(machine["NodeID"], soft=False)
            return ray_library().remote(kind).options(name=name, namespace=NAMESPACE, lifetime="detached", get_if_exists=True, max_restarts=-1,
                                                      num_cpus=0, scheduling_strategy=pinned, **options).remote(*arguments)

    def _replace(self, views: list[NodeView]) -> None:
        ray = ray_library()
        if self._replacing is not None:
            name, ref = self._replacing
            if not ray.wait([ref], timeout=0)[0]:
                return
            self._replacing = None
            try:
                ray.get(ref)
                self._message = ""
            except (ray.exceptions.RayError, ValueError) as error:  # ValueError: an actor has gone between two questions
                self._message = f"node {name} was to be replaced: {error}"[-500:]
            return  # views are of before
        if all(view.state in ("serving", "drained") for view in views):
            self._message = ""
        chosen = next_replacement(views)
        if chosen is not None:
            self._replacing = (chosen, named_actor(supervisor_name(chosen)).replace.remote())


def _kill(name: str) -> None:
    try:
        ray_library().kill(named_actor(name))
    except ValueError:
        return  # it has ended already


def ray_nodes(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The living Ray node of each node, by name, where there is one."""
    alive = [one for one in ray_library().nodes() if one["Alive"]]
    found = {}
    for name, place in cluster.places.items():
        for one in alive:
            if place.host and place.host in (one["NodeManagerAddress"], one["NodeManagerHostname"]):
                found[name] = one
            elif not place.host and one.get("Labels", {}).get(LABEL) == name:
                found[name] = one
    return found


def _wanted(place: Place) -> str:
    return f"the address {place.host}" if place.host else f"the label {LABEL}={place.spec.name}"
