"""Where a function's own connections may lead, attacked from inside the function. The world around the node is egress_world.py's, in
which everything answers: what is not reached was stopped."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import egress_world
import pytest
from egress_world import METADATA, METADATA6, OWN, OWN6, OWN_PRIVATE, PRIVATE, PUBLIC, PUBLIC6, World, own_service

from harness.node import NodeFailed
from places import BUILD, ROOT, Node

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes the networks of this test")

PROBE = pathlib.Path(__file__).resolve().parent / "egress_probe.py"
GRANTS = ("--egress", f"default=all,10.9.0.0/16:80,pypi.test", "--egress", "modest=pypi.test:80,db.test", "--egress", "nobody=none")
ARN = "arn:aws:lambda:us-east-1:000000000000:function:"


def eventually(condition, timeout=120):
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, condition
        time.sleep(0.02)  # sleep: between two looks at a condition
    return value


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    try:
        entered = World(tmp_path_factory.mktemp("world")).__enter__()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine makes no networks for the test: {error}")
    try:
        yield entered
    finally:
        entered.__exit__()


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    shutil.copy(PROBE, folder / "bootstrap")
    (folder / "bootstrap").chmod(0o755)
    shutil.copy(ROOT / "functions/runtime/python/fairlead_runtime.py", folder)
    return folder


def deploy(node, code, name, egress=None, **tags):
    if egress is not None:
        tags["egress"] = egress
    return node.call("POST", "/2015-03-31/functions", json.dumps({
        "FunctionName": name, "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap", "Code": {"Folder": str(code)},
        "Timeout": 120, "Tags": {f"gpu:{key}": value for key, value in tags.items()}}))


@pytest.fixture(scope="module")
def node(world, code, tmp_path_factory):
    with Node(BUILD, tmp_path_factory.mktemp("egress") / "node", options=GRANTS) as node:
        if "functions have no way out" in node.log_path.read_text():
            pytest.skip(node.log_path.read_text())
        for name, egress, tags in (("none", None, {}), ("all", "all", {}), ("listed", "pypi.test:80", {}), ("private", "10.9.8.0/24:80", {}),
                                   ("both", "all,10.9.8.7:80", {}), ("modest", "pypi.test:80,db.test", {"tenant": "modest"})):
            status, _, body = deploy(node, code, name, egress, **tags)
            assert status == 201, body
        yield node


def ask(node, function, do, *arguments):
    status, headers, body = node.invoke(function, json.dumps({"do": do, "arguments": arguments}))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)["found"]


def tcp(node, function, address, port=80):
    return ask(node, function, "tcp", address, port)


# ---- what is meant to work

def test_without_the_tag_there_is_no_way_out(node, world):
    world.names({"pypi.test": [PUBLIC]})
    assert tcp(node, "none", PUBLIC) == "OSError Network is unreachable"
    assert ask(node, "none", "resolve", "pypi.test").startswith("gaierror")


def test_all_reaches_every_public_address(node, world):
    for address in (PUBLIC, "8.8.8.8", PUBLIC6):
        assert tcp(node, "all", address) == f"reached {address}"
    world.names({"pypi.test": [PUBLIC, PUBLIC6], "any.test": ["8.8.4.4"]})
    assert tcp(node, "all", "pypi.test").startswith("reached ")
    assert ask(node, "all", "resolve", "any.test") == ["8.8.4.4"]
    assert ask(node, "all", "resolve", "gone.test") == "gaierror Name or service not known"


def test_a_name_on_the_list_is_reached_at_its_port(node, world):
    world.names({"pypi.test": [PUBLIC], "other.test": [PUBLIC]})
    assert tcp(node, "listed", "pypi.test") == f"reached {PUBLIC}"
    assert tcp(node, "listed", "PyPI.test.") == f"reached {PUBLIC}"
    assert tcp(node, "listed", PUBLIC, 443).startswith("ConnectionResetError")
    assert tcp(node, "listed", "8.8.8.8").startswith("ConnectionResetError")


def test_an_address_counts_once_the_name_was_found_to_have_it(node, world):
    world.names({"pypi.test": ["11.99.0.1"]})
    assert tcp(node, "listed", "11.99.0.1").startswith("ConnectionResetError")
    assert ask(node, "listed", "resolve", "pypi.test") == ["11.99.0.1"]
    assert tcp(node, "listed", "11.99.0.1") == "reached 11.99.0.1"


def test_a_private_address_is_reached_where_the_list_names_it(node):
    assert tcp(node, "private", PRIVATE) == f"reached {PRIVATE}"
    assert tcp(node, "both", PRIVATE) == f"reached {PRIVATE}"
    assert tcp(node, "private", PRIVATE, 443).startswith("ConnectionResetError")
    assert tcp(node, "private", "10.9.9.9").startswith("ConnectionResetError")
    assert tcp(node, "private", PUBLIC).startswith("ConnectionResetError")


def test_much_passes_unharmed_and_a_server_that_says_more_than_is_read_waits(node):
    assert ask(node, "all", "download", PUBLIC, 80, 200_000_000) == 200_000_000


def test_what_the_function_serves_to_itself_stays_its_own(node):
    assert ask(node, "all", "serve_itself") == "own"


def test_the_log_says_what_was_refused(node, world):
    assert tcp(node, "all", "10.1.1.1").startswith("ConnectionResetError")
    line = "fairlead: a connection to 10.1.1.1:80 is refused: its tag gpu:egress does not allow it: all\n"
    log = node.state / "logs/all.log"
    eventually(lambda: log.exists() and line in log.read_text())


# ---- attacks on what is never reached

FORBIDDEN = [METADATA, METADATA6, PRIVATE, "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "100.100.100.200", "168.63.129.16",
             f"::ffff:{METADATA}", f"::ffff:{PRIVATE}", "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::a09:807", "2002:a09:807::1",
             "::a09:807", "fd00::1", "fe80::1", "fec0::1", "ff02::1", "224.0.0.1", "255.255.255.255", "0.0.0.0", "::", "240.0.0.1",
             "192.0.0.8", "100::1", "127.0.0.1", "::1", "127.1.2.3"]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_nothing_but_public_addresses_is_reached(node, world, address):
    before = len(world.seen())
    for port in (80, 443):
        assert not str(tcp(node, "all", address, port)).startswith("reached"), address
    assert [line for line in world.seen()[before:] if line.startswith("tcp")] == []


@pytest.mark.parametrize("function", ["all", "both", "private"])
def test_the_node_itself_is_not_reached(node, world, function):
    """At none of its addresses, public or private, whatever the list says; nor its API."""
    with own_service(4444) as reached:
        assert World.reach(OWN, 4444) == World.reach(OWN_PRIVATE, 4444) == World.reach(OWN6, 4444) == "reached the node"
        del reached[:]
        for address in (OWN, OWN_PRIVATE, OWN6, f"::ffff:{OWN}", "127.0.0.1", "::1", "127.0.0.2", f"64:ff9b::{OWN}", "0.0.0.0"):
            assert not tcp(node, function, address, 4444).startswith("reached"), address
            assert not tcp(node, function, address, node.port).startswith("HTTP"), address
            assert not tcp(node, function, address, 9002).startswith("reached"), "the relay's own port"
        assert reached == []


def test_an_address_that_the_node_gets_later_is_not_reached(node, world):
    assert tcp(node, "all", "11.44.0.1") == "reached 11.44.0.1"
    egress_world.run("ip addr add 11.44.0.1/32 dev n0")
    try:
        with own_service(4444) as reached:
            assert World.reach("11.44.0.1", 4444) == "reached the node"
            del reached[:]
            assert tcp(node, "all", "11.44.0.1", 4444).startswith("ConnectionResetError")
            assert reached == []
    finally:
        egress_world.run("ip addr del 11.44.0.1/32 dev n0")


def test_other_functions_are_not_reached(node):
    """Each in a network of its own, with the same addresses."""
    assert ask(node, "both", "listen", 8000) == "listening"
    for address in ("192.0.0.8", "100::1", "127.0.0.1", "::1", "0.0.0.0"):
        assert not tcp(node, "all", address, 8000).startswith("reached"), address


# ---- attacks by names

def test_names_that_the_list_has_not_are_told_to_nobody(node, world):
    """Neither by the C library, nor by questions to whatever name server: no tunnel through look-ups."""
    world.names({"pypi.test": [PUBLIC], "secret.evil.test": [PUBLIC], "a.pypi.test": [PUBLIC]})
    before = len(world.seen())
    for name in ("secret.evil.test", "a.pypi.test", "evilpypi.test", "localhost.evil.test"):
        assert ask(node, "listed", "resolve", name).startswith("gaierror")
        for server in ("8.8.8.8", PUBLIC, METADATA, "127.0.0.1", "10.255.255.53"):
            assert ask(node, "listed", "dns", server, name) == [3, 0], (server, name)
    assert ask(node, "listed", "dns", "8.8.8.8", "pypi.test") == [0, 1], "every address is the name server's"
    assert {line for line in world.seen()[before:]} == {"dns pypi.test"}
    assert tcp(node, "listed", "8.8.8.8", 53).startswith("ConnectionResetError")


def test_a_name_that_changes_its_address_leads_nowhere_inside(node, world):
    """DNS rebinding."""
    with own_service(80) as reached:
        for address in ("127.0.0.1", METADATA, "10.8.8.8", OWN, OWN_PRIVATE, "10.0.0.1", "0.0.0.0", "::1", METADATA6, OWN6, "::ffff:10.0.0.1"):
            world.names({"pypi.test": [PUBLIC]})
            assert tcp(node, "listed", "pypi.test") == f"reached {PUBLIC}"
            world.names({"pypi.test": [address]})
            before = len(world.seen())
            assert not tcp(node, "listed", "pypi.test").startswith("reached"), address
            assert not tcp(node, "listed", address).startswith("reached"), address
            assert [line for line in world.seen()[before:] if line.startswith("tcp")] == [], address
        assert reached == []


def test_a_listed_name_at_a_private_address_needs_that_address_listed(node, world):
    world.names({"db.test": [PRIVATE], "pypi.test": [PRIVATE]})
    assert not tcp(node, "modest", "db.test").startswith("reached")
    assert tcp(node, "listed", "pypi.test") == f"reached {PRIVATE}", "the operator's list has 10.9.0.0/16:80"


def test_a_flood_of_questions_holds_up_nobody_for_good(node, world):
    world.names({"pypi.test": [PUBLIC]})
    assert ask(node, "listed", "flood_names", "pypi.test", 2000) >= 1
    assert ask(node, "listed", "resolve", "pypi.test") == [PUBLIC]


# ---- attacks by other means than connections

def test_no_packets_and_no_rights_over_its_network(node):
    found = ask(node, "all", "rights")
    for name in ("raw", "raw6", "packet", "user namespace", "network namespace", "clone", "link", "nft", "address", "transparent"):
        assert found[name] != "done", found
    assert found["capabilities"] == 0


def test_udp_and_icmp_go_nowhere(node, world):
    before = len(world.seen())
    for address in (PUBLIC, METADATA, OWN):
        assert ask(node, "all", "udp", address, 123) == "ConnectionRefusedError Connection refused"
    assert world.seen()[before:] == []


def test_the_number_of_connections_has_a_bound(node):
    held, more = ask(node, "all", "hold", PUBLIC, 80, 150)
    assert held == 128
    assert more == 22, "those that waited come when others end"


# ---- the process that carries them

def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, value in (line.split(":", 1) for line in lines)}


@contextlib.contextmanager
def lone_node(tmp_path, code, *options):
    with Node(BUILD, tmp_path / "node", options=options or GRANTS) as node:
        assert deploy(node, code, "f", "all")[0] == 201
        assert tcp(node, "f", PUBLIC) == f"reached {PUBLIC}"
        yield node


@pytest.fixture
def others(world):
    """Processes of other tests' nodes in the same network."""
    before = set(world.processes("fl-egress"))
    return lambda: set(world.processes("fl-egress")) - before


