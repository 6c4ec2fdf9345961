// Calls as bars over time, in as many lanes as overlap: queued | starting | running, the last in the colour of how it started.
import {clock, html, seconds, style, useLayoutEffect, useRef, useState, useTheme, useWidth} from "./ui.js";

const LANE = 14, AXIS = 20, GROUP = 20;
const startColours = {"device-warm": "--warm", "host-warm": "--host", cold: "--cold"};
export const kinds = [["waits", "--queue"], ["starts", "--rest"], ["runs, warm", "--warm"], ["runs, from host memory", "--host"], ["runs, started cold", "--cold"], ["failed", "--bad"]];

// shade: the colour of what runs, where it is not how it started.
export function bar(call) {
  const from = call.at_ms / 1000, chosen = from + call.queue_s, ran = chosen + call.start_s;
  return {call, from, chosen, ran, to: ran + call.run_s};
}

// The first lane that is free; those that have no room are left out and counted.
function pack(bars, most) {
  const ends = [], lanes = [];
  let left = 0;
  for (const one of [...bars].sort((a, b) => a.from - b.from)) {
    let lane = ends.findIndex(end => end <= one.from + 0.0025); // the clock's milliseconds
    if (lane < 0) lane = ends.length;
    if (lane >= most) { left++; continue; }
    ends[lane] = one.to;
    lanes.push({...one, lane});
  }
  return {lanes, count: Math.max(1, ends.length), left};
}

function step(span, width) {
  const least = span / Math.max(2, width / 90);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(n => n * power).find(n => n >= least);
}

// groups: [{title, bars}]; begin, end: seconds of the clock.
export function Lanes({groups, begin, end, most = 24}) {
  const box = useRef(), canvas = useRef(), width = useWidth(box), theme = useTheme();
  const [tip, setTip] = useState(null);
  const packed = groups.map(group => ({...group, ...pack(group.bars, most)}));
  const titled = packed.some(group => group.title);
  let height = AXIS;
  for (const group of packed) {
    group.top = height + (titled ? GROUP : 0);
    height = group.top + group.count * LANE + 6;
  }
  const x = t => (width * (t - begin)) / Math.max(end - begin, 1e-9);
  useLayoutEffect(() => {
    if (!width) return;
    const scale = devicePixelRatio || 1, paper = canvas.current;
    paper.width = width * scale;
    paper.height = height * scale;
    const pen = paper.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11px system-ui, sans-serif";
    const [line, muted, text] = ["--line", "--muted", "--text"].map(style);
    const each = step(end - begin, width);
    for (let t = Math.ceil(begin / each) * each; t <= end; t += each) {
      pen.fillStyle = line;
      pen.fillRect(Math.round(x(t)), AXIS, 1, height - AXIS);
      pen.fillStyle = muted;
      const label = each >= 1 ? clock(t * 1000) : `${clock(t * 1000)}.${String(Math.floor((t % 1) * 1000)).padStart(3, "0").slice(0, each >= 0.1 ? 1 : 3)}`;
      if (x(t) + 60 < width) pen.fillText(label, x(t) + 3, 12);
    }
    const piece = (from, to, top, colour) => {
      if (to < begin || from > end) return;
      pen.fillStyle = style(colour);
      const left = Math.max(0, x(from));
      pen.fillRect(left, top, Math.max(to > from ? 1 : 0, Math.min(width, x(to)) - left), LANE - 3);
    };
    for (const group of packed) {
      if (titled) {
        pen.fillStyle = text;
        pen.fillText(group.title + (group.left ? ` (${group.left} more)` : ""), 2, group.top - 6);
      }
      for (const one of group.lanes) {
        const top = group.top + one.lane * LANE;
        piece(one.from, one.chosen, top, "--queue");
        piece(one.chosen, one.ran, top, "--rest");
        piece(one.ran, one.to, top, one.shade ?? (one.call.outcome === "success" ? startColours[one.call.start] ?? "--queue" : "--bad"));
      }
    }
  });
  const point = event => {
    const at = canvas.current.getBoundingClientRect(), px = event.clientX - at.left, py = event.clientY - at.top;
    const group = packed.findLast(one => py >= one.top);
    const t = begin + (px / Math.max(width, 1)) * (end - begin), slack = ((end - begin) / Math.max(width, 1)) * 2;
    const one = group?.lanes.find(each => each.lane === Math.floor((py - group.top) / LANE) && t >= each.from - slack && t <= each.to + slack);
    setTip(one ? {one, left: Math.max(0, Math.min(px + 12, width - 250)), top: py + 14} : null);
  };
  return html`<div class="lanes" ref=${box} onMouseMove=${point} onMouseLeave=${() => setTip(null)}>
    <canvas ref=${canvas} style=${{height: `${height}px`}} role="img" aria-label=${`${packed.reduce((sum, one) => sum + one.lanes.length, 0)} calls over time`} />
    ${tip && html`<${Tip} ...${tip} />`}</div>`;
}

function Tip({one, left, top}) {
  const {call} = one;
  const rows = [["waited", call.queue_s], ["started", call.start_s], ["ran", call.run_s], ["on the GPU", call.gpu_s], ["memory came back", call.memory_s]];
  return html`<div class="tip" style=${{left: `${left}px`, top: `${top}px`}}><b>${call.function}</b>
    <div><span>${clock(call.at_ms)}</span><span>${call.outcome}${call.start ? `, ${call.start}` : ""}</span></div>
    ${rows.filter(([, s]) => s > 0).map(([label, s]) => html`<div key=${label}><span>${label}</span><span>${seconds(s)}</span></div>`)}
    ${call.failure && html`<p>${call.failure.slice(0, 200)}</p>`}</div>`;
}
