"""pipeline.json: what a pipeline is, for whoever plans and runs it. A folder has pipeline.json and, for each component
that needs a GPU, a folder with a kernel task.

    {"version": 1, "objective_ms": 250,
     "inputs": [{"name": "image", "type": "f32", "shape": [1, 3, 64, 64]}],
     "outputs": [{"name": "mask", "from": "cut.y"}],
     "components": [
       {"name": "sr", "task": "sr", "inputs": {"x": "input.image"},
        "outputs": [{"name": "y", "type": "f32", "shape": [1, 3, 64, 64]}],
        "when": {"value": "probe.is_low", "is": true}},
       {"name": "cut", "task": "cut", "inputs": {"x": ["sr.y", "input.image"]}, "outputs": [...]}]}

A component runs when all of its inputs are there and the value that `when` names is there and is (`is`: true) or is not
(false) other than zero. An input with several sources takes the first of them that is there. So a branch that is not taken
takes with it what stands on it alone. `check` refuses what nobody could run, among it outputs that may never come.
"""

import itertools
import re

from fairlead.pipeline.errors import PipelineError, at
from fairlead.types import TYPES, element_count

VERSION = 1
MAX_COMPONENTS = 256
MAX_TENSOR_BYTES = 1 << 40
MAX_CONDITIONS = 12
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z")
INPUT = "input"


def sources_of(said):
    """One or several sources of an input, as a list."""
    return [said] if isinstance(said, str) else list(said)


def check(description, lines=None):
    """The components in an order in which they can run. `lines`: {component: line of the author's file}."""
    return _Check(description, lines or {}).run()


