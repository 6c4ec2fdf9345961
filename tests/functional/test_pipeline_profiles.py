"""What a pipeline's components take: nobody has to say it, calls show it, plans count on it, and it outlives the node."""

import json
import re
import subprocess

import pytest
from conftest import BUILD, eventually
from test_pipelines import (A100, call, chain, component, expected, folder, numbers, out, p1,  # noqa: F401
                            pipeline)

CHAIN = ("deblur", "sr", "depth")


def cli(node, *arguments, sample=None):
    return subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, *arguments], text=True, capture_output=True,
                          timeout=240, input=sample)


def times(node, name="chain"):
    """{(component, slice): (ms, runs)} as plans count on them"""
    _, _, body = node.call("GET", f"/fairlead/v1/functions/{name}/profile")
    return {(one["component"], one["slice"]): (one["ms"], one["runs"]) for one in json.loads(body)["components"]}


def test_a_pipeline_of_which_nobody_said_what_it_takes_runs_and_shows_it(p1, folder):  # noqa: F811
    node = p1("1g.10gb")
    unsaid = component("only", "input.image", 1, 4)
    del unsaid["profile"]["ms"]
    node.deploy("only", folder("only", [unsaid], "only.y", {"only": 2.0}))
    assert times(node, "only")[("only", "1g")] == (70, 0), "it is predicted"
    for i in range(6):
        assert out(node.invoke("only", call(numbers(i)))) == [2 * (value + 1) for value in numbers(i)]
    seen = times(node, "only")
    assert seen[("only", "1g")][1] == 5 and 0 < seen[("only", "1g")][0] < 70, seen
    assert seen[("only", "2g")][1] == 0 and seen[("only", "2g")][0] < 35, "corrected by what was seen on another type"


def test_profile_calls_a_pipeline_and_what_it_saw_outlives_the_node(p1, start_node, folder, tmp_path):  # noqa: F811
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder))
    assert times(node)[("sr", "1g")] == (30, 0)
    measured = cli(node, "profile", "chain", "--yes")
    assert measured.returncode == 0, measured.stderr
    assert "inputs that the node makes up, 30 times, one call after the other" in measured.stderr
    assert measured.stdout.startswith("chain on NVIDIA A100-SXM4-80GB, code "), "the model, not a slice of one"
    assert "29 calls, one after the other" in measured.stdout, "but the first, which may wait for slices"
    rows = {(row[0], row[1]): row[2:] for row in (line.split() for line in measured.stdout.splitlines()) if row and row[0] in CHAIN}
    held = {(name, stage["slice"].split(".")[0]) for stage in pipeline(node)["stages"] for name in stage["components"]}
    assert {row for row, rest in rows.items() if rest[-1] != "predicted"} == held, measured.stdout
    assert all(int(rows[row][-1]) >= 29 for row in held), measured.stdout
    assert all(float(rows[(name, "7g")][0]) < 4 for name in CHAIN), "30 ms were said, and they take next to nothing"

    planned = cli(node, "plan", "chain", "--free", "2g,1g", "--json", "--planner", "exact")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["rate_per_s"] > 60, "by what was said it is less than 1000 / 30"
    unknown = cli(node, "plan", "gone", "--free", "1g")
    assert unknown.returncode != 0 and "app3-large" in unknown.stderr and "gone" in unknown.stderr, unknown.stderr

    kept = tmp_path / "chain.json"
    assert cli(node, "profile", "export", "chain", str(kept)).returncode == 0
    before = times(node)
    node.stop()
    again = start_node("--sharing", "mig", gpu_environment=A100, keep_state=True)
    for key, (ms, runs) in times(again).items():
        assert before[key] == (pytest.approx(ms, rel=0.01), runs), key
    out(again.invoke("chain", call(numbers(0))))

    # The same components under another name are known already; a profile of other code is not taken.
    again.deploy("copy", chain(folder, name="copy"))
    assert times(again, "copy")[("sr", "7g")][0] == times(again)[("sr", "7g")][0]
    again.deploy("other", folder("other", [component("only", "input.image", 1, 4)], "only.y", {"only": 2.0}))
    refused = cli(again, "profile", "import", "other", str(kept))
    assert refused.returncode != 0 and "code_sha256" in refused.stderr
    assert cli(again, "profile", "import", "chain", str(kept)).returncode == 0


def test_an_experiment_on_a_pipeline_that_fails_says_why_and_changes_nothing(p1, folder):  # noqa: F811
    node = p1("2g.20gb,1g.10gb")
    node.deploy("chain", chain(folder))
    out(node.invoke("chain", call(numbers(0))))
    wrong = cli(node, "profile", "chain", "--yes", "--sample", "-", sample='{"inputs": {}}')
    assert wrong.returncode != 0 and "a call failed" in wrong.stderr and "image" in wrong.stderr, wrong.stderr
    grid = cli(node, "profile", "chain", "--yes", "--grid")
    assert grid.returncode != 0 and "no rectangles" in grid.stderr, grid.stderr
    assert node.call("POST", "/fairlead/v1/functions/chain/profile?grid=1", "{}")[0] == 400
    assert cli(node, "profile", "chain", "--yes", "--html", "page.html").returncode != 0
    assert json.loads(node.call("GET", "/fairlead/v1/functions/chain/profile")[2])["profiles"] == []
    good = cli(node, "profile", "chain", "--yes", "--sample", "-", sample=call(numbers(3)))
    assert good.returncode == 0, good.stderr
    assert re.search(r"^29 calls, one after the other: [\d.]+ requests/s", good.stdout, re.M)
    assert out(node.invoke("chain", call(numbers(1)))) == expected(numbers(1))
    eventually(lambda: pipeline(node)["in_flight"] == 0)
