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

The rules and the bounds are the node's (src/wire/pipeline_json.h): a folder that `check` lets through is read there too, and
the other way round. Inputs of a component have no order but that of their names (`inputs_of`).
"""

import itertools
import json
import math
import re

from fairlead.pipeline.errors import PipelineError, at
from fairlead.types import TYPES, element_count

VERSION = 1
MAX_BYTES = 1 << 20  # of pipeline.json
MAX_COMPONENTS = 64
MAX_PORTS = 16  # inputs, sources of one, and outputs, of a component or of the whole
MAX_DIMENSIONS = 16
MAX_EXTENT = 1 << 40
MAX_TENSOR_BYTES = 1 << 40
MAX_NAME = 64
MAX_TEXT = 4096
MAX_CONDITIONS = 12
MAX_SLICE_TYPES = 16
MAX_MS = 3_600_000
MAX_MIB = 1 << 20
MAX_SEEN = 1 << 53
_NAME = re.compile(r"[A-Za-z0-9_-]{1,%d}\Z" % MAX_NAME)
_NAME_TEXT = f"1 to {MAX_NAME} letters, digits, _ or -"
INPUT = "input"


def read(folder):
    """pipeline.json of a folder, as a dict; not checked yet."""
    text = (folder / "pipeline.json").read_bytes()
    if len(text) > MAX_BYTES:
        raise PipelineError(f"the pipeline has {len(text)} bytes, {MAX_BYTES} are possible")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise PipelineError(f"pipeline.json: {error}") from error


def _object(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return members


def _no_constant(text):
    raise ValueError(f"{text} is no number of JSON")


def sources_of(said):
    """One or several sources of an input, as a list."""
    return [said] if isinstance(said, str) else list(said)


def inputs_of(component):
    """[(name, sources)] in the order in which a program gets them: by name."""
    return sorted((name, sources_of(said)) for name, said in component["inputs"].items())


def program_of(component):
    """(file, function), whichever way it is said; None: it is a kernel task."""
    said = component.get("program")
    if said is None:
        return None
    return (said["file"], said["function"]) if isinstance(said, dict) else tuple(said.rsplit(":", 1))


def wanted(when):
    """What the value has to be; not said: true."""
    return when.get("is") is not False


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
        version = said.get("version") if isinstance(said, dict) else said
        if not isinstance(version, int) or isinstance(version, bool) or version != VERSION:
            raise PipelineError(f"pipeline.json: version is {version!r:.80}, {VERSION} is possible")
        _only(said, ("components", "inputs", "name", "objective_ms", "outputs", "version"), "pipeline.json")
        for name in ("inputs", "outputs", "components"):
            if not isinstance(said.get(name), list) or not all(isinstance(entry, dict) for entry in said[name]):
                raise PipelineError(f"pipeline.json: {name} is {said.get(name)!r:.60}, a list of objects is wanted")
        if not 1 <= len(said["components"]) <= MAX_COMPONENTS:
            raise PipelineError(f"the pipeline has {len(said['components'])} components, 1 to {MAX_COMPONENTS} are possible")
        _count(said["inputs"], "the pipeline", "inputs", least=0)
        _count(said["outputs"], "the pipeline", "outputs")
        if said.get("name") is not None and not _is_text(said["name"], MAX_NAME):
            raise PipelineError(f"name is {said['name']!r:.80}, text of at most {MAX_NAME} bytes is possible")
        objective = said.get("objective_ms")
        if objective is not None and not _is_number(objective, MAX_MS):
            raise PipelineError(f"objective_ms is {objective!r:.80}, a number between 0 and {MAX_MS} is possible")

    def _tensor(self, owner, entry, whose):
        _only(entry, ("name", "shape", "type"), f"{whose}: a tensor")
        name, type, shape = entry.get("name"), entry.get("type"), entry.get("shape")
        if not _is_name(name):
            raise PipelineError(f"{whose}: the name {name!r:.80}: {_NAME_TEXT} are possible")
        if not isinstance(type, str) or type not in TYPES:
            raise PipelineError(f"{whose}: {name} is of type {type!r:.80}, one of {', '.join(TYPES)} is possible")
        sizes = isinstance(shape, list) and all(_is_whole(size) for size in shape)
        if not sizes or len(shape) > MAX_DIMENSIONS or any(not 1 <= size <= MAX_EXTENT for size in shape):
            raise PipelineError(f"{whose}: {name} has shape {shape!r:.80}, at most {MAX_DIMENSIONS} sizes of 1 to {MAX_EXTENT} are possible")
        if element_count(shape) * TYPES[type].bytes > MAX_TENSOR_BYTES:
            raise PipelineError(f"{whose}: {name} has more than {MAX_TENSOR_BYTES} bytes")
        key = f"{owner}.{name}"
        if key in self.tensors:
            raise PipelineError(f"{whose}: two tensors are called {name}")
        self.tensors[key] = (type, tuple(shape))

    def _component(self, component):
        name = component.get("name")
        if not _is_name(name) or name == INPUT:
            raise PipelineError(f"a component is called {name!r:.80}: {_NAME_TEXT} are possible, and not "
                                f"{INPUT!r}{at(self.lines.get(name) if isinstance(name, str) else '')}")
        if name in self.components:
            self.fail(name, "two components have this name")
        _only(component, ("inputs", "name", "needs_gpu", "outputs", "profile", "program", "task", "when"), f"component {name}")
        self.components[name] = component
        if not isinstance(component.get("inputs"), dict) or not isinstance(component.get("outputs"), list):
            self.fail(name, "inputs (an object) and outputs (a list) are wanted")
        _count(component["inputs"], f"component {name}", "inputs", least=0)
        _count(component["outputs"], f"component {name}", "outputs")
        self._what_runs(name, component)
        self._profile(name, component)
        for entry in component["outputs"]:
            self._tensor(name, entry if isinstance(entry, dict) else {}, f"component {name}")

    def _what_runs(self, name, component):
        task, program = component.get("task"), component.get("program")
        if (task is None) == (program is None):
            self.fail(name, "either a task or a program is wanted")
        if task is not None and not _is_name(task):
            self.fail(name, f"task is {task!r:.80}, a folder beside pipeline.json is wanted: {_NAME_TEXT}")
        if program is not None:
            file_and_function = list(program.values()) if isinstance(program, dict) and set(program) == {"file", "function"} else \
                program.rsplit(":", 1) if isinstance(program, str) else []
            if len(file_and_function) != 2 or not all(_is_text(part, MAX_TEXT) and part for part in file_and_function) \
                    or isinstance(program, str) and not _is_text(program, MAX_TEXT):
                self.fail(name, f"program is {program!r:.80}, FILE:FUNCTION is wanted, or both as an object")
            if not component["inputs"]:
                self.fail(name, f"is a program and has 0 inputs, 1 to {MAX_PORTS} are possible")
        if component.get("needs_gpu") not in (None, True, False) or component.get("needs_gpu") in (0, 1) and \
                not isinstance(component["needs_gpu"], bool):
            self.fail(name, f"needs_gpu is {component['needs_gpu']!r:.80}, true or false is wanted")
        if component.get("needs_gpu") is not None and component["needs_gpu"] != (program is None):
            self.fail(name, f"needs_gpu is {str(component['needs_gpu']).lower()}, and it is a {'program' if task is None else 'kernel task'}: "
                      "a program runs on the host and gets no GPU, a kernel task needs one")

    def _profile(self, name, component):
        profile = component.get("profile")
        if profile is None:
            return
        _only(profile, ("memory_mib", "ms"), f"component {name}: profile")
        memory, times = profile.get("memory_mib"), profile.get("ms")
        if memory is not None:
            _only(memory, ("peak", "weights"), f"component {name}: memory_mib")
            if not all(_is_number(memory.get(key), MAX_MIB) for key in ("weights", "peak")):
                self.fail(name, f"memory_mib is {memory!r:.80}, weights and peak of 0 to {MAX_MIB} are wanted")
            if _bytes(memory["peak"]) < _bytes(memory["weights"]):
                self.fail(name, f"its peak is {memory['peak']} MiB, at least its weights' {memory['weights']} are needed")
            if component.get("program") is not None and _bytes(memory["peak"]) > 0:
                self.fail(name, f"needs no GPU and asks for {memory['peak']} MiB of a slice's memory, 0 are possible")
        if times is None:
            return
        if not isinstance(times, dict) or len(times) > MAX_SLICE_TYPES:
            self.fail(name, f"ms is {times!r:.80}, an object of at most {MAX_SLICE_TYPES} times by type of slice is wanted")
        needs_gpu = component.get("program") is None
        if not needs_gpu and (len(times) > 1 or times and "host" not in times):
            self.fail(name, f"needs no GPU and has times of slices {', '.join(times)[:80]}; one of \"host\" is possible")
        for slice, time in times.items():
            good = isinstance(time, list) and len(time) == 3 and _is_number(time[0], MAX_MS) and _is_number(time[1], MAX_MS) and \
                _is_whole(time[2]) and 0 <= time[2] <= MAX_SEEN
            if not good or not slice or not _is_text(slice, MAX_NAME):
                self.fail(name, f"ms of {slice!r:.80} is {time!r:.80}: mean, standard deviation (0 to {MAX_MS}) and how often it was "
                          f"seen are wanted, of a slice with a name of at most {MAX_NAME} bytes")

    def _edges(self, component):
        name = component["name"]
        for target, said in component["inputs"].items():
            if not _is_name(target):
                self.fail(name, f"an input is called {target!r:.80}: {_NAME_TEXT} are possible")
            self.source(name, f"input {target}", said)
        when = component.get("when")
        if when is None:
            return
        _only(when, ("is", "part", "value"), f"component {name}: when")
        part, holds = when.get("part"), when.get("is")
        if not isinstance(when.get("value"), str) or holds is not None and not isinstance(holds, bool) or \
                part is not None and not _is_number(part, 1):
            self.fail(name, f"when is {when!r:.80}, a value, is (true or false) and part (0 to 1) are possible")
        type, shape = self.source(name, "when", when["value"])
        if when["value"].partition(".")[0] == INPUT:
            self.fail(name, f"when: {when['value']} must be the output of a component")
        if element_count(shape) != 1 or type in ("c64", "c128", "bytes", "f16", "bf16"):
            self.fail(name, f"when: {when['value']} is {type} {list(shape)}, one number that is true or false is wanted")

    def source(self, name, edge, said):
        """(type, shape) of what `said` names."""
        sources = sources_of(said) if isinstance(said, (str, list)) else []
        if not 1 <= len(sources) <= MAX_PORTS or not all(isinstance(source, str) for source in sources):
            self.fail(name, f"{edge} is {said!r:.80}, a tensor's name or a list of 1 to {MAX_PORTS} is wanted")
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
        names, inputs = set(), {entry["name"] for entry in self.description["inputs"]}
        conditions = arrivals(order)
        for entry in self.description["outputs"]:
            _only(entry, ("from", "name"), "an output")
            name, said = entry.get("name"), entry.get("from")
            if not _is_name(name) or name in names:
                raise PipelineError(f"an output is called {name!r:.80}: {_NAME_TEXT} are possible, once each")
            if name in inputs:
                raise PipelineError(f"output {name}: an input has that name, and a call names both in one space: give it another")
            names.add(name)
            self.source_of_output(name, said)
            missing = uncovered(said, conditions)
            if missing:
                raise PipelineError(f"output {name} from {' or '.join(sources_of(said))} does not always come: not when {missing}; join what "
                                    "comes then")

    def source_of_output(self, name, said):
        sources = sources_of(said) if isinstance(said, (str, list)) else []
        if not 1 <= len(sources) <= MAX_PORTS or not all(isinstance(source, str) and source in self.tensors for source in sources):
            raise PipelineError(f"output {name} comes from {said!r:.80}, which is no input and no component's output, nor a list of 1 to "
                                f"{MAX_PORTS} such")
        for source in sources[1:]:
            if self.tensors[source] != self.tensors[sources[0]]:
                raise PipelineError(f"output {name} is {_said(self.tensors[sources[0]])} from {sources[0]} and {_said(self.tensors[source])} "
                                    f"from {source}: what joins must be of one type and shape")


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
            decided = not when or when["value"].partition(".")[0] in ran and world[when["value"]] == wanted(when)
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


def _is_number(value, most):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value, most):
    return isinstance(value, str) and len(value.encode(errors="surrogatepass")) <= most


def _bytes(mib):
    return math.floor(mib * (1 << 20) + 0.5)


def _only(said, names, whose):
    """An object with no other members than these."""
    if not isinstance(said, dict):
        raise PipelineError(f"{whose} is {said!r:.80}, an object is wanted")
    for name in said:
        if name not in names:
            raise PipelineError(f"{whose} has {name!r:.80}; {', '.join(names)} are possible")


def _count(said, whose, what, least=1):
    if not least <= len(said) <= MAX_PORTS:
        raise PipelineError(f"{whose}: has {len(said)} {what}, {least} to {MAX_PORTS} are possible")