class _Check:
    def __init__(self, description, lines):
        self.description, self.lines = description, lines
        self.tensors = {}     # "component.output": (type, shape)
        self.components = {}  # name: its entry

    def run(self):
        self._head()
        for entry in self.description["inputs"]:
            self._tensor(INPUT, entry, "the pipeline")
        for component in self.description["components"]:
            self._component(component)
        for component in self.components.values():
            self._edges(component)
        order = self._sorted()
        self._outputs(order)
        return order

    def fail(self, component, what):
        raise PipelineError(f"component {component}: {what}{at(self.lines.get(component))}")

    def _head(self):
        said = self.description
        if not isinstance(said, dict) or said.get("version") != VERSION:
            version = said.get("version") if isinstance(said, dict) else said
            raise PipelineError(f"pipeline.json: version is {version!r}, {VERSION} is possible")
        for name in ("inputs", "outputs", "components"):
            if not isinstance(said.get(name), list) or not all(isinstance(entry, dict) for entry in said[name]):
                raise PipelineError(f"pipeline.json: {name} is {said.get(name)!r:.60}, a list of objects is wanted")
        if not 1 <= len(said["components"]) <= MAX_COMPONENTS:
            raise PipelineError(f"the pipeline has {len(said['components'])} components, 1 to {MAX_COMPONENTS} are possible")
        objective = said.get("objective_ms")
        if objective is not None and not (_is_number(objective) and 0 < objective < 1e9):
            raise PipelineError(f"objective_ms is {objective!r}, a number above 0 and below 1e9 is possible")

    def _tensor(self, owner, entry, whose):
        name, type, shape = entry.get("name"), entry.get("type"), entry.get("shape")
        if not _is_name(name):
            raise PipelineError(f"{whose}: the name {name!r:.80}: letters, digits and _, at most 63, are possible")
        if not isinstance(type, str) or type not in TYPES:
            raise PipelineError(f"{whose}: {name} is of type {type!r:.80}, one of {', '.join(TYPES)} is possible")
        sizes = isinstance(shape, list) and all(isinstance(size, int) and not isinstance(size, bool) for size in shape)
        if not sizes or len(shape) > 16 or any(size < 1 for size in shape):
            raise PipelineError(f"{whose}: {name} has shape {shape!r:.80}, at most 16 sizes of at least 1 are possible")
        if element_count(shape) * TYPES[type].bytes > MAX_TENSOR_BYTES:
            raise PipelineError(f"{whose}: {name} has more than {MAX_TENSOR_BYTES} bytes")
        key = f"{owner}.{name}"
        if key in self.tensors:
            raise PipelineError(f"{whose}: two tensors are called {name}")
        self.tensors[key] = (type, tuple(shape))

    def _component(self, component):
        name = component.get("name")
        if not _is_name(name) or name == INPUT:
            raise PipelineError(f"a component is called {name!r:.80}: letters, digits and _, at most 63, are possible, and not "
                                f"{INPUT!r}{at(self.lines.get(name) if isinstance(name, str) else '')}")
        if name in self.components:
            self.fail(name, "two components have this name")
        self.components[name] = component
        task, program = component.get("task"), component.get("program")
        if (task is None) == (program is None):
            self.fail(name, "either a task or a program is wanted")
        if task is not None and not _is_name(task):
            self.fail(name, f"task is {task!r:.80}, the name of a folder beside pipeline.json is wanted")
        if not isinstance(component.get("inputs"), dict) or not isinstance(component.get("outputs"), list):
            self.fail(name, "inputs (an object) and outputs (a list) are wanted")
        if not component["outputs"]:
            self.fail(name, "it has no output")
        for entry in component["outputs"]:
            self._tensor(name, entry if isinstance(entry, dict) else {}, f"component {name}")

    def _edges(self, component):
        name = component["name"]
        for target, said in component["inputs"].items():
            self.source(name, f"input {target}", said)
        when = component.get("when")
        if when is None:
            return
        if not isinstance(when, dict) or not isinstance(when.get("is"), bool) or not isinstance(when.get("value"), str):
            self.fail(name, f"when is {when!r:.80}, a value and is (true or false) are wanted")
        type, shape = self.source(name, "when", when["value"])
        if element_count(shape) != 1 or type in ("c64", "c128", "bytes", "f16", "bf16"):
            self.fail(name, f"when: {when['value']} is {type} {list(shape)}, one number that is true or false is wanted")

    def source(self, name, edge, said):
        """(type, shape) of what `said` names."""
        sources = sources_of(said) if isinstance(said, (str, list)) else []
        if not sources or not all(isinstance(source, str) for source in sources):
            self.fail(name, f"{edge} is {said!r:.80}, a tensor's name or several are wanted")
        for source in sources:
            if source not in self.tensors:
                self.fail(name, f"{edge} comes from {source!r:.80}, which is no input and no component's output")
        first = self.tensors[sources[0]]
        for source in sources[1:]:
            if self.tensors[source] != first:
                self.fail(name, f"{edge} is {_said(first)} from {sources[0]} and {_said(self.tensors[source])} from {source}: "
                          "what joins must be of one type and shape")
        return first

    def _sorted(self):
        done, order, waiting = set(), [], list(self.components.values())
        while waiting:
            ready = [c for c in waiting if parents(c) <= done]
            if not ready:
                self._fail_for_cycle({c["name"]: c for c in waiting})
            done.update(c["name"] for c in ready)
            order += ready
            waiting = [c for c in waiting if c["name"] not in done]
        return order

    def _fail_for_cycle(self, waiting):
        name, path = next(iter(waiting)), []
        while name not in path:  # every one that waits waits for another that does
            path.append(name)
            name = next(parent for parent in sorted(parents(waiting[name])) if parent in waiting)
        cycle = [*path[path.index(name):], name]
        self.fail(name, f"it waits for itself: {' <- '.join(cycle)}")

    def _outputs(self, order):
        names = set()
        if not self.description["outputs"]:
            raise PipelineError("the pipeline has no output")
        conditions = arrivals(order)
        for entry in self.description["outputs"]:
            name = entry.get("name")
            if not _is_name(name) or name in names:
                raise PipelineError(f"an output is called {name!r:.80}: letters, digits and _, at most 63, once each")
            names.add(name)
            said = entry.get("from")
            self._output_source(name, said)
            missing = uncovered(said, conditions)
            if missing:
                raise PipelineError(f"output {name} from {said} does not always come: not when {missing}; join what comes then")

    def _output_source(self, name, said):
        for source in sources_of(said) if isinstance(said, (str, list)) and said else [None]:
            if source not in self.tensors:
                raise PipelineError(f"output {name} comes from {source!r:.80}, which is no input and no component's output")
        if len({self.tensors[source] for source in sources_of(said)}) > 1:
            raise PipelineError(f"output {name} joins tensors of several types or shapes: {sources_of(said)}")