def test_it_is_jailed_and_counted_in_the_functions_group(tmp_path, world, code, others):
    with lone_node(tmp_path, code) as node:
        [relay] = others()
        status = status_of(relay)
        for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[capabilities][0], 16) == 0, capabilities
        assert status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"] and status["NSpid"][1:] == ["1"]
        assert min(map(int, status["Uid"])) >= 1878917120, status["Uid"]
        root = pathlib.Path(f"/proc/{relay}/root")
        assert sorted(entry.name for entry in root.iterdir()) in (["etc"], ["etc", "run"])
        for kind in ("pid", "mnt", "ipc", "uts"):
            assert os.readlink(f"/proc/{relay}/ns/{kind}") != os.readlink(f"/proc/{node.process.pid}/ns/{kind}"), kind
        [function] = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_function(pid, node)]
        groups = {pid: [line for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines() if "/fairlead/" in line]
                  for pid in (relay, function)}
        assert groups[relay] == groups[function]
        files = {os.readlink(f"/proc/{relay}/fd/{entry}") for entry in os.listdir(f"/proc/{relay}/fd")}
        assert all(re.match(r"socket:|pipe:|anon_inode:", file) for file in files), files


def is_function(pid, node):
    with contextlib.suppress(OSError):
        return (b"/var/task/bootstrap" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                and f"SOFTGPU_HOME={node.home}/gpu".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes())
    return False


