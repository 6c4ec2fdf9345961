"""The pages of docs/tutorial that begin with the tarball, followed as they are printed: what a reader types, in one shell and an
empty folder with the packages in it, and what the page says that comes out.

A ```sh block is typed; a ```text block behind it is what comes out on standard output, where "..." stands for anything. "Five
minutes" in a page's first lines is the most that its blocks may take.
"""

import fnmatch
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import pytest
from clean_root import ROOT, package

PAGES = {
    "operate-a-node.md": [],
    "a-function-in-python.md": [],
    "a-function-in-cuda.md": ["cmake", "clang++-16", "g++"],
    "a-kernel-task.md": ["https://pypi.org/simple/numpy/"],
    "try-a-policy.md": [],
}
MINUTES = {"Five": 5, "Ten": 10}
END = "-- the block has ended"
FAILED = "-- the shell has ended"


def blocks(text):
    """[(what is typed, what comes out or None)]"""
    found = re.findall(r"^```(sh|text)\n(.*?)^```$", text, re.M | re.S)
    typed = []
    for kind, body in found:
        if kind == "sh":
            typed.append((body, None))
        else:
            assert typed and typed[-1][1] is None, "a block of output without one that is typed"
            typed[-1] = (typed[-1][0], body)
    return typed


def is_as_printed(said, printed):
    pattern = fnmatch.translate(re.sub(r"([\[*?])", r"[\1]", printed.strip()).replace("...", "*"))
    return re.fullmatch(pattern, said.strip()) is not None


def missing(needs):
    for need in needs:
        if need.startswith("https://"):
            try:
                urllib.request.urlopen(os.environ.get("PIP_INDEX_URL", need), timeout=20).close()
            except OSError:
                return f"{need} cannot be reached"
        elif not shutil.which(need):
            return f"{need} is not installed"
    return None


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@pytest.fixture
def reader(tmp_path):
    """A shell in a folder with the packages; whatever it started is gone at the end."""
    folder = tmp_path / "tutorial"
    folder.mkdir()
    for pattern in ("fairlead-*-linux-x86_64.tar.gz", "fairlead-*.whl"):
        shutil.copy(package(pattern), folder)
    address = f"127.0.0.1:{free_port()}"  # the pages' own may be taken here
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("FAIRLEAD_", "AWS_", "SOFTGPU_", "PYTHON"))}
    environment |= {"HOME": str(tmp_path), "SOFTGPU_HOME": str(tmp_path / "gpu"), "FAIRLEAD_ENDPOINT": f"http://{address}",
                    "FAIRLEAD_SERVE_LISTEN": address}
    with (tmp_path / "errors").open("w") as errors:
        shell = subprocess.Popen(["bash", "-em"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
    shell.stdin.write(f"trap \"echo '{FAILED}'\" EXIT\n")  # what runs in the background keeps standard output open
    yield shell
    end_session(shell.pid)
    shell.wait()


def end_session(session_id):
    """Jobs of `bash -m` are groups of their own."""
    for line in subprocess.run(["ps", "-eo", "pid=,sess="], text=True, capture_output=True, check=True).stdout.splitlines():
        pid, session = map(int, line.split())
        if session == session_id:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def type_in(shell, typed):
    """What comes out. An error of any line ends the shell, and with it the output; what it says is in `errors`."""
    shell.stdin.write(typed + f"\necho '{END}'\n")
    shell.stdin.flush()
    said = []
    for line in shell.stdout:
        if line.strip() == END:
            return "".join(said)
        if line.strip() == FAILED:
            break
        said.append(line)
    raise AssertionError(f"a command fails:\n{typed}\nand this came out:\n{''.join(said)}")


@pytest.mark.parametrize("page", PAGES)
def test_the_page_works_as_it_is_printed(reader, page, tmp_path):
    if lacks := missing(PAGES[page]):
        pytest.skip(lacks)
    text = (ROOT / "docs/tutorial" / page).read_text()
    minutes = MINUTES[re.search(r"^(\w+) minutes", text, re.M).group(1)]
    began = time.monotonic()
    limit = threading.Timer(60 * minutes, end_session, [reader.pid])
    limit.daemon = True
    limit.start()
    for typed, printed in blocks(text):
        said = type_in(reader, typed)
        if printed is not None:
            errors = (tmp_path / "errors").read_text()[-2000:]
            assert is_as_printed(said, printed), f"the page says\n{printed}\nand this came out:\n{said}\nand these errors:\n{errors}"
    limit.cancel()
    assert time.monotonic() - began < 60 * minutes


def test_what_is_printed_is_compared():
    assert is_as_printed('{"a": [1], "b": 2.5}\n', '{"a": [1], ...}')
    assert not is_as_printed("one\ntwo\n", "one\n")
    assert not is_as_printed("*", "x")
    assert not is_as_printed("x", "*")
    assert blocks("```sh\na\n```\n```text\nb\n```\n```sh\nc\n```\n") == [("a\n", "b\n"), ("c\n", None)]
