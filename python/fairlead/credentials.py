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


def token_for(is_local: bool) -> str | None:
    """FAIRLEAD_TOKEN; else, for a node on this machine, the key of who started it if it is this user's to read; else None."""
    if os.environ.get("FAIRLEAD_TOKEN"):
        return os.environ["FAIRLEAD_TOKEN"]
    if not is_local:
        return None
    try:
        lines = (state_folder() / "operator-key").read_text().splitlines()
    except OSError:
        return None
    return ".".join(lines) if len(lines) == 2 else None
