"""Pipelines of kernel tasks and programs, without PyTorch: registered, refused, written, read, run, cut into stages."""

import json
import os
import random
import subprocess
import sys

import numpy
import pipeline_programs
import pytest
from sdk_paths import ROOT

import fairlead
from fairlead import ktask
from fairlead.pipeline import PipelineError, load, partitions
from fairlead.pipeline import __main__ as serving
from fairlead.pipeline.description import check

SHAPE = (2, 8)


def scale(factor, shape=SHAPE, name="x"):
    task = ktask.Task()
    task.output("y", task.scale(task.input(name, "f32", shape), factor))
    return task


def add():
    task = ktask.Task()
    task.output("sum", task.add(task.input("a", "f32", SHAPE), task.input("b", "f32", SHAPE)))
    return task


class Branching(fairlead.Pipeline):
    """Bright pictures are darkened; then the picture is doubled, and comes out with a sum of two edges."""

    inputs = {"picture": ("f32", SHAPE), "other": ("f32", SHAPE)}
    objective_ms = 250

    def dag(self, picture, other):
        bright = self.program(pipeline_programs.is_bright, picture, returns={"bright": ("u8", (1,))}, name="probe")
        with self.when(bright):
            dark = self.task(scale(0.25), picture, name="darken")
        chosen = self.join(dark, picture)
        doubled = self.task(scale(2), chosen, name="double")
        total = self.task(add(), a=doubled, b=other, name="total")
        small = self.program(pipeline_programs.halve, total, returns={"small": ("f32", (2, 4))}, name="halve")
        return {"doubled": doubled, "small": small}


def answer(picture, other):
    doubled = 2 * (picture * 0.25 if picture.mean() > 0.5 else picture)
    return {"doubled": doubled, "small": (doubled + other)[:, ::2]}


def arrays(level):
    picture = numpy.full(SHAPE, level, "f") + numpy.arange(16, dtype="f").reshape(SHAPE) / 100
    return {"picture": picture, "other": numpy.ones(SHAPE, "f")}


