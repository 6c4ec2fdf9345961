"""Layers: what pip makes of requirements, installed once on this machine and found again by what was asked for.

    ["numpy==1.26.4"], Python 3.11, x86_64   ->   ~/.cache/fairlead/layers/5c1e.../numpy/...

A layer's name is the digest of its requirements, the Python version and the platform. pip fills a folder beside its place
(`.building-DIGEST-...`), under a lock, and one rename publishes the layer: whoever finds a layer finds a whole one, of several who
want it at once one builds it, and a build that fails or is killed leaves nothing that counts. The next build of the same
layer removes what a killed one left.

Requirements are names with versions. An option, a path or an address in one would make pip read other files of this machine,
or ask another index than its owner's, and is refused. Wheels only: installing runs no code of a package."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from typing import Callable, Iterator

FORMAT = "1"                 # of what a layer's folder holds
MOST_LINES, MOST_LINE_BYTES = 500, 1000
MOST_FILE_BYTES = MOST_LINES * MOST_LINE_BYTES
SECONDS = 900.0              # of one build
MOST_BYTES = 8 << 30         # of one layer, pip's unpacking included
MOST_FILES = 200_000
MOST_LAYERS, UNUSED_SECONDS = 50, 30 * 86400.0  # those beyond go, the longest unused first
IN_USE_SECONDS = 3600.0      # a layer that was found this lately may be linked to right now
LOOK_SECONDS = 0.5           # between two looks at how large it is
SHOWN_LINES, SHOWN_BYTES = 15, 4096

_REQUIREMENT = re.compile(r"""
    [A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?                     # name
    (?:\s*\[[A-Za-z0-9._,\s-]*\])?                                 # extras
    (?:\s*\(?\s*(?:~=|===?|!=|<=?|>=?)\s*[A-Za-z0-9.*+!_-]+        # versions
       (?:\s*,\s*(?:~=|===?|!=|<=?|>=?)\s*[A-Za-z0-9.*+!_-]+)*\s*\)?)?
    (?:\s*;[A-Za-z0-9_.<>=!~()\s'",+-]+)?                          # marker
    """, re.VERBOSE)
_UNREACHABLE = re.compile("NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|SSLError|Name or service not known|"
                          "Temporary failure in name resolution|Connection refused|Network is unreachable|"
                          "Could not fetch URL|Max retries exceeded")
# Of pip's settings those that say where packages come from and how they are reached. Others, in the environment or a file, would change
# what is installed, where to, or by which Python, and so what a layer of this name holds.
_TAKEN_OVER = {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST", "PIP_CERT", "PIP_CLIENT_CERT",
               "PIP_PROXY", "PIP_KEYRING_PROVIDER", "PIP_CONFIG_FILE", "PIP_CACHE_DIR", "PIP_NO_CACHE_DIR", "PIP_TIMEOUT", "PIP_DEFAULT_TIMEOUT"}
_SETTLED = {"PIP_USER": "0", "PIP_NO_DEPS": "0", "PIP_PRE": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_REQUIRE_HASHES": "0", "PIP_DRY_RUN": "0",
            "PIP_CONSTRAINT": os.devnull}


class LayerError(RuntimeError):
    """Requirements that cannot become a layer, and why."""


def cache_folder() -> pathlib.Path:
    """FAIRLEAD_CACHE; else where this user's caches are."""
    if os.environ.get("FAIRLEAD_CACHE"):
        return pathlib.Path(os.environ["FAIRLEAD_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return pathlib.Path(base) / "fairlead" if base else pathlib.Path.home() / ".cache/fairlead"


def own_folder(path: pathlib.Path) -> pathlib.Path:
    """Made if it is not there. What is in a layer runs in functions, so nobody else may own or write the folder."""
    path.mkdir(mode=0o755, parents=True, exist_ok=True)
    info = os.stat(path)
    if info.st_uid != os.geteuid():
        raise LayerError(f"{path} belongs to user {info.st_uid}, who could put anything into your functions: "
                         "name a folder of yours in FAIRLEAD_CACHE")
    if info.st_mode & 0o022:
        raise LayerError(f"{path} can be written by others (mode {stat.S_IMODE(info.st_mode):o}), who could put anything into your functions: "
                         f"look into it, then chmod go-w {path}")
    return path


def checked(lines: list[str]) -> list[str]:
    """Requirements, each once and sorted, without comments. LayerError names the line that is none."""
    found = set()
    texts = [text for text in (re.sub(r"(^|\s)#.*$", "", line).strip() for line in lines) if text]
    if len(texts) > MOST_LINES:
        raise LayerError(f"there are {len(texts)} requirements, {MOST_LINES} are possible")
    for text in texts:
        if len(text) > MOST_LINE_BYTES or not _REQUIREMENT.fullmatch(text) or re.search(r"\s-", text):
            raise LayerError(f"requirement {text[:120]!r}: {_why_not(text)}")
        found.add(re.sub(r"\s+", " ", text))
    return sorted(found)


def _why_not(text: str) -> str:
    if len(text) > MOST_LINE_BYTES:
        return f"it has {len(text)} characters, {MOST_LINE_BYTES} are possible"
    if text.startswith(("-r", "-c", "--requirement", "--constraint")):
        return "other files are not read; write their lines into this list"
    if "--hash" in text or text.endswith("\\"):
        return "hashes and continued lines are not taken; give a name and a version (pip-compile without --generate-hashes)"
    if text.startswith("-") or re.search(r"\s-", text):
        return ("options are not taken; an index, certificates and the like belong into pip's configuration "
                "(pip config set global.index-url URL)")
    if "://" in text or "@" in text:
        return "an address is not taken; give a name and a version, and the index that has it in pip's configuration"
    if "/" in text or "\\" in text or text.startswith("."):
        return "a path is not taken; put the code into the function's folder"
    return "it is no name with versions, like numpy or \"numpy>=1.26,<3\""


def read_requirements(file: pathlib.Path) -> list[str]:
    try:
        with file.open("rb") as source:
            text = source.read(MOST_FILE_BYTES + 1)
        if len(text) > MOST_FILE_BYTES:
            raise LayerError(f"{file} has more than {MOST_FILE_BYTES} bytes, which is no list of requirements")
        return text.decode("utf-8-sig").splitlines()  # "sig": some editors begin a file with a byte order mark
    except OSError as error:
        raise LayerError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LayerError(f"{file} is not UTF-8") from None


def digest_of(requirements: list[str], python: str) -> str:
    """Of checked requirements."""
    what = "\n".join([FORMAT, python, platform.system(), platform.machine(), *requirements])
    return hashlib.sha256(what.encode()).hexdigest()


def layer(lines: list[str], python: str, say: Callable[[str], None], cache: pathlib.Path | None = None,
          seconds: float = SECONDS, most_bytes: int = MOST_BYTES) -> pathlib.Path | None:
    """The folder that has these requirements, built if it is not there; None: nothing is required."""
    requirements = checked(lines)
    if not requirements:
        return None
    folder = own_folder(own_folder(cache or cache_folder()) / "layers")
    digest = digest_of(requirements, python)
    place = folder / digest
    if _is_there(place):
        return place
    with _locked(folder / f".{digest}.lock", say):
        if _is_there(place):  # who had the lock before built it
            return place
        for left in folder.glob(f".building-{digest}-*"):  # of builds that were killed
            shutil.rmtree(left, ignore_errors=True)
        # A name of its own: the pip of a killed build may live on, and must not write into this one.
        staging = pathlib.Path(tempfile.mkdtemp(prefix=f".building-{digest}-", dir=folder))
        try:
            (staging / "layer").mkdir()
            (staging / "layer").chmod(0o755)  # whatever the umask
            say(f"installing {', '.join(requirements)[:200]} for Python {python}, once")
            _install(requirements, python, staging, seconds, most_bytes, say)
            _compile(staging / "layer", python)
            os.rename(staging / "layer", place)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    _remove_unused(folder)
    return place


def _is_there(place: pathlib.Path) -> bool:
    """And is in use from now on."""
    try:
        os.utime(place)
    except FileNotFoundError:
        return False
    return True


def _remove_unused(folder: pathlib.Path) -> None:
    """Layers that no deploy has used for long, or that are too many; and what killed builds left that nobody asks for again."""
    now = time.time()
    used = {}
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink():
                used[path] = now - path.stat().st_mtime
    layers = sorted((path for path in used if not path.name.startswith(".")), key=lambda path: used[path])
    for number, path in enumerate(layers):
        if used[path] > (UNUSED_SECONDS if number < MOST_LAYERS else IN_USE_SECONDS):
            going = folder / f".building-{path.name}-{os.getpid()}"
            with contextlib.suppress(OSError):  # another deploy had the same thought
                os.rename(path, going)
                shutil.rmtree(going, ignore_errors=True)
    for path in used:
        if path.name.startswith(".building-") and used[path] > SECONDS + 86400:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: pathlib.Path, say: Callable[[str], None]) -> Iterator[None]:
    """The lock goes with its holder, however that one ends. Its file stays: one that is removed is a second lock to who has it open."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another deploy installs the same requirements; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _pip(python: str, say: Callable[[str], None]) -> list[str]:
    """A pip of this machine. One of the wanted Python where there is one: a pip decides by its own version whether a requirement with a
    marker (`tomli; python_version < "3.11"`) counts, whatever version it installs for."""
    same = interpreter(python)
    for program in dict.fromkeys((same, sys.executable, "/usr/bin/python3")):
        if program and subprocess.run([program, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      stdin=subprocess.DEVNULL, cwd="/", env=_environment()).returncode == 0:
            if program != same:
                say(f"no pip for Python {python} is here, that of {program} is used: what packages require for {python} alone may be "
                    "missing; name such packages in the requirements")
            return [program, "-m", "pip"]
    raise LayerError("requirements are installed by pip, and there is none: apt-get install python3-pip, or "
                     f"{sys.executable or 'python3'} -m ensurepip")


def _environment() -> dict[str, str]:
    """pip's."""
    kept = {name: value for name, value in os.environ.items()
            if name in _TAKEN_OVER or not name.upper().startswith(("PIP_", "PYTHON"))}
    return kept | _SETTLED


def _install(requirements: list[str], python: str, staging: pathlib.Path, seconds: float, most_bytes: int,
             say: Callable[[str], None]) -> None:
    (staging / "requirements.txt").write_text("".join(f"{line}\n" for line in requirements))
    (staging / "tmp").mkdir()
    command = [*_pip(python, say), "install", "--target", str(staging / "layer"), "--only-binary", ":all:", "--python-version", python,
               "--no-input", "--no-compile", "--disable-pip-version-check", "--retries", "2", "--progress-bar", "off",
               "--no-warn-script-location", "--root", "/", "--prefix=", "-r", str(staging / "requirements.txt")]
    environment = _environment() | {"TMPDIR": str(staging / "tmp")}  # so that all that is unpacked counts, and goes with the rest
    with (staging / "log").open("wb") as log:
        pip = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment,
                               cwd=staging / "tmp", start_new_session=True, umask=0o022)
        try:
            trouble = _watch(pip, staging, seconds, most_bytes)
        finally:
            if pip.poll() is None:
                os.killpg(pip.pid, signal.SIGKILL)
                pip.wait()
    said = _last_lines(staging / "log")
    if trouble:
        raise LayerError(f"{trouble}; pip's last lines:\n{said}")
    if pip.returncode != 0:
        if _UNREACHABLE.search((staging / "log").read_text(errors="replace")):
            raise LayerError("pip's package index cannot be reached from this machine (`pip config list` and PIP_* say which one it "
                             f"asks); pip's last lines:\n{said}")
        raise LayerError(f"pip cannot install {', '.join(requirements)[:200]} for Python {python} from wheels; its last lines:\n{said}")


def _watch(pip: subprocess.Popen[bytes], staging: pathlib.Path, seconds: float, most_bytes: int) -> str | None:
    """Why it was not waited for any longer."""
    end = time.monotonic() + seconds
    while True:
        try:
            pip.wait(max(min(LOOK_SECONDS, end - time.monotonic()), 0.01))
        except subprocess.TimeoutExpired:
            pass
        size, files = _size_of(staging)
        if size > most_bytes:
            return f"the requirements take more than {most_bytes >> 20} MiB"
        if files > MOST_FILES:
            return f"the requirements have more than {MOST_FILES} files"
        if pip.poll() is not None:
            return None
        if time.monotonic() >= end:
            return f"pip was not done after {seconds:g} s"


def _size_of(folder: pathlib.Path) -> tuple[int, int]:
    size = files = 0
    for root, _, names in os.walk(folder):
        for name in names:
            files += 1
            with contextlib.suppress(OSError):  # pip moves and removes meanwhile
                size += os.lstat(os.path.join(root, name)).st_blocks * 512
    return size, files


def _last_lines(log: pathlib.Path) -> str:
    text = log.read_bytes()[-SHOWN_BYTES:].decode(errors="replace")
    return "\n".join(f"  {line}" for line in text.splitlines()[-SHOWN_LINES:])


def interpreter(python: str) -> str | None:
    """One of this machine that has this version."""
    for candidate in ("/usr/bin/python3", sys.executable, shutil.which(f"python{python}")):
        if candidate and version_of(candidate) == python:
            return candidate
    return None


def version_of(interpreter: str) -> str | None:
    if interpreter == sys.executable:
        return f"{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        said = subprocess.run([interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True,
                              timeout=30, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() if said.returncode == 0 else None


def _compile(folder: pathlib.Path, python: str) -> None:
    """Bytecode whose source is not looked at: a node's copy has another time. Without that Python here an instance compiles by itself."""
    program = interpreter(python)
    if program:
        subprocess.run([program, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p",
                        "/var/task/.fairlead/layer", str(folder)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False, umask=0o022)
