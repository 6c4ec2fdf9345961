"""A small internet for one test run: a network for the node and one in which every other address answers.

    node's network                          the rest of the world
      lo        127.0.0.1, ::1                lo: every address is local, so all of them answer
      n0        11.22.33.1, 10.20.0.1  <────> s0: 11.22.33.2
                2a00:1::1                         2a00:1::2
      default route to s0

So whatever a function's way out forgets to forbid is reached, and the test sees it: servers answer with the address that they were
reached at, and write it down. Needs root, for the networks. Run as a program it is the servers of the second network.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import select
import socket
import struct
import subprocess
import sys
import threading
import time

NEW_NETWORK = 0x40000000  # CLONE_NEWNET
PORTS = (80, 443, 5432)
PUBLIC, PUBLIC6, PRIVATE, METADATA, METADATA6 = "11.22.33.2", "2a00:1::2", "10.9.8.7", "169.254.169.254", "fd00:ec2::254"
OWN, OWN_PRIVATE, OWN6 = "11.22.33.1", "10.20.0.1", "2a00:1::1"
LIBC = ctypes.CDLL(None, use_errno=True)


def run(command):
    subprocess.run(command, shell=True, check=True)


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# ---- the second network's servers

def everywhere(family, kind, port):
    made = socket.socket(family, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    elif kind == socket.SOCK_DGRAM:
        made.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
    made.bind(("", port))
    return made


def answer(connection, log):
    """Says at which address it was reached; then what it is told: echo, or so many bytes."""
    with connection, contextlib.suppress(OSError):
        where = connection.getsockname()
        log(f"tcp {where[0].removeprefix('::ffff:')} {where[1]}")
        asked = connection.recv(100)
        if asked.startswith(b"bytes "):
            left = int(asked.split()[1])
            while left > 0:
                left -= connection.send(b"x" * min(left, 1 << 20))
        elif asked.startswith(b"hold"):
            connection.sendall(b"held")
            connection.recv(100)
        else:
            connection.sendall(f"reached {where[0]}".encode())


def serve_tcp(family, port, log):
    listener = everywhere(family, socket.SOCK_STREAM, port)
    listener.listen(512)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, log), daemon=True).start()


def read_question(message):
    """(name, kind, where it ends) of a question for the name server."""
    labels, at = [], 12
    while length := message[at]:
        labels.append(message[at + 1:at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels).lower(), struct.unpack(">H", message[at + 1:at + 3])[0], at + 5


def dns_reply(message, zone):
    name, kind, end = read_question(message)
    family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
    found = [address for address in zone.get(name, []) if family and (":" in address) == (family == socket.AF_INET6)]
    records = b""
    for address in found:
        data = socket.inet_pton(family, address)
        records += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 1, len(data)) + data
    flags = 0x8180 if name in zone else 0x8183
    return name, message[:2] + struct.pack(">HHHHH", flags, 1, len(found), 0, 0) + message[12:end] + records


def serve_names(family, zone_file, log):
    server = everywhere(family, socket.SOCK_DGRAM, 53)
    while True:
        message, control, _, asker = server.recvmsg(512, 200)
        name, reply = dns_reply(message, json.loads(zone_file.read_text()))
        log(f"dns {name}")
        # The answer comes from the address that was asked.
        if family == socket.AF_INET:
            control = [(level, kind, data[:4] + data[8:12] + data[8:12]) for level, kind, data in control]
        server.sendmsg([reply], control, 0, asker)


def servers(folder):
    log_lock = threading.Lock()

    def log(line):
        with log_lock, (folder / "seen").open("a") as file:
            file.write(line + "\n")

    for family in (socket.AF_INET, socket.AF_INET6):
        for port in PORTS + (53,):
            threading.Thread(target=serve_tcp, args=(family, port, log), daemon=True).start()
        threading.Thread(target=serve_names, args=(family, folder / "zone", log), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


# ---- the node's network

class World:
    """`with World(folder) as world:` this thread, and the processes that it starts, are in the node's network."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "seen").touch()
        self.names({})
        self.before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self.process = None

    def __enter__(self):
        check(LIBC.unshare(NEW_NETWORK))
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        check(LIBC.setns(self.before, NEW_NETWORK))
        os.close(self.before)

    def _make(self):
        run("ip link set lo up && ip link add n0 type veth peer name s0")
        self.process = subprocess.Popen(["unshare", "-n", sys.executable, __file__, "networks", str(self.folder)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "network\n"
        run(f"ip link set s0 netns {self.process.pid}")
        run(f"ip link set n0 up; ip addr add {OWN}/24 dev n0; ip addr add {OWN_PRIVATE}/24 dev n0; ip addr add {OWN6}/64 dev n0 nodad")
        self.process.stdin.write("linked\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ready\n"
        run(f"ip route add default via {PUBLIC}; ip -6 route add default via {PUBLIC6}")
        self.network = os.stat("/proc/thread-self/ns/net").st_ino
        self._wait_until_it_answers()

    def _wait_until_it_answers(self, timeout=60):
        deadline = time.monotonic() + timeout
        for address in (PUBLIC, METADATA, PUBLIC6):
            while self.reach(address) != f"reached {address}":
                assert time.monotonic() < deadline, f"{address} does not answer in the test's own network"
                time.sleep(0.02)  # sleep: between two looks at a condition

    @staticmethod
    def reach(address, port=80):
        """What the node itself is told there."""
        try:
            with socket.create_connection((address, port), timeout=5) as connection:
                connection.sendall(b"hello")
                return connection.recv(100).decode()
        except OSError as error:
            return type(error).__name__

    def names(self, zone):
        """What the machine's name server says from now on: {name: [addresses]}."""
        new = self.folder / "zone.new"
        new.write_text(json.dumps(zone))
        new.rename(self.folder / "zone")

    def seen(self):
        """What reached the second network, a line each: "tcp ADDRESS PORT", "dns NAME"."""
        return (self.folder / "seen").read_text().splitlines()

    def processes(self, comm):
        """Of the node's network, with this name."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "comm").read_text().strip() == comm and os.stat(entry / "ns/net").st_ino == self.network:
                    found.append(int(entry.name))
        return found


@contextlib.contextmanager
def own_service(port):
    """A service of the node's machine at all its addresses; yields the list of addresses at which it was reached."""
    reached = []
    listeners = [everywhere(family, socket.SOCK_STREAM, port) for family in (socket.AF_INET, socket.AF_INET6)]
    ends, end = os.pipe()

    def serve():
        while True:
            ready, _, _ = select.select([*listeners, ends], [], [])
            if ends in ready:
                return
            for listener in ready:
                with listener.accept()[0] as connection:
                    reached.append(connection.getsockname()[0])
                    connection.sendall(b"reached the node")

    for listener in listeners:
        listener.listen(16)
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield reached
    finally:
        os.close(end)
        thread.join()
        os.close(ends)
        for listener in listeners:
            listener.close()


if __name__ == "__main__":
    print("network", flush=True)
    assert sys.stdin.readline() == "linked\n"
    run("ip link set lo up; ip link set s0 up")
    run(f"ip addr add {PUBLIC}/24 dev s0; ip addr add {PUBLIC6}/64 dev s0 nodad")
    # Behind the ways back to the node. IPv4 takes the longest prefix, whatever its table.
    run("ip route add local default dev lo; ip route add 10.20.0.0/24 dev s0")
    run("ip -6 route add local default dev lo table 100; ip -6 rule add pref 40000 lookup 100")
    servers(pathlib.Path(sys.argv[2]))
