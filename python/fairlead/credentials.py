"""The API key that a client shows (docs/how-to/identity.md)."""

from __future__ import annotations

import os
import pathlib


def state_folder() -> pathlib.Path:
    """Where `fairlead serve` keeps its state unless it is told otherwise."""
    if os.environ.get("FAIRLEAD_SERVE_STATE"):
        return pathlib.Path(os.environ["FAIRLEAD_SERVE_STATE"])
    if os.environ.get("XDG_STATE_HOME"):
        return pathlib.Path(os.environ["XDG_STATE_HOME"], "fairlead")
    return pathlib.Path.home() / ".local/state/fairlead"


def endpoint_for() -> str:
    return os.environ.get("FAIRLEAD_ENDPOINT") or "http://127.0.0.1:9001"


def token_for(is_loopback: bool) -> str | None:
    """FAIRLEAD_TOKEN; else, at a loopback address, the key of who started the node if it is this user's to read; else None. At a Unix
    socket the kernel says who asks: its node's user and root need no key, and one that has ended would keep them out."""
    if os.environ.get("FAIRLEAD_TOKEN"):
        return os.environ["FAIRLEAD_TOKEN"]
    if not is_loopback:
        return None
    try:
        lines = (state_folder() / "operator-key").read_text().splitlines()
    except OSError:
        return None
    return ".".join(lines) if len(lines) == 2 else None
