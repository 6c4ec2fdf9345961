"""A self-contained HTML page: the table, the latency distributions, and each function's service over time (the axes of
the paper's Figure 5a). No scripts, no outside files."""

import html

from metrics import service_by_window

WIDTH, HEIGHT, MARGIN = 560, 300, 48
COLOURS = ["#1b6ca8", "#d1495b", "#2e8b57", "#8a5fbf", "#c98a00", "#5b6770", "#00838f", "#a04000"]


def _polyline(points, colour):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.8" points="{path}"/>'


def _chart(title, x_label, y_label, series, x_max, y_max, x_ticks, y_ticks):
    """series: [(name, [(x, y)])] in data units; ticks: [(value, label)]."""
    plot_width, plot_height = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN

    def place(x, y):
        return (MARGIN + plot_width * min(x / x_max, 1), HEIGHT - MARGIN - plot_height * min(y / y_max, 1))

    parts = [f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}">']
    for value, label in x_ticks:
        x, _ = place(value, 0)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{MARGIN}" x2="{x:.1f}" y2="{HEIGHT - MARGIN}"/>'
                     f'<text class="tick" x="{x:.1f}" y="{HEIGHT - MARGIN + 16}" text-anchor="middle">{label}</text>')
    for value, label in y_ticks:
        _, y = place(0, value)
        parts.append(f'<line class="grid" x1="{MARGIN}" y1="{y:.1f}" x2="{WIDTH - MARGIN}" y2="{y:.1f}"/>'
                     f'<text class="tick" x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for index, (name, points) in enumerate(series):
        colour = COLOURS[index % len(COLOURS)]
        parts.append(_polyline([place(x, y) for x, y in points], colour))
        parts.append(f'<text class="key" x="{WIDTH - MARGIN - 4}" y="{MARGIN + 14 + 15 * index}" text-anchor="end" '
                     f'fill="{colour}">{html.escape(name)}</text>')
    parts.append(f'<text class="axis" x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{x_label}</text>'
                 f'<text class="axis" x="14" y="{HEIGHT / 2}" text-anchor="middle" '
                 f'transform="rotate(-90 14 {HEIGHT / 2})">{y_label}</text>')
    parts.append(f"</svg><figcaption>{html.escape(title)}</figcaption></figure>")
    return "".join(parts)


def _ticks(maximum, count=5):
    return [(maximum * i / count, f"{maximum * i / count:.3g}") for i in range(count + 1)]


def latency_chart(results):
    longest = max(sample.latency for samples in results.values() for sample in samples)
    series = []
    for policy, samples in results.items():
        ordered = sorted(sample.latency for sample in samples)
        step = max(1, len(ordered) // 400)
        series.append((policy, [(value, (i + 1) / len(ordered)) for i, value in enumerate(ordered) if i % step == 0]))
    return _chart("Latency: share of invocations answered within", "seconds", "share", series, longest, 1.0,
                  _ticks(longest), _ticks(1.0))


def service_chart(policy, samples, window, functions):
    received = service_by_window(samples, window)
    highest = max(max(received[name]) for name in functions)
    end = window * max(len(received[name]) for name in functions)
    series = [(name, [((i + 0.5) * window, value) for i, value in enumerate(received[name])]) for name in functions]
    return _chart(f"{policy}: GPU service received per {window:g} s window, four busiest functions", "seconds",
                  "service, seconds", series, end, highest or 1, _ticks(end), _ticks(highest or 1))


STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:74rem;margin:2rem auto;padding:0 1rem;color:#1c2430}
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.35rem .9rem;border-bottom:1px solid #d5dae1;text-align:right}
th:first-child,td:first-child{text-align:left}figure{display:inline-block;margin:0 1rem 1rem 0}svg{width:34rem}
.grid{stroke:#e3e7ec}.tick{font-size:11px;fill:#5b6770}.axis{font-size:12px;fill:#1c2430}.key{font-size:12px}
figcaption{font-size:.9rem;color:#5b6770}"""


def page(rows, results, window, notes):
    """rows: the table, header first; results: {policy: samples}; notes: paragraphs."""
    busiest = {}
    for samples in results.values():
        for sample in samples:
            busiest[sample.function] = busiest.get(sample.function, 0) + sample.service
    functions = sorted(busiest, key=lambda name: (-busiest[name], name))[:4]
    table = "".join("<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
                    for tag, row in zip(["th"] + ["td"] * len(rows), rows))
    charts = latency_chart(results) + "".join(
        service_chart(policy, samples, window, functions) for policy, samples in results.items())
    paragraphs = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Fairlead demo</title><style>{STYLE}</style>'
            f"<h1>Fairlead demo: one GPU, 24 functions</h1>{paragraphs}<table>{table}</table>{charts}</html>")
