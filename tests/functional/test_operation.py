"""What an operator does to a node, and what happens when it is short of something."""

import http.client
import json
import os
import resource
import signal
import socket
import subprocess

import pytest

from conftest import BUILD, MISBEHAVE, PATIENCE_S, ROOT, eventually


def serve(state, *options):
    """`fairlead serve` until it ends by itself."""
    return subprocess.run([BUILD / "bin/fairlead", "serve", "--softgpu", "--state", state, *options], timeout=PATIENCE_S,
                          capture_output=True, text=True, env={**os.environ, "SOFTGPU_HOME": str(state) + "-gpu"})


def test_sighup_without_a_file_is_logged_and_changes_nothing(start_node):
    """What it changes with a file: test_settings.py."""
    node = start_node()
    node.process.send_signal(signal.SIGHUP)
    eventually(lambda: "SIGHUP: the node runs on" in node.log_path.read_text())
    assert node.call("GET", "/healthz")[0] == 200
    assert node.stop() == 0


def test_sighup_while_it_starts_changes_nothing(tmp_path):
    """Sent by a library that is looked at before anything else."""
    library = tmp_path / "libhangup.so"
    subprocess.run(["c++", "-shared", "-fPIC", "-x", "c++", "-o", library, "-"], check=True, text=True,
                   input="#include <signal.h>\n[[gnu::constructor]] void hang_up() { raise(SIGHUP); }")
    ended = serve(tmp_path / "state", "--cublas", library)
    assert ended.returncode == 2 and "--cublas" in ended.stderr  # it is no cuBLAS


def test_exit_statuses_are_those_of_the_help(start_node, tmp_path):
    node = start_node()
    usage, failed = 2, 6
    for address in ("nonsense", "127.0.0.1:99999", "unix:"):
        assert serve(tmp_path / "other", "--listen", address).returncode == usage, address
    used = serve(tmp_path / "other", "--listen", f"127.0.0.1:{node.port}")
    assert used.returncode == failed and str(node.port) in used.stderr
    assert serve(node.state, "--listen", "127.0.0.1:0").returncode == failed


class Raw:
    """A connection that is kept, because no other can be made."""

    def __init__(self, node):
        self.socket = socket.create_connection((node.host, node.port), timeout=PATIENCE_S)

    def ask(self, method, path, body=b""):
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + body)
        answer = http.client.HTTPResponse(self.socket)
        answer.begin()
        return answer.status, answer.read()


def task_folder(folder, padding):
    """A kernel task whose frames to a device server are as large as that and more."""
    example = ROOT / "examples/ktask/vector-add"
    folder.mkdir()
    (folder / "task.json").write_text((example / "task.json").read_text())
    (folder / "kernels.ptx").write_text((example / "kernels.ptx").read_text() + f"\n// {'x' * padding}\n")
    return folder


def invocations(name):
    return f"/2015-03-31/functions/{name}/invocations"


def test_out_of_descriptors_it_waits_says_so_and_goes_on(start_node, tmp_path):
    node = start_node()
    for name in ("warm", "cold"):
        node.deploy(name, MISBEHAVE)
    for name, padding in (("small", 1), ("large", 1 << 20)):
        node.deploy(name, task_folder(tmp_path / name, padding))
    call = json.dumps({"inputs": {name: {"values": list(range(8))} for name in ("x", "y")}}).encode()
    connection = Raw(node)
    assert connection.ask("POST", invocations("warm"), b"{}")[0] == 200
    status, body = connection.ask("POST", invocations("small"), call)
    assert status == 200 and b"errorMessage" not in body, body  # its device server runs
    limit = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
    open_now = len(os.listdir(f"/proc/{node.process.pid}/fd"))
    resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (open_now, limit[1]))
    waiting = [socket.create_connection((node.host, node.port)) for _ in range(9)]  # in the backlog: none is accepted
    assert connection.ask("POST", invocations("warm"), b"{}")[0] == 200
    status, body = connection.ask("POST", invocations("large"), call)  # registered now, in a frame larger than a packet
    assert status == 200, body
    status, body = connection.ask("POST", invocations("cold"), b"{}")
    assert b"Too many open files" in body or b"file descriptor" in body, body
    assert node.process.poll() is None
    resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, limit)
    for one in waiting:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        one.settimeout(PATIENCE_S)
        assert one.recv(4096).startswith(b"HTTP/1.1 200")
    assert node.invoke("cold")[0] == 200
    assert node.stop() == 0


def test_idle_connections_keep_nobody_out(start_node):
    """As many as a node takes, opened and left alone by one peer."""
    count = 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 500:
        pytest.skip(f"{count} connections need more descriptors than {hard}")
    node = start_node()
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        held = [socket.create_connection((node.host, node.port), timeout=PATIENCE_S) for _ in range(count + 50)]
        assert node.call("GET", "/healthz")[0] == 200
        for connection in held:
            connection.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
