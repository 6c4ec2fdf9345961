#!/usr/bin/python3
"""A function that tries to get out by every means, and says what came of it."""

import ctypes
import os
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, "/var/task")
import fairlead_runtime  # noqa: E402

PATIENCE_S = 60
LIBC = ctypes.CDLL(None, use_errno=True)
KEPT = []


def tried(act):
    try:
        return act()
    except OSError as error:
        return f"{type(error).__name__} {error.strerror or error}"


def connect(address, port):
    """By address as it is; a name by the C library."""
    return socket.create_connection((address, port), timeout=PATIENCE_S)


def tcp(address, port):
    def act():
        with connect(address, port) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return connection.recv(100).decode() or "ended"

    return tried(act)


def resolve(name):
    return tried(lambda: sorted({entry[4][0] for entry in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)}))


def download(address, port, size):
    with connect(address, port) as connection:
        connection.sendall(b"bytes %d" % size)
        got = 0
        while part := connection.recv(1 << 20):
            got += len(part)
        return got


def hold(address, port, count):
    """(how many of so many connections are served at once, how many of the rest once those have ended)"""
    connections = [connect(address, port) for _ in range(count)]
    for connection in connections:
        connection.sendall(b"hold")
    served = []
    for connection in connections:
        connection.settimeout(PATIENCE_S if len(served) < 128 else 1)
        try:
            assert connection.recv(4) == b"held"
            served.append(connection)
        except TimeoutError:
            pass
    waiting = [connection for connection in connections if connection not in served]
    for connection in served:
        connection.close()
    more = 0
    for connection in waiting:
        connection.settimeout(PATIENCE_S)
        more += connection.recv(4) == b"held"
    return len(served), more


def question(name):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", 1, 1)


def dns(server, name):
    """[verdict, number of answers] of that name server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(PATIENCE_S)
        asker.connect((server, 53))  # an answer from another address would not come
        asker.send(question(name))
        answer = asker.recv(512)
        return [answer[3] & 15, answer[7]]


def flood_names(name, count):
    """How many of the questions were answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.connect(("127.0.0.1", 53))
        for _ in range(count):
            asker.send(question(name))
        asker.settimeout(5)
        answered = 0
        try:
            while answered < count and asker.recv(512):
                answered += 1
        except TimeoutError:
            pass
        return answered


def udp(address, port):
    def act():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.settimeout(PATIENCE_S)
            sender.connect((address, port))
            sender.send(b"hello")
            return sender.recv(100).decode()

    return tried(act)


def serve_itself():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname(), timeout=PATIENCE_S) as connection:
            accepted, _ = listener.accept()
            with accepted:
                accepted.sendall(b"own")
            return connection.recv(10).decode()


def listen(port):
    """At all its addresses, for as long as the process lives."""
    listener = socket.create_server(("", port))
    KEPT.append(listener)

    def serve():
        while True:
            with listener.accept()[0] as connection:
                connection.sendall(b"reached another function")

    threading.Thread(target=serve, daemon=True).start()
    return "listening"


def call(number_or_name, *arguments):
    if getattr(LIBC, number_or_name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "done"


def program(*words, text=""):
    found = subprocess.run(words, input=text, capture_output=True, text=True)
    return "done" if found.returncode == 0 else found.stderr[-200:]


def made(*kind):
    socket.socket(*kind).close()
    return "done"


def transparent():
    with socket.socket() as taker:
        taker.setsockopt(socket.IPPROTO_IP, 19, 1)
        taker.bind(("8.8.8.8", 4444))
    return "done"


def rights():
    new_user, new_network = 0x10000000, 0x40000000
    found = {
        "raw": tried(lambda: made(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)),
        "raw6": tried(lambda: made(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)),
        "packet": tried(lambda: made(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))),
        "user namespace": tried(lambda: call("unshare", new_user)),
        "network namespace": tried(lambda: call("unshare", new_user | new_network)),
        "clone": tried(lambda: call("syscall", 56, new_user | new_network | 17, 0, 0, 0, 0)),
        "transparent": tried(transparent),
    }
    for name, words in {"link": ("ip", "link", "add", "x0", "type", "veth"), "address": ("ip", "addr", "add", "11.22.33.1/24", "dev", "lo"),
                        "nft": ("nft", "flush", "ruleset")}.items():
        found[name] = program(words[0] if "/" in words[0] else next(
            (f"{folder}/{words[0]}" for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin") if os.path.exists(f"{folder}/{words[0]}")),
            "/bin/false"), *words[1:])
    with open("/proc/self/status") as file:
        found["capabilities"] = sum(int(line.split()[1], 16) for line in file if line.startswith("Cap"))
    return found


DEEDS = {deed.__name__: deed for deed in (tcp, resolve, download, hold, dns, flood_names, udp, serve_itself, listen, rights)}


def handle(event):
    said = event.json()
    return {"found": DEEDS[said["do"]](*said["arguments"])}


if __name__ == "__main__":
    fairlead_runtime.run(handle)
