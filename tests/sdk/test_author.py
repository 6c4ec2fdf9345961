"""What a file says of its function, layers of requirements, and the folder that a node runs."""

import asyncio
import importlib
import json
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest
from sdk_paths import ROOT
from wheels import make_wheel, only_these

import fairlead
from fairlead import safetensors, values
from fairlead.author import bundle, declaration, layers, serve
from fairlead.author.declaration import DeclarationError
from fairlead.author.layers import LayerError

PYTHON = layers.version_of("/usr/bin/python3")


def said(tmp_path, text, handler=None, name="f.py"):
    file = tmp_path / name
    file.write_text(text)
    return declaration.read(file, handler)


# ---- declarations

def test_a_file_is_read_and_not_run(tmp_path):
    found = said(tmp_path, '''
import nothing_of_that_name, fairlead
raise SystemExit("it was run")
NEEDS = ["numpy"]
@fairlead.function(gpu_memory="4Gi", requirements=NEEDS, objective_ms=250, timeout=30, memory="1Gi", replicas="1:3",
                   environment={"A": "b"}, tags={"team": "vision"}, python="3.12")
def hello(event):
    return event
''')
    assert (found.name, found.handler, found.requirements, found.python) == ("hello", "hello", ["numpy"], "3.12")
    assert found.tags == {"gpu:memory-mib": "4096", "gpu:objective-ms": "250", "gpu:replicas": "1:3", "team": "vision"}
    assert found.configuration == {"Timeout": 30, "MemorySize": 1024, "Environment": {"Variables": {"A": "b"}}}


@pytest.mark.parametrize("value", ['"pypi.org:443, *.example.com"', '["pypi.org:443", "*.example.com"]', '"pypi.org:443 *.example.com"'])
def test_where_its_connections_may_lead(tmp_path, value):
    assert said(tmp_path, f"""import fairlead
@fairlead.function(egress={value})
def f(event): return event
""").tags == {"gpu:egress": "pypi.org:443,*.example.com"}


def test_tensors_of_a_model_are_tags(tmp_path):
    found = said(tmp_path, """import fairlead
@fairlead.function(inputs={"ids": "s64[-1, 128]", "x/0": "f32[4]"}, outputs={"y": "bf16[ -1 ]"}, batch="8:2")
def f(event): pass""")
    assert found.tags == {"gpu:model-inputs": "ids:s64:-1x128 x/0:f32:4", "gpu:model-outputs": "y:bf16:-1", "gpu:batch": "8:2"}


def test_a_virtual_environment_in_a_volume(tmp_path):
    found = said(tmp_path, """import fairlead
@fairlead.function(python="/opt/torch/.venv/bin/python3", volumes=["torch", "weights"])
def f(event): return event
""")
    assert found.tags == {"gpu:volumes": "torch weights"} and found.python is None
    built = bundle.build(found, tmp_path / "bundle")
    assert (built / "bootstrap").read_text().startswith("#!/opt/torch/.venv/bin/python3\n")
    plain = bundle.build(said(tmp_path, "def handler(e): pass"), tmp_path / "plain")
    assert (plain / "bootstrap").read_text().startswith("#!/usr/bin/python3\n")


@pytest.mark.parametrize("text", ["NEEDS: list = ['six']", "NEEDS = ['six']\ndef g():\n  NEEDS = 1", "\ufeffNEEDS = ['six']\r\n",
                                  "# -*- coding: latin-1 -*-\nNEEDS = ['six']"], ids=range(4))
def test_a_name_stands_for_its_literal(tmp_path, text):
    found = said(tmp_path, f"{text}\nimport fairlead\n@fairlead.function(requirements=NEEDS)\ndef f(e): pass")
    assert found.requirements == ["six"]


@pytest.mark.parametrize("text", ["NEEDS += ['numpy']", "NEEDS.append('numpy')", "if 1: NEEDS = []", "for NEEDS in []: pass", "NEEDS[0] = 'numpy'",
                                  "from x import NEEDS", "def g():\n  global NEEDS\n  NEEDS = []", "NEEDS, x = 1, 2", "del NEEDS"])
