"""DAGs that part and meet again, on a node whose slices are too small for the whole: diamonds, several outputs, branches whose sides are
answered where they meet. Each answer against the same arithmetic in NumPy's single precision."""

import json
import struct

import pytest

from conftest import eventually
from test_pipelines import N, affine, component, folder, launch, numbers, p1, pipeline, refusal, vector  # noqa: F401

numpy = pytest.importorskip("numpy")


def both(k, n=N):
    """y = k x1 + x2: what a diamond's end does."""
    return {"buffers": {"x1": vector("input", n), "x2": vector("input", n), "y": vector("output", n)},
            "kernels": [launch("scale", {"buffer": "x1"}, {"buffer": "y"}, {"f32": k}, grid=n // N),
                        launch("accumulate", {"buffer": "x2"}, {"buffer": "y"}, grid=n // N)]}


def told(k):
    """As affine(k), and says whether the first number is other than zero."""
    task = affine(k)
    task["buffers"]["is_low"] = vector("output", 1)
    task["kernels"].append(launch("scale", {"buffer": "x"}, {"buffer": "is_low"}, {"f32": 1.0}, block=1))
    return task


def meets(name, first, second, memory_gib):
    return {**component(name, "input.image", 20, memory_gib), "inputs": {"x1": first, "x2": second}}


def written(folder, components, outputs, factors, tasks):  # noqa: F811
    """outputs: {name: source or sources}; tasks: {component: task.json} instead of an affine one."""
    made = folder("chain", components, "", factors)
    document = json.loads((made / "pipeline.json").read_text())
    document["outputs"] = [{"name": name, "from": source} for name, source in outputs.items()]
    (made / "pipeline.json").write_text(json.dumps(document))
    for task, content in tasks.items():
        (made / task).mkdir(exist_ok=True)
        (made / task / "task.json").write_text(json.dumps(content))
        (made / task / "kernels.ptx").write_text((made / next(iter(factors)) / "kernels.ptx").read_text())
    return made


def answered(node, x):
    status, headers, body = node.invoke("chain", json.dumps({"inputs": {"image": [float(v) for v in x]}}))
    assert status == 200 and "X-Amz-Function-Error" not in headers, body
    return {name: numpy.array(output["values"], "f") for name, output in json.loads(body)["outputs"].items()}


def same(got, wanted):
    assert set(got) == set(wanted)
    for name in wanted:
        assert (got[name] == wanted[name]).all(), name


def line(k, x):
    return numpy.float32(k) * x + numpy.float32(k)


@pytest.mark.parametrize("profiles, slices", [("4g.40gb", 1), ("2g.20gb,2g.20gb", 2), ("1g.10gb,1g.10gb,1g.10gb,1g.10gb", 4)])
def test_a_diamond_with_three_outputs(p1, folder, profiles, slices):  # noqa: F811
    """a -> b, c -> d; answered are d, and on the way b and a."""
    node = p1(profiles)
    components = [component("a", "input.image", 20, 6), component("b", "a.y", 20, 6), component("c", "a.y", 20, 6),
                  meets("d", "b.y", "c.y", 6)]
    made = written(folder, components, {"end": "d.y", "side": "b.y", "begin": "a.y"}, {"a": 2.0, "b": 3.0, "c": 5.0}, {"d": both(7.0)})
    node.deploy("chain", made)
    for first in range(4):
        x = numpy.array(numbers(first), "f")
        a = line(2, x)
        same(answered(node, x), {"end": numpy.float32(7) * line(3, a) + line(5, a), "side": line(3, a), "begin": a})
    assert len(pipeline(node)["stages"]) == slices, pipeline(node)
    eventually(lambda: all(stage["ring"]["used"] == 0 for stage in pipeline(node)["stages"]))


def test_diamonds_in_a_row_over_three_slices(p1, folder):  # noqa: F811
    """a -> b, c -> d -> e, f -> g, and g also reads the request."""
    node = p1("2g.20gb,2g.20gb,2g.20gb")
    components = [component("a", "input.image", 20, 6), component("b", "a.y", 20, 6), component("c", "a.y", 20, 6),
                  meets("d", "b.y", "c.y", 6), component("e", "d.y", 20, 6), component("f", "d.y", 20, 6),
                  meets("g", "e.y", "f.y", 6), meets("h", "g.y", "input.image", 6)]
    made = written(folder, components, {"out": "h.y"}, {"a": 2.0, "b": 3.0, "c": 1.0, "e": 2.0, "f": 4.0},
                   {"d": both(1.0), "g": both(2.0), "h": both(1.0)})
    node.deploy("chain", made)
    for first in range(3):
        x = numpy.array(numbers(first), "f")
        a = line(2, x)
        d = line(3, a) + line(1, a)
        same(answered(node, x), {"out": numpy.float32(2) * line(2, d) + line(4, d) + x})
    assert len(pipeline(node)["stages"]) == 3, pipeline(node)


@pytest.mark.parametrize("profiles", ["4g.40gb", "2g.20gb,1g.10gb", "1g.10gb,1g.10gb,1g.10gb"])
def test_an_output_is_what_ran_where_branches_meet(p1, folder, profiles):  # noqa: F811
    """deblur decides; sr or plain runs, and the one that ran is answered; where neither would be better, deblur's own."""
    node = p1(profiles)
    deblur = component("deblur", "input.image", 20, 3)
    deblur["outputs"].append({"name": "is_low", "type": "f32", "shape": [1]})
    sr = component("sr", "deblur.y", 30, 3, when={"value": "deblur.is_low", "is": True})
    plain = component("plain", "deblur.y", 30, 3, when={"value": "deblur.is_low", "is": False})
    more = component("more", "sr.y", 20, 3)
    made = written(folder, [deblur, sr, plain, more], {"out": ["sr.y", "plain.y"], "best": ["more.y", "deblur.y"], "any": ["more.y", "input.image"]},
                   {"deblur": 2.0, "sr": 3.0, "plain": 5.0, "more": 7.0}, {"deblur": told(2.0)})
    (made / "deblur/w.bin").write_bytes(struct.pack(f"<{N}f", *[2.0] * N))
    node.deploy("chain", made)
    for first in (0, 1, 17, 0, 2):
        x = numpy.array(numbers(first), "f")
        low = x[0] != 0
        y = line(2, x)
        sr_y = line(3, y)
        same(answered(node, x), {"out": sr_y if low else line(5, y), "best": line(7, sr_y) if low else y, "any": line(7, sr_y) if low else x})
    eventually(lambda: all(stage["ring"]["used"] == 0 for stage in pipeline(node)["stages"]))


def test_what_may_not_come_or_is_of_two_shapes_is_refused(p1, folder):  # noqa: F811
    node = p1("1g.10gb")
    deblur = component("deblur", "input.image", 20, 2)
    deblur["outputs"].append({"name": "is_low", "type": "f32", "shape": [1]})
    sr = component("sr", "deblur.y", 30, 2, when={"value": "deblur.is_low", "is": True})
    for source, words in ((["sr.y"], "output out from sr.y does not always come: not when deblur.is_low is false"),
                          (["sr.y", "deblur.is_low"], "edge out <- deblur.is_low"), ([], "outputs[0].from has 0 sources"),
                          (["sr.y"] * 17, "16"), (["sr.y", "none.y"], "outputs[0].from[1]")):
        made = folder(f"bad{len(words)}{len(source)}", [deblur, sr], source, {"deblur": 2.0, "sr": 3.0})
        assert words in refusal(node, made)
