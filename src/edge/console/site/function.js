// One function: its last calls as lanes, instances, log, settings, dead letters, and a box to call it.
import {call, live, percentile, request} from "./live.js";
import {Card, Empty, Fault, Legend, Pill, Tile, bytes, clock, count, html, part, rate, seconds, useEffect, useLive, usePolled, useRef, useState} from "./ui.js";
import {Lanes, bar, kinds} from "./lanes.js";

const roles = ["reader", "invoker", "deployer", "operator"];
const may = role => live.viewer?.key && roles.indexOf(live.viewer?.role) >= roles.indexOf(role);
const path = (name, rest) => `/fairlead/v1/functions/${encodeURIComponent(name)}/${rest}`;

function quantile(values, of) {
  if (!values.length) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(of * sorted.length))];
}

function Calls({name}) {
  const {value, error} = usePolled(() => call("GET", `/fairlead/v1/recent?limit=200&function=${encodeURIComponent(name)}`), 1, [name]);
  const calls = value?.calls ?? [], bars = calls.map(bar);
  const begin = Math.min(...bars.map(one => one.from)), end = Math.max(...bars.map(one => one.to));
  const rows = [["in all", one => one.queue_s + one.start_s + one.run_s], ["waits", one => one.queue_s], ["starts", one => one.start_s], ["runs", one => one.run_s], ["on the GPU", one => one.gpu_s]];
  const failed = calls.filter(one => one.outcome !== "success");
  return html`<${Card} wide title=${html`Last calls <small>${calls.length}</small>`}><${Fault} error=${error} />
    ${bars.length === 0 ? html`<${Empty}>No call is over yet.<//>` : html`
      <${Lanes} groups=${[{title: "", bars}]} begin=${begin} end=${Math.max(end, begin + 0.01)} />
      <${Legend} parts=${kinds.map(([label, colour]) => ({label, colour}))} />
      <div class="scroll"><table><thead><tr><th class="name">Of these</th><th>p50</th><th>p90</th><th>p99</th><th>most</th></tr></thead>
        <tbody>${rows.map(([label, of]) => html`<tr key=${label}><td class="name">${label}</td>${[0.5, 0.9, 0.99, 1].map(q => html`<td key=${q}>${seconds(quantile(calls.map(of), q))}</td>`)}</tr>`)}</tbody></table></div>`}
    ${failed.length > 0 && html`<div class="scroll"><table data-test="failures"><thead><tr><th class="name">Failed</th><th class="text">How</th><th class="text">What it said</th><th class="text low">Request</th></tr></thead>
      <tbody>${failed.slice(0, 10).map(one => html`<tr key=${one.id}><td class="name">${clock(one.at_ms)}</td><td class="text"><${Pill} kind="bad">${one.outcome}<//></td>
        <td class="text failure" title=${one.failure}>${one.failure || html`<span class="quiet">see the log</span>`}</td><td class="text low"><code>${one.id}</code></td></tr>`)}</tbody></table></div>`}<//>`;
}