def test_a_name_that_may_be_another_is_refused(tmp_path, text):
    with pytest.raises(DeclarationError, match="requirements is no literal, nor a name"):
        said(tmp_path, f"import fairlead\nNEEDS = ['six']\n{text}\n@fairlead.function(requirements=NEEDS)\ndef f(e): pass")


def test_the_decorator_leaves_the_handler_as_it_is():
    assert fairlead.function(lambda x: x + 1)(1) == 2
    assert fairlead.function(gpu_memory="1Gi")(lambda x: x + 1)(1) == 2
    with pytest.raises(TypeError, match="gpu_mem"):
        fairlead.function(gpu_mem="1Gi")


@pytest.mark.parametrize("text, why", [
    ("@fairlead.function(gpu_memory='4GB')\ndef f(e): pass", "f.py:2: gpu_memory is '4GB'"),
    ("@fairlead.function(gpu_memory='0.3Mi')\ndef f(e): pass", "1 to 1048576 MiB"),
    ("@fairlead.function(gpu_memory=True)\ndef f(e): pass", "gpu_memory is True"),
    ("@fairlead.function(gpu_memory=-1)\ndef f(e): pass", "gpu_memory is -1"),
    ("@fairlead.function(gpu_memory='99999999999999999999Ti')\ndef f(e): pass", "gpu_memory is"),
    ("@fairlead.function(objective_ms=1.5)\ndef f(e): pass", "objective_ms is 1.5"),
    ("@fairlead.function(requirements='numpy')\ndef f(e): pass", "list of texts"),
    ("@fairlead.function(requirements=[open('/etc/passwd').read()])\ndef f(e): pass", "is no literal"),
    ("@fairlead.function(replicas='many')\ndef f(e): pass", "replicas is 'many'"),
    ("@fairlead.function(environment={'A': 1})\ndef f(e): pass", "dict of texts"),
    ("@fairlead.function(name='größe')\ndef f(e): pass", "letters, digits"),
    ("@fairlead.function\ndef größe(e): pass", "letters, digits"),
    ("@fairlead.function(python='2.7')\ndef f(e): pass", "version like"),
    ("@fairlead.function(python='/opt/a b/python3')\ndef f(e): pass", "absolute path"),
    ("@fairlead.function(python='/opt/x\\n/bin/sh')\ndef f(e): pass", "absolute path"),
    ("@fairlead.function(python='/" + "a" * 120 + "')\ndef f(e): pass", "at most 120"),
    ("@fairlead.function(python='/opt/v/bin/python3', requirements=['six'])\ndef f(e): pass", "install them there"),
    ("@fairlead.function(egress=443)\ndef f(e): pass", "egress is 443; it must be none, all"),
    ("@fairlead.function(egress='')\ndef f(e): pass", "egress is ''"),
    ("@fairlead.function(egress=['http://a b'])\ndef f(e): pass", "ADDRESS/BITS"),
    ("@fairlead.function(inputs=['x'])\ndef f(e): pass", "inputs is ['x']; it must be a dictionary"),
    ("@fairlead.function(outputs={'y': 'f32'})\ndef f(e): pass", "TYPE[SIZES]"),
    ("@fairlead.function(inputs={'x y': 'f32[1]'})\ndef f(e): pass", "a name of letters"),
    ("@fairlead.function(inputs={1: 'f32[1]'})\ndef f(e): pass", "a name of letters"),
    ("@fairlead.function(inputs={'x': 3})\ndef f(e): pass", "TYPE[SIZES]"),
    ("@fairlead.function(batch='many')\ndef f(e): pass", "batch is 'many'"),
    ("@fairlead.function(batch=True)\ndef f(e): pass", "batch is True"),
    ("@fairlead.function(volumes='torch')\ndef f(e): pass", "list of names"),
    ("@fairlead.function(volumes=['../etc'])\ndef f(e): pass", "list of names"),
    ("@fairlead.function('f')\ndef f(e): pass", "by name"),
    ("@fairlead.function(**{})\ndef f(e): pass", "no argument"),
    ("@fairlead.function(gpus=1)\ndef f(e): pass", "no argument gpus"),
    ("@fairlead.function\nclass F: pass", "is a class"),
    ("def f(e:\n", "f.py:2"),
    ("def f(e): pass", "declares no function"),
    ("x = " + "(" * 5000, "f.py"),
    ("\0", "f.py"),
], ids=range(37))
def test_what_cannot_be_is_refused_by_file_and_line(tmp_path, text, why):
    with pytest.raises(DeclarationError) as error:
        found = said(tmp_path, f"import fairlead\n{text}")
        bundle.check(found)
    assert why in str(error.value)


