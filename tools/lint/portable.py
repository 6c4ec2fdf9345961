#!/usr/bin/env python3
"""What build-portable holds runs on any Linux with glibc 2.35 or newer: it asks for libc and nothing else."""
import re
import subprocess

import tree

LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1"}
NEWEST_GLIBC = (2, 35)


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def newest_glibc(path):
    """(2, 35): the newest version of glibc whose names the file asks for; (0,) for none. What `objdump -T` shows."""
    dynamic = subprocess.run(["readelf", "-VW", path], capture_output=True, text=True, check=True).stdout
    return max((tuple(map(int, version.split("."))) for version in re.findall(r"Name: GLIBC_([0-9.]+)", dynamic)), default=(0,))


def problems_of(path):
    dynamic = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    foreign = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) - LIBC
    problems = [f"needs {name}; link it statically" for name in sorted(foreign)]
    newest = newest_glibc(path)
    if newest > NEWEST_GLIBC:
        problems.append(f"needs glibc {'.'.join(map(str, newest))}, may need {'.'.join(map(str, NEWEST_GLIBC))}")
    return problems


def check(root):
    build = root / "build-portable"
    built = [path for folder in ("bin", "lib", "functions") for path in sorted((build / folder).rglob("*"))
             if path.is_file() and not path.is_symlink() and is_elf(path)]
    if not built:
        return ["build-portable: nothing was built there; run `make portable`"]
    return [f"{path.relative_to(root)}: {problem}" for path in built for problem in problems_of(path)]


if __name__ == "__main__":
    tree.main(check, __doc__)
