"""Which sources of a target may be compiled as one, so that the headers of all are read once. `batches.py ROOT MOST` reads
lines TARGET;SOURCE;SOURCE... and writes the CMake commands that say so (fl_batch in module.cmake).

Two sources go together unless one says at namespace scope, for itself alone (an unnamed namespace, `static`, a constant, an
alias, a macro), what the other says, too: a.cc has a function `refused` of its own, b.cc calls one of that name, so they stay
apart. Words are compared, no parser knows C++ here: a batch is smaller than it could be, and a form of declaration that is not
known here is mostly an error in the build of the batch. A source with a `using namespace` of more than literals goes with
those that have the same. What users run is never compiled so (FAIRLEAD_BATCH in options.cmake).

With MOST = 8, the 1,066 sources of src are 318 that the compiler sees (`cmake --preset asan`).
"""
import functools
import pathlib
import re
import sys

NOISE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'""", re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
MACRO = re.compile(r"#\s*define\s+(\w+)")
WORD = re.compile(r"(?<![\w.:])(?<!->)[A-Za-z_]\w*")  # that is looked up: no member, nothing qualified
SPACES = re.compile(r"\bnamespace\s+([\w:]+)\s*\{")
OPENS = re.compile(r"^(?:inline\s+)?namespace(?:\s+[\w:]+)?$|^extern$")
TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:\[\[\w+\]\]\s*)?(\w+)")
ALIAS = re.compile(r"^using\s+(\w+)\s*=")
FUNCTION = re.compile(r"(?<![\w:])(\w+)\s*\(")
VALUE = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|\{|$)")
PRIVATE = re.compile(r"^(?:inline\s+)?(?:static|const|constexpr|constinit|using|template\s*<)\b|\b(?:static|constexpr)\b")
CASE = re.compile(r"^(?:TYPED_)?TEST|^RC_GTEST")  # GoogleTest makes a name of two
DIRECTIVES = re.compile(r"^using\s+namespace\s+([\w:]+)")
QUALIFIED = re.compile(r"::\s*~?\w+\s*\(")


def statements(text):
    """(what a declaration at namespace scope says before its body, whether an unnamed namespace is around it)"""
    head, around, depth = [], [], 0
    for token in re.split(r"([{};])", text):
        if token == "{":
            said = " ".join("".join(head).split())
            if not depth and OPENS.match(said):
                around.append(said == "namespace")
                head = []
                continue
            depth += 1
            if depth == 1:
                head.append("{")
        elif token == "}":
            if depth:
                depth -= 1
                if not depth and re.search(r"\)\s*(?:const\s*|noexcept\s*|override\s*|->[^{]*|:[^{]*)*\{$", " ".join("".join(head).split())):
                    yield " ".join("".join(head).split())[:-1], any(around)  # a function's body: no semicolon follows
                    head = []
            elif around:
                around.pop()
                head = []
        elif token == ";":
            if not depth:
                yield " ".join("".join(head).split()), any(around)
                head = []
        elif not depth:
            head.append(token)


def name_of(said):
    """What a declaration declares, or nothing where it defines a member declared elsewhere."""
    said = re.sub(r"^(?:template\s*<[^{(]*>\s*(?=[a-z])|\[\[[^\]]*\]\]\s*)", "", said)
    if found := ALIAS.match(said):
        return found[1]
    if said.startswith("using"):
        return None
    if found := TYPE.match(said.removeprefix("static ").removeprefix("const ")):
        return found[1]
    before = said.split("=")[0] if "(" not in said.split("=")[0] else said
    if "(" in before:
        found = FUNCTION.search(before)
        return found[1] if found and not QUALIFIED.search(before[:before.index("(") + 1]) else None
    found = VALUE.search(said)
    return found[1] if found else None


@functools.cache
def read(path):
    return NOISE.sub(" ", path.read_text(errors="replace"))


@functools.cache
def declared(path):
    """Names that a header declares at namespace scope."""
    return {name for said, _ in statements(DIRECTIVE.sub("", read(path))) if (name := name_of(said))}


@functools.cache
def spaces(path):
    """Names of the namespaces that a file opens."""
    return {name for opened in SPACES.findall(read(path)) for name in opened.split("::")}


@functools.cache
def includes(root, path):
    found = set()
    for name in INCLUDE.findall(path.read_text(errors="replace")):
        for place in (path.parent / name, root / "src" / name, root / name, path.parent.parent / name):
            if place.is_file():
                found.add(place.resolve())
                break
    return found


def seen(root, path):
    headers, open_ends = set(), [path]
    while open_ends:
        for header in includes(root, open_ends.pop()) - headers:
            headers.add(header)
            open_ends.append(header)
    return headers


class Source:
    def __init__(self, root, path):
        text = read(path)
        self.path = path
        self.own = set(MACRO.findall(text))
        self.opened = set()
        for said, is_unnamed in statements(DIRECTIVE.sub("", text)):
            if found := DIRECTIVES.match(said):
                self.opened |= set() if found[1].endswith("literals") else {found[1]}
            elif not CASE.match(said) and (is_unnamed or PRIVATE.search(said)) and (name := name_of(said)):
                self.own.add(name)
        headers = seen(root, path)
        self.looked_up = set(WORD.findall(text))
        self.words = self.looked_up.union(*(declared(header) for header in headers))
        self.spaces = spaces(path).union(*(spaces(header) for header in headers))  # fairlead::testing is not testing

    def goes_with(self, other):
        return (self.opened == other.opened and self.own.isdisjoint(other.words) and other.own.isdisjoint(self.words)
                and (self.spaces - other.spaces).isdisjoint(other.looked_up) and (other.spaces - self.spaces).isdisjoint(self.looked_up))


def batches(root, paths, most):
    found = []
    for source in (Source(root, path) for path in paths):
        for batch in found:
            if len(batch) < most and all(source.goes_with(other) for other in batch):
                batch.append(source)
                break
        else:
            found.append([source])
    return [[source.path for source in batch] for batch in found if len(batch) > 1]


def commands(root, target, sources, most):
    found = batches(root, sources, most)
    if found:
        yield f"set_target_properties({target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)"
    for number, batch in enumerate(found):
        paths = " ".join(f'"{path}"' for path in batch)
        yield f"set_source_files_properties({paths} TARGET_DIRECTORY {target} PROPERTIES UNITY_GROUP {number})"


if __name__ == "__main__":
    for line in sys.stdin.read().splitlines():
        target, *sources = line.split(";")
        print(*commands(pathlib.Path(sys.argv[1]), target, sorted(map(pathlib.Path, sources)), int(sys.argv[2])), sep="\n")
