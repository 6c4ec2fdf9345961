"""A node that speaks TLS: certificates, who trusts them, certificates of clients, and renewal (docs/how-to/identity.md)."""

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys

import pytest

from conftest import BUILD, MISBEHAVE, PATIENCE_S, ROOT, eventually

sys.path.append(str(ROOT / "python"))
from fairlead import Client  # noqa: E402

boto3 = pytest.importorskip("boto3")
from botocore.config import Config  # noqa: E402


def certificate(folder):
    """Makes certificate.pem and key.pem in `folder`; what the command prints."""
    done = subprocess.run([BUILD / "bin/fairlead", "certificate", "--host", "localhost", "--host", "127.0.0.1", "--out", folder],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Secured:
    """A node with a certificate of its own, and what reaches it."""

    def __init__(self, start_node, folder, *options):
        self.folder = folder
        certificate(folder)
        self.ca = folder / "certificate.pem"
        self.node = start_node("--tls-certificate", self.ca, "--tls-key", folder / "key.pem", *options, is_open=False)
        self.endpoint = f"https://localhost:{self.node.port}"
        self.key = json.loads(self.cli("--json", "tenant", "add", "acme",
                                       endpoint=f"unix:{self.node.state}/operator.sock").stdout)

    def cli(self, *arguments, endpoint=None, fails=False, **environment):
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("FAIRLEAD_", "AWS_"))}
        done = subprocess.run([BUILD / "bin/fairlead", "--endpoint", endpoint or self.endpoint, *map(str, arguments)],
                              capture_output=True, text=True, timeout=PATIENCE_S,
                              env=inherited | {"HOME": str(self.node.home)} | environment)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done

    def status_with(self, context):
        connection = http.client.HTTPSConnection("localhost", self.node.port, timeout=PATIENCE_S, context=context)
        connection.request("GET", "/healthz")
        return connection.getresponse().status

    def gets_in(self, context):
        try:
            return self.status_with(context) == 200
        except (ConnectionError, ssl.SSLError):
            return False


@pytest.fixture
def secured(start_node, tmp_path):
    return Secured(start_node, tmp_path / "tls")


def test_everybody_who_trusts_the_certificate_gets_through(secured, monkeypatch):
    secured.cli("deploy", "misbehave", MISBEHAVE, FAIRLEAD_CA=str(secured.ca), FAIRLEAD_TOKEN=secured.key["token"])
    lambdas = boto3.client("lambda", endpoint_url=secured.endpoint, region_name="anywhere", verify=str(secured.ca),
                           aws_access_key_id=secured.key["id"], aws_secret_access_key=secured.key["secret"],
                           config=Config(retries={"max_attempts": 0}))
    payload = json.dumps({"do": "echo", "x": "y" * 2_000_000})
    answer = json.loads(lambdas.invoke(FunctionName="misbehave", Payload=payload)["Payload"].read())
    assert answer == json.loads(payload), "larger than a record of TLS, both ways"
    monkeypatch.setenv("FAIRLEAD_CA", str(secured.ca))
    with Client(secured.endpoint, token=secured.key["token"]) as client:
        for number in range(3):
            assert json.loads(client.invoke("misbehave", {"do": "echo", "x": number}))["x"] == number
    if shutil.which("curl"):
        done = subprocess.run(["curl", "-sS", "--cacert", secured.ca, f"{secured.endpoint}/healthz"], capture_output=True,
                              text=True, timeout=PATIENCE_S)
        assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr


def test_who_does_not_trust_it_sends_nothing(secured):
    refused = secured.cli("status", FAIRLEAD_TOKEN=secured.key["token"], fails=True)
    assert "FAIRLEAD_CA" in refused.stderr
    with pytest.raises(ssl.SSLCertVerificationError):
        secured.status_with(ssl.create_default_context())


def test_http_in_the_clear_is_told_what_is_spoken(secured):
    assert secured.node.call("GET", "/healthz")[0] == 400


def test_a_certificate_that_was_written_anew_is_taken_without_a_restart(secured, tmp_path):
    old = ssl.create_default_context(cafile=secured.ca)
    assert secured.status_with(old) == 200
    (secured.folder / "certificate.pem").write_text("being written")
    # A look at the files follows a handshake.
    eventually(lambda: secured.status_with(old) == 200 and "that was there before" in secured.node.log_path.read_text())
    assert secured.status_with(old) == 200, "a bad file leaves the old certificate in use"
    certificate(tmp_path / "fresh")
    for name in ("key.pem", "certificate.pem"):
        os.replace(tmp_path / "fresh" / name, secured.folder / name)
    fresh = ssl.create_default_context(cafile=secured.ca)
    eventually(lambda: secured.gets_in(fresh))


def test_only_who_shows_a_certificate_gets_in_where_that_is_asked(start_node, tmp_path):
    certificate(tmp_path / "client")
    secured = Secured(start_node, tmp_path / "tls", "--tls-client-ca", tmp_path / "client/certificate.pem")
    known = {"FAIRLEAD_CA": str(secured.ca), "FAIRLEAD_TOKEN": secured.key["token"]}
    assert secured.cli("list", fails=True, **known).stdout == ""
    shown = {"FAIRLEAD_CLIENT_CERTIFICATE": str(tmp_path / "client/certificate.pem"),
             "FAIRLEAD_CLIENT_KEY": str(tmp_path / "client/key.pem")}
    secured.cli("list", **known, **shown)
    assert secured.cli("list", FAIRLEAD_CA=known["FAIRLEAD_CA"], fails=True, **shown).stderr, "a key is needed beside it"


def test_who_opens_connections_and_says_nothing_keeps_nobody_out(secured):
    silent = [socket.create_connection(("127.0.0.1", secured.node.port)) for _ in range(600)]
    for connection in silent[::2]:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a hello
    context = ssl.create_default_context(cafile=secured.ca)
    eventually(lambda: secured.gets_in(context))  # a handshake that gets no place is closed; its client tries again
    for connection in silent:
        connection.close()


@pytest.mark.parametrize("options, words", [
    (["--tls-certificate", "/none"], "give both or neither"),
    (["--tls-client-ca", "/none"], "--tls-client-ca"),
])
def test_files_that_do_not_fit_together_are_refused(tmp_path, options, words):
    done = subprocess.run([BUILD / "bin/fairlead", "serve", "--softgpu", "--state", tmp_path / "state", *options],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_a_certificate_is_never_written_over_another(tmp_path):
    certificate(tmp_path)
    key = (tmp_path / "key.pem").read_bytes()
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600
    done = subprocess.run([BUILD / "bin/fairlead", "certificate", "--host", "a", "--out", tmp_path], capture_output=True, text=True)
    assert done.returncode != 0 and "is there already" in done.stderr
    assert (tmp_path / "key.pem").read_bytes() == key
