"""A pipeline as its author writes it: a class with one DAG method. Calling that method registers components in order; a
value that stands for a tensor goes from one to the next, and nothing is computed."""

import contextlib
import inspect
import pathlib
import re

from fairlead.pipeline import description as described
from fairlead.pipeline.bodies import ProgramBody, TaskBody
from fairlead.pipeline.errors import PipelineError, at, author_line
from fairlead.pipeline.execution import execute, pick
from fairlead.types import TaskError, element_type, shape_of


class Value:
    """A tensor on an edge: the first of `sources` that is there."""

    def __init__(self, pipeline, sources, type, shape):
        self.pipeline, self.sources, self.type, self.shape = pipeline, sources, type, shape

    def __repr__(self):
        return f"{' or '.join(self.sources)} ({self.type} {list(self.shape)})"

    def __bool__(self):
        raise PipelineError(f"{self!r} is decided when a request runs: use `with self.when(value):` and self.join(...) instead of "
                            f"if and else{at(author_line())}")

    def said(self):
        return self.sources[0] if len(self.sources) == 1 else list(self.sources)


class Pipeline:
    """Derive from it; say `inputs` ({name: (type, shape)}), optionally `objective_ms`, and write `dag(self, ...)`, which takes
    a value for each input and returns {output: value}. Not thread-safe.

    build mode   graph() and build(folder) register, check, export and write
    run mode     fairlead.pipeline.load(folder), or a node that the folder was deployed to
    reference()  the same in PyTorch on the CPU
    """

    inputs = {}
    objective_ms = None

    # ---- what a DAG method calls

    def module(self, module, *values, name=None, **keywords):
        """Registers a PyTorch module (any nn.Module; fairlead.Module has `reg`). A value, or a tuple of them."""
        from fairlead.pipeline.module import ModuleBody  # noqa: PLC0415  PyTorch, only here
        return self._register(lambda: ModuleBody(module), values, keywords, name or self._attribute(module))

    def task(self, task, *values, name=None, **keywords):
        """Registers a kernel task (ktask.Task) as a component; inputs in the task's order or by name."""
        return self._register(lambda: TaskBody(task), values, keywords, name or self._attribute(task))

    def program(self, function, *values, returns, name=None, **keywords):
        """Registers a Python function that needs no GPU, and gets no slice. returns: {output: (type, shape)}."""
        return self._register(lambda: ProgramBody(function, returns), values, keywords, name)

    @contextlib.contextmanager
    def when(self, value, holds=True):
        """What is registered inside runs only for requests for which the one element of `value` is other than zero; with
        holds=False only where it is zero."""
        self._check_value(value, "when")
        outer = self._state["when"]
        owners = {source.partition(".")[0] for source in value.sources}
        if len(value.sources) > 1:
            raise PipelineError(f"when: {value!r} is a join; one component's output is wanted{at(author_line())}")
        if outer and not owners & self._state["inside"]:
            raise PipelineError(f"when: a branch within a branch must be decided by what the outer branch computes, {value!r} is "
                                f"from outside{at(author_line())}")
        before = self._state["inside"]
        self._state.update(when={"value": value.sources[0], "is": bool(holds)}, inside=set())
        try:
            yield
        finally:
            self._state.update(when=outer, inside=before | self._state["inside"])

    def otherwise(self, value):
        """The other branch of `when`."""
        return self.when(value, holds=False)

    def join(self, *values):
        """The first of these that a request has computed."""
        for value in values:
            self._check_value(value, "join")
        if not values:
            raise PipelineError(f"join: at least one value is wanted{at(author_line())}")
        first = values[0]
        for other in values[1:]:
            if not described.same_tensor((first.type, first.shape), (other.type, other.shape)):
                raise PipelineError(f"join: {first!r} and {other!r} are not of one type and shape{at(author_line())}")
        return Value(self, [source for value in values for source in value.sources], first.type, first.shape)

    # ---- build mode

    def graph(self):
        """pipeline.json as a dict, without what export adds. Registers at the first call."""
        if "_graph" not in vars(self):
            self._graph = self._declare()
        return self._graph

    def build(self, folder, measure=None, repeats=5):
        """Writes `folder`: pipeline.json and a kernel task for each component that needs a GPU. measure="1g" also times
        each component on this machine's GPU (or the software GPU) as a slice of that type. The folder."""
        from fairlead.pipeline.build import write_pipeline
        return write_pipeline(self, pathlib.Path(folder), measure, repeats)

    # ---- run mode, here

    def reference(self, **inputs):
        """{output: array}: PyTorch modules in PyTorch on the CPU, kernel tasks by the local runner."""
        graph = self.graph()
        tensors, values = described.tensors_of(graph), given(graph, inputs)
        execute(graph["components"], values, tensors, lambda c, arrays: self._state["bodies"][c["name"]].call(arrays))
        return {entry["name"]: values[pick(entry["from"], values)] for entry in graph["outputs"]}

    # ---- inside

    def _declare(self):
        if not callable(getattr(self, "dag", None)):
            raise PipelineError(f"class {type(self).__name__} has no DAG method: write dag(self, ...), which registers the components "
                                f"and returns the outputs{at(_class_line(type(self)))}")
        line = _class_line(type(self).dag)
        self._state = {"components": [], "bodies": {}, "lines": {}, "when": None, "inside": set(), "names": set()}
        parameters = list(inspect.signature(self.dag).parameters)
        if parameters != list(self.inputs):
            raise PipelineError(f"{type(self).__name__}: inputs are {list(self.inputs)}, dag() takes {parameters}{at(line)}")
        values = {}
        for name, (type_, shape) in self.inputs.items():
            values[name] = Value(self, [f"{described.INPUT}.{name}"], element_type(type_).name, shape_of(shape))
        returned = self.dag(**values)
        graph = {"version": described.VERSION}
        if self.objective_ms is not None:
            graph["objective_ms"] = self.objective_ms
        graph["inputs"] = [_entry(name, value.type, value.shape) for name, value in values.items()]
        graph["outputs"] = [{"name": name, "from": value.said()} for name, value in self._returned(returned, line).items()]
        graph["components"] = self._state["components"]
        graph["components"] = described.check(graph, self._state["lines"])
        return graph

    def _returned(self, returned, line):
        if isinstance(returned, Value):
            returned = {"output": returned}
        elif isinstance(returned, (tuple, list)):
            returned = {f"output{i}": value for i, value in enumerate(returned)}
        if not isinstance(returned, dict) or not returned:
            raise PipelineError(f"{type(self).__name__}: dag() returned {returned!r:.80}, values by name are wanted: "
                                f"return {{\"mask\": mask}}{at(line)}")
        for name, value in returned.items():
            self._check_value(value, f"output {name}")
        return returned

    def _check_value(self, value, what):
        if not isinstance(value, Value) or value.pipeline is not self:
            raise PipelineError(f"{what}: {value!r:.80} is no value of this pipeline{at(author_line())}")

    def _attribute(self, body):
        """The name under which the pipeline holds `body`."""
        return next((name for name, value in vars(self).items() if value is body), None)

    def _register(self, make, values, keywords, name):
        line = author_line()
        if "_state" not in vars(self):
            raise PipelineError(f"components are registered by dag(), which graph() and build() call{at(line)}")
        try:
            body = make()
        except TaskError as error:
            raise PipelineError(f"component {name or '?'}: {error}{at(line)}") from error
        name = self._unique(name or body.default_name())
        edges = self._edges(name, body, values, keywords, line)
        try:
            outputs = body.trace({target: (value.type, value.shape) for target, value in edges.items()})
        except PipelineError:
            raise
        except Exception as error:  # whatever an author's forward() raises
            brought = ", ".join(f"{target} from {value!r}" for target, value in edges.items())
            raise PipelineError(f"component {name}: {brought}: {str(error) or type(error).__name__}{at(line)}") from error
        component = {"name": name, "task": name if body.needs_gpu else None}
        if not body.needs_gpu:
            component["program"] = body.place(name)
        component["inputs"] = {target: value.said() for target, value in edges.items()}
        component["outputs"] = [_entry(output, type_, shape) for output, type_, shape in outputs]
        if self._state["when"]:
            component["when"] = self._state["when"]
        self._state["components"].append(component)
        self._state["bodies"][name], self._state["lines"][name] = body, line
        self._state["inside"].add(name)
        given_values = tuple(Value(self, [f"{name}.{output}"], type_, shape_of(shape)) for output, type_, shape in outputs)
        return given_values[0] if len(given_values) == 1 else given_values

    def _unique(self, name):
        names, number, unique = self._state["names"], 2, name
        while unique in names or unique == described.INPUT:
            unique, number = f"{name}{number}", number + 1
        names.add(unique)
        return unique

    def _edges(self, name, body, values, keywords, line):
        """{input: Value}"""
        if len(values) > len(body.inputs):
            raise PipelineError(f"component {name}: {len(values)} values for inputs {body.inputs}{at(line)}")
        edges = dict(zip(body.inputs, values))
        for target, value in keywords.items():
            if target not in body.inputs or target in edges:
                raise PipelineError(f"component {name}: input {target} is twice or not among {body.inputs}{at(line)}")
            edges[target] = value
        for target, value in edges.items():
            if isinstance(value, str):  # a component that is registered later: the whole is checked in the end
                edges[target] = Value(self, [value], *self._later(body, name, target, line))
            elif not isinstance(value, Value) or value.pipeline is not self:
                raise PipelineError(f"component {name}: input {target} is {value!r:.80}, a value of this pipeline is wanted{at(line)}")
            self._check_edge(name, body, target, edges[target], line)
        if body.takes is not None and set(edges) != set(body.inputs):
            raise PipelineError(f"component {name}: inputs {sorted(edges)} are given, {sorted(body.inputs)} are wanted{at(line)}")
        return edges

    def _later(self, body, name, target, line):
        if body.takes is None or target not in body.takes:
            raise PipelineError(f"component {name}: input {target}: only a kernel task's input can be named before it is computed{at(line)}")
        return body.takes[target]

    @staticmethod
    def _check_edge(name, body, target, value, line):
        wanted = body.takes.get(target) if body.takes else None
        if wanted and not described.same_tensor((value.type, value.shape), wanted):
            raise PipelineError(f"component {name}: edge {value.sources[0]} -> {name}.{target}: {value.type} {list(value.shape)} comes, "
                                f"{wanted[0]} {list(wanted[1])} is wanted{at(line)}")


def given(graph, inputs):
    """{"input.name": array} of a call's arguments, checked."""
    from fairlead.arrays import checked, to_array
    wanted = {entry["name"]: entry for entry in graph["inputs"]}
    if set(inputs) != set(wanted):
        raise PipelineError(f"inputs given: {', '.join(sorted(inputs)) or 'none'}; wanted: {', '.join(sorted(wanted)) or 'none'}")
    return {f"{described.INPUT}.{name}": to_array(checked(inputs[name], entry["type"], entry["shape"], f"input {name}"), entry["type"],
                                                  entry["shape"]) for name, entry in wanted.items()}


def snake_case(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _entry(name, type_, shape):
    return {"name": name, "type": type_, "shape": list(shape) or [1]}


def _class_line(what):
    try:
        return f"{inspect.getsourcefile(what)}:{inspect.getsourcelines(what)[1]}"
    except (OSError, TypeError):
        return ""
