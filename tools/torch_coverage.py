#!/usr/bin/env python3
"""tools/torch_coverage.py [operators | models | all] [--page FILE] [--only NAME]: what fairlead.torch converts, and whether it is right.

Runs, on the software GPU against PyTorch on the CPU, lists that PyTorch and torchvision generate:

operators  every operator of the core ATen set that has samples in PyTorch's own test data (OpInfo): the first five samples in
           f32, f16 and bf16. An operator without samples of its own name takes those of the entry with the fewest operators
           that reaches it.
models     the smallest builder of every architecture family of torchvision.models, and nanoGPT, a Llama block, UNet, LSTM, GRU,
           Conv1d (tools/torch_models.py), random weights, eval mode, at reduced width or size.

A row is "right", "refused: why", or "WRONG". --page writes docs/reference/pytorch-coverage.md. Needs torch and torchvision from PyPI.
"""

import argparse
import collections
import json
import os
import pathlib
import signal
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]
os.environ.setdefault("FAIRLEAD_KERNELS", str(ROOT / "build/share/fairlead/kernels"))
os.environ.setdefault("FAIRLEAD_LIBCUDA", str(ROOT / "build/lib/softgpu/libcuda.so.1"))
os.environ.setdefault("SOFTGPU_PROFILE", "a100-40")

import torch  # noqa: E402
import torch_models  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from fairlead import torch as fairlead_torch  # noqa: E402
from fairlead.types import TaskError  # noqa: E402

warnings.filterwarnings("ignore")
SAMPLES = 5
# Beside PyTorch's result: |difference| <= absolute + relative |expected|. Of halves a few of their last digits.
TOLERANCE = {torch.float32: (2e-5, 1e-4), torch.float16: (2e-3, 4e-3), torch.bfloat16: (2e-2, 3e-2)}
MODEL_TOLERANCE = 5e-4  # of a whole network: the largest difference beside the largest expected value, which is not 0
UNDEFINED = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")
# PyTorch leaves the order of equal elements open, so the input at the indices is compared: where `dim` stands among the arguments.
TIES = {"sort": 0, "topk": 1}
SECONDS = 120


class Late(Exception):
    pass


def alarm(*_):
    raise Late


class Call(torch.nn.Module):
    """A function of tensors; whatever else it takes is fixed."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def tensors_of(value):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def compare(function, tensors, dtype, undefined=False, models=False):
    """("right", error) or ("refused", why) or ("WRONG", what)."""
    module = function if isinstance(function, torch.nn.Module) else Call(function)
    try:
        with torch.no_grad():
            expected = tensors_of(module(*tensors))
    except Exception as error:  # the sample itself cannot be: PyTorch refuses it
        return "skipped", f"PyTorch: {error}"
    if not expected:
        return "skipped", "gives no tensor"
    if not models and any(tensor.numel() == 0 for tensor in [*tensors, *expected]):
        return "empty", "a tensor without elements"
    try:
        task = fairlead_torch.from_module(module.eval(), tuple(tensors))
        names = [name for name, buffer in task._named.items() if buffer.role == "input"]
        answer = task.run(**{name: as_array(tensor) for name, tensor in zip(names, tensors)})
    except TaskError as error:
        return "refused", str(error).split("; it comes from")[0]
    except Late:
        return "refused", f"not done in {SECONDS} s"
    except Exception as error:
        return "refused", f"{type(error).__name__} of torch.export: {str(error).strip().splitlines()[0][:100] if str(error).strip() else ''}"
    if len(answer) != len(expected):
        return "WRONG", f"{len(answer)} results for {len(expected)}"
    worst = 0.0
    wide = in_floats(module, tensors, dtype)
    for index, (got, wanted) in enumerate(zip(answer.values(), expected)):
        good, error = of_model(got, wanted) if models else close(got, wanted, TOLERANCE[dtype], undefined)
        if not good and wide:  # PyTorch's own f16 and bf16 may be further from f32 than ours: then f32 decides
            good, error = close(got, wide[index].to(wanted.dtype), TOLERANCE[dtype], undefined)
        worst = max(worst, error)
        if not good:
            return "WRONG", f"off by {error:.2g}"
    return "right", worst


def in_floats(module, tensors, dtype):
    """PyTorch's results for the same inputs in f32; None where there are none, or where f32 is what was asked."""
    if dtype == torch.float32:
        return None
    try:
        with torch.no_grad():
            return tensors_of(module(*(tensor.float() if tensor.dtype == dtype else tensor for tensor in tensors)))
    except Exception:
        return None