def test_it_ends_with_its_function_and_its_function_with_it(tmp_path, world, code, others):
    with lone_node(tmp_path, code) as node:
        [first] = others()
        instances = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_function(pid, node)]
        known = {instance["id"] for instance in node.status()["instances"]}
        os.kill(first, 9)
        eventually(lambda: first not in others())
        eventually(lambda: not any(is_function(pid, node) for pid in instances))
        # And the node has heard of it: a call that it gives to an instance in between has begun, and fails.
        eventually(lambda: not known & {instance["id"] for instance in node.status()["instances"]})
        assert tcp(node, "f", PUBLIC) == f"reached {PUBLIC}", "the next instance answers"
        [second] = others()
        assert node.call("DELETE", "/2015-03-31/functions/f")[0] == 204
        eventually(lambda: not others())
        assert second != first


@pytest.mark.parametrize("victim", ["node", "spawner", "function"])
def test_kill_9_leaves_none_behind(tmp_path, world, code, others, victim):
    with lone_node(tmp_path, code) as node:
        [relay] = others()
        if victim == "node":
            node.kill()
        elif victim == "spawner":
            [spawner] = [pid for pid in world.processes("fl-spawner") if status_of(pid)["PPid"] == [str(node.process.pid)]]
            os.kill(spawner, 9)
        else:
            [function] = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_function(pid, node)]
            os.kill(function, 9)
        eventually(lambda: relay not in others())
    eventually(lambda: not others())


