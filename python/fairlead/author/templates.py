"""Folders to begin with: `fairlead new --lang python|cpp|triton NAME`. They are the folders functions/template-* of the sources, which the
project's own tests build and run, with the name put in. Nothing that is there is written over."""

from __future__ import annotations

import os
import pathlib
from typing import Callable

from fairlead.author.bundle import functions_folder
from fairlead.author.declaration import NAME, DeclarationError

# Language: (template, the name that its files have, other files of it, what comes next)
LANGUAGES = {
    "python": ("template-handler", "hello-handler", ["template-python/vector_add.ptx"],
               "fairlead dev {folder}\nfairlead invoke {name} -d '{{\"a\": [1, 2, 3], \"b\": [10, 20, 30]}}'"),
    "cpp": ("template-cpp", "hello-cpp", [],
            "cmake -S {folder} -B {folder}/build && cmake --build {folder}/build   # g++, cmake, clang-16\n"
            "fairlead deploy {name} {folder}/build/{name} --gpu-memory 256\nfairlead invoke {name} -d '{{\"n\": 1000}}'"),
    "triton": ("template-triton", "hello-triton", [], "pip install triton numpy\npython3 {folder}/deploy.py"),
}
_PATH = 'set(FAIRLEAD_FUNCTIONS "" CACHE'


def new(language: str, place: str, say: Callable[[str], None]) -> None:
    """Makes the folder `place`. DeclarationError: its name is none of a function, or something is there."""
    folder = pathlib.Path(place)
    name = folder.name
    if not NAME.fullmatch(name):
        raise DeclarationError(f"the name is {name!r}; it must be 1 to 64 letters, digits, - and _")
    template, old_name, more, following = LANGUAGES[language]
    functions = functions_folder()
    sources = [*sorted((functions / template).iterdir()), *(functions / path for path in more)]
    _make_empty(folder)
    for source in sources:
        if not source.is_file():
            continue
        text = source.read_text().replace(old_name, name).replace(_PATH, f'set(FAIRLEAD_FUNCTIONS "{functions}" CACHE')
        try:
            with (folder / source.name).open("x") as file:  # "x": whoever made one meanwhile keeps it
                file.write(text)
        except FileExistsError:
            raise DeclarationError(f"{folder / source.name} is there already, and stays as it is") from None
    say(f"{folder} is there; next:")
    print(following.format(folder=folder, name=name))


def _make_empty(folder: pathlib.Path) -> None:
    try:
        folder.mkdir(parents=True)
        return
    except FileExistsError:
        pass
    except OSError as error:
        raise DeclarationError(f"{folder} cannot be made: {error.strerror}") from None
    if not folder.is_dir() or any(os.scandir(folder)):
        raise DeclarationError(f"{folder} is there already, and nothing is written over: name another folder, or an empty one")