def as_array(tensor):
    tensor = tensor.detach().contiguous()
    return tensor.view(torch.int16).numpy().view("uint16") if tensor.dtype == torch.bfloat16 else tensor.numpy()


def of_model(got, wanted):
    """Beside the largest expected value, so that small results are no excuse."""
    got, wanted = torch.from_numpy(got.copy()).double(), wanted.double()
    if got.shape != wanted.shape or not torch.isfinite(wanted).all() or not wanted.any():
        return False, float("inf")
    error = float((got - wanted).abs().max() / wanted.abs().max())
    return error <= MODEL_TOLERANCE, error


def close(got, wanted, tolerance, undefined):
    got = torch.from_numpy(got.copy())
    if wanted.dtype == torch.bfloat16:
        got = got.view(torch.bfloat16)
    if tuple(got.shape) != (tuple(wanted.shape) or (1,)) or (got.dtype != wanted.dtype and wanted.dtype != torch.bool):
        return False, float("inf")
    if undefined:
        return True, 0.0
    got, wanted = got.reshape(wanted.shape).double(), wanted.double()
    absolute, relative = tolerance
    same = torch.isclose(got, wanted, rtol=relative, atol=absolute, equal_nan=True)
    finite = torch.isfinite(wanted) & torch.isfinite(got)
    error = ((got - wanted).abs() / (wanted.abs() + 1))[finite]
    return bool(same.all()), float(error.max()) if error.numel() else 0.0


# ---- operators


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function._opname)
        return function(*args, **(kwargs or {}))


def core_operators():
    found = set()
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        if hasattr(packet, "overloads") and any(torch.Tag.core in getattr(packet, one).tags for one in packet.overloads()):
            found.add(name)
    return sorted(found)


def samples_of(entry, dtype):
    out = []
    torch.manual_seed(7)
    for sample in entry.sample_inputs("cpu", dtype, requires_grad=False):
        out.append(sample)
        if len(out) == SAMPLES:
            break
    return out


def entries_of(names):
    """({operator: OpInfo}, {operator: why there is none})"""
    from torch.testing._internal.common_methods_invocations import op_db
    found, reached = {}, {}
    for entry in op_db:
        for name in {entry.name, entry.aten_name, entry.name.split(".")[-1]} & set(names):
            if name not in found or entry.name == name and not entry.variant_test_name:
                found[name] = entry
    for entry in op_db:
        if torch.float32 not in entry.dtypes:
            continue
        try:
            with Seen() as seen, torch.no_grad():
                sample = next(iter(entry.sample_inputs("cpu", torch.float32, requires_grad=False)))
                seen.names.clear()
                entry(sample.input, *sample.args, **sample.kwargs)
        except Exception:
            continue
        for name in set(seen.names) & set(names) - set(found):
            if name not in reached or len(seen.names) < reached[name][0]:
                reached[name] = (len(seen.names), entry)
    return {**found, **{name: entry for name, (_, entry) in reached.items()}}


def run_sample(name, entry, sample, dtype):
    """Every tensor of the sample is an input of the module."""
    leaves, spec = torch.utils._pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors):
        values = list(leaves)
        for place, tensor in zip(places, tensors):
            values[place] = tensor
        first, args, keywords = torch.utils._pytree.tree_unflatten(values, spec)
        answer = entry.op(first, *args, **keywords)
        if name in TIES:
            place = TIES[name]
            dim = args[place] if len(args) > place else keywords.get("dim", -1)
            return answer[0], first.gather(dim, answer[1])
        return answer

    return compare(function, [leaves[i].detach().contiguous() for i in places], dtype, name in UNDEFINED)