def test_an_instance_without_egress_has_none(tmp_path, world, code, others):
    with Node(BUILD, tmp_path / "node", options=GRANTS) as node:
        assert deploy(node, code, "f")[0] == 201
        assert tcp(node, "f", PUBLIC) == "OSError Network is unreachable"
        assert not others()


# ---- what the operator gives

@pytest.mark.parametrize("tenant, egress, why", [
    ("default", "10.9.8.7", "asks for '10.9.8.7'; tenant default may reach at most: all,10.9.0.0/16:80,pypi.test"),
    ("modest", "pypi.test", "asks for 'pypi.test'; tenant modest may reach at most: pypi.test:80,db.test"),
    ("modest", "all", "asks for 'all'"),
    ("nobody", "pypi.test", "tenant nobody may reach at most: none"),
    ("stranger", "pypi.test", "serve --egress stranger=LIST"),
    ("default", "http://pypi.test", "'http://pypi.test' is no destination"),
    ("default", "127.0.0.1", "'127.0.0.1' is an address that no function reaches"),
])
def test_what_is_beyond_the_operators_list_is_not_deployed(node, code, tenant, egress, why):
    status, _, body = deploy(node, code, "beyond", egress, tenant=tenant)
    assert status == 400 and "tag gpu:egress" in body.decode() and why in body.decode(), body


