// Now: what comes in and how it goes, the GPUs, and the functions, those in trouble first.
import {live, percentile} from "./live.js";
import {Card, Chart, Empty, Legend, Pill, Stack, Tile, bytes, colours, count, html, part, rate, seconds, to, useLive, useState} from "./ui.js";

// Per second between samples; over a few of them, so that one call is no spike.
function perSecond(samples, key, window = 3) {
  return samples.map((sample, i) => {
    const before = samples[Math.max(0, i - window)];
    return i ? Math.max(0, sample[key] - before[key]) / Math.max(0.5, sample.t - before.t) : null;
  });
}

function since(samples, key) {
  return samples.length ? samples[samples.length - 1][key] - samples[0][key] : 0;
}

function recentDurations(samples) {
  const first = samples[0]?.durations ?? [], last = samples[samples.length - 1]?.durations ?? [];
  const recent = last.map((n, i) => Math.max(0, n - (first[i] ?? 0)));
  return recent.some(n => n) ? recent : last;
}

function Traffic() {
  const {samples, node} = live;
  const durations = recentDurations(samples), bounds = node.buckets_s;
  const arrivals = perSecond(samples, "arrived"), failures = perSecond(samples, "failed");
  const starts = ["warm", "host_warm", "cold"].map(kind => since(samples, kind));
  const all = starts.reduce((sum, n) => sum + n, 0), shown = all ? starts : ["warm", "host_warm", "cold"].map(kind => samples[samples.length - 1]?.[kind] ?? 0);
  const sum = shown.reduce((a, b) => a + b, 0);
  const kinds = [["warm", "--warm"], ["host-warm", "--host"], ["cold", "--cold"]].map(([label, colour], i) =>
    ({label, colour, value: shown[i], text: sum ? part(shown[i] / sum) : "–"}));
  const last = list => list[list.length - 1] ?? 0;
  const queued = node.queued ?? last(samples.map(one => one.queued));
  const t = samples.map(one => one.t);
  return html`
    <div class="tiles">
      <${Tile} name="rate" label="Calls per second" value=${rate(last(arrivals))} note=${`${count(samples[samples.length - 1]?.arrived ?? 0)} answered`} />
      <${Tile} name="queued" label="Waiting" value=${count(queued)} kind=${queued ? "busy" : ""} note=${node.queue_limit ? `of at most ${count(node.queue_limit)}` : ""} />
      <${Tile} label="Half answered in" value=${seconds(percentile(durations, bounds, 0.5))} note="p50, up to 15 min" />
      <${Tile} label="99 of 100 in" value=${seconds(percentile(durations, bounds, 0.99))} note="p99, up to 15 min" />
      <${Tile} label="Failing" value=${`${rate(last(failures))}/s`} kind=${last(failures) > 0 ? "bad" : ""} note=${node.events ? `${count(node.events.dead_letters)} dead letters` : ""} />
    </div>
    <div class="grid two">
      <${Card} title="Arrivals" aside="per second">
        <${Chart} label="calls and failures per second" format=${rate} data=${[t, arrivals, failures]}
          lines=${[{label: "calls", colour: "--accent", fill: true}, {label: "failures", colour: "--bad"}]} />
      <//>
      <${Card} title="Waiting and starts">
        <${Chart} height=${108} label="calls that wait" format=${n => count(n)} data=${[t, samples.map(one => one.queued)]}
          lines=${[{label: "waiting", colour: "--host", fill: true}]} />
        <${Stack} parts=${kinds} whole=${sum} label="starts by kind" /><${Legend} parts=${kinds} />
      <//>
    </div>`;
}

function Gpu({gpu, shades}) {
  const of = new Map();
  for (const inst of live.items.inst.values()) {
    if (inst.gpu !== gpu.id || !inst.memory) continue;
    of.set(inst.function || "one-off tasks", (of.get(inst.function || "one-off tasks") ?? 0) + inst.memory);
  }
  const parts = [...of].sort((a, b) => b[1] - a[1]).map(([label, value]) => ({label, value, colour: shades.get(label) ?? "--rest", text: bytes(value)}));
  const other = Math.max(0, gpu.memory_used - parts.reduce((sum, one) => sum + one.value, 0));
  if (other > 0) parts.push({label: "other", value: other, colour: "--rest", text: bytes(other)});
  const kind = {serving: "good", draining: "busy", repairing: "bad"}[gpu.state] ?? "";
  return html`<${Card} title=${html`GPU ${gpu.id} <small>${gpu.name}${gpu.slice ? ` ${gpu.slice}` : ""}</small>`} aside=${html`<${Pill} kind=${kind}>${gpu.state}<//>`}>
    ${gpu.reason && html`<p class="note">${gpu.reason}</p>`}
    <dl class="facts">
      <div><dt>Slots</dt><dd><span class="pips">${Array.from({length: Math.min(gpu.slots, 32)}, (_, i) => html`<i class=${i < gpu.used ? "on" : ""} />`)}</span> ${gpu.used} of ${gpu.slots}</dd></div>
      <div><dt>Use</dt><dd><span class="meter"><i style=${{width: part(gpu.utilisation).replace(" ", "")}} /></span> ${part(gpu.utilisation)}</dd></div>
      <div><dt>Memory</dt><dd>${bytes(gpu.memory_used)} of ${bytes(gpu.memory)}</dd></div>
    </dl>
    <${Stack} parts=${parts} whole=${gpu.memory} label="device memory by function" />
    <${Legend} parts=${parts.slice(0, 6)} />
  <//>`;
}

