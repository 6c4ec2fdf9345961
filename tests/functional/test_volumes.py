"""Folders of the host that an operator offers and functions ask for: seen at the same path, read only, and by whom they are for."""

import json
import os
import shutil

import pytest
from conftest import ROOT

from harness.node import NodeFailed

SHOW = """#!/usr/bin/python3
import json, os, sys
sys.path.insert(0, "/var/task")
import fairlead_runtime

def tried(act):
    try:
        return act()
    except OSError as error:
        return type(error).__name__ + " " + os.strerror(error.errno)

def read(path):
    with open(path) as file:
        return file.read()

def write(path):
    with open(path, "w"):
        return "written"

def handle(event):
    path = event.json()["path"]
    return {"read": tried(lambda: read(path)), "write": tried(lambda: write(path)), "list": tried(lambda: sorted(os.listdir(os.path.dirname(path))))}

fairlead_runtime.run(handle)
"""


@pytest.fixture
def volume(host_folder):
    """A folder with a file, which everybody may read and write."""
    file = host_folder / "weights"
    file.write_text("seven")
    file.chmod(0o666)
    return host_folder


@pytest.fixture
def function(tmp_path):
    """A folder with a program that tries to read and to write what its call names."""
    folder = tmp_path / "function"
    folder.mkdir()
    (folder / "bootstrap").write_text(SHOW)
    (folder / "bootstrap").chmod(0o755)
    shutil.copy(ROOT / "functions/runtime/python/fairlead_runtime.py", folder)
    return folder


def seen(node, name, path):
    status, headers, body = node.invoke(name, json.dumps({"path": str(path)}))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)


def deploy(node, name, folder, **tags):
    return node.call("POST", "/2015-03-31/functions", json.dumps({
        "FunctionName": name, "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap", "Code": {"Folder": str(folder)},
        "Tags": {f"gpu:{key}": value for key, value in tags.items()}}))


def test_a_function_reads_what_it_asked_for_and_cannot_write_to_it(start_node, volume, function):
    node = start_node("--volume", f"weights={volume}")
    deployed = deploy(node, "with", function, volumes="weights")
    assert deployed[0] == 201, deployed[2]
    assert deploy(node, "without", function)[0] == 201
    weights = volume / "weights"
    assert seen(node, "with", weights) == {"read": "seven", "write": "OSError Read-only file system", "list": ["weights"]}
    assert seen(node, "without", weights)["read"] == "FileNotFoundError No such file or directory"
    assert weights.read_text() == "seven"


def test_a_volume_of_one_tenant_is_not_there_for_another(start_node, volume, function):
    node = start_node("--volume", f"weights={volume}:vision")
    assert deploy(node, "theirs", function, volumes="weights", tenant="vision")[0] == 201
    assert seen(node, "theirs", volume / "weights")["read"] == "seven"
    status, _, body = deploy(node, "stranger", function, volumes="weights", tenant="shop")
    assert status == 400 and b"no volume 'weights', but: none" in body, body
    # A tag that comes later is looked at as well.
    assert deploy(node, "later", function, tenant="shop")[0] == 201
    status, _, body = node.call("POST", "/2017-03-31/tags/arn:aws:lambda:us-east-1:000000000000:function:later",
                                json.dumps({"Tags": {"gpu:volumes": "weights"}}))
    assert status == 400 and b"gpu:volumes" in body, body


def test_what_is_not_offered_any_more_ends_the_start_with_its_name(start_node, volume, function):
    node = start_node("--volume", f"weights={volume}")
    assert deploy(node, "f", function, volumes="weights")[0] == 201
    node.stop()
    node = start_node(keep_state=True)
    _, headers, body = node.invoke("f", json.dumps({"path": "/"}))
    assert "X-Amz-Function-Error" in headers and b"no volume 'weights'" in body, body


def test_nobody_lists_the_names_of_volumes_that_others_have(start_node, volume, function):
    """Mount points are one for all sandboxes."""
    secret = volume / "of-nobodys-business/weights"
    secret.mkdir(parents=True)
    (secret / "file").write_text("seven")
    node = start_node("--volume", f"weights={secret}:vision")
    assert deploy(node, "theirs", function, volumes="weights", tenant="vision")[0] == 201
    assert seen(node, "theirs", secret / "file")["read"] == "seven"
    assert deploy(node, "stranger", function, tenant="shop")[0] == 201
    for name in (volume / "x", secret.parent / "x", volume.parent / "x"):
        assert seen(node, "stranger", name)["list"] in ("PermissionError Permission denied", "FileNotFoundError No such file or directory")
    assert seen(node, "theirs", secret / "file")["list"] == ["file"]


def test_a_folder_that_is_away_for_a_while_is_an_error_and_comes_back(start_node, volume, function):
    folder = volume / "inner"
    folder.mkdir()
    (folder / "weights").write_text("seven")
    node = start_node("--volume", f"weights={folder}")
    folder.rename(volume / "away")
    folder.write_text("a file in its place")
    assert deploy(node, "f", function, volumes="weights")[0] == 201
    _, headers, body = node.invoke("f", json.dumps({"path": "/"}))
    assert b"Not a directory" in body, (dict(headers), body)
    folder.unlink()
    (volume / "away").rename(folder)
    assert seen(node, "f", folder / "weights")["read"] == "seven"


def test_what_would_be_seen_by_another_name_is_refused_at_the_start(start_node, volume):
    (volume / "inner").mkdir()
    (volume / "link").symlink_to(volume / "inner")
    with pytest.raises(NodeFailed, match="by another name"):
        start_node("--volume", f"a={volume}/link")
    with pytest.raises(NodeFailed, match="volume inner is for vision alone, and outer has it too"):
        start_node("--volume", f"outer={volume}", "--volume", f"inner={volume}/inner:vision")


def test_a_folder_that_is_not_there_says_so_when_the_node_starts(start_node):
    with pytest.raises(NodeFailed, match="volume gone: /srv/no-such-folder is no folder"):
        start_node("--volume", "gone=/srv/no-such-folder")
