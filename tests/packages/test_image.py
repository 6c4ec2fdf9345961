"""The OCI image of a node (make image): unpacked as a runtime would, its entry point serves and a function answers."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shlex
import subprocess
import tarfile
import urllib.request

import pytest
from clean_root import DIST, ROOT, CleanRoot, package

FFT = "/usr/lib/fairlead/share/fairlead/functions/fft"


def load_tool():
    spec = importlib.util.spec_from_loader("image", importlib.machinery.SourceFileLoader("image", str(ROOT / "tools/image")))
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


tool = load_tool()


def layout_of(archive, folder):
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def blob(layout, digest):
    return json.loads((layout / "blobs" / digest.replace(":", "/")).read_text())


def configuration(layout):
    """(the image's tag, its configuration)"""
    manifest = json.loads((layout / "index.json").read_text())["manifests"][0]
    tag = manifest["annotations"]["org.opencontainers.image.ref.name"]
    return tag, blob(layout, blob(layout, manifest["digest"])["config"]["digest"])["config"]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The layout of an image made of the packages in dist/."""
    if os.environ.get("FAIRLEAD_PACKAGES") != "all":
        pytest.skip("a Debian root takes minutes: make package-check")
    package("fairlead_*_amd64.deb")
    try:
        urllib.request.urlopen(f"{tool.MIRROR}/dists/{tool.SUITE}/InRelease", timeout=20).close()
    except OSError as reason:
        pytest.skip(f"{tool.MIRROR} cannot be reached: {reason}")
    try:
        archive = tool.make_image(DIST, tmp_path_factory.mktemp("out"), ["fairlead", "fairlead-softgpu"])
    except tool.Unavailable as reason:
        pytest.skip(str(reason))
    return layout_of(archive, tmp_path_factory.mktemp("layout"))


class UnpackedRoot(CleanRoot):
    """What a runtime would start: the root that umoci makes of the image."""

    def __init__(self, layout, tag, folder):
        subprocess.run(["umoci", "unpack", "--image", f"{layout}:{tag}", folder], check=True, capture_output=True)
        self.folder, self.packages = folder / "rootfs", layout


def test_its_entry_point_serves_and_a_function_answers(image, tmp_path):
    tag, config = configuration(image)
    root = UnpackedRoot(image, tag, tmp_path / "bundle")
    assert config["Entrypoint"] == ["/usr/bin/fairlead", "serve"] and list(config["Volumes"]) == ["/var/lib/fairlead"]
    assert root.run("fairlead --version").startswith("fairlead ")
    serve = shlex.join([*config["Entrypoint"], "--softgpu", "--state", "/var/lib/fairlead"])
    said = root.run(f"""
        {serve} >/tmp/node.log 2>&1 & node=$!
        fl() {{ fairlead --endpoint unix:/var/lib/fairlead/operator.sock "$@"; }}
        for ((i = 0; i < 1200; i++)); do if fl status >/dev/null 2>&1; then break; fi; sleep 0.05; done  # sleep: a look
        fl deploy fft {FFT} || {{ cat /tmp/node.log; exit 1; }}
        fl invoke fft -d '{{"n": 4096}}'
        kill $node; wait $node""")
    assert '"n": 4096' in said or '"n":4096' in said, said


def test_the_entry_points_own_settings_are_there(image, tmp_path):
    tag, config = configuration(image)
    root = UnpackedRoot(image, tag, tmp_path / "bundle")
    said = root.run(shlex.join([*config["Entrypoint"], *config["Cmd"], "--print-config"]))
    assert 'state = "/var/lib/fairlead"' in said, said
    for left in ("var/lib/apt/lists", "var/cache/apt", "tmp"):
        assert not list((root.folder / left).iterdir()), f"{left} of the image is not empty"


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    with pytest.raises(tool.Unavailable, match="run `make package` first"):
        tool.newest(tmp_path, "fairlead")
    monkeypatch.setattr(tool.os, "geteuid", lambda: 1000)
    with pytest.raises(tool.Unavailable, match="only root"):
        tool.find_tool()
    monkeypatch.setattr(tool.os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(tool.Unavailable, match="umoci is not installed"):
        tool.find_tool()
    (tmp_path / "umoci").touch(0o755)
    with pytest.raises(tool.Unavailable, match="neither mmdebstrap nor debootstrap"):
        tool.find_tool()


def test_of_two_packages_the_newer_one_is_taken(tmp_path):
    for number, name in enumerate(("fairlead_2.0_amd64.deb", "fairlead_1.0_amd64.deb", "fairlead-softgpu_3.0_amd64.deb")):
        pathlib.Path(tmp_path / name).touch()
        os.utime(tmp_path / name, (number, number))
    assert tool.newest(tmp_path, "fairlead").name == "fairlead_1.0_amd64.deb"
