"""Assembles OCI images from files, with umoci and without a registry."""

import pathlib
import re
import shutil
import subprocess

TOOLS = ("crun", "skopeo", "umoci")


def missing_tool():
    """The first tool that is not installed, or None."""
    return next((tool for tool in TOOLS if shutil.which(tool) is None), None)


def run(*command, **keywords):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, timeout=120,
                          **keywords)


class Layout:
    """An OCI layout in a folder; image() adds an image of one layer and returns its reference."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        run("umoci", "init", "--layout", self.folder)

    def image(self, tag, rootfs, entry_point=(), command=(), environment=None, user=None, working_directory=None):
        name = f"{self.folder}:{tag}"
        run("umoci", "new", "--image", name)
        if rootfs is not None:
            run("umoci", "insert", "--image", name, rootfs, "/")
        settings = [f"--config.entrypoint={word}" for word in entry_point]
        settings += [f"--config.cmd={word}" for word in command]
        settings += [f"--config.env={key}={value}" for key, value in (environment or {}).items()]
        settings += [f"--config.user={user}"] if user else []
        settings += [f"--config.workingdir={working_directory}"] if working_directory else []
        run("umoci", "config", "--image", name, *settings)
        return f"oci:{name}"


def libraries(program):
    """The shared libraries that the loader finds for a program, loader included."""
    listing = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return [pathlib.Path(path) for path in re.findall(r"(/[^ )]+) \(0x", listing)]


def copy_with_libraries(rootfs, program, target=None):
    """Copies a program to `target` (by default where it is) and its libraries to where they are."""
    rootfs = pathlib.Path(rootfs)
    for source, name in [(program, target or program), *((path, path) for path in libraries(program))]:
        destination = rootfs / str(name).lstrip("/")
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, destination)
