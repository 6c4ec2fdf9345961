"""A Fairlead node as a child process, for the demo, the benchmarks and the tests. Standard library only."""

import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

STOP_PATIENCE_S = 120
REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


class NodeFailed(RuntimeError):
    pass


class Node:
    """`with Node(build, home) as node:` runs a node on the software GPU whose state, log and GPU live in `home`.

    options: arguments of `fairlead serve`. keep_state: start on what an earlier node left in `home`.
    gpu_environment: SOFTGPU_* variables, which describe the device when it is first used. software=False: this machine's GPU.
    is_open: it asks nobody for an API key. event_retry: seconds before a failed event is tried again, a minute with the program's
    default.
    """

    def __init__(self, build, home, *, options=(), gpu_environment=None, keep_state=False, software=True, is_open=True,
                 event_retry=1):
        self.build = pathlib.Path(build).resolve()
        self.home = pathlib.Path(home).resolve()
        if not keep_state:
            shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True, exist_ok=True)
        self.state = self.home / "state"
        self.log_path = self.home / "node.log"
        self.gpu_environment = {"SOFTGPU_HOME": str(self.home / "gpu"), **(gpu_environment or {})}
        command = [self.build / "bin/fairlead", "serve", *(["--softgpu"] if software else []), "--state", self.state,
                   "--listen", "127.0.0.1:0", "--event-retry", event_retry, *(["--open"] if is_open else []), *options]
        self.process = subprocess.Popen([str(part) for part in command], env={**os.environ, **self.gpu_environment},
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=self.log_path.open("w"))
        self.host, self.port = self._wait_until_listening()

    def _wait_until_listening(self, timeout=120):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"listening on ([0-9.]+):(\d+)", self.log_path.read_text())
            if found:
                return found.group(1), int(found.group(2))
            time.sleep(0.01)
        self.process.kill()
        self.process.wait()
        raise NodeFailed(f"the node did not start; its log:\n{self.log_path.read_text()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Graceful end; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NodeFailed(f"the node did not stop within {STOP_PATIENCE_S} s; its log:\n{self.log_path.read_text()}") from None

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.process.wait()

    @property
    def endpoint(self):
        return f"http://{self.host}:{self.port}"

    def call(self, method, path, body=None, headers=None):
        """(status, headers, body) of one request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def sample(self, program):
        """The folder of a sample function."""
        return self.build / "functions" / program

    def deploy(self, name, folder, environment=None, **document):
        document = {
            "FunctionName": name, "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap",
            "Environment": {"Variables": environment or {}}, "Code": {"Folder": str(pathlib.Path(folder).resolve())},
            **document,
        }
        status, _, body = self.call("POST", "/2015-03-31/functions", json.dumps(document))
        if status != 201:
            raise NodeFailed(f"deploy {name}: {status} {body.decode(errors='replace')}")

    def invoke(self, name, payload="{}", headers=None):
        return self.call("POST", f"/2015-03-31/functions/{name}/invocations", payload, headers)

    def object_memory(self):
        """The folder of this node's objects in shared memory; outlives a node that was killed."""
        digest = hashlib.blake2b(str(self.state).encode(), digest_size=32).hexdigest()
        return pathlib.Path("/dev/shm", "fairlead-" + digest[:32])

    def status(self):
        return json.loads(self.call("GET", "/fairlead/v1/status")[2])
