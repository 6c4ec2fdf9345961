"""fairlead new and fairlead dev, as typed: templates that work at once, changes that reach the node, and what is left at the end."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest
from conftest import BUILD, ROOT, eventually

PAGE = ROOT / "docs/how-to/python-functions.md"
VERSION = "import fairlead\n@fairlead.function\ndef version(event):\n    print('asked for', {0!r})\n    return {0!r}\n"


def hears_interrupts():
    """A shell that starts the tests in the background has them ignore SIGINT, and whatever they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def author(shared_node, tmp_path):
    environment = {**os.environ, "FAIRLEAD_CACHE": str(tmp_path / "cache"), "FAIRLEAD_ENDPOINT": shared_node.endpoint, "PYTHONUNBUFFERED": "1",
                   "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
    running = []

    def start(*arguments):
        log = (tmp_path / f"dev-{len(running)}.log").open("w+")
        running.append(subprocess.Popen(["fairlead", *arguments], stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path, env=environment,
                                        preexec_fn=hears_interrupts))
        running[-1].log = lambda: (tmp_path / os.path.basename(log.name)).read_text()
        return running[-1]

    def run(*arguments):
        return subprocess.run(["fairlead", *arguments], text=True, capture_output=True, timeout=120, cwd=tmp_path, env=environment)

    run.start, run.node, run.folder, run.environment = start, shared_node, tmp_path, environment
    os_path = os.environ["PATH"]
    os.environ["PATH"] = environment["PATH"]
    yield run
    os.environ["PATH"] = os_path
    for process in running:
        process.kill()
        process.wait()


def answer(author, name):
    status, headers, body = author.node.invoke(name)
    return json.loads(body) if status == 200 and "X-Amz-Function-Error" not in headers else None


def is_there(author, name):
    return author.node.call("GET", f"/2015-03-31/functions/{name}")[0] == 200


def test_a_change_reaches_the_node_and_a_mistake_is_shown(author):
    file = author.folder / "version.py"
    file.write_text(VERSION.format("one"))
    dev = author.start("dev", "version.py")
    eventually(lambda: "version is deployed" in dev.log())
    assert answer(author, "version") == "one"
    eventually(lambda: "asked for one" in dev.log())
    file.write_text("def broken(:\n")
    eventually(lambda: "version.py:1: " in dev.log())
    assert answer(author, "version") == "one", "what was there goes on"
    file.write_text(VERSION.format("two"))
    eventually(lambda: answer(author, "version") == "two")
    eventually(lambda: "asked for two" in dev.log())
    dev.send_signal(signal.SIGINT)
    assert dev.wait(60) == 0 and "version stays deployed" in dev.log() and is_there(author, "version")
    assert "Traceback" not in dev.log()


def test_the_end_removes_the_function_if_asked(author):
    (author.folder / "gone.py").write_text(VERSION.format("x").replace("def version", "def gone"))
    for end in (signal.SIGINT, signal.SIGTERM):
        dev = author.start("dev", "gone.py", "--remove", "--deploy=--timeout=9")
        eventually(lambda: "gone is deployed" in dev.log())
        assert "9 s" in author("describe", "gone").stdout
        dev.send_signal(end)
        assert dev.wait(60) == 0 and "gone is removed" in dev.log() and not is_there(author, "gone")


def test_a_second_one_for_the_same_folder_is_refused(author):
    (author.folder / "folder").mkdir()
    (author.folder / "folder/handler.py").write_text("def handler(event): return 1")
    first = author.start("dev", "folder")
    eventually(lambda: "folder is deployed" in first.log())
    second = author("dev", str(author.folder / "folder"))
    assert second.returncode == 2 and f"watched already, by process {first.pid}" in second.stderr
    first.kill()
    first.wait()
    third = author.start("dev", "folder")
    eventually(lambda: "folder is deployed" in third.log())


def test_what_is_not_there_is_an_error_and_a_node_that_is_not_there_is_waited_for(author):
    done = author("dev", "absent.py")
    assert done.returncode == 2 and "absent.py is not there" in done.stderr
    (author.folder / "alone.py").write_text(VERSION.format("x").replace("def version", "def alone"))
    dev = author.start("--endpoint", "http://127.0.0.1:9", "dev", "alone.py")
    eventually(lambda: "waiting for changes" in dev.log())
    assert "cannot reach" in dev.log() or "127.0.0.1:9" in dev.log()
    assert dev.poll() is None


def test_a_folder_with_a_program_is_watched_too(author):
    folder = author.folder / "program"
    shutil.copytree(ROOT / "tests/functions/misbehave", folder)
    dev = author.start("dev", "program")
    eventually(lambda: "program is deployed" in dev.log())
    assert answer(author, "program") == {}


def test_the_page_s_commands_work_as_printed(author):
    """fairlead new, fairlead dev in the background, fairlead invoke."""
    block = next(text for kind, text in re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL) if "fairlead new" in text)
    new, dev, invoke = (line.split("  #")[0].strip() for line in block.splitlines())
    assert subprocess.run(["bash", "-c", new], cwd=author.folder, env=author.environment, timeout=60).returncode == 0
    running = author.start(*dev.split()[1:])
    eventually(lambda: "hello is deployed" in running.log())
    done = subprocess.run(["bash", "-c", invoke], cwd=author.folder, env=author.environment, text=True, capture_output=True, timeout=120)
    assert json.loads(done.stdout) == {"sum": [11, 22, 33]}, done.stderr + running.log()
    eventually(lambda: "ready on" in running.log())


def test_the_template_in_cpp_builds_deploys_and_answers(author):
    if not shutil.which("clang++-16") or not shutil.which("cmake"):
        pytest.skip("clang-16 or cmake is not installed")
    done = author("new", "--lang", "cpp", "made-in-cpp")
    build, deploy, invoke = (line.split("  #")[0].strip() for line in done.stdout.splitlines())
    for command in (build, deploy):
        ran = subprocess.run(["bash", "-c", command], cwd=author.folder, env=author.environment, text=True, capture_output=True, timeout=600)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = subprocess.run(["bash", "-c", invoke], cwd=author.folder, env=author.environment, text=True, capture_output=True, timeout=120)
    assert json.loads(ran.stdout) == {"n": 1000, "last": 2997}


def test_the_template_for_triton_compiles_deploys_and_answers(author):
    pytest.importorskip("triton", reason="installed by `make third-party`")
    assert author("new", "--lang", "triton", "made-with-triton").returncode == 0
    ran = subprocess.run(["python3", "made-with-triton/deploy.py"], cwd=author.folder, text=True, capture_output=True, timeout=600,
                         env={**author.environment, "PYTHONPATH": str(ROOT / "python")})
    assert "y[:3] = [1. 2. 3.]" in ran.stdout, ran.stderr
