"""Tag gpu:samples: a deployer that has nothing but tags gets its function measured and scaled."""

import io
import json
import zipfile
import base64

from conftest import MISBEHAVE, eventually
from test_autoscale import scaling


def experiment(node, name):
    return json.loads(node.call("GET", f"/fairlead/v1/functions/{name}/profile")[2])["experiment"] or {}


def deploy(node, name, samples, **more):
    node.deploy(name, MISBEHAVE, Tags={"gpu:objective-ms": "400", "gpu:samples": samples}, **more)


def test_the_node_measures_by_itself_with_what_the_tag_says(start_node):
    node = start_node()
    deploy(node, "f", json.dumps([{"do": "sleep", "seconds": 0.01}, {"do": "sleep", "seconds": 0.02}]))
    eventually(lambda: experiment(node, "f").get("calls", 0) > 3)
    assert "it is being measured" in scaling(node, "f")["lacking"]
    assert node.call("DELETE", "/fairlead/v1/functions/f/profile")[0] == 200
    state = eventually(lambda: (s := scaling(node, "f")).get("lacking", "").startswith("measuring it failed") and s)
    assert "stopped by its caller" in state["lacking"] and "fairlead profile f" in state["lacking"]
    assert node.invoke("f", json.dumps({"do": "echo"}))[0] == 200, "best effort meanwhile"


def test_a_file_of_the_code_holds_them_and_one_that_fails_is_not_tried_again(start_node):
    node = start_node()
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as code:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        code.writestr(entry, (MISBEHAVE / "bootstrap").read_text())
        code.writestr("samples.json", json.dumps([{"do": "sleep", "seconds": 0.01}, {"do": "error"}]))
    body = json.dumps({"FunctionName": "f", "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap",
                       "Code": {"ZipFile": base64.b64encode(memory.getvalue()).decode()},
                       "Tags": {"gpu:objective-ms": "400", "gpu:samples": "samples.json"}})
    assert node.call("POST", "/2015-03-31/functions", body)[0] == 201
    state = eventually(lambda: (s := scaling(node, "f")).get("lacking", "").startswith("measuring it failed") and s)
    assert "a call of a trial failed" in state["lacking"], "the second payload is sent, too"
    calls = experiment(node, "f")["calls"]
    for _ in range(3):
        assert node.invoke("f", json.dumps({"do": "echo"}))[0] == 200
    assert experiment(node, "f")["calls"] == calls and not experiment(node, "f")["running"]


def test_what_is_no_sample_is_refused_or_said(start_node):
    node = start_node()
    for samples, why in (("../secrets", "tag gpu:samples"), ("[]", "1 to 64 payloads"), ("{}", "1 to 64 payloads")):
        status, _, body = node.call("POST", "/2015-03-31/functions", json.dumps({
            "FunctionName": "f", "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap", "Code": {"Folder": str(MISBEHAVE)},
            "Tags": {"gpu:objective-ms": "400", "gpu:samples": samples}}))
        assert status == 400 and why in body.decode(), body
    deploy(node, "f", "missing.json")
    state = eventually(lambda: "no file of that name" in (s := scaling(node, "f")).get("lacking", "") and s)
    assert state["state"] == "best effort"
