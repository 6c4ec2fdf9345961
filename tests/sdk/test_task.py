"""The builder: what it writes, what it shares, what it refuses; and the local executor against it."""

import json
import subprocess
import sys

import numpy
import pytest
from sdk_paths import ROOT

from fairlead import ktask
from fairlead.ktask.graph import Buffer, Launch, read, write
from fairlead.ktask.planning import share_temporaries
from fairlead.types import TaskError

SAXPY = """
.version 6.3
.target sm_70
.address_size 64
.visible .entry saxpy(.param .u64 out, .param .u64 in, .param .f32 a, .param .u32 n)
{
  .reg .pred %p; .reg .f32 %f<4>; .reg .b32 %r<5>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [in]; ld.param.f32 %f0, [a]; ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p, %r4, %r0;
  @%p ret;
  mul.wide.u32 %rd2, %r4, 4; add.u64 %rd0, %rd0, %rd2; add.u64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd0]; fma.rn.f32 %f3, %f0, %f1, %f2; st.global.f32 [%rd0], %f3;
  ret;
}
"""


def chain(**options):
    task = ktask.Task(**options)
    x = task.input("x", "f32", (8, 16))
    weights = [task.constant(f"w{i}", numpy.full((16, 16), i + 1, numpy.float32)) for i in range(5)]
    for weight in weights:
        x = x @ weight
    task.output("y", x)
    return task


def test_what_was_saved_runs_as_what_was_built(tmp_path):
    task = chain()
    x = numpy.arange(128, dtype=numpy.float32).reshape(8, 16) / 1000
    folder = task.save(tmp_path / "bundle")
    with ktask.load(folder) as loaded:
        first, second = loaded(x=x)["y"], loaded(x=x)["y"]
    assert sorted(path.name for path in (folder / "constants").iterdir()) == [f"w{i}.bin" for i in range(5)]
    numpy.testing.assert_array_equal(first, second)
    numpy.testing.assert_array_equal(first, task.run(x=x)["y"])
    expected = x
    for i in range(5):
        expected = expected @ numpy.full((16, 16), i + 1, numpy.float32)
    numpy.testing.assert_allclose(first, expected, rtol=1e-5)


def test_task_json_is_what_the_node_reads(tmp_path):
    said = json.loads((chain().save(tmp_path) / "task.json").read_text())
    assert set(said) == {"buffers", "kernels", "iterations"}
    assert said["buffers"]["x"] == {"role": "input", "type": "f32", "shape": [8, 16]}
    assert said["buffers"]["w0"] == {"role": "constant", "type": "f32", "shape": [16, 16],
                                     "file": "constants/w0.bin"}
    kernel = said["kernels"][0]
    assert set(kernel) == {"module", "kernel", "grid", "block", "shared_bytes", "arguments"}
    assert kernel["module"] == "fairlead:gemm"
    assert kernel["arguments"][1] == {"buffer": "x", "access": "read"}
    assert kernel["arguments"][5] == {"s32": 8}


def test_a_chain_needs_memory_for_two_temporaries():
    temporaries = [spec for spec in chain().description()["buffers"].values() if spec["role"] == "temporary"]
    assert temporaries == [{"role": "temporary", "bytes": 512}] * 2
    apart = chain(share_temporaries=False).description()["buffers"].values()
    assert sum(spec["role"] == "temporary" for spec in apart) == 4


def temporary(size=4):
    return Buffer("temporary", size, "u8", (size,))


def launches(*accesses):
    """One kernel for each ({buffers it reads}, {buffers it writes})."""
    task = ktask.Task()
    return [Launch("m", "k", 1, 1, [access(tensor_of(task, buffer)) for access, buffers in ((read, reads), (write, writes))
                                    for buffer in buffers]) for reads, writes in accesses]


def tensor_of(task, buffer):
    return ktask.Tensor(task, buffer, "u8", (buffer.bytes,))


def test_temporaries_that_are_alive_at_once_share_nothing():
    random = numpy.random.default_rng(3)
    for _ in range(200):
        buffers = [temporary(int(size)) for size in random.integers(1, 9, 6)]
        steps = launches(*[({buffers[i] for i in random.integers(0, 6, 2)}, {buffers[random.integers(0, 6)]})
                           for _ in range(9)])
        touched = {b: [i for i, s in enumerate(steps) if b in [a.buffer for a in s.buffers()]] for b in buffers}
        pool = share_temporaries(steps)
        assert sorted(b.bytes for shared in pool for b in shared.members) == \
            sorted(b.bytes for b in buffers if touched[b])
        for shared in pool:
            assert shared.bytes == max(b.bytes for b in shared.members)
            spans = sorted((touched[b][0], touched[b][-1]) for b in shared.members)
            assert all(a[1] < b[0] for a, b in zip(spans, spans[1:]))


