"""Nodes that speak TLS with each other (docs/how-to/cluster.md): each has a certificate of its own and believes a list of them."""

import http.client
import json
import ssl
import subprocess

import pytest

from conftest import BUILD, Node, eventually
from test_peers import Cluster, ok


def make_certificate(folder):
    subprocess.run([BUILD / "bin/fairlead", "certificate", "--host", "localhost", "--host", "127.0.0.1", "--out", folder], check=True,
                   capture_output=True)


class TlsNode(Node):
    """A node that is called by https, by a client that shows the node's own certificate."""

    def __init__(self, *arguments, folder, believed, **keywords):
        self.folder, self.believed = folder, believed
        super().__init__(*arguments, **keywords)

    def call(self, method, path, body=None, headers=None):
        context = ssl.create_default_context(cafile=self.believed)
        context.load_cert_chain(self.folder / "certificate.pem", self.folder / "key.pem")
        connection = http.client.HTTPSConnection("localhost", self.port, timeout=120, context=context)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()


class TlsCluster(Cluster):
    def __init__(self, folder, names):
        super().__init__(folder, names)
        self.believed = folder / "believed.pem"
        for name in names:
            make_certificate(folder / f"tls-{name}")
        self.believed.write_text("".join((folder / f"tls-{name}" / "certificate.pem").read_text() for name in names))

    def start(self, place, *options, own=None, peers=None):
        own = own or self.folder / f"tls-{place}"
        listed = [part for name in peers or self.ports for part in ("--peer", f"https://localhost:{self.ports[name]}")]
        self.nodes[place] = TlsNode(
            BUILD, self.folder / place, folder=own, believed=self.believed,
            options=["--node-name", place, "--cluster-key", self.key, "--listen", f"127.0.0.1:{self.ports[place]}",
                     "--advertise", f"https://localhost:{self.ports[place]}", "--tls-certificate", own / "certificate.pem",
                     "--tls-key", own / "key.pem", "--peer-ca", self.believed, *listed, *options])
        return self.nodes[place]


@pytest.fixture
def make_cluster(tmp_path):
    made = []

    def make(names):
        made.append(TlsCluster(tmp_path, names))
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop()


@pytest.mark.parametrize("mutual", [False, True], ids=["servers", "both sides"])
def test_calls_go_to_homes_by_tls(make_cluster, mutual):
    cluster = make_cluster(("a", "b"))
    for name in cluster.ports:
        cluster.start(name, *(["--tls-client-ca", cluster.believed] if mutual else []))
    cluster.until_all_see({"b": "alive"}, ["a"])
    cluster.until_all_see({"a": "alive"}, ["b"])
    cluster.nodes["a"].deploy("noop", cluster.nodes["a"].sample("noop"))
    big = json.dumps({"x": "y" * 1_000_000})
    for name in cluster.ports:
        eventually(lambda name=name: cluster.functions(name) == ["noop"])
        ok(cluster.nodes[name].invoke("noop", "{}"))
        ok(cluster.nodes[name].invoke("noop", big))  # many records of TLS
    home = cluster.home("noop", "a")
    assert cluster.ran(home, "noop") == 4, "all four ran at one of the two, so two came through the other"


def test_a_certificate_that_nobody_believes_is_no_peer(make_cluster):
    cluster = make_cluster(("a", "b"))
    make_certificate(cluster.folder / "stranger")
    stranger = cluster.folder / "stranger"
    cluster.start("a")
    # The cluster's key, the right name and the right address; another certificate.
    cluster.start("b", own=stranger)
    node = cluster.nodes["a"]
    eventually(lambda: "certificate" in node.log_path.read_text())
    assert all(one["state"] != "alive" for one in cluster.see("a")["members"] if one["name"] == "b")


def test_a_node_whose_certificate_is_not_asked_for_gets_no_further(make_cluster):
    cluster = make_cluster(("a", "b"))
    # a takes connections of those who show its own certificate, and looks for nobody. b shows b's.
    cluster.start("a", "--tls-client-ca", cluster.folder / "tls-a/certificate.pem", peers=["a"])
    cluster.start("b")
    eventually(lambda: f"https://localhost:{cluster.ports['a']}: " in cluster.nodes["b"].log_path.read_text())
    assert "b" not in cluster.states("a")
