"""What stands between a stranger's module or image and this machine."""

import json
import os
import pathlib
import sys

import pytest

from places import BUILD, Node

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "functional"))
from test_kernel_tasks import EXAMPLE, result, server_pids  # noqa: E402

INPUTS = json.dumps({"inputs": {"x": [1] * 8, "y": [10] * 8}})


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with Node(BUILD, tmp_path_factory.mktemp("jails") / "node") as node:
        node.deploy("add", EXAMPLE)
        result(node.invoke("add", INPUTS))
        yield node


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, value in (line.split(":", 1) for line in lines)}


def test_a_device_server_has_no_rights(node):
    [server] = server_pids(node)
    status = status_of(server)
    for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[capabilities][0], 16) == 0, capabilities
    assert status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"]
    if os.geteuid() == 0:
        assert "0" not in status["Uid"] + status["Gid"] and status.get("Groups") == []


def test_a_device_server_shares_no_namespace_with_the_node(node):
    [server] = server_pids(node)
    for kind in ("user", "pid", "mnt", "net", "ipc", "uts"):
        assert os.readlink(f"/proc/{server}/ns/{kind}") != os.readlink(f"/proc/{node.process.pid}/ns/{kind}"), kind
    assert pathlib.Path(f"/proc/{server}/net/dev").read_text().count(":") == 1, "loopback alone"


def test_a_device_server_sees_its_gpu_and_nothing_of_this_machine(node):
    [server] = server_pids(node)
    root = pathlib.Path(f"/proc/{server}/root")
    assert (root / str(node.home / "gpu" / "machine").lstrip("/")).exists()
    for path in (node.state, pathlib.Path("/root"), pathlib.Path("/home"), pathlib.Path("/etc/shadow")):
        assert not (root / str(path).lstrip("/")).exists(), path
    mounts = [line.split() for line in pathlib.Path(f"/proc/{server}/mounts").read_text().splitlines()]
    writable = {fields[1] for fields in mounts if "rw" in fields[3].split(",") and not fields[1].startswith("/dev/nvidia")}
    assert writable <= {"/tmp", "/dev/shm", "/proc", str(node.home / "gpu"), "/dev/null", "/dev/zero", "/dev/full",
                        "/dev/random", "/dev/urandom"}, writable


def test_a_device_server_is_in_a_control_group_of_its_own(node):
    [server] = server_pids(node)
    own = pathlib.Path(f"/proc/{server}/cgroup").read_text().splitlines()
    if not any("/fairlead/" in line for line in own):
        pytest.skip("no control groups here")
    assert not set(line for line in own if "/fairlead/" in line) & set(
        pathlib.Path(f"/proc/{node.process.pid}/cgroup").read_text().splitlines())


@pytest.mark.parametrize("uri, why", [
    ("169.254.169.254/latest/meta-data:x", "is no registry of this node"),
    ("127.0.0.1:1/app:x", "is no registry of this node"),
    ("localhost/app:x", "is no registry of this node"),
    ("10.0.0.1/app:x", "is no registry of this node"),
    ("0x7f.1/app:x", "has the address 127.0.0.1, which is not public"),
    ("[::1]:443/app:x", "the name is not a repository's"),
])
def test_an_image_reference_sends_the_node_nowhere_inside(node, uri, why):
    body = {"FunctionName": "image", "Role": "r", "PackageType": "Image", "Code": {"ImageUri": uri}}
    status, _, answer = node.call("POST", "/2015-03-31/functions", json.dumps(body))
    text = answer.decode()
    assert status == 400, text
    assert why in text, text
    assert "to the setting registries" in text or "repository" in why, "it says what the operator may do"


def test_a_node_without_jails_says_so(tmp_path):
    with Node(BUILD, tmp_path / "node", options=("--no-jail",)) as node:
        assert "--no-jail: device servers and image tools have the rights of this node" in node.log_path.read_text()
