"""Profiles as their users meet them: measured on the live node, kept, carried to another node; and functions that make it fail."""

import json
import re
import subprocess

import pytest
from conftest import BUILD, MISBEHAVE, eventually

from bench import shares_cut

CALL = json.dumps({"do": "sleep", "seconds": 0.02})


def cli(node, *arguments, sample=None, timeout=240):
    return subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, *arguments], text=True, capture_output=True,
                          timeout=timeout, input=sample)


def profile(node, name, payload, *more):
    return cli(node, "profile", name, "--sample", "-", "--yes", "--trial-seconds", "0.5", *more, sample=payload)


def is_clean(node):
    """Nothing of a trial is left: no function, no instance, no seat."""
    status = node.status()
    return not any("#" in f["name"] for f in status["functions"]) and not any("#" in i["function"] for i in status["instances"])


@pytest.mark.parametrize("event, why", [
    ({"do": "crash"}, "a call of a trial failed"),
    ({"do": "error"}, "a call of a trial failed"),
    ({"do": "hang"}, "a call of a trial failed"),
])
def test_who_fails_ends_the_experiment_and_leaves_nothing(start_node, event, why):
    node = start_node()
    node.deploy("f", MISBEHAVE, Timeout=3)
    ended = profile(node, "f", json.dumps(event))
    assert ended.returncode != 0 and why in ended.stderr, ended.stderr
    eventually(lambda: is_clean(node))
    assert node.invoke("f", json.dumps({"do": "echo"}))[0] == 200, "the node serves on"
    assert cli(node, "profile", "show", "f").returncode != 0, "nothing was kept"


def test_who_needs_more_memory_than_it_says_ends_the_experiment(start_node):
    node = start_node()
    node.deploy("f", node.sample("needle"), Tags={"gpu:memory-mib": "1"})
    ended = profile(node, "f", "{}")
    assert ended.returncode != 0 and "a call of a trial failed" in ended.stderr, ended.stderr
    eventually(lambda: is_clean(node))


def test_a_profile_is_kept_over_a_restart_and_goes_to_another_node(start_node, tmp_path):
    node = start_node()
    node.deploy("f", MISBEHAVE)
    measured = profile(node, "f", CALL, "--html", str(tmp_path / "page.html"))
    assert measured.returncode == 0, measured.stderr
    assert "will be called again and again" in measured.stderr
    trials = int(re.search(r"(\d+) trials, \d+ calls", measured.stderr).group(1))
    assert trials < 35, "fewer than the grid, however noisy the machine is"
    assert "<circle" in (tmp_path / "page.html").read_text()
    assert "not tried beside a copy of itself: the node does not run MPS" in measured.stdout, measured.stdout
    assert is_clean(node)
    written = cli(node, "profile", "export", "f", str(tmp_path / "f.json"))
    assert written.returncode == 0, written.stderr
    exported = json.loads((tmp_path / "f.json").read_text())
    assert exported["trials"][0]["quota_percent"] == 97 and exported["trials"][0]["rate_per_s"] > 0

    node.kill()
    again = start_node(keep_state=True)
    assert "f on" in cli(again, "profile", "show", "f").stdout
    again.deploy("other", BUILD / "functions/noop")
    refused = cli(again, "profile", "import", "other", str(tmp_path / "f.json"))
    assert refused.returncode != 0 and "a profile is of one version of the code" in refused.stderr
    again.deploy("copy", MISBEHAVE)
    assert cli(again, "profile", "import", "copy", str(tmp_path / "f.json")).returncode == 0
    assert "imported" in cli(again, "profile", "show", "copy").stdout
    status, _, body = again.call("PUT", "/fairlead/v1/functions/copy/profile", b'{"function": 1}')
    assert status == 400 and b"function must be a string" in body
    again.call("DELETE", "/2015-03-31/functions/copy")
    assert cli(again, "profile", "show", "copy").returncode != 0


CHARGE = {"SOFTGPU_MODE": "charge"}


