"""Functions that run from their own folder, without a copy: any size, the folder that was meant and no other, and by whom it may be named."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / "python"))
from fairlead import Client  # noqa: E402

MIB = 1 << 20

SHOW = """#!/usr/bin/python3
import os, sys
sys.path.insert(0, "/var/task")
import fairlead_runtime

def tried(act):
    try:
        return act()
    except OSError as error:
        return os.strerror(error.errno)

def write():
    with open("/var/task/new", "w"):
        return "written"

def handle(event):
    with open("/var/task/word") as word:
        return {"word": word.read(), "write": tried(write), "list": sorted(os.listdir("/var/task")),
                "secret": tried(lambda: open("/var/task/secret").read())}

fairlead_runtime.run(handle)
"""


def fill(folder, word):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bootstrap").write_text(SHOW)
    (folder / "bootstrap").chmod(0o755)
    shutil.copy(ROOT / "functions/runtime/python/fairlead_runtime.py", folder)
    (folder / "word").write_text(word)
    return folder


@pytest.fixture
def folder(host_folder):
    return fill(host_folder / "function", "one")


def code(folder, in_place=True):
    return {"Folder": str(folder), **({"InPlace": True} if in_place else {})}


def create(node, name, folder, in_place=True, **fields):
    return node.call("POST", "/2015-03-31/functions", json.dumps({
        "FunctionName": name, "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap", "Code": code(folder, in_place), **fields}))


def update(node, name, folder, in_place=True):
    return node.call("PUT", f"/2015-03-31/functions/{name}/code", json.dumps(code(folder, in_place)))


def get(node, name):
    status, _, body = node.call("GET", f"/2015-03-31/functions/{name}")
    assert status == 200, body
    return json.loads(body)


def seen(node, name):
    status, headers, body = node.invoke(name, "{}")
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)


def failure(node, name):
    status, headers, body = node.invoke(name, "{}")
    assert status >= 500 or "X-Amz-Function-Error" in headers, body
    return body.decode()


def end_instances(node, name):
    """An update of what a process starts with replaces all instances."""
    value = os.urandom(4).hex()
    status, _, body = node.call("PUT", f"/2015-03-31/functions/{name}/configuration", json.dumps({"Environment": {"Variables": {"V": value}}}))
    assert status == 200, body


def test_a_folder_of_300_mib_runs_where_it_lies_and_after_a_restart(start_node, folder):
    with open(folder / "weights", "wb") as weights:
        weights.truncate(300 * MIB)
    node = start_node()
    status, _, body = create(node, "copied", folder, in_place=False)
    assert status in (400, 413) and b"--in-place" in body and str(folder).encode() in body, body
    assert create(node, "f", folder)[0] == 201
    assert seen(node, "f")["word"] == "one"
    assert seen(node, "f")["write"] == "Read-only file system"
    kept = sum(file.stat().st_blocks for file in (node.state / "code").rglob("*") if file.is_file()) if (node.state / "code").exists() else 0
    assert kept == 0, "it is a copy"
    function = get(node, "f")
    assert function["Code"] == {"RepositoryType": "Local", "Folder": str(folder), "InPlace": True}
    assert function["Configuration"]["CodeSize"] == 0
    node.stop()
    node = start_node(keep_state=True)
    assert seen(node, "f")["word"] == "one"
    assert get(node, "f")["Code"]["Folder"] == str(folder)


def test_what_changes_is_seen_and_deployed_again_all_instances_are_new(start_node, folder):
    node = start_node()
    created = create(node, "f", folder)
    assert created[0] == 201, created[2]
    assert seen(node, "f")["word"] == "one"
    (folder / "word").write_text("two")
    assert seen(node, "f")["word"] == "two"
    (folder / "bootstrap").write_text(SHOW.replace('"word": word.read()', '"word": word.read() + " of the new program"'))
    assert seen(node, "f")["word"] == "two"
    updated = update(node, "f", folder)
    assert updated[0] == 200 and json.loads(updated[2])["CodeSha256"] != json.loads(created[2])["CodeSha256"], updated[2]
    assert seen(node, "f")["word"] == "two of the new program"
    assert update(node, "f", folder, in_place=False)[0] == 200
    (folder / "word").write_text("three")
    assert seen(node, "f")["word"] == "two of the new program"
    assert get(node, "f")["Code"] == {"RepositoryType": "Local"} and get(node, "f")["Configuration"]["CodeSize"] > 0
    shutil.rmtree(folder)
    end_instances(node, "f")
    assert seen(node, "f")["word"] == "two of the new program", "a copy needs no folder"


def test_a_swapped_folder_or_a_link_ends_the_start_with_words(start_node, folder):
    other = fill(folder.parent / "other", "of somebody else")
    node = start_node()
    assert create(node, "f", folder)[0] == 201
    assert seen(node, "f")["word"] == "one"
    away = folder.parent / "away"
    folder.rename(away)
    end_instances(node, "f")
    assert f"the folder {folder} is not there any more" in failure(node, "f")
    other.rename(folder)
    assert f"the folder {folder} is another one" in failure(node, "f")
    folder.rename(other)
    folder.symlink_to(other)
    assert "there is a link in its place" in failure(node, "f")
    folder.unlink()
    folder.symlink_to(away)  # to the very folder: its target may be swapped between two looks
    assert "there is a link in its place" in failure(node, "f")
    folder.unlink()
    away.rename(folder)
    assert seen(node, "f")["word"] == "one", "put back, it is found"
    shutil.rmtree(folder)
    fill(folder, "made anew, with the inode number of the old one as likely as not")
    end_instances(node, "f")
    assert "is another one" in failure(node, "f")
    node.stop()
    shutil.rmtree(folder)
    node = start_node(keep_state=True)
    assert str(folder) in failure(node, "f")


def test_a_folder_may_not_be_reached_over_a_link_nor_be_what_is_not_its_authors(start_node, folder):
    inside = fill(folder.parent / "theirs/f", "x")
    node = start_node("--volume", f"weights={folder.parent / 'theirs'}:vision")
    link = folder.parent / "link"
    link.symlink_to(folder)
    for named, words in {link: "over a link", "/": "absolute path", "/etc": "would hide", "/usr/share": "would hide", node.state: "state folder",
                         node.state / "code": "state folder", node.state.parent: "state folder", inside: "another tenant",
                         folder.parent: "another tenant", f"{folder}/../function": "absolute path",
                         "/proc/self/root": "would hide", folder / "gone": "not a folder"}.items():
        status, _, body = create(node, "f", named)
        # /tmp, where the state of tests lies, is refused for itself.
        assert status in (400, 404) and (words.encode() in body or b"would hide" in body), (named, body)
    assert create(node, "f", inside, Tags={"gpu:tenant": "vision"})[0] == 201


def test_what_cannot_be_kept_is_refused_before_anything_is_made(start_node, folder):
    node = start_node()
    status, _, body = create(node, "f", folder, Publish=True)
    assert status == 400 and b"Publish and InPlace" in body, body
    assert node.call("GET", "/2015-03-31/functions/f")[0] == 404
    assert create(node, "f", folder)[0] == 201
    status, _, body = node.call("POST", "/2015-03-31/functions/f/versions", "{}")
    assert status == 400 and str(folder).encode() in body and b"copy" in body, body
    (folder / "bootstrap").chmod(0o700)
    if os.geteuid() == 0:
        status, _, body = update(node, "f", folder)
        assert status == 400 and b"chmod o+rx" in body, body
    (folder / "bootstrap").unlink()
    (folder / "bootstrap").symlink_to("/bin/sh")
    status, _, body = update(node, "f", folder)
    assert status == 400, body
    (folder / "bootstrap").unlink()
    (folder / "task.json").write_text("{}")
    status, _, body = update(node, "f", folder)
    assert status == 400 and b"kernel task" in body, body


def test_what_others_may_not_read_stays_closed(start_node, folder):
    if os.geteuid() != 0:
        pytest.skip("an instance of a node that is not root is its user")
    (folder / "secret").write_text("secret")
    (folder / "secret").chmod(0o600)
    folder.parent.chmod(0o700)
    node = start_node()
    assert create(node, "f", folder)[0] == 201
    assert seen(node, "f")["secret"] == "Permission denied"


def test_a_node_of_a_cluster_refuses_and_says_why(start_node, folder):
    key = folder.parent / "cluster-key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    node = start_node("--peer", "http://127.0.0.1:1", "--cluster-key", key)
    status, _, body = create(node, "f", folder)
    assert status == 400 and b"other machines do not have the folder" in body, body


def test_the_command_line_says_what_it_does_and_what_it_cannot(start_node, folder):
    node = start_node()

    def fairlead(*arguments):
        done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, *arguments], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    status, said = fairlead("deploy", "f", str(folder), "--in-place")
    assert status == 0 and "in place" in said, said
    assert f"{folder}, in place" in fairlead("describe", "f")[1]
    assert fairlead("deploy", "f", str(folder), "--in-place", "--upload")[0] != 0
    Client(node.endpoint).deploy("g", folder, in_place=True)
    assert seen(node, "g")["word"] == "one"


def test_a_function_in_python_is_built_once_and_runs_where_it_was_built(start_node, folder, tmp_path, monkeypatch):
    """Of any size, so with requirements that are too large for a copy."""
    cache = folder.parent / "cache"
    monkeypatch.setenv("FAIRLEAD_CACHE", str(cache))
    node = start_node()
    source = tmp_path / "scores.py"
    for version in range(4):
        source.write_text(f"import fairlead\n\n\n@fairlead.function\ndef scores(event):\n    return {version}\n")
        done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "deploy", str(source), "--in-place"],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert node.invoke("scores", "null")[2] == str(version).encode()
        assert len(list(cache.glob("placed-scores-*"))) == min(2, version + 1), "this one, and that of instances which still run"
    assert not list(cache.glob("bundle-*"))
    for _ in range(3):  # what was refused takes nothing from what runs
        refused = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "deploy", str(source), "--in-place", "--tag", "gpu:weight=x"],
                                 capture_output=True, text=True, timeout=120)
        assert refused.returncode != 0
    assert len(list(cache.glob("placed-scores-*"))) == 5
    assert node.invoke("scores", "null")[2] == b"3"
