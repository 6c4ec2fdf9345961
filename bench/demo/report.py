"""A self-contained HTML page: the table, the latency distributions, and each function's service over time (the axes of
the paper's Figure 5a). `fairlead sim chart` draws, as for every report. No scripts, no outside files."""

import html
import json
import subprocess

from metrics import service_by_window

MOST_POINTS = 400


def _figure(program, title, x, y, series, logarithmic_x=False):
    """series: [(name, [(x, y)])]."""
    chart = {"title": title, "x": {"label": x, "logarithmic": logarithmic_x}, "y": {"label": y},
             "series": [{"label": name, "points": points} for name, points in series]}
    svg = subprocess.run([program, "sim", "chart"], input=json.dumps(chart), capture_output=True, text=True, check=True).stdout
    return f"<figure>{svg}</figure>"


def latency_chart(program, results):
    series = []
    for policy, samples in results.items():
        ordered = sorted(sample.latency for sample in samples)
        step = max(1, len(ordered) // MOST_POINTS)
        series.append((policy, [(value, 100 * (i + 1) / len(ordered)) for i, value in enumerate(ordered) if i % step == 0]))
    return _figure(program, "Latency, cumulative", "seconds", "% of invocations", series, logarithmic_x=True)


def service_chart(program, policy, samples, window, functions):
    received = service_by_window(samples, window)
    series = [(name, [((i + 0.5) * window, value) for i, value in enumerate(received[name])]) for name in functions]
    return _figure(program, f"{policy}: GPU time in {window:g} s, four busiest functions", "seconds", "GPU seconds", series)


STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:84rem;margin:2rem auto;padding:0 1rem;color:#1c2430}
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.35rem .9rem;border-bottom:1px solid #d5dae1;text-align:right}
th:first-child,td:first-child{text-align:left}figure{display:inline-block;margin:0 1rem 1rem 0;break-inside:avoid}svg{max-width:100%;height:auto}
@media (prefers-color-scheme:dark){body{background:#14181d;color:#ddd}th,td{border-color:#444}}@media print{svg{print-color-adjust:exact}}"""


def page(program, rows, results, window, notes):
    """program: `fairlead`, which draws; rows: the table, header first; results: {policy: samples}; notes: paragraphs."""
    busiest = {}
    for samples in results.values():
        for sample in samples:
            busiest[sample.function] = busiest.get(sample.function, 0) + sample.service
    functions = sorted(busiest, key=lambda name: (-busiest[name], name))[:4]
    table = "".join("<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
                    for tag, row in zip(["th"] + ["td"] * len(rows), rows))
    charts = latency_chart(program, results) + "".join(
        service_chart(program, policy, samples, window, functions) for policy, samples in results.items())
    paragraphs = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Fairlead demo</title><style>{STYLE}</style>'
            f"<h1>Fairlead demo: one GPU, 24 functions</h1>{paragraphs}<table>{table}</table>{charts}</html>")
