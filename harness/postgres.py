"""A PostgreSQL server as a child process, for tests and benchmarks. Standard library only."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

PROGRAMS = pathlib.Path(os.environ.get("PG_BINARIES", "/usr/lib/postgresql/15/bin"))
PATIENCE_S = 120


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not true within {PATIENCE_S} s: {condition}")
        time.sleep(0.05)  # sleep: between two looks at a condition


def process(pid):
    """(state, parent) of a process; None: it is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        state, parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
        return state, int(parent)
    return None


class Postgres:
    """A server of a test's own, at a Unix socket. As an ordinary user: initdb refuses root. password: what its role needs to connect."""

    def __init__(self, password=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fairlead-pg-"))
        self.user = {}
        if os.geteuid() == 0:
            names = {entry.pw_name: entry for entry in pwd.getpwall()}
            other = names.get("postgres") or names["nobody"]
            os.chown(self.folder, other.pw_uid, other.pw_gid)
            self.user = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.password = password
        access = ["--auth=trust"]
        if password is not None:
            (self.folder / "password").write_text(password)
            access = ["--auth=scram-sha-256", f"--pwfile={self.folder / 'password'}"]
        self.run("initdb", f"--pgdata={self.data}", "--username=fairlead", *access, "--no-sync", "--encoding=UTF8", "--no-locale")
        self.url = self.url_of("postgres")
        self.start()

    def url_of(self, database):
        return f"postgresql://fairlead@/{urllib.parse.quote(database, safe='')}?host={self.folder}"

    def run(self, program, *arguments):
        with (self.folder.parent / (self.folder.name + ".log")).open("a") as log:
            subprocess.run([PROGRAMS / program, *arguments], check=True, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                           timeout=120, **self.user)

    def start(self):
        self.run("pg_ctl", "start", "--wait", "--timeout=60", f"--pgdata={self.data}", f"--log={self.folder}/log",
                 f"--options=-k {self.folder} -h '' -c max_connections=60 -c shared_buffers=32MB")

    def postmaster(self):
        return int((self.data / "postmaster.pid").read_text().splitlines()[0])

    def kill(self):
        """kill -9 of the postmaster; its processes end when they notice."""
        postmaster = self.postmaster()
        os.kill(postmaster, signal.SIGKILL)
        until(lambda: (process(postmaster) or "Z")[0] == "Z")

    def signal_all(self, number):
        postmaster = self.postmaster()
        os.kill(postmaster, number)  # first, so that there are no new ones
        for pid in [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]:
            if (found := process(pid)) and found[1] == postmaster:
                os.kill(pid, number)

    @contextlib.contextmanager
    def hung(self):
        """Its processes take connections and bytes, and do not answer."""
        self.signal_all(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal_all(signal.SIGCONT)

    def start_again(self):
        def started():
            with contextlib.suppress(subprocess.CalledProcessError):  # a process of the one before still holds its memory
                self.start()
                return True
            return False
        until(started)

    def rows(self, sql, database="postgres"):
        environment = os.environ if self.password is None else {**os.environ, "PGPASSWORD": self.password}
        text = subprocess.run([PROGRAMS / "psql", "--no-psqlrc", "-At", "-d", self.url_of(database), "-c", sql], check=True,
                              capture_output=True, text=True, timeout=60, env=environment).stdout
        return text.splitlines()

    def remove(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.run("pg_ctl", "stop", "--wait", "--mode=immediate", f"--pgdata={self.data}")
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder.parent / (self.folder.name + ".log")).unlink(missing_ok=True)
