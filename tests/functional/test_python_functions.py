"""Functions in Python as their authors meet them: `fairlead deploy FILE.py`, what it installs, and what instances do with it."""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest
from conftest import BUILD, ROOT, eventually

sys.path[:0] = [str(ROOT / "tests/sdk"), str(ROOT / "python")]
from fairlead import Client  # noqa: E402
from wheels import make_wheel  # noqa: E402

PAGE = ROOT / "docs/how-to/python-functions.md"


@pytest.fixture
def author(shared_node, tmp_path):
    """author(*arguments): the command line of somebody whose pip has a folder of wheels and no index."""
    make_wheel(tmp_path / "wheels", "first", requires=["second"])
    make_wheel(tmp_path / "wheels", "second", "2.0")
    environment = {**os.environ, "FAIRLEAD_CACHE": str(tmp_path / "cache"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels"),
                   "FAIRLEAD_ENDPOINT": shared_node.endpoint, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": ""}

    def run(*arguments, **more):
        return subprocess.run([BUILD / "bin/fairlead", *arguments], text=True, capture_output=True, timeout=120, cwd=tmp_path,
                              env=environment, **more)

    run.node, run.folder, run.environment = shared_node, tmp_path, environment
    return run


def write(author, name, text):
    (author.folder / name).parent.mkdir(exist_ok=True)
    (author.folder / name).write_text(text)


def deployed(author, text, name="fn"):
    write(author, f"{name}.py", f"import fairlead\n{text}")
    done = author("deploy", f"{name}.py")
    assert done.returncode == 0, done.stderr
    return name


def called(author, name, payload=b"{}"):
    status, headers, body = author.node.invoke(name, payload)
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return json.loads(body)


def failed(author, name, payload=b"{}"):
    _, headers, body = author.node.invoke(name, payload)
    assert headers["X-Amz-Function-Error"] == "Unhandled"
    return json.loads(body)


def test_the_module_is_loaded_once_and_the_handler_runs_for_each_call(author):
    name = deployed(author, """
import first, second, os
print("loaded", os.getpid())
calls = []
@fairlead.function(requirements=["first==1.0"], gpu_memory="64Mi", environment={"WHO": "me"}, timeout=7)
def counting(event, context):
    calls.append(event)
    print("to the log")
    return {"calls": len(calls), "event": event, "id": len(context.request_id), "who": os.environ["WHO"], "second": second.version}
""", "counting")
    for number in (1, 2, 3):
        answer = called(author, name, json.dumps({"größe": number}))
        assert answer == {"calls": number, "event": {"größe": number}, "id": 36, "who": "me", "second": "2.0"}
    log = eventually(lambda: (lambda text: text if text.count("to the log") == 3 else None)(author("logs", name).stdout))
    assert log.count("loaded") == 1
    text = author("describe", name).stdout
    assert "gpu:memory-mib=64" in text and "7 s" in text and "counting.counting" in text


def test_the_second_deploy_installs_nothing(author):
    text = "@fairlead.function(requirements=['first'])\ndef twice(event):\n    import first\n    return [first.version, event]"
    write(author, "twice.py", f"import fairlead\n{text}")
    assert "installing first" in author("deploy", "twice.py").stderr
    for wheel in (author.folder / "wheels").iterdir():
        wheel.unlink()
    again = author("deploy", "twice.py")
    assert again.returncode == 0 and "installing" not in again.stderr and "updated twice" in again.stdout
    assert called(author, "twice", b"5") == ["1.0", 5]
    assert not list((author.folder / "cache").glob("bundle-*")), "what was put together is removed"


def test_a_refused_requirement_or_a_failing_pip_deploys_nothing(author):
    for line, why in (("--index-url http://evil", "options are not taken"), ("../x", "a path is not taken"),
                      ("absent", "No matching distribution found for absent")):
        write(author, "bad.py", f"import fairlead\n@fairlead.function(requirements=[{line!r}])\ndef bad(event): return 1")
        done = author("deploy", "bad.py")
        assert done.returncode == 2 and why in done.stderr, done.stderr
        assert author.node.call("GET", "/2015-03-31/functions/bad")[0] == 404
        assert not list((author.folder / "cache").glob("bundle-*"))


def test_a_folder_and_the_command_line_over_the_file(author):
    write(author, "folder/handler.py", "import first, helper\ndef handler(event):\n    return [first.version, helper.x, open('data').read()]")
    write(author, "folder/helper.py", "x = 'beside'")
    write(author, "folder/data", "a file of the folder")
    write(author, "folder/requirements.txt", "first\n")
    assert author("deploy", "of-folder", "folder", "--gpu-memory", "32", "--timeout", "9").returncode == 0
    assert called(author, "of-folder") == ["1.0", "beside", "a file of the folder"]
    write(author, "both.py", "import fairlead\n@fairlead.function(gpu_memory='1Gi', timeout=5)\ndef f(event): return 1")
    assert author("deploy", "renamed", "both.py:f", "--gpu-memory", "32").returncode == 0
    text = author("describe", "renamed").stdout
    assert "gpu:memory-mib=32" in text and "5 s" in text


@pytest.mark.parametrize("text, kind, why", [
    ("raise RuntimeError('no model here')", "RuntimeError", "no model here"),
    ("import nothing_of_this_name", "ModuleNotFoundError", "nothing_of_this_name"),
    ("import sys; sys.exit(3)", "Unusable", "ended while it was loaded: SystemExit: 3"),
    ("del globals()['f']; f = 3", "Unusable", "of type int, which cannot be called"),
])
def test_a_module_that_cannot_be_loaded_says_why_to_the_caller(author, text, kind, why):
    name = deployed(author, f"@fairlead.function\ndef f(event): return 1\n{text}", "f")
    error = failed(author, name)
    assert error["errorType"] == kind and why in error["errorMessage"], error


def test_an_error_of_the_handler_is_the_caller_s_and_the_instance_goes_on(author):
    name = deployed(author, "n = []\n@fairlead.function\ndef raising(event):\n    n.append(1)\n"
                            "    if event == 1: raise KeyError('größe')\n    return len(n)", "raising")
    error = failed(author, name, b"1")
    assert error["errorType"] == "KeyError" and "größe" in error["errorMessage"] and "raising" in "".join(error["stackTrace"])
    assert called(author, name, b"2") == 2


def test_a_handler_that_writes_where_the_protocol_is_harms_nobody(author):
    name = deployed(author, "import os, sys\n@fairlead.function\ndef loud(event):\n"
                            "    os.write(1, b'HTTP/1.1 200 OK\\r\\n\\r\\n' * 100); sys.stdout.write('no newline')\n    return event", "loud")
    assert called(author, name, b"[1]") == [1] and called(author, name, b"[2]") == [2]


def test_an_import_that_takes_longer_than_a_start_may_is_an_error_that_says_so(author):
    name = deployed(author, "import threading; threading.Event().wait()\n@fairlead.function(timeout=3)\ndef slow(event): return 1", "slow")
    error = failed(author, name)
    assert error["errorType"].startswith("Runtime.") or "start" in error["errorMessage"], error


def test_arrays_and_bytes_travel_as_they_are(author):
    numpy = pytest.importorskip("numpy")
    sys.path.insert(0, str(ROOT / "python"))
    from fairlead.author import serve  # noqa: PLC0415
    name = deployed(author, "@fairlead.function\ndef same(event): return event", "same")
    assert author.node.invoke(name, b"\xff\x00")[2] == b"\xff\x00"
    raw = deployed(author, "@fairlead.function(raw=True)\ndef raw(event): return event[::-1]", "raw")
    assert author.node.invoke(raw, b"[1, 2]")[2] == b"]2 ,1["
    sent = serve.encoded(numpy.ones((2, 2)))
    assert b"numpy" in author.node.invoke(name, sent)[2].lower(), "without numpy in the layer it cannot be read" \
        if not pathlib.Path("/usr/lib/python3/dist-packages/numpy").exists() else ""


def test_deploys_at_once_of_the_same_requirements_install_once(author):
    write(author, "one.py", "import fairlead\n@fairlead.function(requirements=['first'])\ndef one(event): return 1")
    done = []
    threads = [threading.Thread(target=lambda i=i: done.append(author("deploy", f"at-once-{i}", "one.py"))) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.returncode for one in done] == [0, 0, 0] and sum("installing" in one.stderr for one in done) == 1
    assert called(author, "at-once-2") == 1


def test_the_page_works_as_printed(author):
    """Its file, its two commands, its answer."""
    pytest.importorskip("numpy")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    file, commands, answer = (next(text for kind, text in blocks if kind == wanted) for wanted in ("python", "sh", "json"))
    assert len([line for line in file.splitlines() if line.strip()]) <= 10
    (author.folder / "average.py").write_text(file)
    environment = {name: value for name, value in author.environment.items() if not name.startswith(("PIP_NO_INDEX", "PIP_FIND_LINKS"))}
    environment.update({name: value for name, value in os.environ.items() if name.startswith("PIP_")})
    done = subprocess.run(["bash", "-e"], input=commands, text=True, capture_output=True, cwd=author.folder, env=environment, timeout=300)
    if "index cannot be reached" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == json.loads(answer)


MISUSED = '''
import asyncio, os, sys, time


class Silent(Exception):
    def __str__(self):
        raise KeyError("no text")


def parts(event):
    try:
        for number in range(event["parts"]):
            if number == event.get("breaks_at"):
                raise FileNotFoundError("weights.bin")
            print("part", number)
            yield f"{number}\\n"
            time.sleep(event.get("pause", 0))  # sleep: between two parts
    finally:
        print("closed")


@fairlead.function(timeout=30)
def fn(event, context=None):
    print("begins", event["do"])
    if event["do"] == "stream":
        return parts(event)
    if event["do"] == "fork in a stream":
        return (os.fork() and None or number for number in range(1))
    if event["do"] == "cancelled":
        raise asyncio.CancelledError("stop")
    if event["do"] == "silent":
        raise Silent()
    if event["do"] == "large":
        return "x" * event["bytes"]
    if event["do"] == "raise":
        raise ValueError("as asked")
    if event["do"] == "exit":
        os._exit(3)
    if event["do"] == "fork" and os.fork() == 0:
        return "from the child"
    return {"pid": os.getpid(), "id": context.request_id}
'''


def log(author):
    return author("logs", "fn").stdout


def test_what_a_handler_does_wrong_is_its_callers_error_and_ends_no_instance(author):
    deployed(author, MISUSED)
    first = called(author, "fn", b'{"do": "pid"}')
    assert first["id"], "context=None is given the context, too"
    for do, said in (("cancelled", "CancelledError"), ("silent", "Silent"), ("raise", "ValueError")):
        assert failed(author, "fn", json.dumps({"do": do}))["errorType"] == said
    assert "cannot be made: KeyError" in failed(author, "fn", b'{"do": "silent"}')["errorMessage"]
    for size in (7_000_000, 13_700_000, 40_000_000):
        assert failed(author, "fn", json.dumps({"do": "large", "bytes": size}))["errorType"] == "Function.ResponseSizeTooLarge"
    assert called(author, "fn", b'{"do": "fork"}')["pid"] == first["pid"], "the child speaks for nobody"
    assert called(author, "fn", b'{"do": "pid"}')["pid"] == first["pid"], "one instance did all of it"
    eventually(lambda: log(author).count("begins raise") == 1)
    failed(author, "fn", b'{"do": "exit"}')
    eventually(lambda: "begins exit" in log(author))  # what is printed is there, however the process ends


def test_a_stream_says_what_its_handler_raised_and_ends_when_its_client_leaves(author):
    deployed(author, MISUSED)
    pid = called(author, "fn", b'{"do": "pid"}')["pid"]
    client = Client(author.node.endpoint)
    with pytest.raises(ConnectionError):
        list(client.stream("fn", {"do": "stream", "parts": 3, "breaks_at": 2}))
    eventually(lambda: "FileNotFoundError: weights.bin" in log(author))  # an error of the handler is no client that left

    stream = client.stream("fn", {"do": "stream", "parts": 100_000, "pause": 0.01})
    assert next(iter(stream)) == b"0\n"
    stream.close()
    eventually(lambda: log(author).count("closed") == 2)
    assert called(author, "fn", b'{"do": "pid"}')["pid"] == pid, "the instance serves on"
    for _ in range(2):
        assert len(list(client.stream("fn", {"do": "fork in a stream"}))) == 1, "the child sends nothing"
    assert called(author, "fn", b'{"do": "pid"}')["pid"] == pid


def test_files_that_are_called_as_pythons_are_not_taken_for_them(author):
    for name in ("json.py", "inspect.py", "hashlib.py"):
        write(author, name, "raise SystemExit('mine')\n")
    deployed(author, "@fairlead.function\ndef fn(event):\n    return 7\n")
    assert called(author, "fn") == 7
    write(author, "typing.py", "import fairlead\n\n@fairlead.function(name='typing')\ndef typing(event):\n    return 8\n")
    done = author("deploy", "typing.py")
    assert done.returncode == 0, done.stderr
    assert called(author, "typing") == 8
