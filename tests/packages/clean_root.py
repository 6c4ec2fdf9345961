"""A Debian 12 with nothing but what debootstrap's minbase puts there, in namespaces of its own: what is done inside leaves the
machine as it was, and every process ends with the command that started it. Needs root, and Debian's mirror once."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
MIRROR = os.environ.get("FAIRLEAD_DEBIAN_MIRROR", "http://deb.debian.org/debian")
# What the packages depend on beyond minbase. In the root from the start, so that what a package leaves can be told from it.
DEPENDENCIES = ["systemd-standalone-sysusers"]
PATIENCE_S = 600

# A root that was entered by chroot could make no user namespaces, hence no sandboxes: it must be the root of its mount namespace.
ENTER = r"""
set -e
# Loopback up: there may be no ip(8).
python3 -c 'import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x41))'
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs run
mkdir tmp/packages tmp/old
mount --bind "$2" tmp/packages
pivot_root . tmp/old
cd /
umount -l /tmp/old
rmdir /tmp/old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive /bin/bash -euo pipefail -c "$3"
"""


def package(pattern):
    """The package of dist/ with such a name, or a skip: `make package` makes them."""
    found = sorted(DIST.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        pytest.skip(f"no {pattern} in dist/: run `make package` first")
    return found[-1]


class Unavailable(Exception):
    """There is no such root here; the message says why."""


def debootstrap(archive):
    """Writes a root as an archive, which each test unpacks."""
    if os.geteuid() != 0:
        raise Unavailable("only root can make a Debian root")
    if not shutil.which("debootstrap"):
        raise Unavailable("debootstrap is not installed (apt-get install debootstrap)")
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL).returncode:
        raise Unavailable("this machine lets nobody make namespaces")
    with tempfile.TemporaryDirectory(prefix="fairlead-root-") as folder:
        root = pathlib.Path(folder) / "root"
        done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={','.join(DEPENDENCIES)}", "bookworm", root, MIRROR],
                              capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"debootstrap from {MIRROR} failed: {(done.stdout + done.stderr).strip()[-300:]}")
        partial = archive.with_suffix(".part")
        subprocess.run(["tar", "--numeric-owner", "-C", root, "-cf", partial, "."], check=True)
        partial.rename(archive)


class CleanRoot:
    """packages: a folder that stands at /tmp/packages inside."""

    def __init__(self, archive, folder, packages):
        self.folder, self.packages = folder, packages
        folder.mkdir()
        subprocess.run(["tar", "--numeric-owner", "-C", folder, "-xf", archive], check=True)

    def run(self, script, check=True):
        """Runs a script of bash inside; what it started ends with it. Its output, stderr included."""
        done = subprocess.run(["unshare", "--mount", "--pid", "--ipc", "--net", "--fork", "--kill-child", "--propagation", "private",
                               "sh", "-c", ENTER, "sh", self.folder, self.packages, script],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=PATIENCE_S)
        assert not check or done.returncode == 0, f"{script}\nended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def listing(self):
        """Every path with its kind, mode and owner, but for what dpkg and userdel keep of their own work; and the users there are."""
        copies = {f"etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow")}
        own = ("var/lib/dpkg", "var/log", "var/cache", "var/lib/apt", "dev", "proc", "sys", "tmp", "run")
        lines = set()
        for path in self.folder.rglob("*"):
            name = str(path.relative_to(self.folder))
            if not name.startswith(own) and name not in copies:
                status = path.lstat()
                lines.add(f"{name} {status.st_mode:o} {status.st_uid}:{status.st_gid}")
        for file in ("etc/passwd", "etc/group", "etc/shadow", "etc/gshadow"):
            lines.update(f"{file}: {line}" for line in (self.folder / file).read_text().splitlines())
        return lines
