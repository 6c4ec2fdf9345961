"""Functions with an objective and nothing else: measured, placed, scaled through a burst, back to zero and from zero, and why."""

import json
import threading
import time

from conftest import MISBEHAVE, eventually
from test_profiles import CHARGE, cli

from bench import shares_cut

SLEEP = json.dumps({"do": "sleep", "seconds": 0.05})


def scaling(node, name):
    return json.loads(node.call("GET", f"/fairlead/v1/functions/{name}/scaling")[2])


def deploy(node, name, objective="400"):
    return cli(node, "deploy", name, MISBEHAVE, "--objective-ms", objective, "--sample", "-", "--yes", sample=SLEEP)


def imported(node, name, objective=400, execution_ms=50, saturation=100, code=MISBEHAVE, **tags):
    """Scaled without an experiment: by a profile that says how long a call takes on all of the SMs."""
    node.deploy(name, code, Tags={"gpu:objective-ms": str(objective), "gpu:autoscale": "true", **tags})
    record = json.loads(node.call("GET", f"/2015-03-31/functions/{name}")[2])["Configuration"]
    profile = {"function": name, "code_sha256": record["CodeSha256"], "device": node.status()["gpus"][0]["name"],
               "fixed_ms": 0, "work_ms": execution_ms * saturation, "saturation_percent": saturation, "error": 0.02, "ended": "", "measured_ms": 1,
               "trials": [{"width_percent": 100, "quota_percent": 97, "rate_per_s": 970 / execution_ms, "error": 0.02, "p50_ms": 0,
                           "p99_ms": 0, "utilisation": 0, "memory_bytes": 0, "requests": 9, "why": ""}]}
    status, _, body = node.call("PUT", f"/fairlead/v1/functions/{name}/profile", json.dumps(profile))
    assert status == 200, body


