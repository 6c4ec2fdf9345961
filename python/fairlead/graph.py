"""Graphs of functions (docs/how-to/graphs.md): programs and kernel tasks that read and write the same objects, sent to a node at
once and run as what they read appears.

    graph = Graph("sum")
    made = graph.call("vectors", {"x": "{run}/x", "y": "{run}/y"}, writes=["{run}/x", "{run}/y"])
    added = graph.task("add", inputs={"x": made["{run}/x"], "y": made["{run}/y"]}, outputs={"sum": "{run}/sum"})
    total = graph.call("total", {"read": added["sum"]})
    with Client() as client:
        run = graph.run(client).wait()
        print(run.result(total), run.get(added["sum"], "f32"))

"{run}" in a key stands for the id of the run. An output of a step is a reference to an object that does not exist yet: where it
is given, in a payload or as an input, its key is put, and the step that uses it reads it.
"""

import base64
import json
import time
import urllib.parse

from fairlead.arrays import as_array
from fairlead.errors import FunctionError
from fairlead.objects import ObjectRef
from fairlead.types import TaskError

WAIT_S = 60  # for one answer


class GraphError(RuntimeError):
    """A run whose nodes are not all done. `run`: what the node said of it; `failures`: {node: error}."""

    def __init__(self, run):
        self.run = run
        self.failures = {name: node.get("error", "") for name, node in run["nodes"].items()
                         if node["state"] in ("failed", "skipped")}
        causes = [node["error"] for node in run["nodes"].values() if node["state"] == "failed" and "error" in node]
        said = [run["error"]] if "error" in run else causes or list(self.failures.values())
        super().__init__(f"run {run['run']} {run['state']}: {'; '.join(said[:5])}")


class Future:
    """An object that a step will write."""

    def __init__(self, step, key):
        self.step, self.key = step, key

    def __repr__(self):
        return f"Future({self.key})"


class Step:
    """A node of a graph. step[key], and of a kernel task step[name of the output]: a Future."""

    def __init__(self, name, function, payload, reads, writes, after, retries, outputs):
        self.name, self.function, self.payload = name, function, payload
        self.reads, self.writes, self.after, self.retries = reads, writes, after, retries
        self._outputs = {**{key: key for key in writes}, **outputs}

    def __getitem__(self, name):
        if name not in self._outputs:
            raise KeyError(f"node {self.name} has no output {name}; it has {', '.join(self._outputs) or 'none'}")
        return Future(self, self._outputs[name])

    @property
    def output(self):
        """The only one."""
        keys = set(self._outputs.values())
        if len(keys) != 1:
            raise TaskError(f"node {self.name} has {len(keys)} outputs; name the one that is wanted")
        return Future(self, keys.pop())

    def __repr__(self):
        return f"Step({self.name})"


