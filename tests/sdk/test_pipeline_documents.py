"""One set of rules for pipeline.json: what the Python package lets through, the node reads, and the other way round."""

import json
import os
import re
import subprocess

import pytest
from fairlead.pipeline import PipelineError
from fairlead.pipeline.description import check
from pipeline_documents import at_bounds, documents
from sdk_paths import ROOT

FAIRLEAD = ROOT / "build" / "bin" / "fairlead"
SEED = int(os.environ.get("PIPELINE_SEED", "1"))


def python_says(document):
    try:
        check(document)
    except PipelineError as error:
        return str(error)
    return "accepted"


def node_says(folder, listed):
    for i, document in enumerate(listed):
        (folder / f"{i:05}.json").write_text(json.dumps(document))
    said = subprocess.run([FAIRLEAD, "plan", "--check", folder], capture_output=True, text=True, check=False)
    lines = [line.split(": ", 1)[1] for line in said.stdout.splitlines() if re.match(rf"{folder}/\d+\.json: ", line)]
    assert len(lines) == len(listed), said.stderr
    return lines


def test_each_bound_is_met_by_both_and_passed_by_neither(tmp_path):
    bounds = at_bounds()
    for (name, (document, is_good)), node in zip(bounds.items(), node_says(tmp_path, [d for d, _ in bounds.values()])):
        python = python_says(document)
        assert (python == "accepted", node == "accepted") == (is_good, is_good), f"{name}: Python: {python}; node: {node}"
        last = re.search(r"(\d+)$", name)
        if not is_good and last and not name.startswith(("name", "bytes", "weights")):
            bound = str(int(last[1]) - 1)
            assert bound in python and bound in node, f"{name}: Python: {python}; node: {node}"


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_random_documents_are_accepted_or_refused_alike(tmp_path, seed):
    listed, accepted = documents(seed, 500), 0
    for document, node in zip(listed, node_says(tmp_path, listed)):
        python = python_says(document)
        accepted += node == "accepted"
        assert (python == "accepted") == (node == "accepted"), \
            f"PIPELINE_SEED={seed}: Python: {python}; node: {node}; {json.dumps(document)}"
    assert 50 < accepted < 400, f"{accepted} of {len(listed)} were accepted: the test sees little"