def test_what_an_iteration_leaves_for_the_next_is_not_shared():
    carried, other = temporary(), temporary()
    steps = launches(({carried}, set()), (set(), {other}), ({other}, {carried}))
    steps += launches((set(), {other}))
    assert len(share_temporaries(steps, iterations=2)) == 2
    early, late = temporary(), temporary()
    steps = launches(({early}, set()), (set(), {late}), ({late}, set()))
    assert len(share_temporaries(steps, iterations=1)) == 1
    assert len(share_temporaries(steps, iterations=2)) == 2


def test_a_zeroed_temporary_shares_with_nobody():
    first, second = temporary(), Buffer("temporary", 4, "u8", (4,), zeroed=True)
    assert len(share_temporaries(launches((set(), {first}), ({first}, set()), (set(), {second})))) == 2


def test_a_kernel_of_ones_own_with_inout_iterations_and_offsets():
    task = ktask.Task(iterations=3)
    y, x = task.inout("y", "f32", (10,)), task.input("x", "f32", (20,))
    task.launch(task.module(SAXPY), "saxpy", 1, 32, [y, read(x.part(10, 10)), ktask.f32(2.0), ktask.u32(10)])
    values, ones = numpy.arange(20, dtype=numpy.float32), numpy.ones(10, numpy.float32)
    numpy.testing.assert_array_equal(task.run(x=values, y=ones)["y"], 1 + 6 * values[10:])


def test_iterations_over_operators_go_on_from_each_others_results():
    n = 24
    random = numpy.random.default_rng(3)
    a = random.normal(size=(n, n)).astype(numpy.float32) + n * numpy.eye(n, dtype=numpy.float32)
    b, guess = random.normal(size=n), random.normal(size=n)
    task = ktask.Task(iterations=40)
    matrix, right = task.input("a", "f32", (n, n)), task.input("b", "f64", (n,))
    x = task.inout("x", "f64", (n,))
    task.assign(x, task.jacobi_step(matrix, right, x))
    assert task.description()["iterations"] == 40
    numpy.testing.assert_allclose(task.run(a=a, b=b, x=guess)["x"], numpy.linalg.solve(a.astype(float), b), rtol=1e-6)


def test_kernels_before_an_assignment_read_the_old_contents_and_those_after_it_the_new():
    task = ktask.Task(iterations=2)
    x = task.inout("x", "f32", (10,))
    doubled = x * 2.0
    before = x + 1.0
    task.assign(x.part(0, 5), doubled.part(0, 5))
    task.output("sum", x + before)
    result = task.run(x=numpy.ones(10, numpy.float32))
    numpy.testing.assert_array_equal(result["x"], [4] * 5 + [1] * 5)
    numpy.testing.assert_array_equal(result["sum"], [4 + 3] * 5 + [1 + 2] * 5)


def test_assignments_that_cannot_be_are_refused():
    task = ktask.Task()
    x, y = task.input("x", "f32", (10,)), task.inout("y", "f32", (10,))
    refused("must be an inout", lambda: task.assign(x, y))
    refused("differ in type or shape", lambda: task.assign(y, task.convert(x, "f64")))
    refused("differ in type or shape", lambda: task.assign(y, x.part(0, 9)))
    refused("overlaps", lambda: task.assign(y.part(1, 5), y.part(0, 5)))
    refused("overlaps", lambda: task.assign(y, y))


def test_a_zeroed_output_starts_from_zero_at_every_call():
    task = ktask.Task()
    y, x = task.output("y", type="f32", shape=(10,), zeroed=True), task.input("x", "f32", (10,))
    task.launch(task.module(SAXPY), "saxpy", 1, 32, [y, x, ktask.f32(2.0), ktask.u32(10)])
    values = numpy.arange(10, dtype=numpy.float32)
    with task.load() as loaded:
        for _ in range(2):
            numpy.testing.assert_array_equal(loaded(x=values)["y"], 2 * values)


def test_literals_with_addresses_inside(tmp_path):
    task = ktask.Task()
    y, x = task.output("y", type="f32", shape=(10,), zeroed=True), task.input("x", "f32", (10,))
    task.launch(task.module(SAXPY), "saxpy", 1, 32, [y, x, ktask.f32(2.0), ktask.u32(10)])
    folder = task.save(tmp_path)
    said = json.loads((folder / "task.json").read_text())
    said["kernels"][0]["arguments"][1] = {"bytes": "AAAAAAAAAAA=", "relocations": [{"at": 0, "buffer": "x"}]}
    (folder / "task.json").write_text(json.dumps(said))
    with ktask.load(folder) as loaded:
        numpy.testing.assert_array_equal(loaded(x=numpy.ones(10, numpy.float32))["y"], numpy.full(10, 2))