def test_of_several_functions_one_is_named(tmp_path):
    text = "from fairlead import function as gpu\n@gpu\ndef a(e): pass\n@gpu(name='second')\ndef b(e): pass\ndef plain(e): pass"
    with pytest.raises(DeclarationError, match="declares a, b: which one"):
        said(tmp_path, text)
    assert said(tmp_path, text, "a").handler == "a"
    assert said(tmp_path, text, "second").handler == "b" == said(tmp_path, text, "b").handler
    assert said(tmp_path, text, "plain").name == "plain"
    with pytest.raises(DeclarationError, match="has no function c; it has a, b, plain"):
        said(tmp_path, text, "c")


def test_another_library_s_function_is_not_ours(tmp_path):
    with pytest.raises(DeclarationError, match="declares no function"):
        said(tmp_path, "import modal, fairlead\n@modal.function(gpu='A100')\ndef f(e): pass")


def test_a_folder_is_its_handler_and_its_requirements(tmp_path):
    folder = tmp_path / "Größe von Dingen"
    folder.mkdir()
    (folder / "handler.py").write_text("def handler(event): return event")
    (folder / "requirements.txt").write_text("# what it needs\nnumpy>=1.26,<3  # arrays\n\n")
    found = bundle.find(str(folder), "sizes")
    assert (found.name, found.handler) == ("sizes", "handler") and layers.checked(found.requirements) == ["numpy>=1.26,<3"]
    with pytest.raises(DeclarationError, match="letters, digits"):
        bundle.check(bundle.find(str(folder)))
    assert bundle.find(f"{folder}:handler", "x").handler == "handler"
    with pytest.raises(DeclarationError, match="no handler.py"):
        bundle.find(str(tmp_path))


# ---- requirements

@pytest.mark.parametrize("line, why", [
    ("--index-url https://evil.example/simple", "options"), ("-e ..", "options"), ("-r /etc/passwd", "other files"),
    ("-c pins.txt", "other files"), ("numpy==1 --hash=sha256:00", "hashes"), ("numpy==1 \\", "hashes"),
    ("numpy ; python_version > '3' --pre", "options"), ("numpy; python_version > '3'\t--pre", "options"),
    ("../x", "a path"), ("./x", "a path"), ("/etc", "a path"), ("x/y", "a path"),
    ("..\\x", "a path"), ("git+https://host/x", "an address"), ("x @ file:///etc", "an address"), ("x@ https://h/x.whl", "an address"),
    ("${HOME}", "no name"), ("x; \\", "hashes"), ("x y", "no name"), ("größe", "no name"), ("x" * 2000, "2000 characters"),
    
    ("x\n--index-url=y", "options"), ("x ; python_version < '3' # \n -e .", "option"), ("x==1\r-e ..", "options"), ("x\0", "no name"),
], ids=range(25))
def test_a_requirement_is_a_name_with_versions(line, why):
    with pytest.raises(LayerError, match=why):
        layers.checked([line])


def test_requirements_are_compared_without_order_comments_and_blanks():
    given = ["numpy >= 1.26,<3", "", "# a comment", "six  # another", "uvicorn[standard]==0.3.*; python_version >= '3.8'", "a.b-c_d~=1.0"]
    assert layers.checked(given) == layers.checked([*reversed(given), "six"])
    with pytest.raises(LayerError, match="501 requirements"):
        layers.checked(["six"] * 501)
    digests = {layers.digest_of(*what) for what in ((["six"], "3.11"), (["six"], "3.12"), (["six==1"], "3.11"), ([], "3.11"))}
    assert len(digests) == 4


