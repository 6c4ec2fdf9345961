"""Folders of the host that an operator offers and functions ask for: seen at the same path, read only, and by whom they are for."""

import json
import os
import shutil
import subprocess
import sys

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


# ---- volumes that are written to

WRITER = """#!/usr/bin/python3
import json, os, stat, sys
sys.path.insert(0, "/var/task")
import fairlead_runtime

def tried(act):
    try:
        return act()
    except OSError as error:
        return os.strerror(error.errno)

def put(path, text):
    with open(path, "w") as file:
        file.write(text)
    return "written"

def set_uid(path):
    put(path, "#!/bin/sh\\nid -u\\n")
    os.chmod(path, 0o4755)
    return oct(os.stat(path).st_mode & 0o7777)

def handle(event):
    folder = event.json()["folder"]
    os.umask(0)
    return {
        "put": tried(lambda: put(folder + "/new", "text")), "read": tried(lambda: open(folder + "/old").read()),
        "closed": tried(lambda: open(folder + "/closed").read()), "change closed": tried(lambda: put(folder + "/closed", "x")),
        "chown": tried(lambda: os.chown(folder + "/new", 0, 0)), "device": tried(lambda: os.mknod(folder + "/disk", 0o660 | stat.S_IFBLK, os.makedev(254, 0))),
        "set-uid": tried(lambda: set_uid(folder + "/suid")), "own": os.getuid() == os.stat(folder).st_uid,
        "above": tried(lambda: sorted(os.listdir(folder + "/.."))), "escape": tried(lambda: put(folder + "/../escaped", "x")),
        "outside": tried(lambda: put(os.path.dirname(folder) + "/outside/file", "x")),
        "link": tried(lambda: put(folder + "/link", "x")), "hard link": tried(lambda: os.link("/var/task/bootstrap", folder + "/hard")),
    }

fairlead_runtime.run(handle)
"""
OWNER = 64321


@pytest.fixture
def written(host_folder):
    """A folder of a user of its own, with a file of his and one of somebody else's; beside it one that no function has."""
    if os.geteuid() != 0:
        pytest.skip("only root gives folders to others")
    closed = host_folder / "closed"
    folder, outside = closed / "results", closed / "outside"
    for one in (folder, outside):
        one.mkdir(parents=True)
    (outside / "file").write_text("untouched")
    (folder / "old").write_text("old")
    (folder / "old").chmod(0o600)
    (folder / "closed").write_text("root's")
    (folder / "closed").chmod(0o600)
    (folder / "link").symlink_to(outside / "file")
    for path in (folder, folder / "old"):
        os.chown(path, OWNER, OWNER)
    closed.chmod(0o700)
    return folder


@pytest.fixture
def writer(function):
    (function / "bootstrap").write_text(WRITER)
    return function


def done(node, name, folder):
    status, headers, body = node.invoke(name, json.dumps({"folder": str(folder)}))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)


def test_a_function_writes_as_the_folders_owner_and_as_nobody_else(start_node, written, writer):
    node = start_node("--volume", f"results={written}:vision:rw")
    assert deploy(node, "writes", writer, volumes="results:rw", tenant="vision")[0] == 201
    found = done(node, "writes", written)
    assert found["put"] == "written" and found["read"] == "old" and found["own"], found
    new = (written / "new").stat()
    assert (new.st_uid, new.st_gid) == (OWNER, OWNER) and (written / "new").read_text() == "text"
    assert found["closed"] == found["change closed"] == "Permission denied" and (written / "closed").read_text() == "root's"
    assert found["chown"] in ("Operation not permitted", "Invalid argument", "Value too large for defined data type")
    assert found["device"] == "Operation not permitted" and not (written / "disk").exists()
    assert found["above"] == "Permission denied" or "outside" not in found["above"], found
    assert found["escape"] != "written" and found["outside"] != "written" and found["link"] != "written", found
    assert (written.parent / "outside/file").read_text() == "untouched" and sorted(os.listdir(written.parent)) == ["outside", "results"]
    assert found["hard link"] != "written", found