def check_answer(got, inputs):
    for name, wanted in answer(**inputs).items():
        numpy.testing.assert_allclose(got[name], wanted, rtol=1e-6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Branching().build(tmp_path_factory.mktemp("pipeline"), measure="1g", repeats=2)


def test_the_description_says_what_the_class_says(folder):
    said = json.loads((folder / "pipeline.json").read_text())
    assert (said["version"], said["objective_ms"]) == (1, 250)
    assert said["outputs"] == [{"name": "doubled", "from": "double.y"}, {"name": "small", "from": "halve.small"}]
    components = {c["name"]: c for c in said["components"]}
    assert components["double"]["inputs"] == {"x": ["darken.y", "input.picture"]}
    assert components["darken"]["when"] == {"value": "probe.bright", "is": True}
    assert components["probe"]["task"] is None and components["probe"]["program"]["function"] == "is_bright"
    assert set(components["probe"]["profile"]) == {"ms"} and components["probe"]["profile"]["ms"]["host"][2] == 2
    assert components["double"]["profile"]["memory_mib"]["peak"] > 0
    mean, deviation, seen = components["double"]["profile"]["ms"]["1g"]
    assert mean > 0 and deviation >= 0 and seen == 2
    assert (folder / "double/task.json").is_file()


@pytest.mark.parametrize("level, ran", [(0.1, ["probe", "double", "total", "halve"]),
                                        (0.9, ["probe", "darken", "double", "total", "halve"])])
def test_data_decides_about_a_branch(folder, level, ran):
    with load(folder) as pipeline:
        check_answer(pipeline(**arrays(level)), arrays(level))
        assert sorted(pipeline.ran) == sorted(ran)
    check_answer(Branching().reference(**arrays(level)), arrays(level))


def test_every_partition_answers_the_same(folder):
    names = [c["name"] for c in json.loads((folder / "pipeline.json").read_text())["components"]]
    cut = list(partitions(names))
    assert len(cut) == 2 ** (len(names) - 1)
    for stages in cut:
        with load(folder, stages) as pipeline:
            for level in (0.1, 0.9):
                check_answer(pipeline(**arrays(level)), arrays(level))


def test_stages_name_each_component_once(folder):
    with pytest.raises(PipelineError, match="each once"):
        load(folder, [["double"]])


def test_wrong_inputs_are_refused(folder):
    with load(folder) as pipeline:
        with pytest.raises(PipelineError, match="inputs given: picture; wanted: other, picture"):
            pipeline(picture=numpy.ones(SHAPE, "f"))
        with pytest.raises(ValueError, match="input other has shape"):
            pipeline(picture=numpy.ones(SHAPE, "f"), other=numpy.ones((2, 9), "f"))


# ---- refused where it is written


def pipeline(dag, **inputs):
    made = type("Made", (fairlead.Pipeline,), {"inputs": inputs or {"x": ("f32", SHAPE)}, "dag": dag})
    return made()


def refused(dag, *words, **inputs):
    with pytest.raises(PipelineError) as error:
        pipeline(dag, **inputs).graph()
    assert all(word in str(error.value) for word in (*words, "test_pipeline.py:")), error.value


def test_a_class_without_a_dag_method():
    class Nothing(fairlead.Pipeline):
        pass
    with pytest.raises(PipelineError, match=r"class Nothing has no DAG method.*test_pipeline\.py:\d+"):
        Nothing().graph()


def test_a_shape_that_does_not_fit_its_edge():
    def dag(self, x):
        y = self.task(scale(2), x, name="first")
        return self.task(scale(2, (2, 9)), y, name="second")
    refused(dag, "component second", "edge first.y -> second.x", "f32 [2, 8] comes, f32 [2, 9] is wanted")


def test_a_cycle():
    def dag(self, x):
        a = self.task(add(), x, "c.y", name="a")
        b = self.task(scale(2), a, name="b")
        return self.task(scale(3), b, name="c")
    refused(dag, "waits for itself", "a <- c <- b <- a")


def test_a_component_may_be_named_before_it_is_registered():
    def dag(self, x):
        last = self.task(scale(3), "first.y", name="last")
        self.task(scale(2), x, name="first")
        return last
    graph = pipeline(dag).graph()
    assert [c["name"] for c in graph["components"]] == ["first", "last"]


def test_an_output_that_may_not_come():
    def dag(self, x):
        bright = self.program(pipeline_programs.is_bright, x, returns={"b": ("u8", (1,))}, name="probe")
        with self.when(bright):
            return self.task(scale(2), x, name="y")
    with pytest.raises(PipelineError, match="not when probe.b is false"):
        pipeline(dag).graph()


def test_both_branches_cover_an_output():
    def dag(self, x):
        bright = self.program(pipeline_programs.is_bright, x, returns={"b": ("u8", (1,))}, name="probe")
        with self.when(bright):
            one = self.task(scale(2), x, name="one")
        with self.otherwise(bright):
            other = self.task(scale(3), x, name="other")
        return self.task(scale(1), self.join(one, other), name="either")
    assert pipeline(dag).reference(x=numpy.zeros(SHAPE, "f"))["output"].sum() == 0


def test_a_join_is_an_output_where_one_of_its_values_always_comes(tmp_path):
    def dag(self, x):
        bright = self.program(pipeline_programs.is_bright, x, returns={"b": ("u8", (1,))}, name="probe")
        with self.when(bright):
            one = self.task(scale(2), x, name="one")
        with self.otherwise(bright):
            other = self.task(scale(3), x, name="other")
        return {"either": self.join(one, other), "maybe": self.join(one, x)}
    made = pipeline(dag)
    made.build(tmp_path / "joined")
    assert made.graph()["outputs"] == [{"name": "either", "from": ["one.y", "other.y"]}, {"name": "maybe", "from": ["one.y", "input.x"]}]
    with load(tmp_path / "joined", stages=[["probe", "one"], ["other"]]) as run:
        for level, either, maybe in ((0.1, 3, 1), (0.9, 2, 2)):
            x = numpy.full(SHAPE, level, "f")
            for answer in (run(x=x), made.reference(x=x)):
                assert (numpy.asarray(answer["either"]) == either * x).all() and (numpy.asarray(answer["maybe"]) == maybe * x).all()


def test_a_join_that_may_not_come_is_no_output():
    def dag(self, x):
        bright = self.program(pipeline_programs.is_bright, x, returns={"b": ("u8", (1,))}, name="probe")
        with self.when(bright):
            one, two = self.task(scale(2), x, name="one"), self.task(scale(3), x, name="two")
        return self.join(one, two)
    with pytest.raises(PipelineError, match="from one.y or two.y does not always come: not when probe.b is false"):
        pipeline(dag).graph()


def test_if_of_a_value_is_refused_with_the_way_to_say_it():
    def dag(self, x):
        return x if x else x
    refused(dag, "self.when(value)")


@pytest.mark.parametrize("returns", [None, {}, 3, {"y": 3}])
def test_a_dag_that_returns_no_values(returns):
    refused(lambda self, x: returns)


def test_what_is_no_value_or_no_task_is_refused():
    refused(lambda self, x: self.task(scale(2), 3, name="s"), "component s", "input x")
    refused(lambda self, x: self.task(scale(2), x, x, name="s"), "2 values for inputs ['x']")
    refused(lambda self, x: self.task(scale(2), z=x, name="s"), "input z")
    refused(lambda self, x: self.task(scale(2), name="s"), "are given", "are wanted")
    refused(lambda self, x: self.task("scale", x, name="s"), "a kernel task is wanted")
    refused(lambda self, x: self.program(lambda x: x, x, returns={"y": ("f32", 1)}, name="p"), "no function at the top of a file")
    refused(lambda self, x: self.join(x, self.task(scale(2, (3,)), self.task(scale(1, (3,)), "q.y"), name="q")), "q.y")


def test_a_program_that_gives_too_much(tmp_path):
    def dag(self, picture):
        return self.program(pipeline_programs.two, picture, returns={"y": ("f32", SHAPE)})
    made = pipeline(dag, picture=("f32", SHAPE))
    with load(made.build(tmp_path)) as run, pytest.raises(ValueError, match="two gave 2 outputs, 1 are said"):
        run(picture=numpy.zeros(SHAPE, "f"))


def test_a_name_is_used_once():
    def dag(self, x):
        return self.task(scale(2), self.task(scale(2), x))
    assert [c["name"] for c in pipeline(dag).graph()["components"]] == ["task", "task2"]


# ---- descriptions of others


def described(folder):
    return json.loads((folder / "pipeline.json").read_text())


@pytest.mark.parametrize("change, words", [
    (lambda d: d.update(version=2), "version is 2"),
    (lambda d: d.update(objective_ms=-1), "objective_ms is -1"),
    (lambda d: d.update(objective_ms=float("nan")), "objective_ms is nan"),
    (lambda d: d.update(components=[]), "0 components"),
    (lambda d: d["components"].append(dict(d["components"][0])), "two components"),
    (lambda d: d["components"][0].update(name="../../etc"), "letters, digits"),
    (lambda d: d["components"][1].update(task="../x"), "a folder beside"),
    (lambda d: d["components"][0].update(name="input"), "'input'"),
    (lambda d: d["components"][0]["outputs"][0].update(shape=[2**40, 2**40]), "more than"),
    (lambda d: d["components"][0]["outputs"][0].update(shape=[0]), "sizes of 1 to"),
    (lambda d: d["components"][0]["outputs"][0].update(shape=[True]), "sizes of 1 to"),
    (lambda d: d["components"][0]["outputs"][0].update(type="float"), "of type 'float'"),
    (lambda d: d["components"][0]["inputs"].update(picture="nobody.y"), "nobody.y"),
    (lambda d: d["components"][0]["inputs"].update(picture=[]), "a tensor's name"),
    (lambda d: d["outputs"].append(dict(d["outputs"][0])), "once each"),
    (lambda d: d.update(outputs=[]), "0 outputs, 1 to 16"),
    (lambda d: d["outputs"][0].update(name="picture"), "an input has that name"),
    (lambda d: d["outputs"][0].update({"from": ["darken.y", "probe.bright"]}), "what joins must be of one type and shape"),
    (lambda d: d["outputs"][0].update({"from": []}), "nor a list of 1 to 16"),
    (lambda d: d["components"][0].update(inputs={}), "0 inputs, 1 to 16"),
    (lambda d: d.update(components=[dict(d["components"][0], name=f"c{i}") for i in range(65)]), "65 components, 1 to 64"),
    (lambda d: d["outputs"][0].update({"from": "darken.y"}), "does not always come"),
])
def test_a_description_that_nobody_could_run(folder, change, words):
    said = described(folder)
    change(said)
    with pytest.raises(PipelineError, match=words):
        check(said)


def test_random_damage_is_refused_or_runs_but_never_breaks(folder):
    """Whatever stands where a value stood: a PipelineError, or a description that is as good."""
    chance, junk = random.Random(7), [None, 0, -1, 2**63, "", "x.y", [], {}, True, [1], "input.picture", 1e308]
    for _ in range(600):
        said = described(folder)
        place = said
        while isinstance(place, (dict, list)) and place:
            key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not isinstance(place[key], (dict, list)) or chance.random() < 0.2:
                place[key] = chance.choice(junk)
                break
            place = place[key]
        try:
            check(said)
        except PipelineError:
            pass


def test_a_program_outside_the_folder_is_not_run(folder, tmp_path):
    said = described(folder)
    said["components"][0]["program"]["file"] = "../evil.py"
    (tmp_path / "pipeline.json").write_text(json.dumps(said))
    with pytest.raises(PipelineError, match="not inside"):
        load(tmp_path)


# ---- programs as a node runs them


def test_a_program_serves_requests(folder):
    command = [sys.executable, "-m", "fairlead.pipeline", "program", str(folder), "probe"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), *sys.path])}
    requests = b"".join(numpy.full(SHAPE, level, "f").tobytes() for level in (0.1, 0.9, 0.2))
    done = subprocess.run(command, input=requests, env=environment, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, b"\0\0\0\1\0\0"), done.stderr
    done = subprocess.run(command, input=requests[:-1], env=environment, capture_output=True, timeout=120)
    assert done.returncode != 0 and b"a request ends after" in done.stderr


