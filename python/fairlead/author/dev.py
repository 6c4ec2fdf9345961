"""`fairlead dev`: deploys, shows what the function writes, and deploys again whenever a file changes.

Deploying is the command line's, in a process of its own: what it refuses is shown and the next change is waited for. The log is followed on
a thread. Two of them for one function's files would deploy in turns what each of them saw; so the second is refused."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
from typing import Callable, Iterator, NoReturn

from fairlead.author import bundle, layers
from fairlead.author.declaration import DeclarationError
from fairlead.author.watching import Watch
from fairlead.client import Client
from fairlead.errors import RequestError

NODE_UNREACHABLE = 4    # exit status of the command line
RETRY_S = 2.0           # before what met no node is deployed again
LOG_PATIENCE_S = 1.0    # before a node that does not answer is asked for the log again


class Target:
    """What is deployed and watched. `is_python`: from a file or a folder with a handler.py; else a folder that a node can run."""

    def __init__(self, what: str, name: str | None) -> None:
        path = pathlib.Path(what)
        text = what if path.exists() or ":" not in what else what.rpartition(":")[0]
        self.what, self.path = what, pathlib.Path(text)
        if not self.path.exists():
            raise DeclarationError(f"{text} is not there: what is to be deployed?")
        runnable = any((self.path / file).exists() for file in ("bootstrap", "task.json", "pipeline.json"))
        self.is_python = not (self.path.is_dir() and runnable)
        self.given_name = name
        self.folder = self.path if self.path.is_dir() else self.path.parent
        self.only = None if self.path.is_dir() else self.path.name

    def name(self) -> str:
        """Which the file may change."""
        if self.given_name:
            return self.given_name
        return bundle.find(self.what).name if self.is_python else self.path.resolve().name

    def key(self) -> str:
        return hashlib.sha256(os.fsencode(self.path.resolve())).hexdigest()


def program() -> str:
    """The command line that started this, else the one in PATH."""
    found = os.environ.get("FAIRLEAD_PROGRAM") or shutil.which("fairlead")
    if not found:
        raise DeclarationError("the program fairlead is not in PATH")
    return found


@contextlib.contextmanager
def alone(target: Target) -> Iterator[None]:
    folder = layers.own_folder(layers.own_folder(layers.cache_folder()) / "dev")
    with (folder / f"{target.key()}.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise DeclarationError(f"{target.path} is watched already, by process {file.read().strip() or 'unknown'}: end that one first") from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


class LogThread:
    """Shows new lines of a function's log, until it is stopped."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with Client(timeout=30) as client:
            while not self._end.is_set():
                try:
                    for line in client.follow(self.name, True, self._end):  # without what was written before
                        print(line, flush=True)
                except (RequestError, OSError):
                    self._end.wait(LOG_PATIENCE_S)

    def stop(self) -> None:
        self._end.set()


class NoNode(Exception):
    """What was to be deployed is fine, as far as is known, and may be deployed later."""


def deploy(target: Target, more: list[str], say: Callable[[str], None], is_again: bool = False) -> str | None:
    """The function's name; None: nothing was deployed, and standard error says why. is_again: it was said already that there is no node."""
    try:
        name = target.name()
    except (DeclarationError, layers.LayerError) as error:
        say(str(error))
        return None
    done = subprocess.run([program(), "deploy", name, target.what, *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if is_again and done.returncode == NODE_UNREACHABLE:
        raise NoNode
    for line in (done.stdout + done.stderr).splitlines():
        if not line.startswith("next: "):
            print(line, file=sys.stderr, flush=True)
    if done.returncode == NODE_UNREACHABLE:
        raise NoNode
    return name if done.returncode == 0 else None


def deploy_when_there_is_a_node(target: Target, more: list[str], say: Callable[[str], None], watch: Watch) -> str | None:
    """As deploy(); what changes meanwhile is taken along."""
    is_again = False
    while True:
        try:
            return deploy(target, more, say, is_again)
        except NoNode:
            if not is_again:
                say(f"waiting for changes of {target.path}, and for a node")
            is_again = not watch.wait(RETRY_S)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def run(what: str, name: str | None, removes: bool, more: list[str], say: Callable[[str], None]) -> int:
    target = Target(what, name)
    signal.signal(signal.SIGTERM, _interrupt)
    logs: LogThread | None = None
    deployed: set[str] = set()
    with alone(target), Watch(target.folder, target.only) as watch:
        try:
            while True:
                done = deploy_when_there_is_a_node(target, more, say, watch)
                if done is not None:
                    deployed.add(done)
                    if logs is None or logs.name != done:
                        if logs:
                            logs.stop()
                        logs = LogThread(done)
                    say(f"{done} is deployed; waiting for changes of {target.path}, Ctrl-C ends")
                else:
                    say(f"waiting for changes of {target.path}")
                watch.wait()
        except KeyboardInterrupt:
            if logs:
                logs.stop()
            _end(deployed, removes, say)
    return 0


def _end(deployed: set[str], removes: bool, say: Callable[[str], None]) -> None:
    for name in sorted(deployed):
        if not removes:
            say(f"{name} stays deployed; fairlead remove {name} removes it")
            continue
        try:
            with Client(timeout=30) as client:
                client.remove(name)
            say(f"{name} is removed")
        except (RequestError, OSError) as error:
            say(f"{name} is not removed: {error}")