def test_an_input_and_a_part_may_be_outputs():
    task = ktask.Task()
    x = task.input("x", "f32", (4, 2))
    task.output("same", x)
    task.output("half", (x + 1).part(2, 2))
    values = numpy.arange(8, dtype=numpy.float32).reshape(4, 2)
    answer = task.run(x=values)
    numpy.testing.assert_array_equal(answer["same"], values)
    numpy.testing.assert_array_equal(answer["half"], values[2:] + 1)


def test_an_output_may_be_read_by_later_kernels():
    task = ktask.Task()
    doubled = task.output("doubled", task.input("x", "f32", (4,)) * 2)
    task.output("more", doubled + 1)
    answer = task.run(x=numpy.ones(4, numpy.float32))
    assert (answer["doubled"] == 2).all() and (answer["more"] == 3).all()


# ---- refusals


def refused(message, action):
    with pytest.raises(TaskError, match=message):
        action()


def test_what_cannot_be_is_refused_with_its_numbers():
    task = ktask.Task()
    x, w = task.input("x", "f32", (8, 16)), task.constant("w", numpy.zeros((15, 3), numpy.float32))
    refused("16 columns beside 15 rows", lambda: x @ w)
    refused("types f32 and f64 differ", lambda: task.add(x, task.input("d", "f64", (8, 16))))
    refused("do not fit together: 16 beside 15", lambda: x + task.input("z", "f32", (15,)))
    refused("two buffers are called x", lambda: task.input("x", "f32", (1,)))
    refused(r"shape\[1\] is 0", lambda: task.input("empty", "f32", (3, 0)))
    refused("element type is f31", lambda: task.input("odd", "f31", (3,)))
    refused("cannot have shape", lambda: x.reshape(3, -1))
    refused("no module nowhere", lambda: task.launch("nowhere", "k", 1, 1, []))
    module = task.module(SAXPY)
    refused(r"saxpy: block\[0\] is 2048, 1 to 1024", lambda: task.launch(module, "saxpy", 1, 2048, []))
    refused("argument 1 is 5; say its type", lambda: task.launch(module, "saxpy", 1, 1, [x, 5]))
    refused("would write input x", lambda: task.launch(module, "saxpy", 1, 1, [write(x)]))
    refused("iterations is 0", lambda: ktask.Task(iterations=0))
    refused("batch of 70000", lambda: task.gemm(task.input("many", "f32", (70000, 2, 2)),
                                                task.input("few", "f32", (70000, 2, 2))))
    refused("the task has no kernel", ktask.Task().description)


def test_a_task_without_a_written_output_is_refused():
    task = ktask.Task()
    x = task.input("x", "f32", (8,))
    task.relu(x)
    refused("has no output", task.description)
    task.output("y", type="f32", shape=(8,))
    refused("no kernel writes output y", task.description)


def test_inputs_of_a_call_are_checked():
    with chain().load() as task:
        refused("wanted: x", task)
        refused(r"shape \(16, 8\), \(8, 16\) is wanted", lambda: task(x=numpy.zeros((16, 8), numpy.float32)))
        refused("type f64, f32 is wanted", lambda: task(x=numpy.zeros((8, 16))))
        refused("has 3 bytes, 512 are wanted", lambda: task(x=b"abc"))


def test_a_constant_of_the_node_is_given_to_the_local_task():
    task = ktask.Task()
    w = task.constant("w", key="weights/w", type="f32", shape=(4,))
    task.output("y", task.input("x", "f32", (4,)) * w)
    assert task.description()["buffers"]["w"]["key"] == "weights/w"
    refused("object weights/w of a node; give it", task.load)
    four = numpy.full(4, 3, numpy.float32)
    with task.load(constants={"w": four}) as loaded:
        assert (loaded(x=four)["y"] == 9).all()


def test_it_works_without_numpy():
    """In a process of its own, where NumPy cannot be imported."""
    program = """
import array, sys
sys.modules["numpy"] = None
from fairlead import ktask
t = ktask.Task()
x = t.input("x", "f32", (2, 3))
w = t.constant("w", array.array("f", range(6)), shape=(3, 2))
t.output("y", x @ w)
answer = t.run(x=memoryview(array.array("f", [1] * 6)).cast("B").cast("f", [2, 3]))["y"]
assert answer.tolist() == [[6.0, 9.0], [6.0, 9.0]], answer.tolist()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "python", capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
