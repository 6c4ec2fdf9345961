"""What can be told of packages in seconds, on the machine itself: what they hold, the wheel's ten lines, the tarball's node."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest
from clean_root import ROOT, package

sys.path.insert(0, str(ROOT))
from harness.node import Node  # noqa: E402

MOST_BYTES = 25 << 20


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    """The folder of the unpacked tarball, somewhere."""
    folder = tmp_path_factory.mktemp("tarball")
    with tarfile.open(package("fairlead-*-linux-x86_64.tar.gz")) as archive:
        archive.extractall(folder)
    return next(folder.iterdir())


def clean_environment(**more):
    """Without anything that would lead to the source tree."""
    return {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")} | more


def test_tarball_is_small_and_says_what_it_is(tarball):
    assert package("fairlead-*-linux-x86_64.tar.gz").stat().st_size <= MOST_BYTES
    said = subprocess.run([tarball / "bin/fairlead", "--version"], text=True, capture_output=True, check=True).stdout
    assert re.fullmatch(r"fairlead [0-9.]+( \(.+\))?\n", said)
    for path in ("LICENSE", "lib/libfairlead-shim.so", "lib/softgpu/libcuda.so.1", "share/fairlead/kernels/gemm.ptx",
                 "share/fairlead/functions/template-python/bootstrap", "share/doc/fairlead/docs/how-to/install.md",
                 "share/man/man1/fairlead.1", "share/bash-completion/completions/fairlead"):
        assert (tarball / path).is_file(), path


def test_node_from_the_tarball_answers(tarball, tmp_path):
    with Node(tarball, tmp_path / "node") as node:
        node.deploy("fft", tarball / "share/fairlead/functions/fft")
        assert '"n":4096' in str(node.invoke("fft", '{"n": 4096}')).replace(" ", "")


def test_manual_is_one_that_man_shows_without_a_warning(tarball):
    if not os.path.exists("/usr/bin/man"):
        pytest.skip("man is not installed (apt-get install man-db)")
    said = subprocess.run(["man", "--warnings", "-l", tarball / "share/man/man1/fairlead.1"], text=True, capture_output=True,
                          env=clean_environment(MANWIDTH="100", MANPAGER="cat", LC_ALL="C.UTF-8"))
    assert said.returncode == 0 and not said.stderr, said.stderr
    assert "--eviction" in said.stdout and "fairlead object put" in said.stdout


TEN_LINES = """
import numpy
from fairlead import Client, ktask

t = ktask.Task()
x = t.input("x", "f32", (64, 1024))
w = t.constant("w", numpy.random.rand(1024, 1024).astype("f"))
t.output("y", t.relu(x @ w))
array = numpy.ones((64, 1024), "f")
here = t.run(x=array)["y"]
t.save("dir")
with Client(ADDRESS) as client:
    t.deploy(client, "product")
    there = client.call("product", x=array)["y"]
assert numpy.allclose(here, there) and here.shape == (64, 1024)
import fairlead, pathlib
print(pathlib.Path(fairlead.__file__).parent)
"""


def test_wheel_needs_no_source_tree(tarball, tmp_path):
    """pip installs it into an environment of its own, and the ten lines of docs/how-to/ktask-python.md work there."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", environment], check=True)
    subprocess.run([environment / "bin/pip", "install", "--quiet", "--no-deps", "--no-index", package("fairlead-*.whl")], check=True)
    numpy = os.path.dirname(os.path.dirname(__import__("numpy").__file__))  # of the tests' own environment
    with Node(tarball, tmp_path / "node") as node:
        said = subprocess.run([environment / "bin/python", "-c", TEN_LINES.replace("ADDRESS", repr(f"http://127.0.0.1:{node.port}"))],
                              cwd=tmp_path, text=True, capture_output=True,
                              env=clean_environment(PYTHONPATH=numpy, SOFTGPU_HOME=str(tmp_path / "gpu")))
    assert said.returncode == 0, said.stderr
    assert str(environment) in said.stdout
    assert (tmp_path / "dir/task.json").is_file()


def test_wheel_is_typed_and_whole():
    with zipfile.ZipFile(package("fairlead-*.whl")) as wheel:
        names = wheel.namelist()
    modules = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python/fairlead").rglob("*.py")}
    assert modules | {"fairlead/py.typed", "fairlead/native/softgpu/libcuda.so.1", "fairlead/native/kernels/gemm.ptx"} <= set(names)


def test_debug_symbols_are_those_of_the_programs(tarball, tmp_path):
    with tarfile.open(package("fairlead-*-linux-x86_64-debug.tar.gz")) as archive:
        archive.extractall(tmp_path)
    symbols = next(tmp_path.iterdir()) / "bin/fairlead.debug"

    def build_id(path):
        said = subprocess.run(["readelf", "-n", path], text=True, capture_output=True, check=True).stdout
        return re.search(r"Build ID: (\w+)", said).group(1)

    assert build_id(symbols) == build_id(tarball / "bin/fairlead")
    sections = subprocess.run(["readelf", "-SW", symbols], text=True, capture_output=True, check=True).stdout
    assert ".debug_line" in sections


def test_debian_packages_hold_no_file_twice():
    listed = {}
    for name in ("fairlead", "fairlead-softgpu"):
        said = subprocess.run(["dpkg-deb", "-c", package(f"{name}_*_amd64.deb")], text=True, capture_output=True, check=True).stdout
        for line in said.splitlines():
            path = line.split()[5]
            if not path.endswith("/"):
                assert listed.setdefault(path, name) == name, path
            assert line.split()[1] == "root/root", line
    assert "./usr/bin/fairlead" in listed and "./usr/bin/softgpu" in listed
