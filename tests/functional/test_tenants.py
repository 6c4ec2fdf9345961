"""Tenants: who sends more gets no more, and what a function belongs to is checked and shown."""

import json
import threading
import time

import pytest

from conftest import MISBEHAVE

SLEEP = json.dumps({"do": "sleep", "seconds": 0.03})


def deploy(node, name, tenant):
    node.deploy(name, MISBEHAVE, Tags={"gpu:tenant": tenant})


def worst_latency_under_a_flood(start_node, *options):
    """Of three calls of one tenant, sent behind two hundred of another."""
    node = start_node("--policy", "fcfs", "--slots", "1", *options)
    for name in ("flood-1", "flood-2", "flood-3", "flood-4"):
        deploy(node, name, "flood")
    deploy(node, "light", "light")
    for name in ("light", "flood-1", "flood-2", "flood-3", "flood-4"):
        assert node.invoke(name, "{}")[0] == 200  # their starts are not what is asked
    for i in range(200):
        status, _, body = node.invoke(f"flood-{i % 4 + 1}", SLEEP, {"X-Amz-Invocation-Type": "Event"})
        assert status == 202, body
    latencies = []

    def call():
        begun = time.monotonic()
        assert node.invoke("light", SLEEP)[0] == 200
        latencies.append(time.monotonic() - begun)

    clients = [threading.Thread(target=call) for _ in range(3)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert len(latencies) == 3
    node.kill()
    return max(latencies)


def test_a_flood_of_one_tenant_does_not_hold_up_another(start_node):
    flat = worst_latency_under_a_flood(start_node, "--ignore-tenants")
    fair = worst_latency_under_a_flood(start_node)
    assert fair <= 0.1 * flat, f"{fair:.2f} s beside {flat:.2f} s without tenants"


def test_who_calls_without_a_pause_keeps_no_other_tenant_waiting(start_node):
    """By default. The other's calls take longer, so that they would be behind all of the flood's until it is 8 s ahead."""
    node = start_node("--slots", "1")
    deploy(node, "flood", "flood")
    deploy(node, "light", "light")
    is_over = threading.Event()

    def call_on():
        while not is_over.is_set():
            node.invoke("flood", json.dumps({"do": "sleep", "seconds": 0.002}))

    clients = [threading.Thread(target=call_on) for _ in range(6)]
    assert node.invoke("flood", "{}")[0] == node.invoke("light", SLEEP)[0] == 200
    for client in clients:
        client.start()
    waits = []
    for _ in range(5):
        status, headers, body = node.invoke("light", SLEEP)
        assert status == 200, body
        waits.append(float(headers["X-Gpu-Queue-Ms"]))
    is_over.set()
    for client in clients:
        client.join()
    assert max(waits) < 1000, waits


def test_status_shows_what_each_tenant_is_entitled_to_and_has(start_node):
    node = start_node("--tenant", "vision:2:3")
    deploy(node, "f", "vision")
    deploy(node, "g", "other")
    node.invoke("f", SLEEP)
    tenants = {tenant["name"]: tenant for tenant in node.status()["tenants"]}
    assert set(tenants) == {"default", "other", "vision"}
    assert (tenants["vision"]["weight"], tenants["vision"]["max_in_flight"]) == (2, 3)
    assert (tenants["other"]["weight"], tenants["other"]["max_in_flight"]) == (1, None)
    assert tenants["vision"]["functions"] == 1 and tenants["vision"]["service_seconds"] > 0
    node.stop()
    assert start_node().status()["tenants"] == []


def test_a_function_keeps_its_tenant(start_node):
    node = start_node("--tenant", "vision:2")
    deploy(node, "f", "vision")
    status, _, body = node.call("PUT", "/2015-03-31/functions/f/configuration", json.dumps({"Timeout": 30}))
    assert status == 200, body
    tags = "/2017-03-31/tags/arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Af"
    status, _, body = node.call("POST", tags, json.dumps({"Tags": {"gpu:tenant": "other"}}))
    assert status == 400 and "of tenant 'vision' for as long as it exists" in body.decode(), body
    assert node.call("DELETE", tags + "?tagKeys=gpu%3Atenant")[0] == 400
    assert {function["name"]: function["tenant"] for function in node.status()["functions"]} == {"f": "vision"}
    node.kill()
    node = start_node("--tenant", "vision:2", keep_state=True)
    assert node.status()["functions"][0]["tenant"] == "vision"


@pytest.mark.parametrize("tag, value, bound", [("gpu:tenant", "a b", "1 to 64 letters"), ("gpu:tenant", "", "1 to 64 letters"),
                                               ("gpu:objective-ms", "0", "between 1 and 3600000"),
                                               ("gpu:objective", "5", "gpu:objective-ms")])
def test_a_wrong_tag_is_refused_with_its_bound(shared_node, tag, value, bound):
    document = {"FunctionName": "wrong", "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap",
                "Code": {"Folder": str(MISBEHAVE)}, "Tags": {tag: value}}
    status, _, body = shared_node.call("POST", "/2015-03-31/functions", json.dumps(document))
    assert status == 400 and tag in body.decode() and bound in body.decode(), body
