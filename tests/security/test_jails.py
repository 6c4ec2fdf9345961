"""What stands between a stranger's module or image and this machine."""

import contextlib
import json
import os
import pathlib
import sys

import pytest

from places import BUILD, Node

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "functional"))
import models  # noqa: E402
from test_kernel_tasks import EXAMPLE, result  # noqa: E402

INPUTS = json.dumps({"inputs": {"x": [1] * 8, "y": [10] * 8}})


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """With a device server and a model server."""
    folder = tmp_path_factory.mktemp("jails")
    with Node(BUILD, folder / "node") as node:
        node.deploy("add", EXAMPLE)
        result(node.invoke("add", INPUTS))
        models.deploy(node, folder, "keeper")
        models.run(node, "keeper", "answer = store('vit', 1, 4 << 20)")
        yield node


@pytest.fixture(params=["device-server", "model-server"])
def server(node, request):
    """The pid of the node's one process that runs this command of `fairlead`; what is outside of its jail is another."""
    [found] = [pid for pid in below(node.process.pid) if command_of(pid)[1:2] == [request.param.encode()]]
    return int(found)


def command_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return []


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, value in (line.split(":", 1) for line in lines)}


def test_a_server_has_no_rights(server):
    status = status_of(server)
    for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[capabilities][0], 16) == 0, capabilities
    assert status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"]
    if os.geteuid() == 0:
        assert "0" not in status["Uid"] + status["Gid"] and status.get("Groups") == []


def below(pid):
    """All processes that come from this one. Another node on the machine has users of its own, which may be the same."""
    found = {str(pid)}
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[entry.name] = status_of(entry.name)["PPid"][0]
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's node has one user")
def test_a_server_is_a_user_that_no_other_process_is(node, server):
    own = set(status_of(server)["Uid"])
    assert int(min(own)) >= 1878917120, own  # of the setting instance-uids
    for pid in below(node.process.pid):
        with contextlib.suppress(OSError):
            status = status_of(pid)
            # Its own pid 1 is another one of it.
            assert not own & set(status["Uid"]) or int(pid) == server or status["PPid"] == [str(server)] \
                or status_of(server)["PPid"] == [pid], (pid, status["Name"])


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's node has nothing to give up")
def test_no_thread_of_the_node_has_rights_that_it_does_not_need(node):
    needed = {0, 1, 3, 4, 5, 6, 7, 10, 19, 23}  # docs/explanation/sandbox.md
    for thread in pathlib.Path(f"/proc/{node.process.pid}/task").iterdir():
        status = status_of(f"{node.process.pid}/task/{thread.name}")
        for capabilities in ("CapPrm", "CapEff"):
            bits = int(status[capabilities][0], 16)
            assert {number for number in range(64) if bits >> number & 1} <= needed, (thread.name, capabilities)
        assert int(status["CapBnd"][0], 16) & 1 << 22 == 0, "nobody below it restarts the machine"


def test_a_server_shares_no_namespace_with_the_node(node, server):
    for kind in ("user", "pid", "mnt", "net", "ipc", "uts"):
        assert os.readlink(f"/proc/{server}/ns/{kind}") != os.readlink(f"/proc/{node.process.pid}/ns/{kind}"), kind
    assert pathlib.Path(f"/proc/{server}/net/dev").read_text().count(":") == 1, "loopback alone"


def test_a_server_sees_its_gpu_and_nothing_of_this_machine(node, server):
    root = pathlib.Path(f"/proc/{server}/root")
    assert (root / str(node.home / "gpu" / "machine").lstrip("/")).exists()
    for path in (node.state, pathlib.Path("/root"), pathlib.Path("/home"), pathlib.Path("/etc/shadow")):
        assert not (root / str(path).lstrip("/")).exists(), path
    mounts = [line.split() for line in pathlib.Path(f"/proc/{server}/mounts").read_text().splitlines()]
    writable = {fields[1] for fields in mounts if "rw" in fields[3].split(",") and not fields[1].startswith("/dev/nvidia")}
    assert writable <= {"/tmp", "/dev/shm", "/proc", str(node.home / "gpu"), "/dev/null", "/dev/zero", "/dev/full",
                        "/dev/random", "/dev/urandom"}, writable


def test_a_server_is_in_a_control_group_of_its_own(node, server):
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
        assert "--no-jail: device servers, model servers and image tools have the rights of this node" in node.log_path.read_text()