const trouble = fn => [fn.queued > 0 ? 1 : 0, fn.state === "throttled" ? 1 : 0, fn.queued, fn.in_flight, fn.stats.calls];
const failed = fn => fn.stats.errors + fn.stats.timeouts + fn.stats.crashes;
const columns = [
  ["Function", fn => fn.name, "name"], ["Tenant", fn => fn.tenant, "text low"], ["State", fn => fn.state ?? "", "text"],
  ["Waiting", fn => fn.queued], ["Running", fn => fn.in_flight], ["Idle", fn => fn.idle, "low"], ["Calls/s", fn => live.rate(fn.name)],
  ["p50", fn => percentile(live.durations(fn.name), live.node.buckets_s, 0.5)], ["p99", fn => percentile(live.durations(fn.name), live.node.buckets_s, 0.99)],
  ["Cold", fn => fn.stats.cold / Math.max(1, fn.stats.calls), "low"], ["Failed", failed], ["On GPU", fn => fn.memory, "low"],
];
const cell = [v => v, v => v, v => v, count, count, count, rate, seconds, seconds, part, count, bytes];
const kinds = {active: "good", throttled: "busy", inactive: ""};

function compare(a, b) {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return b[i] - a[i];
  return 0;
}

function Functions() {
  const [filter, setFilter] = useState(""), [order, setOrder] = useState(null), [most, setMost] = useState(50);
  const all = [...live.items.fn.values()].filter(fn => fn.name.includes(filter) || fn.tenant.includes(filter));
  if (order == null) all.sort((a, b) => compare(trouble(a), trouble(b)) || (a.name < b.name ? -1 : 1));
  else {
    const value = columns[order.column][1];
    const way = order.down ? -1 : 1;
    all.sort((a, b) => { const x = value(a), y = value(b); return way * (x < y ? -1 : x > y ? 1 : 0) || (a.name < b.name ? -1 : 1); });
  }
  const sort = column => setOrder(now => (now?.column !== column ? {column, down: column > 2} : now.down === column > 2 ? {column, down: !now.down} : null));
  const {node} = live;
  const aside = html`<input type="search" placeholder="Filter" aria-label="Filter functions" value=${filter} onInput=${event => setFilter(event.target.value)} />`;
  return html`<${Card} wide title=${html`Functions <small>${count(node.functions ?? all.length)}</small>`} aside=${aside}>
    ${node.shown < node.functions && html`<p class="note">The ${count(node.shown)} busiest of ${count(node.functions)} are here.</p>`}
    ${all.length === 0 ? html`<${Empty}>${filter ? "No function has this in its name." : html`No functions yet: <code>fairlead deploy</code> makes one.`}<//>` : html`
    <div class="scroll"><table>
      <thead><tr>${columns.map(([title, , kind], i) => html`<th key=${title} class=${kind ?? ""}><button onClick=${() => sort(i)}
        aria-label=${`sort by ${title}`}>${title}${order?.column === i ? (order.down ? " ↓" : " ↑") : ""}</button></th>`)}</tr></thead>
      <tbody>${all.slice(0, most).map(fn => html`<tr key=${fn.name} class=${fn.queued ? "hot" : ""}>
        ${columns.map(([title, value, kind], i) => html`<td key=${title} class=${kind ?? ""}>${
          i === 0 ? html`<a href=${to("function", fn.name)}>${fn.name}</a>${fn.why && html`<small>${fn.why}</small>`}`
          : i === 2 ? html`<${Pill} kind=${kinds[value(fn)]}>${value(fn) || (fn.in_flight ? "runs" : "idle")}<//>`
          : i === 10 && value(fn) ? html`<b class="bad">${count(value(fn))}</b>`
          : cell[i](value(fn))}</td>`)}</tr>`)}</tbody></table></div>
    ${all.length > most && html`<button class="more" onClick=${() => setMost(most + 200)}>Show more of ${count(all.length)}</button>`}`}
  <//>`;
}

export function Now() {
  useLive();
  const held = new Map();
  for (const inst of live.items.inst.values()) held.set(inst.function || "one-off tasks", (held.get(inst.function || "one-off tasks") ?? 0) + (inst.memory ?? 0));
  const shades = new Map([...held].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, colours.length).map(([name], i) => [name, colours[i]]));
  const gpus = [...live.items.gpu.values()].sort((a, b) => a.id - b.id);
  return html`${live.node.obstacle && html`<p class="fault" role="alert">${live.node.obstacle}</p>`}
    <${Traffic} />
    ${gpus.length > 0 && html`<div class="grid gpus">${gpus.map(gpu => html`<${Gpu} key=${gpu.id} gpu=${gpu} shades=${shades} />`)}</div>`}
    <${Functions} />`;
}