def test_a_set_user_id_file_makes_nobody_more_than_its_owner(start_node, written, writer):
    node = start_node("--volume", f"results={written}:vision:rw")
    assert deploy(node, "writes", writer, volumes="results:rw", tenant="vision")[0] == 201
    done(node, "writes", written)
    if (written / "suid").exists():  # on the host it is the owner's, whom only he and root reach
        assert (written / "suid").stat().st_uid == OWNER
        assert written.parent.stat().st_mode & 0o001 == 0
    program = "import os, sys; os.setgid(64999); os.setuid(64999); os.stat(sys.argv[1])"
    reached = subprocess.run([sys.executable, "-c", program, written / "suid"], capture_output=True, text=True)
    assert "Permission" in reached.stderr, "another user of the machine reaches what a function made"


def test_without_rw_it_reads_and_another_tenant_has_no_such_volume(start_node, written, writer):
    node = start_node("--volume", f"results={written}:vision:rw")
    assert deploy(node, "reads", writer, volumes="results", tenant="vision")[0] == 201
    assert done(node, "reads", written)["put"] == "Read-only file system"
    for volumes in ("results", "results:rw"):
        status, _, body = deploy(node, "stranger", writer, volumes=volumes, tenant="shop")
        assert status == 400 and b"no volume 'results', but: none" in body, body
    assert deploy(node, "without", writer, tenant="shop")[0] == 201
    _, headers, body = node.invoke("without", json.dumps({"folder": str(written)}))
    # A mount point may be there, of others; there is nothing in it.
    found = {} if "X-Amz-Function-Error" in headers else json.loads(body)
    assert found.get("put") != "written" and found.get("read") in (None, "No such file or directory"), body
    assert not (written / "new").exists()


def test_a_volume_for_reading_is_not_written_to(start_node, volume, function):
    node = start_node("--volume", f"weights={volume}:vision")
    status, _, body = deploy(node, "f", function, volumes="weights:rw", tenant="vision")
    assert status == 400 and b"for reading only" in body, body


def test_a_folder_that_is_swapped_for_a_link_is_not_written_to(start_node, written, writer):
    node = start_node("--volume", f"results={written}:vision:rw")
    assert deploy(node, "writes", writer, volumes="results:rw", tenant="vision")[0] == 201
    outside = written.parent / "outside"
    os.chown(outside, OWNER + 1, OWNER + 1)
    written.rename(written.parent / "away")
    written.symlink_to(outside)
    status, headers, body = node.invoke("writes", json.dumps({"folder": str(written)}))
    assert (status >= 500 or "X-Amz-Function-Error" in headers) and b"there is a link in its place" in body, body
    written.unlink()
    written.mkdir()  # root's now
    status, headers, body = node.invoke("writes", json.dumps({"folder": str(written)}))
    assert (status >= 500 or "X-Amz-Function-Error" in headers) and b"no function writes as root" in body, body
    assert sorted(os.listdir(outside)) == ["file"] and not os.listdir(written)


def test_what_would_give_a_function_more_than_a_folder_is_refused_at_the_start(start_node, written):
    with pytest.raises(NodeFailed, match="names no tenant"):
        start_node("--volume", f"a={written}:rw")
    with pytest.raises(NodeFailed, match="functions may write to one of"):
        start_node("--volume", f"a={written}:vision:rw", "--volume", f"b={written.parent}:vision")
    os.chown(written, 0, 0)
    with pytest.raises(NodeFailed, match="root's or of its group"):
        start_node("--volume", f"a={written}:vision:rw")
    os.chown(written, OWNER, OWNER)
    written.parent.chmod(0o755)
    with pytest.raises(NodeFailed, match="chmod o-x"):
        start_node("--volume", f"a={written}:vision:rw")