def parents(component):
    """The components for which it waits."""
    said = [source for sources in component["inputs"].values() for source in sources_of(sources)]
    if component.get("when"):
        said.append(component["when"]["value"])
    return {source.partition(".")[0] for source in said} - {INPUT}


def arrivals(order):
    """{component: function of {value: bool} that says whether it runs}, and the values that decide, as `deciders`."""
    deciders = sorted({c["when"]["value"] for c in order if c.get("when")})
    if len(deciders) > MAX_CONDITIONS:
        raise PipelineError(f"{len(deciders)} values decide about branches, {MAX_CONDITIONS} are possible")
    worlds = [dict(zip(deciders, bits)) for bits in itertools.product((False, True), repeat=len(deciders))]
    running = []
    for world in worlds:
        ran = {INPUT}
        for c in order:
            when = c.get("when")
            decided = not when or when["value"].partition(".")[0] in ran and world[when["value"]] == when["is"]
            if decided and all(any(s.partition(".")[0] in ran for s in sources_of(said)) for said in c["inputs"].values()):
                ran.add(c["name"])
        running.append((world, ran))
    return running


def uncovered(said, conditions):
    """When none of the sources is there, in words; "" if that cannot be."""
    owners = {source.partition(".")[0] for source in sources_of(said)}
    for world, ran in conditions:
        if not owners & ran:
            return " and ".join(f"{value} is {str(bit).lower()}" for value, bit in world.items())
    return ""


def check_task(component, task, tensors, line=None):
    """That a kernel task's buffers are what the component's edges bring and what it says it gives. `task`: task.json;
    `tensors`: {"component.output": (type, shape)}."""
    buffers = {name: (spec.get("type"), tuple(spec.get("shape", ())), spec["role"]) for name, spec in task["buffers"].items()}
    name = component["name"]

    def fail(what):
        raise PipelineError(f"component {name}: {what}{at(line)}")

    wanted = {n for n, (_, _, role) in buffers.items() if role == "input"}
    if any(role == "inout" for _, _, role in buffers.values()):
        fail("its kernel task has an inout buffer; inputs and outputs are wanted")
    if wanted != set(component["inputs"]):
        fail(f"inputs {sorted(component['inputs'])}, its kernel task has {sorted(wanted)}")
    for target, said in component["inputs"].items():
        came, have = tensors[sources_of(said)[0]], buffers[target][:2]
        if not same_tensor(came, have):
            fail(f"edge {sources_of(said)[0]} -> {name}.{target}: {_said(came)} comes, {_said(have)} is wanted")
    for entry in component["outputs"]:
        have = buffers.get(entry["name"])
        if have is None or have[2] != "output" or not same_tensor((entry["type"], entry["shape"]), have[:2]):
            fail(f"output {entry['name']} is not the kernel task's: {_said(have[:2]) if have else 'it has none of that name'}")


def same_tensor(one, other):
    """The same type and shape; a scalar is a tensor of one element."""
    return one[0] == other[0] and (tuple(one[1]) or (1,)) == (tuple(other[1]) or (1,))


def tensors_of(description):
    """{"component.output": (type, shape)}"""
    found = {f"{INPUT}.{e['name']}": (e["type"], tuple(e["shape"])) for e in description["inputs"]}
    for component in description["components"]:
        found.update((f"{component['name']}.{e['name']}", (e["type"], tuple(e["shape"]))) for e in component["outputs"])
    return found


def _said(tensor):
    return f"{tensor[0]} {list(tensor[1])}"


def _is_name(name):
    return isinstance(name, str) and _NAME.match(name) is not None


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)