class Load:
    """Clients that call in a closed loop until stop()."""

    def __init__(self, node, name, clients, payload=SLEEP):
        self.statuses, self.is_over = [], False
        self.threads = [threading.Thread(target=self._call, args=(node, name, payload)) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def _call(self, node, name, payload):
        while not self.is_over:
            self.statuses.append(node.invoke(name, payload)[0])

    def stop(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def test_an_objective_and_a_sample_are_all_that_an_author_says(start_node):
    node = start_node()
    deployed = deploy(node, "f")
    assert deployed.returncode == 0, deployed.stderr
    assert "will be called again and again" in deployed.stderr and "trials" in deployed.stderr
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    described = cli(node, "describe", "f").stdout
    assert "Rectangle" in described and "Price" in described and "scaled" in described, described
    assert node.invoke("f", SLEEP)[0] == 200
    eventually(lambda: scaling(node, "f")["ready"] >= 1)
    explained = cli(node, "autoscale", "f", "--explain").stdout
    assert "requests/s expected" in explained and "an instance starts on GPU 1" in explained, explained
    calls = node.status()["counters"]["completed"]
    assert deploy(node, "f").returncode == 0
    assert node.status()["counters"]["completed"] <= calls + 5, "what is known is not measured again"


def test_of_a_kernel_task_an_author_says_an_objective_and_nothing_else(start_node, tmp_path):
    node = start_node(gpu_environment=CHARGE)
    folder = shares_cut.task(tmp_path / "task", 4, 5, 80)  # 20 ms a call
    deployed = cli(node, "deploy", "task", folder, "--objective-ms", "400")
    assert deployed.returncode == 0 and "nothing was measured: task runs best effort until it is deployed with --yes" in deployed.stderr
    sampled = cli(node, "deploy", "task", folder, "--objective-ms", "400", "--sample", "-", sample="{}")
    assert sampled.returncode == 0 and "nothing was measured" in sampled.stderr
    by_hand = cli(node, "deploy", "task", folder, "--objective-ms", "400", "--gpu-request", "20", "--yes")
    assert by_hand.returncode == 0, by_hand.stderr
    again = cli(node, "deploy", "task", folder, "--objective-ms", "500", "--yes")
    assert again.returncode == 0, "what its author says by hand stays: " + again.stderr
    assert cli(node, "autoscale", "task").returncode != 0
    assert node.status()["counters"]["arrived"] == 0, "nobody agreed"
    assert cli(node, "remove", "task").returncode == 0
    deployed = cli(node, "deploy", "task", folder, "--objective-ms", "400", "--yes")
    assert deployed.returncode == 0 and "with inputs that the node makes up" in deployed.stderr, deployed.stderr
    eventually(lambda: scaling(node, "task").get("state") == "scaled", 480)
    found = scaling(node, "task")
    assert found["width_percent"] == 100 and found["rate_per_s"] > 0, found
    assert node.invoke("task", "{}")[0] == 200
    eventually(lambda: scaling(node, "task")["ready"] >= 1)


def test_without_a_payload_it_is_said_and_nothing_is_measured(start_node):
    node = start_node()
    deployed = cli(node, "deploy", "f", MISBEHAVE, "--objective-ms", "69")
    assert deployed.returncode == 0 and "runs best effort" in deployed.stderr
    assert node.status()["counters"]["arrived"] == 0
    refused = cli(node, "autoscale", "f")
    assert refused.returncode != 0 and "is not scaled by the node" in refused.stderr
    status, _, body = node.call("POST", "/2015-03-31/functions", json.dumps({
        "FunctionName": "g", "Role": "", "Runtime": "provided.al2023", "Handler": "bootstrap",
        "Code": {"Folder": str(MISBEHAVE)}, "Tags": {"gpu:autoscale": "true"}}))
    assert status == 400 and b"gpu:objective-ms is missing" in body


def test_a_burst_up_over_two_gpus_to_zero_and_from_zero(start_node):
    node = start_node("--scale-to-zero", "3", gpu_environment={"SOFTGPU_DEVICES": "2"})
    imported(node, "f", objective=800, execution_ms=200)
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    assert scaling(node, "f")["seats"] == 0
    load = Load(node, "f", 6)
    eventually(lambda: scaling(node, "f")["seats"] >= 2)
    load.stop()
    assert set(load.statuses) == {200}
    explained = scaling(node, "f")
    assert any("starts on GPU 2" in did for note in explained["notes"] for did in note["did"]), explained
    eventually(lambda: scaling(node, "f")["seats"] == 0)
    eventually(lambda: not [i for i in node.status()["instances"] if i["entitled"]])
    assert node.invoke("f", SLEEP)[0] == 200, "from zero"
    eventually(lambda: scaling(node, "f")["seats"] >= 1)


def program(folder, text):
    folder.mkdir()
    (folder / "bootstrap").write_text(text)
    (folder / "bootstrap").chmod(0o755)
    return folder


def timed(node, name):
    """(seconds, how its instance was) of a call."""
    began = time.monotonic()
    status, headers, body = node.invoke(name, SLEEP)
    assert status == 200, body
    return time.monotonic() - began, {key.lower(): value for key, value in headers.items()}["x-gpu-start"]


def test_who_is_too_many_parks_and_the_next_burst_has_it_back_faster_than_a_start(start_node):
    node = start_node(gpu_environment={"SOFTGPU_DEVICES": "2"})
    imported(node, "f", objective=800, execution_ms=200)
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    cold, how = timed(node, "f")
    assert how == "cold"
    load = Load(node, "f", 6)
    eventually(lambda: scaling(node, "f")["seats"] == 2)
    load.stop()
    eventually(lambda: (s := scaling(node, "f"))["seats"] == 1 and s["parked"] >= 1)
    assert "parks" in cli(node, "autoscale", "f", "--explain").stdout
    seated = {i["gpu"] for i in node.status()["instances"] if i["entitled"]}
    assert len(seated) == 1, "the other's rectangle is free"
    node.deploy("beside", MISBEHAVE, Tags={"gpu:quota-request": "90"})
    node.call("DELETE", "/2015-03-31/functions/beside")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(timed(node, "f"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The quicker of the two: a machine that does other work may be late with either.
    assert all(how != "cold" for _, how in answers) and min(answers)[0] < cold, (cold, answers)
    load = Load(node, "f", 6)
    eventually(lambda: any("is unparked" in did for note in scaling(node, "f")["notes"] for did in note["did"]))
    load.stop()
    assert set(load.statuses) == {200}
    assert "is unparked" in cli(node, "autoscale", "f", "--explain").stdout


def test_a_program_that_never_starts_holds_no_rectangle(start_node, tmp_path):
    node = start_node()
    imported(node, "f", code=program(tmp_path / "code", "#!/bin/sh\nexit 7\n"))
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    node.invoke("f", SLEEP)
    state = eventually(lambda: (s := scaling(node, "f")).get("lacking") and s)
    assert "starts in a row failed" in state["lacking"], state
    eventually(lambda: scaling(node, "f")["seats"] == 0)
    assert "its instances do not start" in cli(node, "autoscale", "f", "--explain").stdout
    node.deploy("beside", MISBEHAVE, Tags={"gpu:quota-request": "90"})
    assert node.invoke("beside", SLEEP)[0] == 200


def test_without_its_profile_it_gives_its_seats_back(start_node, tmp_path):
    node = start_node()
    imported(node, "f")
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    assert node.invoke("f", SLEEP)[0] == 200
    eventually(lambda: scaling(node, "f")["seats"] == 1)
    other = program(tmp_path / "code", (MISBEHAVE / "bootstrap").read_text() + "\n# another version\n")
    status, _, body = node.call("PUT", "/2015-03-31/functions/f/code", json.dumps({"Folder": str(other)}))
    assert status == 200, body
    state = eventually(lambda: (s := scaling(node, "f"))["seats"] == 0 and s)
    assert state["state"] == "best effort" and "nothing was measured" in state["lacking"]
    assert any("given back" in did for note in state["notes"] for did in note["did"])


def test_what_no_device_has_room_for_is_rejected_with_the_reason(start_node):
    node = start_node()
    node.deploy("beside", MISBEHAVE, Tags={"gpu:quota-request": "90"})
    imported(node, "f", objective=400)
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    assert node.invoke("f", SLEEP)[0] == 200, "best effort"
    explained = eventually(lambda: [n for n in scaling(node, "f")["notes"] if any("more would start" in r for r in n["rejected"])])
    assert "97.0 % is the most" in " ".join(explained[0]["rejected"])
    assert scaling(node, "f")["seats"] == 0


def test_an_objective_that_no_size_meets_is_best_effort_and_said(start_node):
    node = start_node()
    imported(node, "f", objective=10)
    state = eventually(lambda: "objective is 10 ms" in (s := scaling(node, "f")).get("lacking", "") and s)
    assert state["state"] == "best effort" and "and no size" in state["lacking"]
    assert node.invoke("f", SLEEP)[0] == 200


def test_pinned_it_stays_as_it_is(start_node):
    node = start_node("--scale-to-zero", "1")
    imported(node, "f")
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    assert node.invoke("f", SLEEP)[0] == 200
    eventually(lambda: scaling(node, "f")["seats"] == 1)
    assert cli(node, "autoscale", "pin", "f").returncode == 0
    eventually(lambda: scaling(node, "f")["state"] == "pinned")
    ends = time.monotonic() + 3  # longer than it would stay
    while time.monotonic() < ends:
        assert scaling(node, "f")["seats"] == 1
        time.sleep(0.2)  # sleep: between two looks at what must not change
    assert cli(node, "autoscale", "unpin", "f").returncode == 0
    eventually(lambda: scaling(node, "f")["seats"] == 0)


def test_a_gpu_that_is_lost_in_the_middle_of_a_burst(start_node, softgpu):
    node = start_node(gpu_environment={"SOFTGPU_DEVICES": "2"})
    imported(node, "f", objective=800, execution_ms=200)
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    load = Load(node, "f", 6)
    eventually(lambda: {i["gpu"] for i in node.status()["instances"] if i["entitled"]} == {1, 2})
    softgpu("fault", "lost", "--gpu", "1")
    eventually(lambda: {i["gpu"] for i in node.status()["instances"] if i["entitled"]} == {1})
    load.stop()
    assert node.invoke("f", SLEEP)[0] == 200
    assert node.call("GET", "/healthz")[0] == 200


def test_a_node_that_is_killed_while_it_scales(start_node):
    node = start_node()
    imported(node, "f")
    eventually(lambda: scaling(node, "f").get("state") == "scaled")
    node.call("POST", "/2015-03-31/functions/f/invocations", SLEEP)
    eventually(lambda: scaling(node, "f")["seats"] >= 1)
    node.kill()
    again = start_node(keep_state=True)
    eventually(lambda: scaling(again, "f").get("state") == "scaled")
    assert scaling(again, "f")["quota_percent"] > 0, "the profile outlived it"
    assert again.invoke("f", SLEEP)[0] == 200
    eventually(lambda: scaling(again, "f")["ready"] >= 1)
