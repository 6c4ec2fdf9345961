"""fairlead why: where the time of a request went, who was ahead of it, and what of that a tenant is told."""

import json
import subprocess
import threading

import pytest
from conftest import BUILD, MISBEHAVE, Gate, eventually


def trace(node, request, **headers):
    status, _, body = node.call("GET", f"/fairlead/v1/requests/{request}", headers=headers)
    return status, json.loads(body)


def id_of(answer):
    return answer[1]["x-amzn-RequestId"]


def test_the_times_of_a_request_add_up(start_node):
    node = start_node()
    node.deploy("f", MISBEHAVE)
    request = id_of(node.invoke("f", json.dumps({"do": "sleep", "seconds": 0.3})))
    status, said = trace(node, request)
    times = said["times"]
    assert (status, said["function"], said["version"], said["outcome"], said["start"]) == (200, "f", "$LATEST", "success", "cold")
    assert times["run_seconds"] >= 0.3 and times["instance_start_seconds"] > 0
    assert abs(times["total_seconds"] - times["queue_seconds"] - times["start_seconds"] - times["run_seconds"]) < 1e-6
    assert said["ahead"] == [] and said["ahead_is_whole"]
    warm = id_of(node.invoke("f", "{}"))
    assert trace(node, warm)[1]["start"] == "device-warm" and trace(node, warm)[1]["times"]["instance_start_seconds"] == 0
    failed = id_of(node.invoke("f", json.dumps({"do": "crash"})))
    assert trace(node, failed)[1]["outcome"] == "crashed"
    assert trace(node, "nobody")[0] == 404 and trace(node, "a%2f..%2fb")[0] == 404 and trace(node, "x" * 5000)[0] == 404


def test_who_ran_while_it_waited_is_named(start_node):
    node = start_node("--slots", "1", "--policy", "fcfs")
    for name in ("f", "g"):
        node.deploy(name, MISBEHAVE)
        node.invoke(name, "{}")
    requests = []
    with Gate(node) as gate:
        running = threading.Thread(target=node.invoke, args=("g", json.dumps(gate.event | {"say": True})))
        running.start()
        eventually(lambda: b"at the gate" in node.call("GET", "/fairlead/v1/functions/g/log")[2])  # it was delivered
        before = threading.Thread(target=node.invoke, args=("g", "{}"))
        before.start()
        eventually(lambda: node.status()["queued"] == 1)
        waits = threading.Thread(target=lambda: requests.append(id_of(node.invoke("f", "{}"))))
        waits.start()
        eventually(lambda: node.status()["queued"] == 2)
    for thread in (running, before, waits):
        thread.join()
    said = trace(node, requests[0])[1]
    assert [(one["function"], one["ran"], one["chosen"]) for one in said["ahead"]] == [("g", 1, 1)]
    shown = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "why", requests[0]], capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0 and "RAN WHILE IT WAITED" in shown.stdout and "g" in shown.stdout
    assert json.loads(subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "--json", "why", requests[0]], capture_output=True,
                                     check=True, timeout=120).stdout) == said
    missing = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "why", "nobody"], capture_output=True, text=True, timeout=120)
    assert missing.returncode == 3 and "2000 of a tenant are kept" in missing.stderr


@pytest.fixture
def two_tenants(start_node):
    node = start_node("--slots", "1", "--policy", "fcfs", "--tenant", "a:1", "--tenant", "b:1", is_open=False)

    def fairlead(*arguments):
        return json.loads(subprocess.run([BUILD / "bin/fairlead", "--endpoint", f"unix:{node.state}/operator.sock", "--json", *arguments],
                                         check=True, capture_output=True, text=True, timeout=120).stdout)

    tokens = {tenant: fairlead("tenant", "add", tenant, "--role", "deployer")["token"] for tenant in "ab"}
    return node, {tenant: {"Authorization": f"Bearer {token}"} for tenant, token in tokens.items()}, fairlead


def test_a_tenant_sees_his_own_requests_and_no_names_of_others(two_tenants):
    node, keys, fairlead = two_tenants
    for tenant, name in (("a", "mine"), ("b", "others-secret")):
        document = {"FunctionName": name, "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap",
                    "Code": {"Folder": str(MISBEHAVE)}, "Tags": {"gpu:tenant": tenant}}
        socket = ["curl", "-sS", "--unix-socket", f"{node.state}/operator.sock", "-d", json.dumps(document), "http://x/2015-03-31/functions"]
        subprocess.run(socket, check=True, capture_output=True, timeout=120)
    for tenant, name in (("a", "mine"), ("b", "others-secret")):
        assert node.invoke(name, "{}", keys[tenant])[0] == 200
    requests = {}
    with Gate(node) as gate:
        running = threading.Thread(target=lambda: requests.update(b=id_of(node.invoke("others-secret", gate.payload, keys["b"]))))
        running.start()
        eventually(lambda: any(tenant["in_flight"] for tenant in fairlead("status")["tenants"] if tenant["name"] == "b"))
        waits = threading.Thread(target=lambda: requests.update(a=id_of(node.invoke("mine", "{}", keys["a"]))))
        waits.start()
        eventually(lambda: any(tenant["queued"] for tenant in fairlead("status")["tenants"] if tenant["name"] == "a"))
    running.join()
    waits.join()
    status, said = trace(node, requests["a"], **keys["a"])
    assert status == 200 and len(said["ahead"]) == 1 and "function" not in said["ahead"][0] and said["ahead"][0]["ran"] == 1
    assert "others-secret" not in json.dumps(said) and '"b"' not in json.dumps(said)
    of_another, of_nobody = trace(node, requests["b"], **keys["a"]), trace(node, "nobody", **keys["a"])
    assert of_another == of_nobody and of_another[0] == 404
    assert trace(node, requests["b"])[0] == 401
    assert fairlead("why", requests["a"])["ahead"][0]["function"] == "others-secret", "the operator sees all"
