"""Deploys tests/functions/models, whose calls run Python in a sandbox beside the package fairlead."""

import json
import shutil

from conftest import ROOT


def deploy(node, folder, name, tenant=None, memory_mib=1024, files=(), **tags):
    """Of a folder of its own, which is made. Instances by `replicas`. Tags: gpu:lends-models-to as lends_models_to."""
    folder = folder / name
    if not folder.exists():
        shutil.copytree(ROOT / "tests/functions/models", folder)
        shutil.copytree(ROOT / "python/fairlead", folder / "fairlead", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "functions/runtime/python/fairlead_runtime.py", folder)
    for file in files:
        shutil.copy(file, folder)
    (folder / "who").write_text(name)  # so that each function is a version of its own
    tags = {"gpu:" + tag.replace("_", "-"): value for tag, value in tags.items()}
    if tenant:
        tags["gpu:tenant"] = tenant
    node.deploy(name, folder, Tags=tags, MemorySize=memory_mib, Timeout=120)
    return name


def run(node, name, code):
    """What the code put into `answer`; a failed call of it is an AssertionError with its trace."""
    answer = try_run(node, name, code)
    assert "error" not in answer, answer["trace"]
    return answer["answer"]


def try_run(node, name, code):
    status, headers, body = node.invoke(name, json.dumps({"run": code}))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)


def use(node):
    """Of the first GPU."""
    return node.status()["models"][0]