function Invoke({name}) {
  const [payload, setPayload] = useState("{}"), [headers, setHeaders] = useState(""), [event, setEvent] = useState(false);
  const [busy, setBusy] = useState(false), [answer, setAnswer] = useState(null);
  const submit = async click => {
    click.preventDefault();
    setBusy(true);
    const began = performance.now();
    try {
      const extra = Object.fromEntries(headers.split("\n").filter(line => line.includes(":")).map(line => [line.slice(0, line.indexOf(":")).trim(), line.slice(line.indexOf(":") + 1).trim()]));
      const got = await request("POST", `/2015-03-31/functions/${encodeURIComponent(name)}/invocations`,
        {body: payload, headers: {"X-Amz-Log-Type": event ? "None" : "Tail", ...extra, "X-Amz-Invocation-Type": event ? "Event" : "RequestResponse"}});
      const log = got.headers.get("X-Amz-Log-Result");
      setAnswer({status: got.status, error: got.headers.get("X-Amz-Function-Error"), id: got.headers.get("x-amzn-RequestId"), text: (await got.text()).slice(0, 200_000),
                 log: log && new TextDecoder().decode(Uint8Array.from(atob(log), c => c.charCodeAt(0))), ms: performance.now() - began});
    } catch (error) {
      setAnswer({status: 0, text: String(error.message ?? error), ms: performance.now() - began});
    }
    setBusy(false);
  };
  const bad = answer && (answer.status >= 300 || answer.status === 0 || answer.error);
  return html`<${Card} title="Call it">${!may("invoker") ? html`<${Empty}>${live.viewer?.key ? "Your key reads only." : "Sign in to call it: pages change nothing without a key."}<//>` : html`<form class="form" onSubmit=${submit}>
    <label>Payload<textarea name="payload" rows="4" spellcheck=${false} value=${payload} onInput=${e => setPayload(e.target.value)} /></label>
    <label>Headers, one a line<textarea name="headers" rows="1" spellcheck=${false} placeholder="X-Amz-Client-Context: …" value=${headers} onInput=${e => setHeaders(e.target.value)} /></label>
    <div class="row"><button class="main" disabled=${busy}>${busy ? "Runs…" : "Invoke"}</button><label><input type="checkbox" checked=${event} onChange=${e => setEvent(e.target.checked)} />as an event</label></div>
    ${answer && html`<div class="row"><${Pill} kind=${bad ? "bad" : "good"}>${answer.status || "no answer"}${answer.error ? ` ${answer.error}` : ""}<//><span>${seconds(answer.ms / 1000)}</span>${answer.id && html`<code>${answer.id}</code>`}</div>
      <pre class="log" data-test="answer">${answer.text || "(nothing)"}</pre>${answer.log && html`<pre class="log">${answer.log}</pre>`}`}</form>`}<//>`;
}

function Log({name}) {
  const [follow, setFollow] = useState(true), box = useRef();
  const {value, error} = usePolled(() => (follow || !box.current ? call("GET", path(name, "log?tail=16384")) : Promise.resolve(box.current.textContent)), 1, [name, follow]);
  useEffect(() => { if (follow && box.current) box.current.scrollTop = box.current.scrollHeight; }, [value, follow]);
  return html`<${Card} title="Log" aside=${html`<div class="row"><label><input type="checkbox" checked=${follow} onChange=${e => setFollow(e.target.checked)} />follow</label></div>`}>
    <${Fault} error=${error} /><pre class="log" data-test="log" ref=${box}>${value || "(nothing yet)"}</pre><//>`;
}

function Instances({name}) {
  const its = [...live.items.inst.values()].filter(one => one.function === name).sort((a, b) => a.id - b.id);
  return html`<${Card} title=${html`Instances <small>${its.length}</small>`}>${its.length === 0 ? html`<${Empty}>None: the next call starts one.<//>` : html`<div class="scroll"><table>
    <thead><tr><th class="name">Instance</th><th class="text">State</th><th>GPU</th><th>On the GPU</th><th>In host memory</th></tr></thead>
    <tbody>${its.slice(0, 50).map(one => html`<tr key=${one.id}><td class="name">${one.id}</td><td class="text"><${Pill} kind=${{busy: "good", starting: "busy"}[one.state]}>${one.state}<//></td>
      <td>${one.gpu}</td><td>${bytes(one.memory)}</td><td>${bytes(one.away)}</td></tr>`)}</tbody></table></div>`}<//>`;
}