def test_a_kernel_task_is_measured_without_a_sample(start_node, tmp_path):
    node = start_node(gpu_environment=CHARGE)
    node.deploy("task", shares_cut.task(tmp_path / "task", 4, 5, 80))  # 20 ms a call
    measured = cli(node, "--json", "profile", "task", "--yes", "--grid", "--trial-seconds", "2")  # a limit is of each second
    assert measured.returncode == 0, measured.stderr
    trials = json.loads(measured.stdout)["trials"]
    rates = {trial["quota_percent"]: trial["rate_per_s"] for trial in trials}
    assert all(trial["width_percent"] == 100 for trial in trials) and len(rates) >= 2, trials
    assert 0 < min(rates.values()) and max(rates.values()) < 55, "it took no less than what its kernels take"
    assert rates[min(rates)] < 0.9 * rates[max(rates)], "less of the time is less work"
    eventually(lambda: is_clean(node))
    node.deploy("program", MISBEHAVE)
    refused = cli(node, "profile", "program", "--yes")
    assert refused.returncode != 0 and "--sample is missing" in refused.stderr


def test_a_node_that_ends_during_an_experiment_leaves_nothing(start_node):
    node = start_node()
    node.deploy("f", MISBEHAVE)
    assert node.call("POST", "/fairlead/v1/functions/f/profile?trial-seconds=60", CALL)[0] == 202
    eventually(lambda: any("#" in i["function"] for i in node.status()["instances"]))
    status, _, body = node.call("POST", "/fairlead/v1/functions/f/profile", CALL)
    assert status == 409 and b"there is one at a time" in body
    node.kill()
    again = start_node(keep_state=True)
    assert is_clean(again)
    assert [f["name"] for f in again.status()["functions"]] == ["f"]


def test_an_experiment_that_is_stopped_and_one_whose_function_goes(start_node):
    node = start_node()
    node.deploy("f", MISBEHAVE)
    assert node.call("POST", "/fairlead/v1/functions/f/profile?trial-seconds=60", CALL)[0] == 202
    assert cli(node, "profile", "stop", "f").returncode == 0
    state = json.loads(node.call("GET", "/fairlead/v1/functions/f/profile")[2])
    assert "stopped" in state["experiment"]["failed"]
    eventually(lambda: is_clean(node))
    assert node.call("POST", "/fairlead/v1/functions/f/profile?trial-seconds=0.2", CALL)[0] == 202
    assert node.call("DELETE", "/2015-03-31/functions/f")[0] == 204
    eventually(lambda: is_clean(node))


def test_a_busy_device_gives_what_it_has(start_node):
    node = start_node()
    node.deploy("beside", MISBEHAVE, Tags={"gpu:quota-request": "50"})
    node.deploy("f", MISBEHAVE)
    measured = profile(node, "f", CALL)
    assert measured.returncode == 0, measured.stderr
    trials = json.loads(node.call("GET", "/fairlead/v1/functions/f/profile")[2])["profiles"][0]["trials"]
    assert max(trial["quota_percent"] for trial in trials) == 40


def test_under_mps_the_best_rectangle_is_tried_beside_a_copy(start_node):
    node = start_node("--sharing", "mps")
    node.deploy("f", MISBEHAVE)

    def gpus_of_trials():
        return {i["function"]: i["gpu"] for i in node.status()["instances"] if "#" in i["function"]}
    path = "/fairlead/v1/functions/f/profile"
    assert node.call("POST", f"{path}?trial-seconds=0.5", CALL)[0] == 202
    eventually(lambda: gpus_of_trials() == {"f#trial": 1, "f#beside": 1})
    assert cli(node, "profile", "stop", "f").returncode == 0
    eventually(lambda: is_clean(node))
    assert json.loads(node.call("GET", path)[2])["profiles"] == [], "stopped beside the copy, nothing is kept"

    for _ in range(3):  # on a machine so busy that one of the two stood still, there is no comparison, and the profile says so
        measured = profile(node, "f", CALL)
        assert measured.returncode == 0, measured.stderr
        assert is_clean(node)
        kept = json.loads(node.call("GET", path)[2])["profiles"][0]
        if "beside" in kept:
            break
        assert "did not answer" in kept["alone"] and "not tried beside a copy" in measured.stdout, kept
    beside = kept["beside"]
    assert beside["width_percent"] <= 48 and beside["requests"] >= 3
    alone = [t for t in kept["trials"] if t["width_percent"] == beside["width_percent"] and t["quota_percent"] == beside["quota_percent"]]
    assert abs(beside["slowdown"] * beside["rate_per_s"] / alone[-1]["rate_per_s"] - 1) < 1e-6
    assert "times as slow as alone" in measured.stdout, measured.stdout
