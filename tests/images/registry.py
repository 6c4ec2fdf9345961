"""A registry for the tests: serves the images of one OCI layout over plain HTTP (distribution-spec, the reading half)."""

import contextlib
import http.server
import json
import pathlib
import re
import threading


class Registry(http.server.ThreadingHTTPServer):
    """`with Registry(layout) as registry`: its images are at registry.address/NAME:TAG, whatever NAME is.

    requests: the paths asked for. stall: when true, requests are accepted and never answered.
    """

    daemon_threads = True

    def __init__(self, layout):
        super().__init__(("127.0.0.1", 0), Handler)
        self.layout = pathlib.Path(layout)
        self.address = f"127.0.0.1:{self.server_port}"
        self.requests = []
        self.stall = False
        self.stalled = threading.Event()
        self.released = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.released.set()
        self.shutdown()
        self.server_close()

    def configure(self, home):
        """Lets skopeo, for the user with this home, speak plain HTTP to it."""
        folder = pathlib.Path(home) / ".config/containers"
        folder.mkdir(parents=True)
        (folder / "registries.conf").write_text(f'[[registry]]\nlocation = "{self.address}"\ninsecure = true\n')

    def find(self, kind, reference):
        """(media type, content) or None."""
        if kind == "manifests" and not reference.startswith("sha256:"):
            for entry in json.loads((self.layout / "index.json").read_text())["manifests"]:
                if entry.get("annotations", {}).get("org.opencontainers.image.ref.name") == reference:
                    return self.find(kind, entry["digest"])
            return None
        with contextlib.suppress(OSError):
            content = (self.layout / "blobs" / reference.replace(":", "/")).read_bytes()
            manifest = "application/vnd.oci.image.manifest.v1+json"
            return (manifest if kind == "manifests" else "application/octet-stream"), content, reference
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.requests.append(self.path)
        if self.server.stall:
            self.server.stalled.set()
            self.server.released.wait()
            return
        match = re.fullmatch(r"/v2/(.+)/(manifests|blobs)/([^/]+)", self.path)
        found = self.server.find(match[2], match[3]) if match else None
        if self.path == "/v2/":
            found = "application/json", b"{}", ""
        media_type, content, digest = found or ("application/json", b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}', "")
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass
