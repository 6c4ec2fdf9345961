"""`Code.Folder` is read with the rights of who names it, never with root's for somebody else."""

import os
import pathlib
import shutil
import subprocess

import pytest

from places import BUILD, MISBEHAVE, Node

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be several users")

SOMEBODY = 64999
DEPLOY = """
import http.client, json, os, socket, sys
os.setgroups([]); os.setgid({uid}); os.setuid({uid})
connection = http.client.HTTPConnection("127.0.0.1", {port})
connection.request("POST", "/2015-03-31/functions", json.dumps({{"FunctionName": sys.argv[1], "Role": "r", "Handler": "h",
    "Runtime": "provided.al2023", "Code": {{"Folder": sys.argv[2]}}}}), {{"Host": "localhost"}})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""


def deploys(node, folder, name="theirs"):
    """The answer to another user of this machine who asks an open node."""
    done = subprocess.run(["/usr/bin/python3", "-c", DEPLOY.format(uid=SOMEBODY, port=node.port), name, str(folder)],
                          capture_output=True, text=True, cwd="/", check=True)
    return done.stdout


@pytest.fixture
def shared():
    """A folder that everybody reaches, as those of pytest are not."""
    folder = pathlib.Path(f"/tmp/fairlead-folders-{os.getpid()}")
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def node(tmp_path):
    with Node(BUILD, tmp_path / "node") as node:
        yield node


def test_what_only_root_may_read_is_nobody_elses_code(node, shared):
    secret = shared / "secret"
    shutil.copytree(MISBEHAVE, secret)
    secret.chmod(0o700)
    assert deploys(node, secret).startswith("403 ")
    secret.chmod(0o755)
    (secret / "key").write_text("secret")
    (secret / "key").chmod(0o600)
    answer = deploys(node, secret)
    assert answer.startswith("403 ") and "key may not be read by who named it" in answer
    assert deploys(node, "/root").startswith("403 ")


def test_what_he_may_read_is_his_to_deploy(node, shared):
    shutil.copytree(MISBEHAVE, shared / "code")
    assert deploys(node, shared / "code").startswith("201 ")


def test_a_link_in_it_leads_nowhere(node, shared):
    shutil.copytree(MISBEHAVE, shared / "code")
    (shared / "code/shadow").symlink_to("/etc/shadow")
    assert deploys(node, shared / "code").startswith("400 ")


def test_root_deploys_what_root_may_read(node, shared):
    shutil.copytree(MISBEHAVE, shared / "code")
    (shared / "code").chmod(0o700)
    node.deploy("roots", shared / "code")


def test_a_layout_is_not_read_for_another_user(node, shared):
    script = DEPLOY.replace('{{"Folder": sys.argv[2]}}', '{{"ImageUri": sys.argv[2]}}, "PackageType": "Image"')
    script = script.replace('"Handler": "h",\n    "Runtime": "provided.al2023", ', "")
    done = subprocess.run(["/usr/bin/python3", "-c", script.format(uid=SOMEBODY, port=node.port), "layout", "oci:/srv:x"],
                          capture_output=True, text=True, cwd="/", check=True)
    assert done.stdout.startswith("403 ") and "layouts on the node's machine" in done.stdout
