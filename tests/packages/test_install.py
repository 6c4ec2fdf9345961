"""Packages in a Debian 12 with nothing else: install, serve, deploy, invoke, upgrade, remove, purge (make package-check)."""

import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import time

import pytest
from clean_root import DIST, ROOT, CleanRoot, Unavailable, debootstrap, package

FIRST_ANSWER_S = 60  # from an archive to an answer, with the machine's part

# The node as fairlead.service runs it: user, rights, read-only folders. `serve` returns when the node answers.
SERVICE = r"""
for folder in /usr /etc; do mount --bind $folder $folder; mount -o remount,bind,ro $folder; done
as_service() { exec setpriv --reuid=fairlead --regid=fairlead --init-groups --no-new-privs env HOME=/var/lib/fairlead "$@"; }
wait_for() { for ((i = 0; i < 1200; i++)); do if "$@" >/dev/null 2>&1; then return 0; fi; sleep 0.05; done; cat /tmp/node.log; return 1; }  # sleep: a look
fl() { fairlead --endpoint unix:/var/lib/fairlead/operator.sock "$@"; }
# as_service is the process itself, not a shell around the node.
serve() { as_service fairlead serve --config /etc/fairlead/fairlead.toml >/tmp/node.log 2>&1 & node=$!; wait_for fl status; }
stop() { kill $node; wait $node; }
"""
SOFTWARE_GPU = "sed -i 's/^# softgpu = false$/softgpu = true/' /etc/fairlead/fairlead.toml; grep -q '^softgpu = true' /etc/fairlead/fairlead.toml"
FFT = "/usr/lib/fairlead/share/fairlead/functions/fft"


@pytest.fixture(scope="session")
def root_archive():
    if os.environ.get("FAIRLEAD_PACKAGES") != "all":
        pytest.skip("clean roots take minutes: make package-check")
    archive = ROOT / "build/debian-bookworm.tar"
    archive.parent.mkdir(exist_ok=True)
    if not archive.exists():
        try:
            debootstrap(archive)
        except Unavailable as reason:
            pytest.skip(str(reason))
    return archive


@pytest.fixture
def clean_root(root_archive, tmp_path):
    """clean_root(packages) -> CleanRoot"""
    made = []

    def make(packages):
        made.append(CleanRoot(root_archive, tmp_path / f"root-{len(made)}", packages))
        return made[-1]

    yield make
    for root in made:
        subprocess.run(["rm", "-rf", "--one-file-system", root.folder], check=True)


@pytest.fixture(scope="session")
def older(tmp_path_factory):
    """A folder with both Debian packages and with older ones: the same files under the version before all others."""
    folder = tmp_path_factory.mktemp("packages")
    for name in ("fairlead", "fairlead-softgpu"):
        new = package(f"{name}_*_amd64.deb")
        shutil.copy(new, folder / f"{name}.deb")
        subprocess.run(["dpkg-deb", "-R", new, folder / name], check=True)
        control = folder / name / "DEBIAN/control"
        control.write_text(re.sub(r"(?m)^(Version: |Depends:.*fairlead \(= )[0-9.]+", r"\g<1>0.0.1", control.read_text()))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", folder / name, folder / f"{name}-older.deb"], check=True,
                       stdout=subprocess.DEVNULL)
        shutil.rmtree(folder / name)
    return folder


def install(*names):
    files = " ".join(f"/tmp/packages/{name}.deb" for name in names)
    return f"apt-get install -y --no-install-recommends {files} >/tmp/apt.log 2>&1 || {{ cat /tmp/apt.log; exit 1; }}"


def test_tarball_answers_on_a_clean_machine(clean_root, record_property):
    archive = package("fairlead-*-linux-x86_64.tar.gz")
    root = clean_root(DIST)
    started = time.monotonic()
    said = root.run(f"""
        mkdir /opt/else && tar xzf /tmp/packages/{archive.name} -C /opt/else && cd /opt/else/*
        unpacked=$(date +%s.%N)
        bin/fairlead serve --softgpu --state /tmp/state --listen 127.0.0.1:0 --listen unix:/tmp/node.sock >/tmp/node.log 2>&1 &
        export FAIRLEAD_ENDPOINT=unix:/tmp/state/operator.sock
        for ((i = 0; i < 1200; i++)); do bin/fairlead status >/dev/null 2>&1 && break; sleep 0.05; done  # sleep: a look
        bin/fairlead deploy fft share/fairlead/functions/fft >&2
        bin/fairlead invoke fft -d '{{"n": 4096}}' && echo
        bin/fairlead ktask run share/fairlead/examples/ktask/vector-add -d '{{"inputs": {{"x": [1,2,3,4,5,6,7,8], "y": [8,7,6,5,4,3,2,1]}}}}'
        echo; bin/fairlead --version; echo "own part $unpacked $(date +%s.%N)"
        kill %1; wait %1""")
    took = time.monotonic() - started
    own = re.search(r"own part ([0-9.]+) ([0-9.]+)", said)
    print(f"\ntarball to first answers: {took:.1f} s, from its unpacking on {float(own.group(2)) - float(own.group(1)):.1f} s\n{said}")
    assert took < FIRST_ANSWER_S
    assert '"n":4096' in said.replace(" ", "")
    assert "[9" in said  # 1 + 8