def test_a_requirements_file_is_read_whole_or_not(tmp_path):
    """A list that pip-compile has commented at length is one; the end of a file that is too long is not left out silently."""
    file = tmp_path / "requirements.txt"
    file.write_bytes(b"\xef\xbb\xbfsix\r\n" + b"    # via\r\n" * 1000 + "# größe\r\nnumpy==1.26.4".encode())
    assert layers.checked(layers.read_requirements(file)) == ["numpy==1.26.4", "six"]
    file.write_text("six\n" + "#" * layers.MOST_FILE_BYTES + "\nnumpy\n")
    with pytest.raises(LayerError, match="more than 500000 bytes"):
        layers.read_requirements(file)


# ---- layers

@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "cache"))
    only_these(monkeypatch, tmp_path / "wheels")
    make_wheel(tmp_path / "wheels", "first", requires=["second"])
    make_wheel(tmp_path / "wheels", "second", "2.0")
    return tmp_path / "cache"


def left_behind(cache):
    return [path.name for path in (cache / "layers").iterdir() if not path.name.endswith(".lock")]


def test_a_layer_is_installed_once(cache):
    notes = []
    place = layers.layer(["first"], PYTHON, notes.append)
    assert (place / "first.py").is_file() and (place / "second.py").is_file() and place.parent == cache / "layers"
    assert list((place / "__pycache__").glob("first.*.pyc")), "an instance need not compile it"
    assert left_behind(cache) == [place.name] and len(notes) == 1
    shutil.rmtree(cache.parent / "wheels")  # so that nothing could be installed
    assert layers.layer(["first  # the same"], PYTHON, notes.append) == place and len(notes) == 1
    assert layers.layer([], PYTHON, notes.append) is None


@pytest.mark.parametrize("name, value", [
    ("PIP_NO_DEPS", "1"), ("PIP_CONSTRAINT", "{}/pins.txt"), ("PIP_PYTHON", "/nowhere"), ("PIP_ROOT", "{}/root"), ("PIP_TARGET", "{}/root"),
    ("PIP_USER", "1"), ("PIP_DRY_RUN", "1"), ("PIP_REQUIRE_HASHES", "1"), ("PIP_PLATFORM", "win32"), ("PYTHONPATH", "{}"), ("PYTHONOPTIMIZE", "x")])
