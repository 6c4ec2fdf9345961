"""Ray itself, which is imported when something of fairlead.ray is used and not before. Its types are Any here: Ray is optional."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

NAMESPACE = "fairlead"  # of all actors of fairlead.ray, whatever namespace a driver is in


def ray_library() -> Any:
    """The module `ray`. ImportError says how to get it."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError(f"fairlead.ray needs Ray, which cannot be imported ({error}): pip install 'fairlead[ray]'") from error


def named_actor(name: str) -> Any:
    """The actor of that name. ValueError: there is none that lives."""
    return ray_library().get_actor(name, namespace=NAMESPACE)


def names_of_actors() -> list[str]:
    """Of fairlead.ray's actors that live or restart."""
    listed = ray_library().util.list_named_actors(all_namespaces=True)
    return sorted(one["name"] for one in listed if one["namespace"] == NAMESPACE)


def came_back() -> bool:
    """Whether the actor of this process is one that Ray started again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own deprecations inside of it
        return bool(ray_library().get_runtime_context().was_current_actor_reconstructed)
