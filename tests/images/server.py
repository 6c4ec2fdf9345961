"""An HTTP container for the tests: Python's own server on $PORT."""

import http.server
import json
import os


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"body": body, "path": self.path, "port": os.environ["PORT"],
                             "request_id": self.headers.get("Lambda-Runtime-Aws-Request-Id")}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer)  # HTTP/1.0: the end of the connection ends the answer


http.server.HTTPServer(("", int(os.environ["PORT"])), Handler).serve_forever()
