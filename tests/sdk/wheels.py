"""Wheels for pip that a test makes itself, so that none is fetched."""

import zipfile


def make_wheel(folder, name, version="1.0", files=None, requires=(), tag="py3-none-any"):
    """NAME-VERSION-TAG.whl in `folder` with these files ({path: text}); without any a module that says its version."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    content = dict(files or {f"{name}.py": f"version = {version!r}\n"})
    content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {one}\n" for one in requires)
    content[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
    content[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in content.items():
            archive.writestr(inside, text)
    return path


def only_these(monkeypatch, folder):
    """pip finds what is in `folder` and asks no index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
