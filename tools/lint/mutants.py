#!/usr/bin/env python3
"""The list of mutants fits the tree: each text to replace stands in its file, once. Whether tests see them says tools/mutants."""
import dataclasses
import pathlib
import tomllib

import tree

LIST = "tests/mutants.toml"
FOLDERS = ("src/base/", "src/node/", "src/runtime/", "src/store/", "src/cli/", "src/decide/", "src/edge/", "src/net/", "src/identity/", "src/model/",
           "src/gpu/", "softgpu/", "shim/")
FIELDS = {"name": str, "file": str, "text": str, "replacement": str, "tests": list}


@dataclasses.dataclass
class Mutant:
    name: str
    file: str
    text: str
    replacement: str
    tests: list  # "PROGRAM FILTER": a unit test program, and what of it is to see the mutant; all of it without a filter

    group: str = ""  # by which several are chosen together

    def applied_to(self, source):
        """The source with the bug in it. ValueError when the text is not there exactly once."""
        count = source.count(self.text)
        if count != 1:
            raise ValueError(f"{LIST}: {self.name}: its text stands {count} times in {self.file}, not once; the code has "
                             "changed: write the mutant anew")
        return source.replace(self.text, self.replacement)


def read(root):
    """The mutants of the list. ValueError says what is wrong with one."""
    mutants = []
    for fields in tomllib.loads((root / LIST).read_text()).get("mutant", []):
        name = fields.get("name", f"number {len(mutants) + 1}")
        wrong = [field for field, kind in FIELDS.items() if not isinstance(fields.get(field), kind)]
        if wrong or fields.keys() - {"group"} != FIELDS.keys():
            raise ValueError(f"{LIST}: {name}: has to have {', '.join(FIELDS)}, may have group, and nothing else")
        mutants.append(Mutant(**fields))
    return mutants


def check(root):
    if not (root / LIST).is_file():
        return []
    try:
        mutants = read(root)
    except (ValueError, tomllib.TOMLDecodeError) as error:
        return [str(error)]
    problems = []
    names = [mutant.name for mutant in mutants]
    for mutant in mutants:
        where = f"{LIST}: {mutant.name}:"
        if names.count(mutant.name) > 1:
            problems.append(f"{where} the name is taken twice")
        if not mutant.file.startswith(FOLDERS) or tree.is_test(pathlib.Path(mutant.file)):
            problems.append(f"{where} {mutant.file} is no source of {', '.join(FOLDERS)}")
        elif not (root / mutant.file).is_file():
            problems.append(f"{where} there is no {mutant.file}")
        else:
            try:
                if mutant.applied_to((root / mutant.file).read_text()) == (root / mutant.file).read_text():
                    problems.append(f"{where} the replacement is the text itself")
            except ValueError as error:
                problems.append(str(error))
        if not mutant.tests:
            problems.append(f"{where} no test is to see it")
    return problems


if __name__ == "__main__":
    tree.main(check, __doc__)
