"""What functions can do to the software GPU's folder, which all of them and the node share."""

import json
import os
import pathlib
import stat

import pytest

from conftest import MISBEHAVE, eventually

TABLES = ["clients", "shares", "events", "device0.control"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="functions of an ordinary user's node are that user's processes")


def result(node, name, event):
    status, headers, body = node.invoke(name, json.dumps(event))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)


def test_no_name_in_it_is_a_functions_to_change(start_node):
    node = start_node()
    node.deploy("misbehave", MISBEHAVE)
    assert result(node, "misbehave", {"do": "allocate", "bytes": 1 << 20}) == {"code": 0}
    before = sorted(path.name for path in (node.home / "gpu").iterdir())
    assert result(node, "misbehave", {"do": "change-names"}) == []
    assert sorted(path.name for path in (node.home / "gpu").iterdir()) == before
    assert all(path.lstat().st_uid == 0 and stat.S_ISREG(path.lstat().st_mode) for path in (node.home / "gpu").iterdir())


@pytest.mark.parametrize("table", TABLES)
def test_damage_is_said_and_gone_with_a_restart(start_node, table):
    node = start_node()
    node.deploy("vandal", MISBEHAVE)
    node.deploy("victim", MISBEHAVE)
    assert result(node, "victim", {"do": "allocate", "bytes": 1 << 20}) == {"code": 0}
    result(node, "vandal", {"do": "scribble", "files": [table]})
    said = eventually(lambda: (lambda answer: answer if answer[0] == 503 else None)(node.call("GET", "/healthz")))
    assert b"GPU 1: " in said[2]
    assert "the shared state is damaged" in node.log_path.read_text()
    node.kill()
    again = start_node(keep_state=True)
    assert "made anew" in again.log_path.read_text()
    assert again.call("GET", "/healthz")[0] == 200
    assert result(again, "victim", {"do": "allocate", "bytes": 1 << 20}) == {"code": 0}


def test_longer_files_keep_nobody_from_starting(start_node):
    node = start_node()
    node.deploy("vandal", MISBEHAVE)
    node.deploy("victim", MISBEHAVE)
    result(node, "vandal", {"do": "lengthen"})
    assert result(node, "victim", {"do": "allocate", "bytes": 1 << 20}) == {"code": 0}
    assert node.call("GET", "/healthz")[0] == 200


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_a_node_starts_whatever_an_earlier_release_left(start_node, tmp_path, kind):
    """Functions owned the folder until they did no more: what they put there must not hold, or lead, the node."""
    home, outside = tmp_path / "node/gpu", tmp_path / "outside"
    node = start_node()
    node.stop()
    (home / "machine").unlink()
    {"fifo": lambda: os.mkfifo(home / "machine"), "link": lambda: os.symlink(outside, home / "machine"),
     "folder": lambda: (home / "machine").mkdir()}[kind]()
    os.chown(home, 65530, 65530)
    os.chmod(home, 0o755)
    again = start_node(keep_state=True)
    assert not outside.exists()
    assert stat.S_ISREG(pathlib.Path(home / "machine").lstat().st_mode)
    again.deploy("misbehave", MISBEHAVE)
    assert result(again, "misbehave", {"do": "allocate", "bytes": 1 << 20}) == {"code": 0}
