"""python -m fairlead.ray up cluster.toml | status | drain NODE | resume NODE | upgrade | down"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from typing import Any

from fairlead.ray import cluster
from fairlead.ray.cluster_file import ClusterFileError

STATUS_LIMIT_S = 30.0


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 done, 1 it did not come about, 2 the command line or the file is wrong."""
    parser = argparse.ArgumentParser(prog="python -m fairlead.ray", description="Fairlead's nodes on the machines of a Ray cluster")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="give each machine of the file its node, supervisor and executor; what runs is adopted")
    up.add_argument("file")
    up.add_argument("--wait", type=float, default=cluster.PATIENCE_S, metavar="SECONDS", help="until all nodes serve (%(default)g)")
    status = commands.add_parser("status", help="show the nodes")
    status.add_argument("--json", action="store_true")
    for name, text in (("drain", "let a node finish what it has, end it, and keep it away"), ("resume", "start a drained node")):
        commands.add_parser(name, help=text).add_argument("node")
    upgrade = commands.add_parser("upgrade", help="restart, one after the other, the nodes whose program or settings are not the file's")
    upgrade.add_argument("--all", action="store_true", help="restart every node")
    down = commands.add_parser("down", help="end controller, supervisors and executors; nodes go on")
    down.add_argument("--nodes", action="store_true", help="drain and end the nodes, too")
    options = parser.parse_args(arguments)
    try:
        return _do(options)
    except (ClusterFileError, OSError) as error:
        print(f"fairlead.ray: {error}", file=sys.stderr)
        return 2
    except (cluster.ClusterError, ImportError) as error:
        print(f"fairlead.ray: {error}", file=sys.stderr)
        return 1


def _do(options: Any) -> int:
    if options.command == "status":
        _give_up_after(STATUS_LIMIT_S)
    if options.command == "up":
        _show(cluster.up(options.file, options.wait))
    elif options.command == "status":
        said = cluster.status()
        if options.json:
            print(json.dumps(said))
        else:
            _show(said)
    elif options.command == "drain":
        cluster.drain(options.node)
    elif options.command == "resume":
        cluster.resume(options.node)
    elif options.command == "upgrade":
        replaced = cluster.upgrade(options.all)
        print(f"replaced: {', '.join(replaced) or 'none'}")
    else:
        cluster.down(options.nodes)
    return 0


def _give_up_after(seconds: float) -> None:
    """Ray waits for a head that is away, longer than who asks how things are, and nothing interrupts it."""
    def give_up() -> None:
        print(f"fairlead.ray: no answer from Ray within {seconds:g} s: its head is away, or the controller; nodes and their clients need "
              "neither", file=sys.stderr, flush=True)
        os._exit(1)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()


def _show(said: dict[str, Any]) -> None:
    rows = [("NODE", "STATE", "PID", "VERSION", "CURRENT", "ADDRESS", "")]
    rows += [(node["name"], node["state"], str(node["pid"] or "-"), node["version"] or "-", "yes" if node["current"] else "no", node["address"],
              node["message"]) for node in said["nodes"]]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        print("  ".join([*(text.ljust(width) for text, width in zip(row, widths)), row[6]]).rstrip())
    if said["replacing"]:
        print(f"replacing {said['replacing']}")
    if said["message"]:
        print(said["message"])


if __name__ == "__main__":
    sys.exit(main())
