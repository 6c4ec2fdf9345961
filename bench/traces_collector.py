"""A collector of traces that reads and says yes: a process of its own, so that the node's numbers are not this one's."""

import subprocess
import sys

SERVER = r"""
import socketserver, sys

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while True:
            length = 0
            line = self.rfile.readline()
            if not line:
                return
            while line not in (b"\r\n", b"\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                line = self.rfile.readline()
            self.rfile.read(length)
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")

class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

with Server(("127.0.0.1", 0), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""


class Collector:
    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
