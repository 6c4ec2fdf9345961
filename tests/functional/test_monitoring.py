"""What docs/how-to/monitoring.md gives an operator: alerts and a dashboard that ask for what a node has, and a real Prometheus that reads it."""

import json
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest
from conftest import BUILD, MISBEHAVE, PATIENCE_S, ROOT, eventually
from prometheus_client import parser as prometheus_text
from prometheus_client.openmetrics import parser as openmetrics

RULES = ROOT / "packaging/prometheus/fairlead.rules.yml"
DASHBOARD = ROOT / "packaging/grafana/fairlead.json"
needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None or shutil.which("promtool") is None,
                                      reason="prometheus is not installed (apt-get install --no-install-recommends prometheus)")


def dashboard_queries():
    """What the panels ask, of all nodes and functions."""
    dashboard = json.loads(DASHBOARD.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [query.replace("$instance", ".*").replace("$function", ".*") for query in queries]


def names_in(text):
    return {re.sub("_bucket$", "", name) for name in re.findall(r"\bfairlead_[a-z_]+", text)}


def test_alerts_and_dashboard_ask_for_what_a_node_has(start_node):
    node = start_node()
    text = node.call("GET", "/metrics")[2].decode()
    asked = names_in(" ".join(dashboard_queries())) | names_in(re.sub(r"(?m)^ *(summary|description):.*$", "", RULES.read_text()))
    assert len(asked) > 20
    assert asked - set(re.findall(r"(?m)^# TYPE (fairlead_[a-z_]+) ", text)) == set()
    named = set(re.findall(r"alert: (\w+)", RULES.read_text()))
    page = (ROOT / "docs/how-to/monitoring.md").read_text()
    assert named == set(re.findall(r"^\| (Fairlead\w+) \|", page, re.MULTILINE)), "the page has them all"


@needs_prometheus
def test_each_alert_fires_on_what_it_is_for():
    for arguments in (["check", "rules", RULES], ["test", "rules", ROOT / "tests/packages/rules_test.yml"]):
        done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stdout + done.stderr


def test_who_asks_for_openmetrics_gets_it_with_exemplars_that_lead_to_requests(start_node):
    node = start_node()
    node.deploy("f", MISBEHAVE)
    request = node.invoke("f", "{}")[1]["x-amzn-RequestId"]
    status, headers, body = node.call("GET", "/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;q=0.5"})
    assert status == 200 and headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in openmetrics.text_string_to_metric_families(body.decode())}
    assert families["fairlead_invocations"].type == "counter" and families["fairlead_queue_depth"].type == "gauge"
    for name in ("fairlead_queue_time_seconds", "fairlead_cold_start_seconds"):
        exemplars = [sample.exemplar for sample in families[name].samples if sample.exemplar]
        assert [one.labels for one in exemplars] == [{"request_id": request}], name
        assert 0 <= exemplars[0].value < PATIENCE_S
    assert node.call("GET", f"/fairlead/v1/requests/{request}")[0] == 200
    for accept in ({}, {"Accept": "text/plain"}, {"Accept": "*/*"}):
        status, headers, body = node.call("GET", "/metrics", headers=accept)
        assert headers["Content-Type"].startswith("text/plain; version=0.0.4") and b" # {" not in body and b"# EOF" not in body
        names = {family.name for family in prometheus_text.text_string_to_metric_families(body.decode())}
        assert names >= {"fairlead_queue_time_seconds", "fairlead_cold_start_seconds", "fairlead_swap_seconds", "fairlead_first_byte_seconds"}


class Prometheus:
    def __init__(self, folder, targets, token):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        (folder / "token").write_text(token)
        (folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"}, "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "fairlead", "authorization": {"credentials_file": str(folder / "token")},
                                "static_configs": [{"targets": targets}]}]}))
        self.log = (folder / "prometheus.log").open("w")
        self.process = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                         f"--web.listen-address={self.address}"], stdout=self.log, stderr=self.log)

    def ask(self, path, **query):
        """Its answer's data, or None: it does not answer yet."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=PATIENCE_S) as answer:
                return json.load(answer)["data"]
        except OSError as error:
            if getattr(error, "code", 503) == 503:  # it starts
                return None
            raise AssertionError(f"{query}: {error.read().decode()}") from error

    def value(self, query):
        data = self.ask("query", query=query)
        return [float(one["value"][1]) for one in data["result"]] if data else []

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


@needs_prometheus
def test_a_prometheus_reads_the_node_with_a_readers_key(start_node, tmp_path):
    node = start_node(is_open=False)
    command = [BUILD / "bin/fairlead", "--endpoint", f"unix:{node.state}/operator.sock"]
    subprocess.run([*command, "deploy", "f", MISBEHAVE], check=True, capture_output=True, timeout=PATIENCE_S)
    subprocess.run([*command, "invoke", "f", "-d", '{"do": "echo"}'], check=True, capture_output=True, timeout=PATIENCE_S)
    key = subprocess.run([*command, "--json", "tenant", "add", "*", "--role", "reader"], check=True, capture_output=True, timeout=PATIENCE_S)
    prometheus = Prometheus(tmp_path, [f"{node.host}:{node.port}"], json.loads(key.stdout)["token"])
    try:
        eventually(lambda: prometheus.value('up{job="fairlead"}') == [1])
        eventually(lambda: prometheus.value('sum(fairlead_invocations_total{function="f"})') == [1])
        for query in dashboard_queries():
            assert prometheus.ask("query", query=query) is not None, query
        groups = eventually(lambda: (prometheus.ask("rules") or {"groups": []})["groups"])
        assert len(groups[0]["rules"]) == len(re.findall("alert:", RULES.read_text()))
        eventually(lambda: all(rule["health"] == "ok" for rule in prometheus.ask("rules")["groups"][0]["rules"]))
        assert prometheus.ask("alerts")["alerts"] == []
        node.stop()
        eventually(lambda: [one["labels"]["alertname"] for one in prometheus.ask("alerts")["alerts"]] == ["FairleadNodeDown"])
    finally:
        prometheus.close()