@pytest.mark.parametrize("said", ["environment", "file"])
def test_what_pip_is_told_elsewhere_changes_no_layer(cache, monkeypatch, tmp_path, name, value, said):
    (tmp_path / "pins.txt").write_text("second<2\n")
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip/__main__.py").write_text("raise SystemExit('another pip')\n")
    make_wheel(tmp_path / "wheels", "second", "1.0")
    value = value.format(tmp_path)
    if said == "environment":
        monkeypatch.setenv(name, value)
    elif name in ("PIP_PYTHON", "PIP_PLATFORM") or not name.startswith("PIP_"):
        pytest.skip("pip reads none from a file, or refuses by name what it was told there")
    else:
        (tmp_path / "pip.conf").write_text(f"[install]\n{name.removeprefix('PIP_').lower().replace('_', '-')} = {value}\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    place = layers.layer(["first"], PYTHON, lambda _: None)
    assert (place / "first.py").is_file() and "2.0" in (place / "second.py").read_text()


def test_a_pip_of_the_wanted_python_is_taken(monkeypatch):
    """Another one decides by its own version which requirements with markers count."""
    notes = []
    monkeypatch.setattr(layers.sys, "executable", "/opt/other/python3")
    monkeypatch.setattr(layers, "version_of", lambda program: {"/usr/bin/python3": PYTHON, "/opt/other/python3": "3.99"}.get(program))
    assert layers._pip(PYTHON, notes.append)[0] == "/usr/bin/python3" and not notes
    monkeypatch.setattr(layers.sys, "executable", "/usr/bin/python3")
    assert layers._pip("3.98", notes.append)[0] == "/usr/bin/python3" and "no pip for Python 3.98" in notes[0]


@pytest.mark.parametrize("what", ["cache", "cache/layers"])
def test_a_folder_that_others_may_write_gives_no_layer(cache, tmp_path, monkeypatch, what):
    place = layers.layer(["first"], PYTHON, lambda _: None)
    assert (tmp_path / what).stat().st_mode & 0o022 == 0
    (tmp_path / what).chmod(0o777)
    with pytest.raises(LayerError, match=f"{what} can be written by others.*chmod go-w"):
        layers.layer(["first"], PYTHON, lambda _: None)
    (tmp_path / what).chmod(0o755)
    assert layers.layer(["first"], PYTHON, lambda _: None) == place
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(LayerError, match="belongs to user.*FAIRLEAD_CACHE"):
        layers.layer(["first"], PYTHON, lambda _: None)


def test_folders_are_the_user_s_alone_whatever_the_umask(cache):
    before = os.umask(0)
    try:
        place = layers.layer(["first"], PYTHON, lambda _: None)
        assert [path.stat().st_mode & 0o022 for path in (cache, cache / "layers", place)] == [0, 0, 0]
        assert not [path for path in place.rglob("*") if path.stat().st_mode & 0o022]
    finally:
        os.umask(before)


def test_layers_that_nobody_uses_go(cache, monkeypatch):
    monkeypatch.setattr(layers, "MOST_LAYERS", 2)
    long_ago = time.time() - 40 * 86400
    old = layers.layer(["first"], PYTHON, lambda _: None)
    used = layers.layer(["second"], PYTHON, lambda _: None)
    for path in (old, used):
        os.utime(path, (long_ago, long_ago))
    left = cache / "layers/.building-0123-x"
    left.mkdir()
    os.utime(left, (long_ago, long_ago))
    assert layers.layer(["second"], PYTHON, lambda _: None) == used
    third = layers.layer(["second>=1"], PYTHON, lambda _: None)
    assert sorted(left_behind(cache)) == sorted([used.name, third.name])
    hours_ago = time.time() - 2 * layers.IN_USE_SECONDS
    os.utime(used, (hours_ago, hours_ago))
    fourth = layers.layer(["second>=0"], PYTHON, lambda _: None)
    fifth = layers.layer(["second>=0.1"], PYTHON, lambda _: None)
    assert sorted(left_behind(cache)) == sorted([third.name, fourth.name, fifth.name]), "what may be linked to right now stays"


def test_a_pip_that_fails_says_why_and_leaves_nothing(cache):
    with pytest.raises(LayerError, match="(?s)cannot install absent for Python.*No matching distribution found for absent"):
        layers.layer(["absent"], PYTHON, lambda _: None)
    assert left_behind(cache) == []
    make_wheel(cache.parent / "wheels", "absent")
    assert layers.layer(["absent"], PYTHON, lambda _: None), "the failure is not kept"


def test_an_index_that_cannot_be_reached_is_named_as_the_cause(cache, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(LayerError, match="(?s)index cannot be reached from this machine.*127.0.0.1"):
        layers.layer(["absent"], PYTHON, lambda _: None)
    assert left_behind(cache) == []


def test_a_source_distribution_is_not_run(cache):
    """It would run its setup.py on this machine."""
    source = cache.parent / "evil-1.0"
    source.mkdir()
    (source / "setup.py").write_text(f"open({str(cache.parent / 'ran')!r}, 'w')\nimport setuptools; setuptools.setup(name='evil')")
    shutil.make_archive(str(cache.parent / "wheels/evil-1.0"), "gztar", cache.parent, "evil-1.0")
    with pytest.raises(LayerError, match="from wheels"):
        layers.layer(["evil"], PYTHON, lambda _: None)
    assert not (cache.parent / "ran").exists()


def test_time_and_size_of_a_build_are_bounded(cache, monkeypatch):
    make_wheel(cache.parent / "wheels", "large", files={"large.py": "x = 1\n" * 1_000_000})
    with pytest.raises(LayerError, match="more than 1 MiB"):
        layers.layer(["large"], PYTHON, lambda _: None, most_bytes=1 << 20)
    stuck = cache.parent / "stuck"
    stuck.write_text("#!/bin/sh\necho it waits\nsleep 600 & wait\n")
    stuck.chmod(0o755)
    monkeypatch.setattr(layers, "_pip", lambda *_: [str(stuck)])
    with pytest.raises(LayerError, match="(?s)not done after 1 s.*it waits"):
        layers.layer(["first"], PYTHON, lambda _: None, seconds=1)
    assert left_behind(cache) == []


def build_one(started, results):
    started.wait()
    notes = []
    layers.layer(["first"], PYTHON, notes.append)
    results.put(sum("once" in note for note in notes))


def test_of_several_who_want_it_at_once_one_installs(cache):
    context = multiprocessing.get_context("fork")
    started, results = context.Barrier(4), context.Queue()
    workers = [context.Process(target=build_one, args=(started, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    assert sum(results.get(timeout=120) for _ in workers) == 1
    for worker in workers:
        worker.join()
    assert len(left_behind(cache)) == 1


def test_what_a_killed_build_left_is_no_layer(cache):
    digest = layers.digest_of(["first"], PYTHON)
    left = cache / f"layers/.building-{digest}-killed/layer"
    left.mkdir(parents=True)
    (left / "first.py").write_text("half")
    place = layers.layer(["first"], PYTHON, lambda _: None)
    assert "version" in (place / "first.py").read_text() and left_behind(cache) == [digest]


# ---- folders

def built(tmp_path, what, name=None):
    return bundle.build(bundle.find(str(what), name), tmp_path / "bundle")


def test_a_bundle_has_the_author_s_files_and_what_starts_them(tmp_path, cache):
    file = tmp_path / "f.py"
    file.write_text("import fairlead, first\n@fairlead.function(requirements=['first'])\ndef f(event): return first.version")
    (tmp_path / "beside.py").write_text("not sent")
    folder = built(tmp_path, file)
    assert sorted(path.name for path in folder.iterdir()) == [".fairlead", "bootstrap", "f.py"]
    assert os.access(folder / "bootstrap", os.X_OK)
    assert json.loads((folder / ".fairlead/function.json").read_text()) == {"file": "f.py", "handler": "f", "raw": False, "python": PYTHON, "model": False}
    layer = next(path for path in (cache / "layers").iterdir() if not path.name.endswith(".lock"))
    assert os.path.samefile(folder / ".fairlead/layer/first.py", layer / "first.py"), "a link and no copy"
    program = ("import sys, json; sys.path[:0] = [sys.argv[1] + '/.fairlead/' + x for x in ('layer', 'lib')]\n"
               "from fairlead.author import serve\n"
               "handler = serve.load(sys.argv[1], json.load(open(sys.argv[1] + '/.fairlead/function.json')))\n"
               "print(handler(None), sorted(m for m in sys.modules if m.startswith('fairlead.')))")
    done = subprocess.run(["/usr/bin/python3", "-I", "-c", program, folder], capture_output=True, text=True, check=True)
    assert done.stdout == "1.0 ['fairlead.author', 'fairlead.author.declaration', 'fairlead.author.serve', 'fairlead.safetensors', 'fairlead.values']\n", "the client is not imported"


def test_a_file_that_imports_what_lies_beside_it_is_warned_of(tmp_path, cache):
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "package/deep").mkdir(parents=True)
    (tmp_path / "package/one.py").write_text("")
    (tmp_path / "json.py").write_text("")
    notes = []
    (tmp_path / "f.py").write_text("import fairlead, json, numpy\n@fairlead.function\ndef f(event):\n"
                                   "  import helper.x\n  from package import one\n")
    bundle.build(bundle.find(str(tmp_path / "f.py")), tmp_path / "bundle", notes.append)
    assert len(notes) == 1 and "f.py imports helper, package, which lies beside it" in notes[0] and "handler.py" in notes[0]


def test_a_folder_of_10000_files_with_links_and_leftovers(tmp_path, cache):
    folder = tmp_path / "many"
    for i in range(100):
        (folder / f"d{i}").mkdir(parents=True)
        for j in range(100):
            (folder / f"d{i}/f{j}").touch()
    (folder / "handler.py").write_text("def handler(e): return e")
    for unwanted in (".git", "__pycache__", ".venv"):
        (folder / unwanted).mkdir()
        (folder / unwanted / "x").touch()
    (folder / "link").symlink_to("d0/f0")
    (folder / "ключ.txt").write_text("unicode")
    os.mkfifo(folder / "fifo")
    out = built(tmp_path, folder)
    assert sum(len(names) for _, _, names in os.walk(out / "d0")) == 100 and len(list(out.glob("d*"))) == 100
    assert (out / "link").is_symlink() and (out / "ключ.txt").read_text() == "unicode"
    assert not (out / ".git").exists() and not (out / ".venv").exists() and not (out / "fifo").exists()


def test_files_that_vanish_while_they_are_read_are_left_out(tmp_path, cache, monkeypatch):
    folder = tmp_path / "busy"
    folder.mkdir()
    (folder / "handler.py").write_text("def handler(e): return e")
    for name in ("a", "b", "c"):
        (folder / name).write_text(name)
    copy = bundle._copy_file

    def vanish(source, target):
        if source.name == "b":
            source.unlink()
        copy(source, target)

    monkeypatch.setattr(bundle, "_copy_file", vanish)
    out = built(tmp_path, folder)
    assert {path.name for path in out.iterdir()} == {".fairlead", "bootstrap", "handler.py", "a", "c"}


def test_a_folder_with_a_bootstrap_of_its_own_is_not_replaced(tmp_path, cache):
    (tmp_path / "x").mkdir()
    (tmp_path / "x/handler.py").write_text("def handler(e): return e")
    (tmp_path / "x/bootstrap").touch()
    with pytest.raises(DeclarationError, match="bootstrap of its own"):
        built(tmp_path, tmp_path / "x")


def test_a_bundle_of_yesterday_goes(tmp_path, cache):
    cache.mkdir()
    old, new = cache / "bundle-old", cache / "bundle-new"
    old.mkdir(), new.mkdir()
    os.utime(old, (0, 0))
    bundle.new_folder()
    assert not old.exists() and new.exists()


# ---- in an instance

class Event:
    def __init__(self, payload):
        self.payload, self.request_id = payload, "id"


def test_a_payload_is_what_it_says():
    numpy = pytest.importorskip("numpy")
    call = serve.caller(lambda event: event, raw=False)
    assert call(Event(b"")) is None and call(Event(b'{"n": 1}')) == {"n": 1} and call(Event(b"\xff")) == b"\xff"
    array = numpy.arange(6, dtype="f4").reshape(2, 3)
    sent = serve.encoded(array)
    assert sent.startswith(values.NPY) and (values.from_payload(call(Event(sent))) == array).all()
    assert serve.encoded(numpy.float32(2)) == 2.0 and serve.encoded("5") == b'"5"', "a text stays a text"
    assert serve.caller(lambda event: event, raw=True)(Event(b"1")) == b"1"
    with pytest.raises(ValueError, match="allow_pickle=False|pickle"):
        values.from_payload(values.NPY + b"\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(124) + b"\n" + b"cos")


def test_a_handler_called_as_a_model_gets_and_gives_arrays():
    numpy = pytest.importorskip("numpy")
    sent = safetensors.save({"x": numpy.ones((2, 3), "f4"), "n": numpy.int64(7)})
    call = serve.caller(lambda event: {"y": event["x"].sum(axis=1), "n": event["n"] + 1}, raw=False, is_model=True)
    answer = safetensors.load(call(Event(sent)))
    assert answer["y"].tolist() == [3, 3] and answer["y"].dtype == "f4" and answer["n"] == 8 and answer["n"].shape == ()
    assert serve.caller(lambda event: {"y": 1}, raw=False, is_model=True)(Event(b"{}")) == {"y": 1}, "a call that is JSON is answered as ever"
    assert serve.caller(lambda event: "no", raw=False, is_model=True)(Event(sent)) == b'"no"'
    assert serve.caller(lambda event: {"bytes": len(event)}, raw=False)(Event(sent)) == {"bytes": len(sent)}, "who is no model gets what is sent"
    with pytest.raises(TypeError, match="'y' is of type list; it must be an array"):
        serve.caller(lambda event: {"y": [1]}, raw=False, is_model=True)(Event(sent))
    assert serve.caller(lambda event: event, raw=True, is_model=True)(Event(sent)) == sent


def test_numpy_s_numbers_in_an_answer_are_numbers(monkeypatch):
    numpy = pytest.importorskip("numpy")
    monkeypatch.syspath_prepend(str(ROOT / "functions/runtime/python"))
    runtime = importlib.import_module("fairlead_runtime")

    def sent(result):
        return runtime._encode(serve.encoded(result))

    text, kind = sent({"mean": numpy.float32(0.5), "n": [numpy.int64(3)], "all": numpy.arange(2)})
    assert json.loads(text) == {"mean": 0.5, "n": [3], "all": [0, 1]} and kind == "application/json"
    assert sent(numpy.float32(0.5)) == (b"0.5", "application/json")
    with pytest.raises(TypeError, match="set is not JSON"):
        sent({"a": {1}})


def test_a_handler_may_take_the_context_or_wait():
    assert serve.caller(lambda event, context: (event, context.request_id), raw=False)(Event(b"1")) == (1, "id")
    assert serve.caller(lambda event, more=3: more, raw=False)(Event(b"1")) == 3

    async def wait(event):
        return event + 1

    assert serve.caller(wait, raw=False)(Event(b"1")) == 2


def test_another_decorator_may_hide_that_a_handler_is_async():
    async def late(event):
        return event["n"] + 1

    class Handler:
        async def __call__(self, event):
            return event["n"] + 1

    for handler in (lambda *event: late(*event), Handler()):
        call = serve.caller(handler, False)
        assert [call(Event(b'{"n": 1}')), call(Event(b'{"n": 2}'))] == [2, 3]


def test_what_is_yielded_is_given_part_by_part():
    ended = []

    def numbers(event):
        try:
            yield from range(event["n"])
        finally:
            ended.append("plain")

    async def later(event):
        try:
            for number in range(event["n"]):
                await asyncio.sleep(0)
                yield number
        finally:
            ended.append("async")

    for handler in (numbers, later):
        parts = serve.caller(handler, False)(Event(b'{"n": 3}'))
        assert list(parts) == [0, 1, 2]
        left = serve.caller(handler, False)(Event(b'{"n": 3}'))
        assert next(left) == 0
        left.close()
    assert ended == ["plain"] * 2 + ["async"] * 2


@pytest.mark.parametrize("text, why", [
    ("x = 1", "handler of .*py does not exist"), ("handler = 3", "is of type int, which cannot be called"),
    ("import sys; sys.exit(3)", "ended while it was loaded: SystemExit: 3"),
])
def test_a_module_that_cannot_serve_says_why(tmp_path, text, why):
    file = tmp_path / f"broken{abs(hash(text))}.py"
    file.write_text(text)
    with pytest.raises(serve.Unusable, match=why):
        serve.load(str(tmp_path), {"file": file.name, "handler": "handler", "python": None})


def test_requirements_for_another_python_are_noticed(tmp_path):
    with pytest.raises(serve.Unusable, match="installed for Python 3.4"):
        serve.load(str(tmp_path), {"file": "x.py", "handler": "handler", "python": "3.4"})


@pytest.mark.parametrize("name", ["json.py", "my-model.py", "größe.py"])
def test_a_file_may_be_called_like_anything(tmp_path, name):
    (tmp_path / name).write_text(f"import json\ndef handler(event): return json.dumps({name!r})")
    handler = serve.load(str(tmp_path), {"file": name, "handler": "handler", "python": None})
    sys.path.remove(str(tmp_path))
    assert json.loads(handler(None)) == name


def test_the_runtime_is_found_in_the_sources():
    assert bundle.functions_folder().samefile(ROOT / "functions")
    assert pathlib.Path(fairlead.__file__).parent == ROOT / "python/fairlead"
