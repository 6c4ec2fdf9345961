"""Three Ray nodes on one machine by `ray start`, with the cluster.toml of three Fairlead nodes, for tests and measurements. It is run by a Python
that has Ray. Every process of it knows the folder by its environment, and is ended by its number; other Rays of the machine are left alone."""

import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time

PATIENCE_S = 120
REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
MARK = "FAIRLEAD_RAY_CLUSTER"
KINDS = {"gcs": r"gcs/gcs_server", "raylet": r"raylet/raylet --", "supervisor": r"^ray::Supervisor", "executor": r"^ray::Executor",
         "controller": r"^ray::Controller", "node": r"bin/fairlead\S* serve", "dashboard": r"dashboard\.py"}


def free_ports(count):
    """Outside of what Ray gives to its workers, and of what the kernel gives to clients."""
    found = []
    for port in range(20_100 + os.getpid() % 8_000, 32_000):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("0.0.0.0", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no port is free")


class RayCluster:
    """folder: a short path, since sockets lie in it."""

    def __init__(self, folder, build, names=("a", "b", "c"), settings=None):
        self.folder, self.build, self.names = pathlib.Path(folder), pathlib.Path(build), names
        self.folder.mkdir(parents=True, exist_ok=True)
        self.gcs_port, *ports = free_ports(1 + len(names))
        self.ports = dict(zip(names, ports))
        self.settings = {"softgpu": True, "event-retry": 1, **(settings or {})}
        self.program = self.build / "bin/fairlead"
        self.key = self.folder / "cluster.key"
        self.key.write_text(secrets.token_hex(32))
        self.key.chmod(0o600)
        self.environment = {**os.environ, MARK: str(self.folder), "PYTHONPATH": str(REPOSITORY / "python"), "RAY_AUTH_MODE": "disabled",
                            "RAY_USAGE_STATS_ENABLED": "0", "RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(self.folder / "gcs"),
                            "RAY_health_check_period_ms": "500", "RAY_health_check_timeout_ms": "1000", "RAY_health_check_failure_threshold": "3",
                            "RAY_TMPDIR": str(self.folder / "r"), "RAY_ADDRESS": self.address, "RAY_COLOR_PREFIX": "0", "SOFTGPU_HOME": str(self.folder / "gpu-of-tasks")}

    @property
    def address(self):
        return f"127.0.0.1:{self.gcs_port}"

    def state(self, name):
        return self.folder / name

    def write_file(self, **settings):
        """cluster.toml, with more settings for all nodes; its path."""
        lines = ["[cluster]", f'key = "{self.key}"', "[node]", f'program = "{self.program}"', "drain = 10", "[node.serve]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in {**self.settings, **settings}.items()]
        for name, port in self.ports.items():
            lines += [f"[nodes.{name}]", f'address = "http://127.0.0.1:{port}"', f'state = "{self.state(name)}"',
                      f'environment = {{ SOFTGPU_HOME = "{self.folder}/gpu-{name}", {MARK} = "{self.folder}" }}']
        path = self.folder / "cluster.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    # ---- Ray

    def start_raylet(self, name):
        is_head = name == self.names[0]
        command = [pathlib.Path(sys.executable).with_name("ray"), "start", "--labels", f"fairlead-node={name}", "--num-cpus", "2", "--num-gpus", "0",
                   "--object-store-memory", str(100 << 20), "--disable-usage-stats",
                   "--node-ip-address", f"127.0.0.{self.names.index(name) + 1}"]
        command += ["--head", "--port", self.gcs_port, "--include-dashboard", "false", "--temp-dir", self.folder / "r",
                    "--ray-client-server-port", free_ports(20)[-1]] if is_head else ["--address", self.address]
        done = subprocess.run([str(part) for part in command], env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode != 0:
            raise RuntimeError(f"ray start of {name}: {done.stdout[-1000:]}{done.stderr[-1000:]}")

    def start(self):
        for name in self.names:
            self.start_raylet(name)
        return self

    def fairlead_ray(self, *arguments, check=True):
        """python -m fairlead.ray ...: what it printed."""
        done = subprocess.run([sys.executable, "-m", "fairlead.ray", *map(str, arguments)], env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S * 2)
        if check and done.returncode != 0:
            raise RuntimeError(f"fairlead.ray {arguments}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout if check else done

    def status(self):
        return {node["name"]: node for node in json.loads(self.fairlead_ray("status", "--json"))["nodes"]}

    # ---- processes

    def processes(self):
        """{pid: command line} of all that belong to this cluster."""
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.folder}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
        found.pop(os.getpid(), None)
        return found

    def pids(self, kind):
        return sorted(pid for pid, line in self.processes().items() if re.search(KINDS[kind], line))

    def raylet_of(self, name):
        return next(pid for pid, line in self.processes().items() if re.search(KINDS["raylet"], line) and f'"fairlead-node":"{name}"' in
                    line.replace(" ", "").replace("\\", "") or re.search(KINDS["raylet"], line) and f"--node_ip_address=127.0.0.{self.names.index(name) + 1} " in line)

    def kill(self, kind, number=signal.SIGKILL):
        pids = self.pids(kind)
        for pid in pids:
            os.kill(pid, number)
        return pids

    def restart_gcs(self):
        """kill -9 of Ray's truth, and another one on what it left on disk."""
        pid = self.pids("gcs")[0]
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
        environment = dict(part.split("=", 1) for part in pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0") if "=" in part)
        os.kill(pid, signal.SIGKILL)
        return lambda: subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)

    def memory_bytes(self):
        """{what: bytes (PSS)} of all processes, of nodes too. Files of shared memory that are mapped count where they are."""
        sums = {}
        for pid, line in self.processes().items():
            try:
                found = re.search(r"^Pss:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
            except OSError:
                continue
            kind = next((kind for kind, pattern in KINDS.items() if re.search(pattern, line)), line.split(" ")[0].rsplit("/", 1)[-1] or "?")
            if found:
                sums[kind] = sums.get(kind, 0) + int(found.group(1)) * 1024
        return sums

    def stop(self):
        """Ends everything: what starts others first, so three rounds are enough."""
        for _ in range(3):
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.2)  # sleep: what these were starting is to be seen
        for folder in self.object_folders():
            shutil.rmtree(folder, ignore_errors=True)

    def object_folders(self):
        import hashlib
        return [pathlib.Path("/dev/shm", "fairlead-" + hashlib.blake2b(str(self.state(name)).encode(), digest_size=32).hexdigest()[:32])
                for name in self.names]
