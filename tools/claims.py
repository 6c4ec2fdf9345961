"""What the pages of reproduced claims share: one rule that an absent effect cannot pass, and tables in Markdown.

The rule, on ratios of equal seeds: the 95 % interval of their geometric mean (Student's t on the logarithms) must not hold 1, and the mean must
differ from 1 by more than half a per cent. On the paper's side of 1, the claim is reproduced where the ratio's logarithm is at least half the paper's least
and at most twice its greatest. Example: 1.5 x is reproduced by 1.22 x to 2.25 x, and by neither 1.01 x nor 3 x.
"""
import json
import math
import subprocess
import typing

REPRODUCED, DIRECTION, NONE, OPPOSITE, NOT, SILENT, ELSEWHERE = (
    "reproduced", "direction only", "no effect", "the opposite", "not reproduced", "says nothing", "not simulated")
VERDICTS = (REPRODUCED, DIRECTION, NONE, OPPOSITE, NOT, SILENT, ELSEWHERE)
NEAR = 2  # how far the size of an effect may be from the paper's, as a factor on its logarithm
LEAST_EFFECT = math.log(1.005)  # what is printed as 1.00 is none
# Student's t for 95 %, by degrees of freedom.
STUDENT = ((1, 12.71), (2, 4.30), (3, 3.18), (4, 2.78), (5, 2.57), (6, 2.45), (7, 2.36), (8, 2.31), (9, 2.26), (10, 2.23),
           (15, 2.13), (20, 2.09), (30, 2.04), (60, 2.00))


class Row(typing.NamedTuple):
    claim: str
    paper: str
    here: str
    verdict: str
    remark: str = ""


class Ratio(typing.NamedTuple):
    centre: float
    low: float
    high: float

    def text(self):
        return f"{self.centre:.2f} x ({self.low:.2f} to {self.high:.2f})"

    def is_effect(self):
        return (self.low > 1 or self.high < 1) and abs(math.log(self.centre)) > LEAST_EFFECT


def mean_ratio(numerators, denominators):
    """The geometric mean of the ratios of equal seeds, and its 95 % interval (Student's t on the logarithms)."""
    logs = [math.log(a / b) for a, b in zip(numerators, denominators) if a > 0 and b > 0]
    if len(logs) < 2:
        return Ratio(math.nan, 0, math.inf)
    mean = sum(logs) / len(logs)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in logs) / (len(logs) - 1))
    student = [t for degrees, t in STUDENT if degrees <= len(logs) - 1][-1]
    margin = student * deviation / math.sqrt(len(logs))
    return Ratio(math.exp(mean), math.exp(mean - margin), math.exp(mean + margin))


def verdict(ratio, low, high):
    """`ratio` beside the paper's range (high None: "more than"). Without an effect on the paper's side nothing is reproduced; its size
    is right where its logarithm is at least half the paper's least and at most twice its greatest."""
    if not ratio.is_effect():
        return NONE
    if (ratio.centre > 1) != (low > 1 or (low == 1 and (high is None or high > 1))):
        return OPPOSITE
    size, sizes = abs(math.log(ratio.centre)), [abs(math.log(edge)) for edge in (low, high) if edge is not None]
    is_near = size >= min(sizes) / NEAR and (high is None or size <= max(sizes) * NEAR)
    return REPRODUCED if is_near else DIRECTION


def sameness(ratio, margin=0.05):
    """Of what the paper says is equal: the whole interval lies within the margin of 1."""
    return REPRODUCED if 1 / (1 + margin) <= ratio.low and ratio.high <= 1 + margin else NOT


def count(rows):
    counts = [f"{sum(row.verdict == v for row in rows)} {v}" for v in VERDICTS if any(row.verdict == v for row in rows)]
    return f"Of {len(rows)}: {', '.join(counts)}."


def claims_table(rows):
    return "\n".join(["| claim | paper | here | verdict | remark |", "| --- | --- | --- | --- | --- |"] +
                     ["| " + " | ".join(row) + " |" for row in rows])


def chart(title, x, y, series, logarithmic=False):
    """What `fairlead sim chart` draws. series: {label: [(x, y)]}."""
    return {"title": title, "x": {"label": x}, "y": {"label": y, "logarithmic": logarithmic},
            "series": [{"label": label, "points": points} for label, points in series.items()]}


def draw(program, path, what):
    done = subprocess.run([program, "sim", "chart"], input=json.dumps(what), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{path.name}: {done.stderr.strip()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(done.stdout)
