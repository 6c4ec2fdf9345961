"""What `fairlead deploy FILE.py`, `fairlead new` and `fairlead dev` run: python3 -m fairlead.author COMMAND."""

from __future__ import annotations

import argparse
import json
import shutil
import sys

from fairlead.author import bundle, templates
from fairlead.author.declaration import DeclarationError
from fairlead.author.layers import LayerError


def say(text: str) -> None:
    print(f"fairlead: {text}", file=sys.stderr, flush=True)


def build(arguments: argparse.Namespace) -> int:
    """Makes a folder that the caller removes; prints what it is."""
    found = bundle.find(arguments.what, arguments.name)
    folder = bundle.new_folder()
    try:
        bundle.build(found, folder, say)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    print(json.dumps(bundle.document(found, folder)))
    return 0


def new(arguments: argparse.Namespace) -> int:
    templates.new(arguments.lang, arguments.folder, say)
    return 0


def dev(arguments: argparse.Namespace) -> int:
    from fairlead.author.dev import run  # noqa: PLC0415  the client is not needed to build
    return run(arguments.what, arguments.name, arguments.remove, arguments.deploy, say)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m fairlead.author", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("build")
    command.add_argument("what")
    command.add_argument("--name")
    command.set_defaults(run=build)
    command = commands.add_parser("new")
    command.add_argument("--lang", choices=templates.LANGUAGES, default="python")
    command.add_argument("folder")
    command.set_defaults(run=new)
    command = commands.add_parser("dev")
    command.add_argument("what", nargs="?", default=".")
    command.add_argument("--name")
    command.add_argument("--remove", action="store_true")
    command.add_argument("--deploy", action="append", default=[])
    command.set_defaults(run=dev)
    arguments = parser.parse_args(words)
    try:
        return int(arguments.run(arguments))
    except (DeclarationError, LayerError) as error:
        say(str(error))
        return 2
    except OSError as error:
        say(error.strerror or str(error))
        return 6
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
