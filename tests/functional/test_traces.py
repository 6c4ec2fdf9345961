"""OpenTelemetry traces: what a collector gets is the protocol's, says where the time went, hangs together across nodes; and no collector, however
bad, costs a caller anything."""

import base64
import http.server
import json
import re
import socket
import subprocess
import threading
import time

import pytest
from conftest import BUILD, MISBEHAVE, eventually
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from test_peers import Cluster

TRACE, PARENT = "5759e988bd862e3fe1be46a994272793", "53995c3f42cd8ad8"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


def parsed(body):
    """As the protocol's own schema reads it: nothing unknown, nothing of a wrong type. Ids are hexadecimal in OTLP's JSON, which protobuf's
    reader takes for base64, so they are put into that first."""
    document = json.loads(body)
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key, digits in (("traceId", 32), ("spanId", 16), ("parentSpanId", 16)):
                    if key in span:
                        assert re.fullmatch(f"[0-9a-f]{{{digits}}}", span[key]), span
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return json_format.ParseDict(document, trace_service_pb2.ExportTraceServiceRequest(), ignore_unknown_fields=False)


class Collector:
    """A small real one. `status`: what it answers."""

    def __init__(self):
        self.requests, self.paths, self.status = [], [], 200
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/json"
                collector.paths.append(self.path)
                if collector.status == 200:
                    collector.requests.append(parsed(body))
                self.send_response(collector.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def resources(self):
        return [{one.key: one.value.string_value for one in resource.resource.attributes} for request in self.requests
                for resource in request.resource_spans]

    def spans(self):
        return [span for request in self.requests for resource in request.resource_spans for scope in resource.scope_spans
                for span in scope.spans]

    def until(self, count, name="f"):
        """The spans once `count` of that name are there."""
        eventually(lambda: len([span for span in self.spans() if span.name == name]) >= count)
        return self.spans()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def collector():
    one = Collector()
    yield one
    one.close()


def attributes(span):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def request_id(answer):
    assert answer[0] == 200, answer
    return answer[1]["x-amzn-RequestId"]


def of_request(spans, request):
    root = next(span for span in spans if attributes(span).get("faas.invocation_id") == request)
    return root, {span.name: span for span in spans if span.parent_span_id == root.span_id}


def metric(node, name):
    text = node.call("GET", "/metrics")[2].decode()
    return float(re.search(rf"(?m)^{re.escape(name)} ([0-9.e+-]+)$", text).group(1))


def test_spans_say_where_the_time_went(start_node, collector):
    node = start_node("--otlp", collector.url, "--otlp-attribute", "deployment.environment.name=test", "--node-name", "n1")
    node.deploy("f", MISBEHAVE)
    cold = request_id(node.invoke("f", json.dumps({"do": "sleep", "seconds": 0.2})))
    warm = request_id(node.invoke("f", "{}"))
    failed = request_id(node.invoke("f", json.dumps({"do": "crash"})))
    spans = collector.until(3)
    assert collector.paths[0] == "/v1/traces"
    assert collector.resources()[0].items() >= {"service.name": "fairlead", "service.instance.id": "n1",
                                                "deployment.environment.name": "test"}.items()
    root, parts = of_request(spans, cold)
    assert set(parts) >= {"queue", "start", "run"} and not root.parent_span_id
    said = json.loads(node.call("GET", f"/fairlead/v1/requests/{cold}")[2])["times"]
    seconds = {name: (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9 for name, span in parts.items()}
    assert seconds["run"] >= 0.2 and abs(seconds["run"] - said["run_seconds"]) < 1e-6
    assert abs(seconds["queue"] - said["queue_seconds"]) < 1e-6
    assert attributes(parts["start"])["fairlead.start"] == "cold"
    assert abs(attributes(parts["start"])["fairlead.instance_start_seconds"] - said["instance_start_seconds"]) < 1e-6
    assert attributes(parts["run"])["fairlead.gpu_seconds"] == said["gpu_seconds"]
    assert attributes(root)["faas.coldstart"] is True and attributes(root)["fairlead.outcome"] == "success"
    assert abs(root.start_time_unix_nano / 1e9 - time.time()) < 120
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano
               for span in parts.values())
    assert attributes(of_request(spans, warm)[1]["start"])["fairlead.start"] == "device-warm"
    root, _ = of_request(spans, failed)
    assert root.status.code == root.status.STATUS_CODE_ERROR and root.status.message
    assert len({span.span_id for span in spans}) == len(spans) and len({span.trace_id for span in spans}) == 3
    eventually(lambda: metric(node, 'fairlead_traced_requests_total{result="exported"}') == 3)


@pytest.mark.parametrize("headers", [{"traceparent": TRACEPARENT}, {"X-Amzn-Trace-Id": f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={PARENT};Sampled=1"}])
def test_a_callers_trace_is_taken_over_and_given_on(start_node, collector, headers):
    node = start_node("--otlp", collector.url, "--otlp-ratio", "0")
    node.deploy("f", MISBEHAVE)
    node.invoke("f", "{}")  # of whose trace nobody says anything
    status, _, body = node.invoke("f", json.dumps({"do": "trace"}), headers)
    told = json.loads(body)
    spans = collector.until(1)
    (root,) = [span for span in spans if span.name == "f"]
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)
    run = next(span for span in spans if span.name == "run")
    assert told["w3c"] == f"00-{TRACE}-{run.span_id.hex()}-01"
    assert told["amzn"] == f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={run.span_id.hex()};Sampled=1"
    unsampled = TRACEPARENT[:-1] + "0"
    assert json.loads(node.invoke("f", json.dumps({"do": "trace"}), {"traceparent": unsampled})[2])["w3c"] == unsampled
    for nonsense in ("00-" + "0" * 32 + "-" + PARENT + "-01", "x" * 6000, "00-é"):
        assert node.invoke("f", "{}", {"traceparent": nonsense.encode("latin-1")})[0] == 200
    node.stop()  # which sends what it has
    assert [span.name for span in collector.spans()].count("f") == 1, "the others are not sampled"


def test_without_a_collector_a_trace_is_still_given_on(start_node):
    node = start_node()
    node.deploy("f", MISBEHAVE)
    told = json.loads(node.invoke("f", json.dumps({"do": "trace"}), {"traceparent": TRACEPARENT})[2])
    assert told["w3c"] == TRACEPARENT and told["amzn"].startswith(f"Root=1-{TRACE[:8]}")
    assert json.loads(node.invoke("f", json.dumps({"do": "trace"}))[2]) == {"amzn": "", "w3c": None}


def test_a_call_that_another_node_runs_is_one_trace(tmp_path, collector):
    cluster = Cluster(tmp_path, ["runs", "gate"], gateways=["gate"])
    try:
        for name in ("runs", "gate"):
            cluster.start(name, "--otlp", collector.url)
        cluster.until_all_see({"runs": "alive"}, ["gate"])
        cluster.nodes["runs"].deploy("f", MISBEHAVE)
        eventually(lambda: cluster.nodes["gate"].invoke("f", "{}")[0] == 200)
        before = len([span for span in collector.until(1) if span.name == "f"])
        assert cluster.nodes["gate"].invoke("f", "{}", {"traceparent": TRACEPARENT})[0] == 200
        collector.until(before + 1)
        eventually(lambda: [span for span in collector.spans() if span.name == "forward" and span.trace_id.hex() == TRACE])
        spans = [span for span in collector.spans() if span.trace_id.hex() == TRACE]
        forward = next(span for span in spans if span.name == "forward")
        root = next(span for span in spans if span.name == "f")
        assert forward.parent_span_id.hex() == PARENT and forward.kind == forward.SPAN_KIND_CLIENT
        assert root.parent_span_id == forward.span_id
        assert attributes(forward)["fairlead.node"] == "runs"
        assert {one["service.instance.id"] for one in collector.resources()} == {"runs", "gate"}
    finally:
        for node in cluster.nodes.values():
            node.kill()


def calls_per_node(node, count=200):
    """Their times, in seconds, sorted."""
    times = []
    for _ in range(count):
        begun = time.monotonic()
        assert node.invoke("f", "{}")[0] == 200
        times.append(time.monotonic() - begun)
    return sorted(times)


def test_a_collector_that_is_away_or_never_reads_costs_callers_nothing(start_node):
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes connections, reads and answers nothing
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        node = start_node("--otlp", url)
        node.deploy("f", MISBEHAVE)
        assert len(calls_per_node(node)) == 200
        begun = time.monotonic()
        assert node.stop() == 0
        assert time.monotonic() - begun < 60, "its end waits for no answer"
    gone = start_node("--otlp", url, keep_state=True)
    assert len(calls_per_node(gone, 50)) == 50
    eventually(lambda: re.search("traces: .*callers notice nothing", gone.log_path.read_text()))


@pytest.mark.parametrize("status", [400, 500])
def test_what_a_collector_refuses_is_counted(start_node, collector, status):
    collector.status = status
    node = start_node("--otlp", collector.url + "/custom/path")
    node.deploy("f", MISBEHAVE)
    assert node.invoke("f", "{}")[0] == 200
    eventually(lambda: metric(node, 'fairlead_traced_requests_total{result="dropped_by_collector"}') == 1)
    collector.status = 200
    assert node.invoke("f", "{}")[0] == 200
    eventually(lambda: metric(node, 'fairlead_traced_requests_total{result="exported"}') == 1)
    assert set(collector.paths) == {"/custom/path"}
    assert node.log_path.read_text().count("callers notice nothing") == 1


@pytest.mark.parametrize("arguments, error", [
    (["--otlp", "collector"], "'collector' is no address; it must be http://HOST:PORT"),
    (["--otlp", "http://c:4318", "--otlp-ratio", "1.5"], "otlp-ratio"),
    (["--otlp", "http://c:4318", "--otlp-attribute", "=x"], "NAME=VALUE")])
def test_settings_that_cannot_be_are_refused(tmp_path, arguments, error):
    done = subprocess.run([BUILD / "bin/fairlead", "serve", "--softgpu", "--state", tmp_path / "s", *arguments], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode != 0 and error in done.stderr