def test_a_tag_that_comes_later_is_looked_at_as_well(node, code):
    assert deploy(node, code, "later")[0] == 201
    status, _, body = node.call("POST", f"/2017-03-31/tags/{ARN}later", json.dumps({"Tags": {"gpu:egress": "10.0.0.0/8"}}))
    assert status == 400 and b"gpu:egress" in body, body


def test_what_is_not_given_any_more_is_not_started(tmp_path, world, code):
    with lone_node(tmp_path, code):
        pass
    with Node(BUILD, tmp_path / "node", options=("--egress", "default=pypi.test"), keep_state=True) as node:
        _, headers, body = node.invoke("f", json.dumps({"do": "tcp", "arguments": [PUBLIC, 80]}))
        assert "X-Amz-Function-Error" in headers and b"may reach at most: pypi.test" in body, body


def test_a_tenant_is_given_one_list(tmp_path):
    with pytest.raises(NodeFailed, match="tenant 'a' is given a list twice"):
        Node(BUILD, tmp_path / "node", options=("--egress", "a=all", "--egress", "a=pypi.test"))
    with pytest.raises(NodeFailed, match="is an address that no function reaches"):
        Node(BUILD, tmp_path / "node", options=("--egress", "a=169.254.169.254"))


def test_the_command_line_and_the_sdk_ask_for_it(node, world, code, tmp_path):
    world.names({"pypi.test": [PUBLIC]})
    command = [BUILD / "bin/fairlead", "--endpoint", node.endpoint, "deploy", "by-command", code, "--egress", "pypi.test:80"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert tcp(node, "by-command", "pypi.test") == f"reached {PUBLIC}"
    refused = subprocess.run([*command[:-1], "169.254.0.0/16"], capture_output=True, text=True, timeout=120)
    assert refused.returncode != 0 and "is an address that no function reaches" in refused.stderr


# ---- a machine that lacks something

@pytest.fixture
def without_nft(tmp_path):
    """A build folder whose fairlead sees no nft."""
    places = [place for place in ("/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft") if os.path.exists(place)]
    folder = tmp_path / "build"
    (folder / "bin").mkdir(parents=True)
    hide = " && ".join(f"mount --bind /dev/null {os.path.realpath(place)}" for place in places) or "true"
    (folder / "bin/fairlead").write_text(f"#!/bin/sh\nexec unshare -m sh -c '{hide} && exec {BUILD}/bin/fairlead \"$@\"' sh \"$@\"\n")
    (folder / "bin/fairlead").chmod(0o755)
    return folder


def test_without_nft_a_function_that_asks_is_refused_and_doctor_says_what_to_install(without_nft, tmp_path, code):
    doctor = subprocess.run([without_nft / "bin/fairlead", "doctor", "--softgpu"], capture_output=True, text=True, timeout=120)
    assert re.search(r"warn +Egress +nft is missing: install nftables", doctor.stdout, re.IGNORECASE), doctor.stdout
    with Node(without_nft, tmp_path / "node", options=GRANTS) as node:
        assert "functions have no way out, and those that ask for one are refused: nft is missing" in node.log_path.read_text()
        status, _, body = deploy(node, code, "f", "all")
        assert status == 503 and b"apt-get install nftables" in body, (status, body)
        assert deploy(node, code, "plain")[0] == 201
        assert tcp(node, "plain", "11.22.33.2").startswith("OSError Network is unreachable")
