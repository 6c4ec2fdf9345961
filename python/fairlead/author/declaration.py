"""What a file says of its functions, read without running it: a model that takes a minute to load, or a package that is not
installed here, does not matter to who deploys.

    @fairlead.function(gpu_memory="4Gi")      ->  Declaration(handler="hello", tags={"gpu:memory-mib": "4096"}, ...)
    def hello(event): ...

So the arguments of the decorator are literals, or names of the module to which a literal is assigned once."""

from __future__ import annotations

import ast
import collections
import dataclasses
import pathlib
import re
import sys
from typing import Any, Callable, Iterator, TypeVar, overload

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
PYTHON = re.compile(r"3\.([0-9]{1,2})")
INTERPRETER = re.compile(r"(/[A-Za-z0-9._+-]+)+")  # as the first line of a script may name it
MOST_INTERPRETER = 120  # characters
VOLUME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PLACE = re.compile(r"[A-Za-z0-9*\[][A-Za-z0-9._:/\[\]-]{0,299}")  # the node reads it more closely
TENSOR = re.compile(r"([a-z]+[0-9]+)\[(-?[0-9]+(?:,-?[0-9]+)*)\]")  # the node reads it more closely
BATCH = re.compile(r"[0-9]{1,5}(:[0-9]{1,5})?")
TENSOR_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}")
FILE_LIMIT = 4 << 20  # bytes of a source file that is read
MIB = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}
MOST_GPU_MIB = 1 << 20

Handler = TypeVar("Handler", bound=Callable[..., Any])


class DeclarationError(ValueError):
    """What a file says of a function cannot be: the message names file, line, field, value and bound."""


@overload
def function(handler: Handler) -> Handler: ...
@overload
def function(*, name: str | None = None, requirements: list[str] | None = None, gpu_memory: str | int | None = None,
             objective_ms: int | None = None, memory: str | int | None = None, timeout: int | None = None,
             replicas: int | str | None = None, environment: dict[str, str] | None = None,
             tags: dict[str, str] | None = None, python: str | None = None, volumes: list[str] | None = None,
             egress: str | list[str] | None = None, inputs: dict[str, str] | None = None, outputs: dict[str, str] | None = None,
             batch: int | str | None = None,
             raw: bool = False) -> Callable[[Handler], Handler]: ...


def function(handler: Any = None, **said: Any) -> Any:
    """Marks a handler that `fairlead deploy FILE.py` finds; calling the handler stays what it was.

    name: the function's, if not the handler's. requirements: of pip, by name and version. gpu_memory, memory: device and host memory of an
    instance, "4Gi" or MiB. objective_ms: wanted from arrival to answer. timeout: seconds of one call. replicas: instances, N or
    "MIN:MAX". environment, tags: as on the command line. python: the version on the node, "3.11", or a path there, as of a virtual environment in a volume. volumes:
    folders of the node's machine that its operator offers, by name. egress: where its own connections may lead, "pypi.org:443,10.1.0.0/16". inputs, outputs: tensors
    that it takes and gives where it is called as a model, {"x": "f32[-1, 8]"}; -1 is what a call has. batch: rows of several such
    calls may go in one, so many at most; "32:5": and none waits for longer than 5 ms. raw: the handler gets and gives bytes."""
    unknown = said.keys() - FIELDS.keys()
    if unknown:
        raise TypeError(f"fairlead.function has no argument {', '.join(sorted(unknown))}; there are {', '.join(FIELDS)}")
    return handler if handler is not None else (lambda marked: marked)


@dataclasses.dataclass
class Declaration:
    """A function as its file says it. `configuration`: fields of CreateFunction."""

    file: pathlib.Path
    handler: str
    name: str
    requirements: list[str] = dataclasses.field(default_factory=list)
    tags: dict[str, str] = dataclasses.field(default_factory=dict)
    configuration: dict[str, Any] = dataclasses.field(default_factory=dict)
    python: str | None = None
    interpreter: str = "/usr/bin/python3"
    raw: bool = False


# ---- fields

def mib(field: str, value: Any, least: int, most: int) -> int:
    """Whole MiB of "4Gi", "512Mi" or a number."""
    number: float = -1
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str):
        found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*(Ki|Mi|Gi|Ti)B?", value.strip())
        if found:
            number = float(found[1]) * MIB[found[2]]
    if number != int(number) or not least <= number <= most:
        raise DeclarationError(f"{field} is {value!r}; it must be {least} to {most} MiB, written 512, \"512Mi\" or \"4Gi\"")
    return int(number)


