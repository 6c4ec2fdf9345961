#!/usr/bin/env python3
"""Every header compiles alone, so that no include depends on another before it. Headers of abi/ compile as C too, those
for device code as CUDA. What cmake generates for a folder is looked for in the same folder of build/.

A header that its own source, a.cc beside a.h, includes before anything else is compiled alone by every build, and not here.
"""
import concurrent.futures
import os
import re
import subprocess

import tree

FOLDERS = ("abi", "src", "softgpu", "shim", "functions")
COMPILERS = {
    "c": [os.environ.get("CC", "gcc"), "-std=c17", "-x", "c"],
    "c++": [os.environ.get("CXX", "g++"), "-std=c++20", "-x", "c++"],
    "cuda": ["clang++-16", "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_75", "-nocudainc", "-nocudalib"],
}
SYSTEM = ("-isystem", "/usr/include/postgresql")  # libpq's headers are not where others are
FIRST_INCLUDE = re.compile(r'^#include ["<]([^">]+)[">]', re.MULTILINE)
DEVICE_ONLY = re.compile(r"^#ifndef __CUDA_ARCH__\n#error", re.MULTILINE)


def languages(root, header):
    if DEVICE_ONLY.search((root / header).read_text()):
        return ["cuda"]
    return ["c++", "c"] if header.parts[0] == "abi" else ["c++"]


def is_first_in_its_source(root, header):
    source = root / header.with_suffix(".cc")
    first = FIRST_INCLUDE.search(source.read_text()) if header.parts[0] != "abi" and source.is_file() else None
    return first is not None and header.as_posix().endswith(first.group(1))


def command(root, header, language):
    roots = [root / "src", root / "functions/runtime",
             *(base / folder for base in (root, root / "build") for folder in header.parents)]
    return [*COMPILERS[language], "-fsyntax-only", *(f"-I{folder}" for folder in roots), *SYSTEM, "-include", str(root / header),
            os.devnull]


def first_error(output):
    errors = [line for line in output.splitlines() if "error:" in line]
    return errors[0] if errors else output.strip()


def compiles(root, header, language):
    run = subprocess.run(command(root, header, language), capture_output=True, text=True)
    return None if run.returncode == 0 else f"{header}: does not compile alone ({language}): {first_error(run.stderr)}"


def check(root):
    headers = [path for path in tree.files(root, ".h") 
               if path.parts[0] in FOLDERS and not is_first_in_its_source(root, path)]
    jobs = [(header, language) for header in headers for language in languages(root, header)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda job: compiles(root, *job), jobs)
    return [problem for problem in results if problem]


if __name__ == "__main__":
    tree.main(check, __doc__)