def operators(only, shard, known):
    """`known`: rows of an earlier run; those without a refusal or an error are not run again."""
    rows, names = [], core_operators()
    entries = entries_of(names)
    first, step = shard
    for name in names[first::step]:
        if only and name != only:
            continue
        if name in known and all(verdict(cell) in ("right", "none") for cell in known[name]["dtypes"].values()):
            rows.append(known[name])
            print(json.dumps(known[name]), flush=True)
            continue
        entry, row = entries.get(name), {"operator": name, "dtypes": {}}
        for dtype in TOLERANCE:
            outcome = collections.Counter()
            reasons, error = [], 0.0
            try:
                samples = samples_of(entry, dtype) if entry is not None and dtype in entry.dtypes else []
            except Exception:
                samples = []
            for sample in samples:
                signal.alarm(SECONDS)
                try:
                    what, why = run_sample(name, entry, sample, dtype)
                except Late:
                    what, why = "refused", f"not done in {SECONDS} s"
                finally:
                    signal.alarm(0)
                outcome[what] += 1
                if what == "right":
                    error = max(error, why)
                elif what not in ("skipped", "empty"):
                    reasons.append(why)
            row["dtypes"][str(dtype).split(".")[1]] = {**outcome, "error": error, "why": reasons[:2]}
        row["by"] = entry.name if entry is not None else None
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


# ---- models


def models(only, shard, known):
    rows, (first, step) = [], shard
    for name, make in list(torch_models.all_models())[first::step]:
        if only and name != only:
            continue
        if known.get(name, {}).get("outcome") == "right":
            rows.append(known[name])
            print(json.dumps(known[name]), flush=True)
            continue
        start = time.monotonic()
        torch.manual_seed(7)
        signal.alarm(SECONDS * 3)
        try:
            module, inputs = make()
            what, why = compare(torch_models.settled(module), inputs, torch.float32, models=True)
        except Late:
            what, why = "refused", f"not done in {3 * SECONDS} s"
        except Exception as error:
            what, why = "refused", f"{type(error).__name__}: {str(error)[:100]}"
        finally:
            signal.alarm(0)
        rows.append({"model": name, "outcome": what, "why": why, "seconds": round(time.monotonic() - start, 1)})
        print(json.dumps(rows[-1]), flush=True)
    return rows


# ---- the page


def verdict(cell):
    """right, refused, WRONG or none of an operator in one type."""
    if cell.get("WRONG"):
        return "WRONG"
    if cell.get("refused"):
        return "refused" if not cell.get("right") else "partly"
    return "right" if cell.get("right") else "none"


def summary(rows):
    counted = collections.Counter()
    cells = [(verdict(cell), cell) for row in rows for cell in row["dtypes"].values()]
    for what, cell in cells:
        counted[what] += 1
        for outcome in ("right", "refused", "WRONG", "empty"):
            counted[f"samples {outcome}"] += cell.get(outcome, 0)
    return counted


def plain(text):
    return str(text).replace("|", "/").replace("\n", " ")[:110]