def _integer(field: str, value: Any, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise DeclarationError(f"{field} is {value!r}; it must be a whole number, {least} to {most}")
    return value


def _texts(field: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise DeclarationError(f"{field} is {value!r}; it must be a dict of texts")
    return dict(value)


def _name(said: Declaration, value: Any) -> None:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise DeclarationError(f"name is {value!r}; it must be 1 to 64 letters, digits, - and _")
    said.name = value


def _requirements(said: Declaration, value: Any) -> None:
    if not isinstance(value, (list, tuple)) or not all(isinstance(line, str) for line in value):
        raise DeclarationError(f"requirements is {value!r}; it must be a list of texts")
    said.requirements = list(value)


def _replicas(said: Declaration, value: Any) -> None:
    if not re.fullmatch(r"[0-9]{1,4}(:[0-9]{1,4})?", str(value)) or isinstance(value, bool):
        raise DeclarationError(f"replicas is {value!r}; it must be N or \"MIN:MAX\"")
    said.tags["gpu:replicas"] = str(value)


def _python(said: Declaration, value: Any) -> None:
    if isinstance(value, str) and len(value) <= MOST_INTERPRETER and INTERPRETER.fullmatch(value):
        said.interpreter = value
    elif isinstance(value, str) and PYTHON.fullmatch(value):
        said.python = value
    else:
        raise DeclarationError(f"python is {value!r}; it must be a version like \"3.11\", or an absolute path of at most {MOST_INTERPRETER} "
                               "letters, digits and ._+-/")


def _volumes(said: Declaration, value: Any) -> None:
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(name, str) and VOLUME.fullmatch(name) for name in value):
        raise DeclarationError(f"volumes is {value!r}; it must be a list of names that the operator gave to folders (serve --volume)")
    said.tags["gpu:volumes"] = " ".join(value)


def _egress(said: Declaration, value: Any) -> None:
    places = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(places, (list, tuple)) or not places or not all(isinstance(place, str) and PLACE.fullmatch(place) for place in places):
        raise DeclarationError(f"egress is {value!r}; it must be none, all, or a list of NAME, *.DOMAIN, ADDRESS or ADDRESS/BITS, "
                               "each with :PORT or without")
    said.tags["gpu:egress"] = ",".join(places)


def _tensors(tag: str) -> Callable[[Declaration, Any], None]:
    def field(said: Declaration, value: Any) -> None:
        name = tag.rpartition("-")[2]
        if not isinstance(value, dict) or not value:
            raise DeclarationError(f"{name} is {value!r}; it must be a dictionary of tensors, for example {{\"x\": \"f32[-1, 8]\"}}")
        tensors = []
        for tensor, kind in value.items():
            found = TENSOR.fullmatch(kind.replace(" ", "")) if isinstance(kind, str) else None
            if not isinstance(tensor, str) or not TENSOR_NAME.fullmatch(tensor) or not found:
                raise DeclarationError(f"{name} has {tensor!r}: {kind!r}; it must be a name of letters, digits, '_', '.', '-' and '/', "
                                       "and TYPE[SIZES], for example \"f32[-1, 8]\"")
            tensors.append(f"{tensor}:{found[1]}:{found[2].replace(',', 'x')}")
        said.tags[tag] = " ".join(tensors)
    return field


def _batch(said: Declaration, value: Any) -> None:
    if isinstance(value, bool) or not BATCH.fullmatch(str(value)):
        raise DeclarationError(f"batch is {value!r}; it must be the most rows of a call, 1 to 65536, or \"ROWS:MS\" with MS 1 to 10000")
    said.tags["gpu:batch"] = str(value)


def _raw(said: Declaration, value: Any) -> None:
    if not isinstance(value, bool):
        raise DeclarationError(f"raw is {value!r}; it must be True or False")
    said.raw = value


def _gpu_memory(said: Declaration, value: Any) -> None:
    said.tags["gpu:memory-mib"] = str(mib("gpu_memory", value, 1, MOST_GPU_MIB))


def _objective(said: Declaration, value: Any) -> None:
    said.tags["gpu:objective-ms"] = str(_integer("objective_ms", value, 1, 3_600_000))


def _memory(said: Declaration, value: Any) -> None:
    said.configuration["MemorySize"] = mib("memory", value, 128, 10240)


def _timeout(said: Declaration, value: Any) -> None:
    said.configuration["Timeout"] = _integer("timeout", value, 1, 900)


def _environment(said: Declaration, value: Any) -> None:
    said.configuration["Environment"] = {"Variables": _texts("environment", value)}


def _tags(said: Declaration, value: Any) -> None:
    said.tags.update(_texts("tags", value))


FIELDS: dict[str, Callable[[Declaration, Any], None]] = {
    "name": _name, "requirements": _requirements, "gpu_memory": _gpu_memory, "objective_ms": _objective, "memory": _memory,
    "timeout": _timeout, "replicas": _replicas, "environment": _environment, "tags": _tags, "python": _python, "volumes": _volumes,
    "egress": _egress, "inputs": _tensors("gpu:model-inputs"), "outputs": _tensors("gpu:model-outputs"), "batch": _batch, "raw": _raw}


# ---- files

def read(file: pathlib.Path, handler: str | None = None) -> Declaration:
    """The function of a file: the one that `handler` names, else the only one that is declared, else a plain `handler`."""
    tree = _parse(file)
    declared = list(_declared(file, tree))
    plain = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if handler is not None:
        for one in declared:
            if handler in (one.handler, one.name):
                return one
        if handler in plain:
            return _named(file, handler)
        raise DeclarationError(f"{file} has no function {handler}; it has {', '.join(plain) or 'none'}")
    if len(declared) == 1:
        return declared[0]
    if declared:
        raise DeclarationError(f"{file} declares {', '.join(one.handler for one in declared)}: which one? "
                               f"fairlead deploy {file}:{declared[0].handler}")
    if "handler" in plain:
        return _named(file, "handler")
    raise DeclarationError(f"{file} declares no function: put @fairlead.function over its handler, or name the handler: "
                           f"fairlead deploy {file}:{plain[0] if plain else 'NAME'}")


def _named(file: pathlib.Path, handler: str) -> Declaration:
    name = file.parent.resolve().name if handler == "handler" and file.name == "handler.py" else handler
    return Declaration(file, handler, name)


def _parse(file: pathlib.Path) -> ast.Module:
    try:
        with file.open("rb") as source:
            text = source.read(FILE_LIMIT + 1)
    except OSError as error:
        raise DeclarationError(f"{file} cannot be read: {error.strerror}") from None
    if len(text) > FILE_LIMIT:
        raise DeclarationError(f"{file} has more than {FILE_LIMIT} bytes, which is no program")
    try:
        return ast.parse(text, str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        said = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise DeclarationError(f"{file}{where}: {said}") from None


def siblings(file: pathlib.Path) -> list[str]:
    """Of the modules that a file imports, those that lie beside it."""
    found = set()
    for node in ast.walk(_parse(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names] if node.module is None else [node.module]
            found |= {name.partition(".")[0] for name in names}
    return sorted(name for name in found if name != file.stem and name != "fairlead" and name not in sys.stdlib_module_names
                  and ((file.parent / f"{name}.py").is_file() or any((file.parent / name).glob("*.py"))))


def _declared(file: pathlib.Path, tree: ast.Module) -> Iterator[Declaration]:
    modules, functions = _aliases(tree)
    constants = _constants(tree)
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            if not _is_ours(call.func if call else decorator, modules, functions):
                continue
            if isinstance(node, ast.ClassDef):
                raise DeclarationError(f"{file}:{node.lineno}: {node.name} is a class; fairlead.function marks functions")
            said = Declaration(file, node.name, node.name)
            _apply(file, said, call, constants)
            yield said


def _aliases(tree: ast.Module) -> tuple[set[str], set[str]]:
    """What the module calls the package, and what its decorator."""
    modules, functions = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names if alias.name == "fairlead"}
        elif isinstance(node, ast.ImportFrom) and node.module == "fairlead":
            functions |= {alias.asname or alias.name for alias in node.names if alias.name == "function"}
    return modules, functions


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Names of the module that are bound once, by a plain assignment, and not changed in place where that can be seen."""
    values: dict[str, ast.expr] = {}
    bound: collections.Counter[str] = collections.Counter(_bound(tree))
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else getattr(node, "target", None)
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(target, ast.Name) and value is not None and bound[target.id] == 1:
            values[target.id] = value
    return values


def _bound(node: ast.AST) -> Iterator[str]:
    """Each name of the module as often as something may change it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, (ast.Store, ast.Del)):
            yield child.id
        elif isinstance(child, ast.Global):
            yield from child.names
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child.name
            yield from (name for one in ast.walk(child) if isinstance(one, ast.Global) for name in one.names)
            continue
        elif isinstance(child, ast.alias):
            yield (child.asname or child.name).partition(".")[0]
        elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Call) and isinstance(child.value.func, ast.Attribute):
            changed = child.value.func.value  # NEEDS.append("scipy")
            if isinstance(changed, ast.Name):
                yield changed.id
        elif isinstance(child, ast.Subscript) and isinstance(child.ctx, (ast.Store, ast.Del)) and isinstance(child.value, ast.Name):
            yield child.value.id  # TAGS["team"] = "vision"
        yield from _bound(child)


def _is_ours(node: ast.expr, modules: set[str], functions: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "function" and isinstance(node.value, ast.Name) and node.value.id in modules
    return isinstance(node, ast.Name) and node.id in functions


def _apply(file: pathlib.Path, said: Declaration, call: ast.Call | None, constants: dict[str, ast.expr]) -> None:
    if call is None:
        return
    where = f"{file}:{call.lineno}"
    if call.args:
        raise DeclarationError(f"{where}: fairlead.function takes its arguments by name")
    for keyword in call.keywords:
        if keyword.arg not in FIELDS:
            raise DeclarationError(f"{where}: fairlead.function has no argument {keyword.arg or '**'}; "
                                   f"there are {', '.join(FIELDS)}")
        value = keyword.value
        if isinstance(value, ast.Name):
            value = constants.get(value.id, value)
        try:
            literal = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise DeclarationError(f"{where}: {keyword.arg} is no literal, nor a name to which one is assigned once and for "
                                   "all; the file is read and not run, so write the value itself") from None
        if literal is None:
            continue
        try:
            FIELDS[keyword.arg](said, literal)
        except DeclarationError as error:
            raise DeclarationError(f"{where}: {error}") from None
