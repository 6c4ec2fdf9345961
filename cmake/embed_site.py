#!/usr/bin/env python3
"""embed_site.py SITE VENDOR.json VENDOR_FOLDER OUTPUT.cc: the console's files as a C++ source (src/edge/console/site_file.h).

SITE is the console's own folder, whose modules become one (one_module.py); VENDOR_FOLDER has the packages that tools/console-vendor fetched, each looked at again: the digest
of VENDOR.json or none. What is not there is listed as missing, and the program says so at /console.
"""
import base64
import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile

from one_module import one_module

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}
CHUNK = 2000  # bytes of a literal's line


def package_path(folder, package):
    return folder / f"{package['name']}-{package['version']}.tgz"


def is_genuine(data, package):
    return base64.b64encode(hashlib.sha512(data).digest()).decode() == package["sha512"]


def vendor_files(data, package):
    """{path: bytes} of one package, its licence apart."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        def read(path):
            return tar.extractfile(f"package/{path}").read()

        files = {}
        for source, path in package["files"].items():
            text = read(source).decode()
            for old, new in package.get("replace", {}).items():
                text = text.replace(old, new)
            lines = [line for line in text.splitlines() if not line.startswith("//# sourceMappingURL")]
            files[path] = ("\n".join(lines) + "\n").encode()
        return files, f"{package['name']} {package['version']}\n\n{read('LICENSE').decode()}\n"


def literal(data):
    """A C++ string of any bytes."""
    def escaped(byte):
        return chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"

    lines = ["".join(map(escaped, data[at:at + CHUNK])) for at in range(0, len(data), CHUNK)] or [""]
    return "\n    ".join(f'"{line}"' for line in lines)


def source(files, missing):
    rows, texts = [], []
    for number, (path, data) in enumerate(sorted(files.items())):
        packed = gzip.compress(data, 9, mtime=0)
        tag = hashlib.sha256(data).hexdigest()[:20]
        texts.append(f"constexpr char kPlain{number}[] =\n    {literal(data)};\nconstexpr char kGzip{number}[] =\n    {literal(packed)};\n")
        rows.append(f'    {{"{path}", "{TYPES[pathlib.PurePath(path).suffix]}", "\\"{tag}\\"", {{kPlain{number}, {len(data)}}}, '
                    f"{{kGzip{number}, {len(packed)}}}}},\n")
    names = "".join(f'"{name}", ' for name in missing)
    return (f'// Made by cmake/embed_site.py.\n#include "edge/console/site_file.h"\n\n#include <array>\n\nnamespace fairlead {{\nnamespace {{\n\n'
            f'{"".join(texts)}\nconstexpr SiteFile kFiles[] = {{\n{"".join(rows)}}};\n'
            f"constexpr std::array<std::string_view, {len(missing)}> kMissing = {{{names}}};\n\n}}  // namespace\n\n"
            f"std::span<const SiteFile> site_files() {{ return kFiles; }}\n"
            f"std::span<const std::string_view> missing_site_parts() {{ return kMissing; }}\n\n}}  // namespace fairlead\n")


def main():
    site, vendor_list, folder, output = map(pathlib.Path, sys.argv[1:])
    files = {path.name: path.read_bytes() for path in site.iterdir() if path.suffix != ".js"}
    files["app.js"] = one_module(site).encode()
    missing, licenses = [], []
    for package in json.loads(vendor_list.read_text()):
        path = package_path(folder, package)
        if not path.is_file():
            missing.append(f"{package['name']} {package['version']}")
            continue
        data = path.read_bytes()
        if not is_genuine(data, package):
            sys.exit(f"{path}: its SHA-512 is not that of {vendor_list.name}; remove it and run tools/console-vendor")
        fetched, license_text = vendor_files(data, package)
        files |= fetched
        licenses.append(license_text)
    if licenses:
        files["licenses.txt"] = ("\n".join(licenses)).encode()
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(source(files, missing))


if __name__ == "__main__":
    main()