class Graph:
    """name: for people. concurrency: nodes that run at a time. deadline: seconds for a whole run."""

    def __init__(self, name=None, concurrency=None, deadline=None):
        self.name, self.concurrency, self.deadline = name, concurrency, deadline
        self.steps = {}

    def call(self, function, payload=None, *, name=None, reads=(), writes=(), after=(), retries=0):
        """A step that invokes a program. reads: keys, Futures and ObjectRefs beside those in the payload. writes: keys that
        the program will make. after: steps."""
        found = []
        payload = _with_keys({} if payload is None else payload, found)
        return self._add(name, function, payload, [*found, *(_key_of(value) for value in reads)], list(writes), after,
                         retries, {})

    def task(self, function, inputs=None, outputs=None, *, name=None, after=(), retries=0):
        """A step that calls a kernel task. An input is a Future, an ObjectRef, a key's text, or an array that travels along;
        outputs: {output: key}. Others travel in the result."""
        outputs = dict(outputs or {})
        payload = {"inputs": {key: _input(value) for key, value in (inputs or {}).items()},
                   "outputs": {key: {"key": value} for key, value in outputs.items()}}
        return self._add(name, function, payload, [], [], after, retries, outputs)

    def _add(self, name, function, payload, reads, writes, after, retries, outputs):
        name = name or self._free_name(function)
        if name in self.steps:
            raise TaskError(f"two nodes are called {name}; names must differ")
        before = [step.name if isinstance(step, Step) else step for step in after]
        step = Step(name, function, payload, list(dict.fromkeys(reads)), writes, before, retries, outputs)
        self.steps[name] = step
        return step

    def _free_name(self, function):
        if function not in self.steps:
            return function
        number = 2
        while f"{function}-{number}" in self.steps:
            number += 1
        return f"{function}-{number}"

    def description(self, run=None, resume=False):
        """What is sent: a dict as docs/how-to/graphs.md has it."""
        nodes = {}
        for step in self.steps.values():
            fields = {"reads": step.reads, "writes": step.writes, "after": step.after, "retries": step.retries}
            nodes[step.name] = {"function": step.function, "payload": step.payload,
                                **{key: value for key, value in fields.items() if value}}
        more = {"name": self.name, "concurrency": self.concurrency, "deadline_seconds": self.deadline, "run": run,
                "resume": resume or None}
        return {"nodes": nodes, **{key: value for key, value in more.items() if value is not None}}

    def check(self, client):
        """What is wrong with it raises RequestError; answers {"nodes": count, "inputs": [key, ...]}."""
        return _ask(client, "POST", "/v1/graphs?check", self.description())

    def run(self, client, run=None, resume=False):
        """Sends it; answers the Run at once. run: an id of one's own. resume: continue the earlier run of that id, whose
        nodes that wrote all their objects do not run again."""
        return Run(client, _ask(client, "POST", "/v1/graphs", self.description(run, resume)))


class Run:
    """One run of a graph. Its outputs may be waited for and read while it goes on."""

    def __init__(self, client, status):
        self._client, self.status = client, status
        self.id = status["run"]

    @property
    def state(self):
        """As last heard: running, done, failed or cancelled."""
        return self.status["state"]

    def refresh(self, wait=0):
        query = f"?wait={wait}" if wait else ""
        self.status = _ask(self._client, "GET", f"/v1/graphs/{urllib.parse.quote(self.id, safe='')}{query}")
        return self.status

    def wait(self, timeout=None):
        """Itself, once every node is done; else GraphError. TimeoutError when it still runs after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.state == "running":
            left = WAIT_S if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"run {self.id} still runs after {timeout} s")
            self.refresh(min(WAIT_S, round(left, 3) or 0.001))
        if self.state != "done":
            raise GraphError(self.status)
        return self

    def cancel(self):
        self.status = _ask(self._client, "DELETE", f"/v1/graphs/{urllib.parse.quote(self.id, safe='')}")

    def result(self, step):
        """What the function of a step answered: JSON, or bytes."""
        node = self.status["nodes"][step.name if isinstance(step, Step) else step]
        if node["state"] != "done":
            raise FunctionError(node.get("error", f"node is {node['state']}").encode())
        if "result_base64" in node:
            return base64.b64decode(node["result_base64"])
        return node.get("result")

    def ref(self, future):
        """The object of this run that a Future or a key stands for."""
        return self._client.objects.ref(_key_of(future).replace("{run}", self.id))

    def get(self, future, type=None, shape=None, wait=0):
        """Its bytes, with a type an array; wait: seconds to wait for its node."""
        return self.ref(future).get(type, shape, wait)


def _key_of(value):
    return value.key if isinstance(value, (Future, ObjectRef)) else value


def _with_keys(value, found):
    """`value` with keys in the place of Futures and ObjectRefs, which are added to `found`."""
    if isinstance(value, (Future, ObjectRef)):
        found.append(value.key)
        return value.key
    if isinstance(value, dict):
        return {key: _with_keys(item, found) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_keys(item, found) for item in value]
    return value


def _input(value):
    if isinstance(value, (Future, ObjectRef, str)):
        return {"key": _key_of(value)}
    if isinstance(value, list):
        return {"values": value}
    return {"base64": base64.b64encode(as_array(value).data).decode()}


def _ask(client, method, path, document=None):
    body = None if document is None else json.dumps(document)
    return json.loads(client.request(method, path, body, {"Content-Type": "application/json"} if body else None)[1])