def page(operator_rows, model_rows):
    counted = summary(operator_rows)
    with_samples = sum(counted[what] for what in ("right", "partly", "refused", "WRONG"))
    samples = sum(counted[f"samples {what}"] for what in ("right", "refused", "WRONG"))
    right = sum(row["outcome"] == "right" for row in model_rows)
    wrong = sum(row["outcome"] == "WRONG" for row in model_rows)
    rate = lambda a, b: f"{100 * a / b:.1f} %" if b else "-"  # noqa: E731
    lines = ["# What fairlead.torch converts",
             "Written by `tools/torch_coverage.py all --page docs/reference/pytorch-coverage.md`, not by hand. Every row was run on the software GPU "
             "and compared with PyTorch on the CPU; the lists are PyTorch's and torchvision's own. [Kernel tasks in "
             "Python](../how-to/ktask-python.md#pytorch) says how to convert a module. An operator's error is the largest |difference| / (|expected| + 1), a model's the largest |difference| / the largest |expected|. Where PyTorch's own f16 or bf16 result differs, its f32 result decides. Of "
             "sort and topk, which leave the order of equal elements open, the input at the indices is compared.",
             "", f"PyTorch {torch.__version__.split('+')[0]}.", "", "| what | goal | reached |", "| --- | --- | --- |",
             f"| operators of the core ATen set times f32, f16, bf16, all of the first {SAMPLES} samples right | >= 95 % | "
             f"{counted['right']} of {with_samples}: {rate(counted['right'], with_samples)} |",
             f"| samples right | >= 95 % | {counted['samples right']} of {samples}: {rate(counted['samples right'], samples)} |",
             f"| samples with a tensor that has no element, which a kernel task cannot have, not counted above | - | "
             f"{counted['samples empty']} |",
             f"| samples wrong | 0 | {counted['samples WRONG']} |",
             f"| models that convert and are right | >= 90 % | {right} of {len(model_rows)}: {rate(right, len(model_rows))} |",
             f"| models wrong | 0 | {wrong} |", ""]
    missing = [row["operator"] for row in operator_rows if all(verdict(cell) == "none" for cell in row["dtypes"].values())]
    lines += [f"Without samples in PyTorch's test data, and not counted: {', '.join(missing)}.", "", "## Models", "",
              "| model | outcome |", "| --- | --- |"]
    for row in model_rows:
        outcome = f"works, error {row['why']:.1g}" if row["outcome"] == "right" else f"{row['outcome']}: {plain(row['why'])}"
        lines.append(f"| {row['model']} | {outcome} |")
    lines += ["", "## Operators", "", "| operator | f32 | f16 | bf16 | why not |", "| --- | --- | --- | --- | --- |"]
    for row in operator_rows:
        if row["operator"] in missing:
            continue
        cells = []
        for cell in row["dtypes"].values():
            what = verdict(cell)
            cells.append({"right": f"{cell['error']:.0e}", "partly": f"{cell.get('right')} of {cell.get('right', 0) + cell['refused']}"
                          if what == "partly" else "", "none": "-"}.get(what, what))
        why = next((plain(reason) for cell in row["dtypes"].values() for reason in cell["why"]), "")
        lines.append(f"| {row['operator']} | {' | '.join(cells)} | {why} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("operators", "models", "all"))
    parser.add_argument("--page")
    parser.add_argument("--only")
    parser.add_argument("--resume", help="a file of rows that earlier runs printed: what was right there is not run again")
    parser.add_argument("--render", action="store_true", help="runs nothing: the page of --resume's rows, the last of each")
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth row from the Ith")
    said = parser.parse_args()
    signal.signal(signal.SIGALRM, alarm)
    torch.set_num_threads(1)
    rows = [json.loads(line) for line in pathlib.Path(said.resume).read_text().splitlines() if line[:1] == "{"] if said.resume else []
    known_operators = {row["operator"]: row for row in rows if "operator" in row}
    known_models = {row["model"]: row for row in rows if "model" in row}
    if said.render:
        operator_rows, model_rows = (sorted(known.values(), key=lambda row: str(row.get("operator"))) for known in
                                     (known_operators, known_models))
    else:
        shard = tuple(map(int, said.shard.split("/")))
        operator_rows = operators(said.only, shard, known_operators) if said.what in ("operators", "all") else []
        model_rows = models(said.only, shard, known_models) if said.what in ("models", "all") else []
    counted = summary(operator_rows)
    print(dict(counted), collections.Counter(row["outcome"] for row in model_rows), file=sys.stderr)
    if said.page:
        pathlib.Path(said.page).write_text(page(operator_rows, model_rows))
    wrong = counted["samples WRONG"] + sum(row["outcome"] == "WRONG" for row in model_rows)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
