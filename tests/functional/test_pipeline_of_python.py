"""What the Python package builds a node runs, and answers what the package's own runner does: invoked as a function, called as a model."""

import json
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

numpy = pytest.importorskip("numpy")
sys.path.insert(0, str(ROOT / "python"))

A100 = {"SOFTGPU_PROFILE": "a100-80"}
SHAPE = (2, 8)
PROGRAM = '''
import sys
import fairlead
from fairlead import ktask

def scale(factor):
    task = ktask.Task()
    task.output("y", task.scale(task.input("x", "f32", (2, 8)), factor))
    return task

class Three(fairlead.Pipeline):
    inputs = {"picture": ("f32", (2, 8))}
    def dag(self, picture):
        half = self.task(scale(0.5), picture, name="half")
        third = self.task(scale(3), half, name="third")
        return {"out": self.task(scale(4), third, name="fourth")}

Three().build(sys.argv[1], measure="1g", repeats=2)
'''


@pytest.fixture
def built(tmp_path):
    program = tmp_path / "three.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "three"
    done = subprocess.run([sys.executable, program, folder], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin", "SOFTGPU_HOME": str(tmp_path / "gpu")})
    assert done.returncode == 0, done.stderr
    return folder


def test_a_node_answers_what_the_package_does(start_node, softgpu, built):
    from fairlead.pipeline import load
    softgpu("mig", "enable", **A100)
    softgpu("mig", "create", "1g.10gb,1g.10gb,1g.10gb", **A100)
    node = start_node("--sharing", "mig", gpu_environment=A100, keep_state=True)
    deployed = subprocess.run([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "deploy", "three", built],
                              capture_output=True, text=True, check=False)
    assert deployed.returncode == 0, deployed.stderr
    picture = numpy.arange(16, dtype="f").reshape(SHAPE)
    status, headers, body = node.invoke("three", json.dumps({"inputs": {"picture": picture.tolist()}}))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    answer = numpy.array(json.loads(body)["outputs"]["out"]["values"], "f")
    assert (answer == 6 * picture).all()

    request = {"inputs": [{"name": "picture", "datatype": "FP32", "shape": list(SHAPE), "data": picture.ravel().tolist()}]}
    status, _, body = node.call("POST", "/v2/models/three/infer", json.dumps(request))
    assert status == 200, body
    assert json.loads(body)["outputs"][0]["data"] == (6 * picture).ravel().tolist()
    with load(built) as local:
        assert (numpy.asarray(local(picture=picture)["out"]) == answer).all()