def test_debian_packages_install_serve_and_leave_nothing(clean_root, older):
    root = clean_root(older)
    before = root.listing()
    said = root.run(install("fairlead", "fairlead-softgpu") + f"; {SOFTWARE_GPU}\n" + SERVICE + f"""
        serve; fl deploy fft {FFT}; fl invoke fft -d '{{"n": 4096}}'; echo
        fl doctor 2>&1 || true
        stop; ls -ld /var/lib/fairlead; fairlead --version""")
    assert '"n":4096' in said.replace(" ", ""), said
    assert re.search(r"drwx------ .* fairlead fairlead .*/var/lib/fairlead", said), said
    root.run("apt-get remove -y fairlead fairlead-softgpu >/dev/null; test -e /var/lib/fairlead/state.db; test -e /etc/fairlead/fairlead.toml")
    root.run("apt-get purge -y fairlead fairlead-softgpu >/dev/null")
    left, missing = root.listing() - before, before - root.listing()
    assert not left and not missing, f"left: {sorted(left)}\nmissing: {sorted(missing)}"


def test_upgrade_keeps_state_and_settings(clean_root, older):
    root = clean_root(older)
    said = root.run(install("fairlead-older", "fairlead-softgpu-older") + f"; {SOFTWARE_GPU}\n" + SERVICE + f"""
        dpkg-query -W fairlead; serve; fl deploy fft {FFT} --memory 300; fl invoke fft -d '{{"n": 1024}}'; stop""")
    assert "0.0.1" in said
    root.run(install("fairlead", "fairlead-softgpu"))
    said = root.run(SERVICE + "dpkg-query -W fairlead; serve; fl list; fl describe fft --json; fl invoke fft -d '{\"n\": 2048}'; stop")
    assert "0.0.1" not in said
    assert '"n":2048' in said.replace(" ", "") and "300" in said, said


def test_state_of_the_first_schema_is_opened(clean_root, older):
    root = clean_root(older)
    root.run(install("fairlead", "fairlead-softgpu") + f"; {SOFTWARE_GPU}")
    state = root.folder / "var/lib/fairlead"
    database = sqlite3.connect(state / "state.db")
    database.executescript(pathlib.Path(__file__).with_name("state-v1.sql").read_text())
    database.close()
    said = root.run("chown -R fairlead:fairlead /var/lib/fairlead\n" + SERVICE + "serve; fl list --json; stop")
    assert "from-version-1" in said, said
    assert sqlite3.connect(state / "state.db").execute("PRAGMA user_version").fetchone()[0] > 1


def test_purge_while_the_user_has_files_of_his_own_settings(clean_root, older):
    """What an operator put beside the settings goes too; what is elsewhere stays."""
    root = clean_root(older)
    root.run(install("fairlead") + "; touch /etc/fairlead/own.pem /srv/mine; apt-get purge -y fairlead >/dev/null")
    assert not (root.folder / "etc/fairlead").exists() and (root.folder / "srv/mine").exists()


def test_lintian_finds_no_error():
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed (apt-get install lintian)")
    for name in ("fairlead", "fairlead-softgpu"):
        said = subprocess.run(["lintian", "--fail-on", "error", "--tag-display-limit", "0", package(f"{name}_*_amd64.deb")], text=True,
                              capture_output=True)
        print(said.stdout)
        assert said.returncode == 0, said.stdout + said.stderr


def test_unit_is_one_that_systemd_takes(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed (apt-get install systemd)")
    unit = (ROOT / "packaging/fairlead.service").read_text()
    copy = tmp_path / "fairlead.service"
    copy.write_text(unit.replace("/usr/bin/fairlead", "/bin/true").replace("man:fairlead(1) ", ""))
    said = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], text=True, capture_output=True)
    assert said.returncode == 0 and "fairlead.service" not in said.stderr, said.stderr


def test_settings_of_the_service_are_those_of_the_program(tmp_path):
    """/etc/fairlead/fairlead.toml is read by the program of the same package, and sets the state folder alone."""
    subprocess.run(["dpkg-deb", "-x", package("fairlead_*_amd64.deb"), tmp_path], check=True)
    said = subprocess.run([tmp_path / "usr/lib/fairlead/bin/fairlead", "--json", "serve", "--config", tmp_path / "etc/fairlead/fairlead.toml",
                           "--print-config"], text=True, capture_output=True, check=True).stdout
    given = {name: one["value"] for name, one in json.loads(said)["serve"].items() if one["origin"] != "default"}
    assert given == {"state": "/var/lib/fairlead"}
