"""The folder that a node runs, from a file or a folder of an author:

    bootstrap                   what the node starts
    .fairlead/function.json     which handler of which file
    .fairlead/lib/              this package and the Runtime API's client
    .fairlead/layer/            the requirements, as hard links to their layer where the file system has them
    hello.py ...                the author's

Files that vanish while they are read (an editor's, a download's) are left out: the next deploy finds what is there then."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import stat
import tempfile
import time
from typing import Any, Callable, Iterator

from fairlead.author import layers
from fairlead.author.declaration import NAME, Declaration, DeclarationError, read, siblings

OWN = ".fairlead"
BOOTSTRAP = """#!{interpreter}
import sys
sys.path[:1] = ["/var/task/.fairlead/layer", "/var/task/.fairlead/lib"]  # and not what lies beside this: a json.py is no library's
sys.dont_write_bytecode = True
from fairlead.author.serve import main
main()
"""
LEFT_OUT = {"__pycache__", OWN, "node_modules"}
MOST_FILES = 200_000
RUNTIME = "runtime/python/fairlead_runtime.py"
LEFT_SECONDS = 86400


def find(said: str, name: str | None = None) -> Declaration:
    """The function that FILE.py, FILE.py:NAME, FOLDER or FOLDER:NAME means. A folder's function is in handler.py."""
    path, handler = pathlib.Path(said), None
    if not path.exists() and ":" in said:
        text, _, handler = said.rpartition(":")
        path = pathlib.Path(text)
    if path.is_dir():
        path = path / "handler.py"
        if not path.is_file():
            raise DeclarationError(f"{path.parent} has no handler.py (nor bootstrap, task.json, pipeline.json): what is to run?")
    found = read(path, handler)
    listed = path.parent / "requirements.txt"
    if path.name == "handler.py" and listed.is_file():
        found.requirements += layers.read_requirements(listed)
    if name:
        found = dataclasses.replace(found, name=name)
    return found


def check(declaration: Declaration) -> None:
    """What of it a node would refuse."""
    if not NAME.fullmatch(declaration.name):
        raise DeclarationError(f"{declaration.file}: a function's name is {declaration.name!r}; it must be 1 to 64 letters, digits, - and _: "
                               f"say name=\"...\" to fairlead.function, or fairlead deploy NAME {declaration.file}")
    if declaration.requirements and declaration.interpreter != Declaration.interpreter:
        raise DeclarationError(f"{declaration.file}: requirements are installed for the node's own Python, and python is {declaration.interpreter}: "
                               "install them there, and leave requirements out")


def python_of(declaration: Declaration) -> str:
    """The version that the function runs on: as declared, else this machine's /usr/bin/python3, which is what a node here has."""
    return declaration.python or layers.version_of("/usr/bin/python3") or "3.11"


def build(declaration: Declaration, target: pathlib.Path, say: Callable[[str], None] = lambda _: None,
          cache: pathlib.Path | None = None) -> pathlib.Path:
    """Fills `target`, which is empty or absent, and gives it back."""
    check(declaration)
    if declaration.file.name != "handler.py" and (beside := siblings(declaration.file)):
        say(f"{declaration.file.name} imports {', '.join(beside)}, which lies beside it; a file is deployed alone. If it is needed, put both "
            "into a folder, call the file handler.py, and deploy the folder")
    python = python_of(declaration)
    layer = layers.layer(declaration.requirements, python, say, cache)
    own = target / OWN
    own.mkdir(parents=True)
    target.chmod(0o755)
    _copy_author(declaration, target)
    _write(target / "bootstrap", BOOTSTRAP.format(interpreter=declaration.interpreter), 0o755)
    _write(own / "function.json", json.dumps({"file": declaration.file.name, "handler": declaration.handler, "raw": declaration.raw,
                                              "python": python if layer else None, "model": "gpu:model-inputs" in declaration.tags}), 0o644)
    _copy_library(own / "lib")
    if layer:
        _link_tree(layer, own / "layer")
    return target


def new_folder() -> pathlib.Path:
    """For one deploy. It lies beside the layers, so that links to them are possible; those that a killed deploy left a day ago go."""
    cache = layers.own_folder(layers.cache_folder())
    for left in cache.glob("bundle-*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    return pathlib.Path(tempfile.mkdtemp(prefix="bundle-", dir=cache))


@contextlib.contextmanager
def built(declaration: Declaration, say: Callable[[str], None] = lambda _: None) -> Iterator[pathlib.Path]:
    folder = new_folder()
    try:
        yield build(declaration, folder, say)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def document(declaration: Declaration, folder: pathlib.Path) -> dict[str, Any]:
    """What `fairlead deploy` needs to know."""
    return {"name": declaration.name, "folder": str(folder), "tags": declaration.tags,
            "configuration": {"Handler": f"{declaration.file.stem}.{declaration.handler}"[:128], **declaration.configuration}}


def _write(path: pathlib.Path, text: str, mode: int) -> None:
    path.write_text(text)
    path.chmod(mode)


def _copy_author(declaration: Declaration, target: pathlib.Path) -> None:
    source = declaration.file
    if source.name != "handler.py":
        shutil.copyfile(source, target / source.name)
        (target / source.name).chmod(0o644)
        return
    files = 0
    for path, relative in _walk(source.parent):
        files += 1
        if files > MOST_FILES:
            raise DeclarationError(f"{source.parent} has more than {MOST_FILES} files")
        if str(relative) == "bootstrap":
            raise DeclarationError(f"{path}: a folder with a bootstrap of its own is deployed as fairlead deploy NAME {source.parent}")
        with contextlib.suppress(FileNotFoundError):
            _copy_file(path, target / relative)


def _walk(folder: pathlib.Path) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT and not name.startswith("."))
        at = pathlib.Path(root)
        links = [name for name in folders if (at / name).is_symlink()]
        for name in sorted(names) + links:
            if not name.startswith("."):
                yield at / name, (at / name).relative_to(folder)


def _copy_file(source: pathlib.Path, target: pathlib.Path) -> None:
    info = os.lstat(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(source), target)  # a node refuses one that leads out
    elif stat.S_ISREG(info.st_mode):
        shutil.copyfile(source, target)
        target.chmod(0o755 if info.st_mode & 0o100 else 0o644)


def _copy_library(target: pathlib.Path) -> None:
    package = pathlib.Path(__file__).resolve().parent.parent
    for path in package.rglob("*.py"):
        place = target / "fairlead" / path.relative_to(package)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    shutil.copyfile(functions_folder() / RUNTIME, target / pathlib.Path(RUNTIME).name)


def functions_folder() -> pathlib.Path:
    """The folder `functions` of the sources, with the runtime and the templates: in a wheel beside this file, else where the sources or a
    package have it."""
    here = pathlib.Path(__file__).resolve().parent
    for place in (here / "functions", *(above / "functions" for above in here.parents[1:4])):
        if (place / RUNTIME).is_file():
            return place
    raise DeclarationError(f"{RUNTIME} is not in {here / 'functions'} nor beside the sources: install Fairlead again")


def _link_tree(layer: pathlib.Path, target: pathlib.Path) -> None:
    for root, folders, names in os.walk(layer):
        place = target / pathlib.Path(root).relative_to(layer)
        place.mkdir()
        for name in folders:
            if os.path.islink(os.path.join(root, name)):
                names.append(name)
        for name in names:
            source = os.path.join(root, name)
            try:
                os.link(source, place / name, follow_symlinks=False)
            except OSError:  # another file system, or one without links
                _copy_file(pathlib.Path(source), place / name)
