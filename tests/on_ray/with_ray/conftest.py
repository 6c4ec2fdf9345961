"""A Ray cluster of this suite alone, in a folder whose path is short enough for sockets."""

import os
import pathlib
import tempfile
import time

import pytest

from harness.ray_cluster import RayCluster

ROOT = pathlib.Path(__file__).resolve().parents[3]


def until(condition, timeout=240.0):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)  # sleep: between two looks at a condition
    raise AssertionError(f"not true within {timeout} s")


@pytest.fixture(scope="session")
def cluster():
    """Three Ray nodes; `up` has been done, and this process is a driver."""
    import ray
    folder = tempfile.mkdtemp(prefix="fr-", dir="/tmp")
    cluster = RayCluster(folder, ROOT / "build")
    before = dict(os.environ)
    try:
        cluster.start()
        cluster.fairlead_ray("up", cluster.write_file())
        os.environ.update({name: value for name, value in cluster.environment.items() if name.startswith(("RAY_", "PYTHONPATH"))})
        ray.init(address=cluster.address, log_to_driver=False, namespace="a-user-of-it", _node_ip_address="127.0.0.1")
        yield cluster
    finally:
        ray.shutdown()
        os.environ.clear()
        os.environ.update(before)
        cluster.stop()
        import shutil
        shutil.rmtree(folder, ignore_errors=True)
