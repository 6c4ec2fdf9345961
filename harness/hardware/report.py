"""The report of tools/hardware-check: tables for people, and what differs from another run."""

from harness.hardware.rows import FAIL, RECORDED, verdict_of

SAME_WITHIN = 0.01  # of numbers that two devices both promise; ratios of times are never that close
TIMES_APART = 2.0   # ratios of times are named when they are further apart


def by_part(report):
    return {name: [row for row in report["rows"] if row["part"] == name] for name in report["parts"]}


def part_table(report):
    lines = ["| part | verdict | rows | seconds | limit |", "| --- | --- | --- | --- | --- |"]
    for name, rows in by_part(report).items():
        part = report["parts"][name]
        lines.append(f"| {name} | {verdict_of(rows)} | {len(rows)} | {part['seconds']:.0f} | {part['limit_s']:.0f} |")
    return lines


def cell(value):
    return str(value).replace("|", "\\|").replace("\n", " ")


def row_table(rows):
    return ["| part | what | value | expected | verdict |", "| --- | --- | --- | --- | --- |"] + [
        "| " + " | ".join(cell(row[column]) for column in ("part", "what", "value", "expected", "verdict")) + " |" for row in rows]


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def apart(row, other):
    """Whether two runs' rows of one name say different things."""
    if row["verdict"] != other["verdict"]:
        return True
    left, right = row["value"], other["value"]
    if is_number(left) and is_number(right) and " / " in row["what"]:
        return max(left, right) > TIMES_APART * min(left, right)
    if row["verdict"] != RECORDED:
        return False
    if not (is_number(left) and is_number(right)):
        return left != right
    return abs(left - right) > SAME_WITHIN * max(abs(left), abs(right))


def differences(report, other):
    """[(part, what, value here, value there)], the rows that only one run has among them."""
    mine, theirs = ({(row["part"], row["what"]): row for row in run["rows"]} for run in (report, other))
    absent = {"value": "no such row", "verdict": "-"}
    pairs = [(key, mine.get(key, absent), theirs.get(key, absent)) for key in [*mine, *(key for key in theirs if key not in mine)]]
    return [(*key, *(f"{row['value']} ({row['verdict']})" for row in (here, there))) for key, here, there in pairs
            if here is absent or there is absent or apart(here, there)]


def comparison(report, other):
    lines = ["", "## Differs from the software GPU", ""]
    if other is None:
        return lines + ["Not compared: `--compare FILE` names the JSON of a rehearsal."]
    found = differences(report, other)
    lines += [f"Beside a run on {describe(other)}. Ratios of times are named where they are more than {TIMES_APART:.0f} times"
              f" apart, other recorded numbers where they differ by more than {SAME_WITHIN:.0%}, expectations where one"
              " run meets them and the other does not.", ""]
    if not found:
        return lines + ["Nothing."]
    return lines + ["| part | what | here | there |", "| --- | --- | --- | --- |"] + [
        "| " + " | ".join(map(cell, row)) + " |" for row in found]


def describe(report):
    device = report["device"]
    return f"{device['name']}, driver {device['driver']}, CUDA {device['cuda']}, {device['memory_bytes'] / (1 << 30):.1f} GiB"


def markdown(report, other):
    failed = [row for row in report["rows"] if row["verdict"] == FAIL]
    lines = [f"# Fairlead on {report['device']['name']}", "",
             f"`{report['command']}`, {report['date']}, {report['seconds']:.0f} s. {describe(report)}"
             + (", software GPU" if report["software"] else "") + ". Times are ratios within the run.", "", "## Parts", "",
             *part_table(report), "", "## Failed", ""]
    lines += row_table(failed) if failed else ["Nothing."]
    lines += comparison(report, other)
    lines += ["", "## Rows", "", *row_table(report["rows"])]
    for part, files in report["logs"].items():
        for file, text in files.items():
            lines += ["", f"## End of {file}, of {part}", "", "```", text.rstrip(), "```"]
    return "\n".join(lines) + "\n"
