"""Pipeline documents from a seed: some that are good, and some with one thing wrong, at and beyond each bound."""

import copy
import random

TYPES = ["f32", "u8", "s64", "f64", "bf16", "c64", "bytes"]


def port(name, type="f32", shape=(4,)):
    return {"name": name, "type": type, "shape": list(shape)}


def good(chance):
    """A chain of tasks with branches, joins and maybe a program."""
    count = chance.randint(1, 8)
    document = {"version": 1, "inputs": [port(f"in{i}") for i in range(chance.randint(1, 3))], "outputs": [], "components": []}
    if chance.random() < 0.5:
        document["objective_ms"] = chance.choice([0, 1.5, 3_600_000, 250])
    there, flags = [f"input.{entry['name']}" for entry in document["inputs"]], []
    for i in range(count):
        component = {"name": f"c{i}", "inputs": {}, "outputs": [port("y"), port("flag", chance.choice(["u8", "f32"]), (1,))]}
        names = [f"x{k}" for k in range(chance.randint(1, 4))]
        chance.shuffle(names)
        for name in names:
            said = chance.sample(there, min(len(there), chance.randint(1, 3)))
            component["inputs"][name] = said if chance.random() < 0.6 or len(said) > 1 else said[0]
        if chance.random() < 0.3:
            component["program"] = chance.choice(["steps.py:run", {"file": "c/steps.py", "function": "run"}])
        else:
            component["task"] = f"c{i}"
        if flags and chance.random() < 0.3:
            component["when"] = {"value": chance.choice(flags), "is": chance.random() < 0.5}
            if chance.random() < 0.5:
                component["when"]["part"] = chance.choice([0, 0.4, 1])
        elif chance.random() < 0.3 and "task" in component:
            component["profile"] = {"memory_mib": {"weights": 1, "peak": 2.5}, "ms": {"1g": [1, 0.5, 3]}}
        elif chance.random() < 0.3 and "program" in component:
            component["profile"] = {"ms": {"host": [1, 0.5, 3]}}
        if chance.random() < 0.2:
            component["needs_gpu"] = "task" in component
        document["components"].append(component)
        there.append(f"c{i}.y")
        flags.append(f"c{i}.flag")
    document["outputs"] = [{"name": f"out{i}", "from": chance.choice(there) if chance.random() < 0.7 else
                            chance.sample(there, min(len(there), chance.randint(1, 3)))} for i in range(chance.randint(1, 3))]
    return document


def every_place(document):
    """[(container, key)] of all values."""
    places, waiting = [], [document]
    while waiting:
        value = waiting.pop()
        keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
        for key in keys:
            places.append((value, key))
            waiting.append(value[key])
    return places


JUNK = [None, 0, -1, 1, True, False, 0.5, 2**40, 2**40 + 1, 2**63, "", "x", "x.y", "c0.y", "input.in0", "a" * 64, "a" * 65, "a b", "ü",
        "../x", "a:b", ":b", "a:", [], ["c0.y"], [1], [4, 4], {}, {"file": "a", "function": "b"}, {"file": "a"}, 3_600_000, 3_600_001]


def damaged(chance):
    document = good(chance)
    for _ in range(chance.randint(1, 2)):
        place, key = chance.choice(every_place(document))
        match chance.randrange(4):
            case 0 if isinstance(place, dict):
                del place[key]
            case 1 if isinstance(place, dict):
                place[chance.choice(["name", "extra", "is", "task", "program", "from", "needs_gpu", "a" * 65])] = chance.choice(JUNK)
            case 2 if isinstance(place, list):
                place.append(copy.deepcopy(place[key]))
            case _:
                place[key] = copy.deepcopy(chance.choice(JUNK))
    return document


def chain(length):
    components = [{"name": f"c{i}", "task": "t", "inputs": {"x": f"c{i - 1}.y" if i else "input.in0"}, "outputs": [port("y")]}
                  for i in range(length)]
    return {"version": 1, "inputs": [port("in0")], "components": components, "outputs": [{"name": "out", "from": f"c{length - 1}.y"}]}


