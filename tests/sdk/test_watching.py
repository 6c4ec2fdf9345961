"""Changes that count, templates that write over nothing."""

import os
import shutil
import threading

import pytest
import sdk_paths  # noqa: F401  puts the package on the path

from fairlead.author import dev, templates, watching
from fairlead.author.declaration import DeclarationError
from fairlead.author.watching import Watch

SOON, LATER = 0.1, 60


def write(path, text="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_change_is_noticed_however_an_editor_writes_it(tmp_path):
    write(tmp_path / "a.py")
    with Watch(tmp_path) as watch:
        assert not watch.wait(SOON)
        write(tmp_path / "a.py", "in place")
        assert watch.wait(LATER)
        write(tmp_path / ".a.py.new", "by rename")
        os.replace(tmp_path / ".a.py.new", tmp_path / "a.py")
        assert watch.wait(LATER)
        (tmp_path / "a.py").unlink()
        assert watch.wait(LATER) and not watch.wait(SOON)


def test_what_editors_and_python_leave_does_not_count(tmp_path):
    with Watch(tmp_path) as watch:
        for name in (".git/index", "__pycache__/a.pyc", ".a.py.swp", "a.py~", "4913", "a.tmp"):
            write(tmp_path / name)
        assert not watch.wait(SOON)


def test_new_folders_are_watched_and_so_is_what_is_in_them(tmp_path):
    write(tmp_path / "old/deep/f")
    with Watch(tmp_path) as watch:
        write(tmp_path / "old/deep/f", "changed")
        assert watch.wait(LATER)
        (tmp_path / "new").mkdir()
        assert watch.wait(LATER)
        write(tmp_path / "new/g")
        assert watch.wait(LATER)


def test_a_folder_that_comes_and_goes_at_once_ends_nothing(tmp_path):
    """As builds make them: it is gone before it can be watched."""
    with Watch(tmp_path) as watch:
        for _ in range(20):
            (tmp_path / "scratch").mkdir()
            (tmp_path / "scratch").rmdir()
        assert watch.wait(LATER)
        write(tmp_path / "f")
        assert watch.wait(LATER)


@pytest.mark.parametrize("only", [None, "f"])
@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_a_folder_that_is_made_anew_is_watched_again(tmp_path, only, how):
    """Another branch that has it too, a generator that begins with an empty one, a copy that is put in its place."""
    folder = tmp_path / "project"
    write(folder / "f")
    write(folder / "deep/f")
    with Watch(folder, only) as watch:
        if how == "renamed":
            folder.rename(tmp_path / "old")
        else:
            shutil.rmtree(folder)
        while watch.wait(SOON):  # of what went with it
            pass
        write(folder / "f", "new")
        assert watch.wait(LATER)
        assert not watch.wait(SOON)
        write(folder / "f", "changed")
        assert watch.wait(LATER)
        if how == "renamed":
            write(tmp_path / "old/f", "changed")
            assert not watch.wait(SOON)


def test_one_file_is_watched_alone(tmp_path):
    write(tmp_path / "a.py")
    with Watch(tmp_path, "a.py") as watch:
        write(tmp_path / "b.py")
        assert not watch.wait(SOON)
        write(tmp_path / "a.py", "y")
        assert watch.wait(LATER)


def test_a_burst_is_one_change_and_an_endless_one_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "MOST_SECONDS", 0.5)
    end = threading.Event()

    def keep_writing():
        while not end.is_set():
            write(tmp_path / "a")

    with Watch(tmp_path) as watch:
        for number in range(100):
            write(tmp_path / f"f{number}")
        assert watch.wait(LATER) and not watch.wait(SOON)
        writer = threading.Thread(target=keep_writing)
        writer.start()
        assert watch.wait(LATER)
        end.set()
        writer.join()


def test_what_cannot_be_watched_says_why(tmp_path, monkeypatch):
    with pytest.raises(OSError, match="cannot be watched: No such file"):
        Watch(tmp_path / "absent")
    monkeypatch.setattr(watching, "MOST_FOLDERS", 3)
    for number in range(5):
        (tmp_path / f"d{number}").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="more than 3 folders"):
        Watch(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_met_no_node_is_deployed_when_there_is_one(tmp_path, monkeypatch):
    """Without another change: who saved while the node restarted has his version there afterwards."""
    write(tmp_path / "project/handler.py", "def handler(event): pass\n")
    write(tmp_path / "fairlead", f"#!/bin/sh\necho try >>{tmp_path}/tries\n"
          f"[ $(wc -l <{tmp_path}/tries) -ge 3 ] || {{ echo no node answers; exit 4; }}\n")
    (tmp_path / "fairlead").chmod(0o755)
    monkeypatch.setenv("FAIRLEAD_PROGRAM", str(tmp_path / "fairlead"))
    monkeypatch.setattr(dev, "RETRY_S", 0.01)
    said = []
    target = dev.Target(str(tmp_path / "project"), None)
    with Watch(target.folder) as watch:
        assert dev.deploy_when_there_is_a_node(target, [], said.append, watch) == "project"
    assert said == [f"waiting for changes of {tmp_path}/project, and for a node"], "once, not every two seconds"
    assert (tmp_path / "tries").read_text() == "try\n" * 3


@pytest.mark.parametrize("language", templates.LANGUAGES)
def test_a_template_has_its_name_and_writes_over_nothing(tmp_path, language, capsys):
    templates.new(language, str(tmp_path / "made-of-it"), lambda _: None)
    files = {path.name: path.read_text() for path in (tmp_path / "made-of-it").iterdir()}
    assert any("made-of-it" in text for text in files.values()) and not any("hello-" in text for text in files.values())
    assert "made-of-it" in capsys.readouterr().out
    with pytest.raises(DeclarationError, match="nothing is written over"):
        templates.new(language, str(tmp_path / "made-of-it"), lambda _: None)
    assert files == {path.name: path.read_text() for path in (tmp_path / "made-of-it").iterdir()}


def test_a_template_s_place_must_be_new(tmp_path):
    (tmp_path / "empty").mkdir()
    templates.new("python", str(tmp_path / "empty"), lambda _: None)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, why in (("file", "there already"), ("link", "there already"), ("größe", "letters, digits"), ("file/x", "cannot be made"),
                      ("x" * 65, "letters, digits")):
        with pytest.raises(DeclarationError, match=why):
            templates.new("python", str(tmp_path / name), lambda _: None)
    assert (tmp_path / "file").read_text() == "" and not (tmp_path / "nowhere").exists()
