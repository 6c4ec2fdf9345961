"""The API key that a client shows (docs/how-to/identity.md)."""

import os
import pathlib


def state_folder():
    """Where `fairlead serve` keeps its state unless it is told otherwise."""
    if os.environ.get("FAIRLEAD_SERVE_STATE"):
        return pathlib.Path(os.environ["FAIRLEAD_SERVE_STATE"])
    if os.environ.get("XDG_STATE_HOME"):
        return pathlib.Path(os.environ["XDG_STATE_HOME"], "fairlead")
    return pathlib.Path.home() / ".local/state/fairlead"


def token_for(is_local):
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
