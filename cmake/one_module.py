"""The console's own JavaScript modules as one: fewer requests, and a fifth fewer bytes once compressed.

    // live.js                                  const $live = (() => {
    export const live = ...;                    const live = ...;
                                         ->     return {live};
    // app.js                                   })();
    import {live} from "./live.js";             const {live} = $live;

No parser: it knows the forms in which src/edge/console/site is written, and says so of any other. Comments that fill a line and indentation go, which
neither JavaScript nor the templates (htm) look at.
"""
import pathlib
import re

IMPORT = re.compile(r'^import (?:\{(\w+(?:, \w+)*)\}|(\w+)) from "\./([\w/]+)\.js";$')
EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))")
EXPORT_LIST = re.compile(r"^export \{(\w+(?:, \w+)*)\};$")


class Unknown(ValueError):
    """A form that is not known here."""


def read_module(path):
    """(body, exported names, own modules it needs, imports of vendor files)"""
    body, exported, needs, vendor = [], [], [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("//"):
            continue
        if found := IMPORT.match(line):
            if found[3].startswith("vendor/"):
                vendor.append(line)
                continue
            needs.append(found[3])
            line = f"const {{{found[1]}}} = ${found[3]};"
        elif found := EXPORT_LIST.match(line):
            exported += [name.strip() for name in found[1].split(",")]
            continue
        elif found := EXPORT.match(line):
            exported.append(found[2])
            line = line.removeprefix("export ")
        elif line.startswith(("import ", "export ")):
            raise Unknown(f"{path}:{number}: {line}: write it as cmake/one_module.py knows it")
        body.append(line)
    return body, exported, needs, vendor


def one_module(folder, first="app"):
    """The text of `first` with all it needs, each before those who need it."""
    done, vendor, parts = set(), [], []

    def add(name, above):
        if name in above:
            raise Unknown(f"{name}.js needs itself, by way of {' '.join(above)}")
        if name in done:
            return
        body, exported, needs, imports = read_module(pathlib.Path(folder) / f"{name}.js")
        for other in needs:
            add(other, [*above, name])
        vendor.extend(line for line in imports if line not in vendor)
        text = "\n".join(body)
        parts.append(f"const ${name} = (() => {{\n{text}\nreturn {{{', '.join(exported)}}};\n}})();")
        done.add(name)

    add(first, [])
    return "\n".join([*vendor, *parts]) + "\n"
