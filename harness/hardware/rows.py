"""What a part of tools/hardware-check found: one row for each thing that was looked at."""

import json

PASS, FAIL, SKIPPED, RECORDED = "pass", "FAIL", "skipped", "recorded"


class Rows:
    """Writes each row to a file at once, so that a part that is killed keeps what it had found."""

    def __init__(self, path, part):
        self.path, self.part = path, part

    def _add(self, what, value, expected, verdict):
        row = {"part": self.part, "what": what, "value": value, "expected": expected, "verdict": verdict}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def record(self, what, value):
        """A value that nothing is expected of; a comparison with another run shows it."""
        self._add(what, value, "-", RECORDED)

    def skip(self, what, why):
        self._add(what, why, "-", SKIPPED)

    def expect(self, what, value, expected, met):
        """expected: words for the reader. met: whether `value` is that."""
        self._add(what, value, expected, PASS if met else FAIL)

    def expect_equal(self, what, value, expected):
        self.expect(what, value, expected, value == expected)

    def expect_between(self, what, value, least, most):
        """Two numbers as bounds; None where there is no bound."""
        words = " and ".join(f"{word} {bound:.4g}" for word, bound in (("at least", least), ("at most", most)) if bound is not None)
        met = (least is None or value >= least) and (most is None or value <= most)
        self.expect(what, float(f"{value:.4g}"), words, met)


def read(path):
    """The rows of a file that Rows wrote; [] where nothing was written."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def verdict_of(rows):
    """The verdict of a part from those of its rows. A part that found nothing has failed."""
    verdicts = {row["verdict"] for row in rows}
    if FAIL in verdicts or not verdicts:
        return FAIL
    return SKIPPED if verdicts <= {SKIPPED, RECORDED} and SKIPPED in verdicts else PASS
