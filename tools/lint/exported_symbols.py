#!/usr/bin/env python3
"""A library offers its own names and no others.

The software GPU's libraries stand in for the driver's, in processes that are not ours: what they export beside cu*,
cuda* and nvml* can clash with the host's own symbols. The program exports nothing of the platform.
"""
import re
import subprocess

import tree

# pattern of paths under a build folder -> what the file may export
EXPORTS = {
    "lib/softgpu/*.so*": re.compile(r"(__)?cu(da)?[A-Z]\w*|nvml[A-Z]\w*|libcudart\.so\.\d+"),
    "lib/libfairlead-shim.so": re.compile(r"cu[A-Z]\w*|nvml[A-Z]\w*|dlsym|dlopen"),
}
PROGRAM = "bin/fairlead"
OURS = re.compile(r"\w*8fairlead\w*")  # a mangled fairlead::


def exported(path):
    names = subprocess.run(["nm", "-D", "--defined-only", "--format=just-symbols", path], capture_output=True, text=True,
                           check=True).stdout.split()
    # A versioned name reads name@@VERSION, and a version itself is an absolute symbol.
    return [name.split("@")[0] for name in names if not re.fullmatch(r"[A-Z]+\w*_[0-9.]+", name)]


def unexpected(path, allowed):
    return [name for name in exported(path) if not allowed.fullmatch(name)]


def check(root):
    problems = []
    for build in (root / "build", root / "build-portable"):
        for pattern, allowed in EXPORTS.items():
            for path in sorted(build.glob(pattern)):
                if path.is_symlink():
                    continue
                problems += [f"{path.relative_to(root)}: exports {name}; hide it" for name in unexpected(path, allowed)]
        program = build / PROGRAM
        if program.is_file():
            problems += [f"{program.relative_to(root)}: exports {name}; hide it"
                         for name in exported(program) if OURS.fullmatch(name)]
    return problems


if __name__ == "__main__":
    tree.main(check, __doc__)