function Letters({name}) {
  const [said, setSaid] = useState(null), [turn, setTurn] = useState(0);
  const {value, error} = usePolled(() => call("GET", `/fairlead/v1/dead-letters?limit=50&function=${encodeURIComponent(name)}`), 5, [name, turn]);
  const letters = value?.dead_letters ?? [];
  const redrive = async () => {
    try {
      const result = await call("POST", path(name, "dead-letters/redrive"));
      setSaid({text: `${count(result.redriven)} are tried again${result.left ? `, ${count(result.left)} are left` : ""}.`});
    } catch (problem) {
      setSaid({error: problem});
    }
    setTurn(turn + 1);
  };
  return html`<${Card} wide title=${html`Dead letters <small>${letters.length}${letters.length === 50 ? " or more" : ""}</small>`}
    aside=${may("deployer") && letters.length > 0 && html`<button onClick=${redrive}>Redrive all</button>`}>
    <${Fault} error=${error ?? said?.error} />${said?.text && html`<p class="note" role="status">${said.text}</p>`}
    ${letters.length === 0 ? html`<${Empty}>None.<//>` : html`<div class="scroll"><table><thead><tr><th class="name">Given up</th><th>Tries</th><th class="text">Why</th></tr></thead>
      <tbody>${letters.map(one => html`<tr key=${one.request_id}><td class="name">${clock(one.failed_ms)}</td><td>${one.attempts}</td><td class="text failure" title=${one.error_message}>${one.error_type}: ${one.error_message}</td></tr>`)}</tbody></table></div>`}<//>`;
}

function Settings({name}) {
  const {value, error} = usePolled(() => call("GET", `/2015-03-31/functions/${encodeURIComponent(name)}`), 10, [name]);
  const of = value?.Configuration ?? {}, tags = Object.entries(value?.Tags ?? {});
  const facts = [["Runtime", of.Runtime], ["Handler", of.Handler], ["Package", of.PackageType], ["Timeout", of.Timeout && `${of.Timeout} s`], ["Memory", of.MemorySize && `${of.MemorySize} MiB`],
    ["Code", of.CodeSize && bytes(of.CodeSize)], ["Changed", of.LastModified], ["Environment", Object.keys(of.Environment?.Variables ?? {}).join(", ")],
    ["Reserved concurrency", value?.Concurrency?.ReservedConcurrentExecutions], ...tags].filter(([, text]) => text != null && text !== "");
  return html`<${Card} title="Settings"><${Fault} error=${error} /><dl class="facts">${facts.map(([label, text]) => html`<div key=${label}><dt>${label}</dt><dd>${String(text)}</dd></div>`)}</dl><//>`;
}

export function Function({name}) {
  useLive();
  const fn = live.items.fn.get(name);
  const durations = live.durations(name), bounds = live.node.buckets_s;
  const failed = fn ? fn.stats.errors + fn.stats.timeouts + fn.stats.crashes : 0;
  return html`<div class="head"><h1>${name}</h1>${fn && html`${fn.state && html`<${Pill} kind=${{active: "good", throttled: "busy"}[fn.state]}>${fn.state}<//>`}<span class="note">${fn.tenant}</span>`}</div>
    ${!fn && html`<p class="note">It is not among those that are shown live: it was removed, or others have more to do.</p>`}
    ${fn?.why && html`<p class="note">${count(fn.queued)} wait: ${fn.why}</p>`}
    ${fn && html`<div class="tiles"><${Tile} label="Calls per second" value=${rate(live.rate(name))} note=${`${count(fn.stats.calls)} in all`} />
      <${Tile} label="Waiting, running" value=${`${count(fn.queued)}, ${count(fn.in_flight)}`} kind=${fn.queued ? "busy" : ""} note=${`${fn.idle} idle, ${fn.starting} starting`} />
      <${Tile} label="p50, p99" value=${`${seconds(percentile(durations, bounds, 0.5))}, ${seconds(percentile(durations, bounds, 0.99))}`} note="up to 15 min" />
      <${Tile} label="Started cold" value=${part(fn.stats.cold / Math.max(1, fn.stats.calls))} note=${`${count(fn.stats.cold)} of ${count(fn.stats.calls)}`} />
      <${Tile} label="Failed" value=${count(failed)} kind=${failed ? "bad" : ""} note=${`${count(fn.stats.timeouts)} timeouts, ${count(fn.stats.crashes)} crashes`} /></div>`}
    <${Calls} name=${name} />
    <div class="grid two"><${Invoke} name=${name} /><${Log} name=${name} />${!live.viewer?.tenant && html`<${Instances} name=${name} />`}<${Settings} name=${name} /><${Letters} name=${name} /></div>`;
}