def at_bounds():
    """{name: (document, whether it is good)}: each bound, met and passed by one."""
    found = {}

    def both(name, make, bound):
        found[f"{name} {bound}"], found[f"{name} {bound + 1}"] = (make(bound), True), (make(bound + 1), False)

    def changed(**change):
        return {**chain(1), **change}

    def component(**change):
        return changed(components=[{**chain(1)["components"][0], **change}])

    both("components", chain, 64)
    both("inputs", lambda n: changed(inputs=[port(f"in{i}") for i in range(n)]), 16)
    both("outputs", lambda n: changed(outputs=[{"name": f"o{i}", "from": "c0.y"} for i in range(n)]), 16)
    both("inputs of a component", lambda n: component(inputs={f"x{i}": "input.in0" for i in range(n)}), 16)
    both("outputs of a component", lambda n: component(outputs=[port("y")] + [port(f"y{i}") for i in range(n - 1)]), 16)
    both("sources", lambda n: component(inputs={"x": ["input.in0"] * n}), 16)
    both("name", lambda n: component(inputs={"x" * n: "input.in0"}), 64)
    both("dimensions", lambda n: component(outputs=[port("y"), port("z", shape=[1] * n)]), 16)
    both("bytes", lambda n: component(outputs=[port("y"), port("z", "u8", [n])]), 2**40)
    both("objective", lambda n: changed(objective_ms=n), 3_600_000)
    both("slices", lambda n: component(profile={"ms": {f"{i}g": [1, 0, 0] for i in range(n)}}), 16)
    both("weights", lambda n: component(profile={"memory_mib": {"weights": n, "peak": 2**20}}), 2**20)
    both("conditions", conditions, 12)
    program = {"task": None, "program": "a.py:f"}
    found["a program"] = component(**program), True
    found["a program without inputs"] = component(**program, inputs={}), False
    found["a program that asks for a GPU"] = component(**program, needs_gpu=True), False
    found["a program that says it needs none"] = component(**program, needs_gpu=False), True
    found["a task that needs no GPU"] = component(needs_gpu=False), False
    found["a program with a slice's time"] = component(**program, profile={"ms": {"1g": [1, 0, 1]}}), False
    found["a program with the host's time"] = component(**program, profile={"ms": {"host": [1, 0, 1]}}), True
    found["a program with a slice's memory"] = component(**program, profile={"memory_mib": {"weights": 0, "peak": 1}}), False
    found["a task without inputs"] = component(inputs={}), True
    found["an output like an input"] = changed(outputs=[{"name": "in0", "from": "c0.y"}]), False
    found["a joined output"] = changed(outputs=[{"name": "out", "from": ["c0.y", "input.in0"]}]), True
    found["an output of a list of one"] = changed(outputs=[{"name": "out", "from": ["c0.y"]}]), True
    found["an output of nothing"] = changed(outputs=[{"name": "out", "from": []}]), False
    both("sources of an output", lambda n: changed(outputs=[{"name": "out", "from": ["c0.y"] * n}]), 16)
    found["an output of two shapes"] = changed(components=[{"name": "c0", "task": "c0", "inputs": {"x": "input.in0"},
                                                            "outputs": [port("y"), port("flag", "u8", (1,))]}],
                                               outputs=[{"name": "out", "from": ["c0.y", "c0.flag"]}]), False
    found["an output of the request"] = changed(outputs=[{"name": "out", "from": "input.in0"}]), True
    return found


def conditions(count):
    flags = [port(f"f{i}", "u8", (1,)) for i in range(count)]
    first = [{"name": f"p{k}", "task": "p", "inputs": {"x": "input.in0"}, "outputs": flags[k * 8:k * 8 + 8]} for k in range(2)]
    branches = [{"name": f"b{i}", "task": "t", "inputs": {"x": "input.in0"}, "outputs": [port("y")],
                 "when": {"value": f"p{i // 8}.f{i}", "is": True}} for i in range(count)]
    return {"version": 1, "inputs": [port("in0")], "components": first + branches, "outputs": [{"name": "out", "from": "input.in0"}]}


def documents(seed, count):
    chance = random.Random(seed)
    return [good(chance) if chance.random() < 0.3 else damaged(chance) for _ in range(count)]
