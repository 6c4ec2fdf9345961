// Timeline: the last calls that are over, on the GPU where each ran. The same as a file for Perfetto.
import {call, live} from "./live.js";
import {Card, Empty, Fault, Legend, colours, count, html, seconds, usePolled, useState} from "./ui.js";
import {Lanes, bar} from "./lanes.js";

const ranges = [[10, "10 s"], [60, "1 min"], [300, "5 min"], [900, "15 min"]];

// Chrome's trace format, which ui.perfetto.dev opens.
function perfetto(calls) {
  const events = calls.filter(one => one.gpu).flatMap(one => {
    const {from, chosen, ran, to} = bar(one), id = one.id;
    const span = (name, a, b) => [
      {ph: "b", cat: "call", id, name, pid: one.gpu, tid: 0, ts: a * 1e6, args: {request: id, outcome: one.outcome, start: one.start}},
      {ph: "e", cat: "call", id, name, pid: one.gpu, tid: 0, ts: b * 1e6}];
    return [...span(one.function, from, to), ...span("waits", from, chosen), ...span("starts", chosen, ran), ...span("runs", ran, to)];
  });
  const named = [...new Set(calls.map(one => one.gpu))].map(gpu => ({ph: "M", name: "process_name", pid: gpu, args: {name: `GPU ${gpu}`}}));
  return JSON.stringify({traceEvents: [...named, ...events]});
}

function save(calls) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([perfetto(calls)], {type: "application/json"}));
  link.download = "fairlead-timeline.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function Timeline() {
  const [range, setRange] = useState(60), [still, setStill] = useState(false);
  const {value, error} = usePolled(() => (still ? Promise.resolve(still) : call("GET", "/fairlead/v1/recent?limit=1000").then(it => ({calls: it.calls, at: Date.now() / 1000}))), 1, [still]);
  const calls = value?.calls ?? [], end = value?.at ?? Date.now() / 1000, begin = end - range;
  const took = new Map();
  for (const one of calls) took.set(one.function, (took.get(one.function) ?? 0) + one.run_s);
  const most = [...took].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, colours.length);
  const shades = new Map(most.map(([name], i) => [name, colours[i]]));
  // Where nothing waits: from the choice on, so that lanes are slots.
  const bars = calls.map(bar).filter(one => one.to >= begin && one.call.gpu)
    .map(one => ({...one, from: one.chosen, shade: shades.get(one.call.function) ?? "--rest"}));
  const legend = [...most.map(([label, s]) => ({label, colour: shades.get(label), text: seconds(s)})), ...(took.size > most.length ? [{label: "others", colour: "--rest"}] : [])];
  const gpus = [...new Set([...[...live.items.gpu.keys()].map(Number), ...bars.map(one => one.call.gpu)])].sort((a, b) => a - b);
  const groups = gpus.map(gpu => ({title: `GPU ${gpu}`, bars: bars.filter(one => one.call.gpu === gpu)}));
  const buttons = html`${ranges.map(([s, label]) => html`<button key=${label} aria-pressed=${s === range} class=${s === range ? "main" : ""} onClick=${() => setRange(s)}>${label}</button>`)}`;
  return html`<${Fault} error=${error} /><${Card} wide title="Timeline" aside=${buttons}>
    <div class="row"><button onClick=${() => setStill(still ? false : value)}>${still ? "Go on" : "Hold still"}</button>
      <button disabled=${!calls.length} onClick=${() => save(calls)}>Save for Perfetto</button><span class="note">${count(bars.length)} of the last ${count(calls.length)} calls ran in this time; time that a call ran, not what it waited</span></div>
    ${bars.length === 0 ? html`<${Empty}>No call has ended in this time.<//>` : html`<${Lanes} groups=${groups} begin=${begin} end=${end} />`}
    <${Legend} parts=${legend} /><//>`;
}