def test_a_program_that_fails_answers_so_and_goes_on():
    def fails(x):
        raise KeyError("no")
    assert serving.answer(fails, {"x": 1}, [("y", "u8", (1,))])[:1] == b"\1"
    assert b"KeyError" in serving.answer(fails, {"x": 1}, [("y", "u8", (1,))])


def test_a_program_said_in_one_word_gets_its_inputs_by_name(tmp_path):
    """FILE:FUNCTION, no `task` at all, and inputs in another order than their names'."""
    (tmp_path / "steps.py").write_text("def minus(z, a):\n    import numpy\n    return numpy.asarray(z) - numpy.asarray(a)\n")
    number = {"type": "f32", "shape": [1]}
    said = {"version": 1, "inputs": [{"name": "one", **number}, {"name": "two", **number}],
            "outputs": [{"name": "left", "from": "p.y"}],
            "components": [{"name": "p", "program": "steps.py:minus", "inputs": {"z": "input.one", "a": "input.two"},
                            "outputs": [{"name": "y", **number}]}]}
    (tmp_path / "pipeline.json").write_text(json.dumps(said))
    with load(tmp_path) as run:
        assert numpy.asarray(run(one=numpy.full(1, 5, "f"), two=numpy.full(1, 3, "f"))["left"])[0] == 2
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), *sys.path])}
    request = numpy.array([3, 5], "f").tobytes()  # a, then z
    served = subprocess.run([sys.executable, "-m", "fairlead.pipeline", "program", str(tmp_path), "p"], input=request, env=environment,
                            capture_output=True, check=True)
    assert served.stdout == b"\0" + numpy.array([2], "f").tobytes(), served.stderr


def test_a_file_that_says_a_name_twice_or_no_number_is_refused(tmp_path):
    for text, words in (('{"version": 1, "version": 1}', "twice in one object"), ('{"version": NaN}', "NaN is no number"),
                        (" " * ((1 << 20) + 1), "1048577 bytes, 1048576")):
        (tmp_path / "pipeline.json").write_text(text)
        with pytest.raises(PipelineError, match=words):
            load(tmp_path)
