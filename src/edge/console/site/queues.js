// Queues: where each flow is in virtual time, why it waits, and what tenants were given and used.
import {live} from "./live.js";
import {Card, Empty, Pill, count, html, part, seconds, to, useLive} from "./ui.js";

const MOST = 60;

function Flow({fn, gvt, window}) {
  const ahead = fn.vt_s - gvt, at = Math.max(0, Math.min(1, ahead / window));
  const place = {left: `${at * 100}%`};
  return html`<div class="flow" data-test="flow">
    <a href=${to("function", fn.name)} title=${fn.name}>${fn.name}</a>
    <div class="track" title=${`${seconds(Math.abs(ahead))} ${ahead < 0 ? "behind" : "ahead of"} the node's virtual time`}>
      <i class=${fn.state} style=${place} /><em class=${at > 0.7 ? "left" : ""} style=${place}>${ahead < 0 ? "−" : "+"}${seconds(Math.abs(ahead))}</em></div>
    <span title=${fn.why}>${fn.queued ? html`<b>${count(fn.queued)} wait</b>: ${fn.why}` : fn.in_flight ? `${count(fn.in_flight)} run` : "nothing waits"}</span></div>`;
}

// Of the GPU time of the last minutes that this page saw, whose it was.
const usedBefore = new Map();
function used(tenants) {
  const now = Date.now() / 1000;
  return tenants.map(tenant => {
    const kept = usedBefore.get(tenant.name) ?? [];
    usedBefore.set(tenant.name, kept);
    if (!kept.length || now - kept[kept.length - 1].t > 2) kept.push({t: now, gpu_s: tenant.gpu_s});
    while (kept.length > 1 && kept[0].t < now - 60) kept.shift();
    return Math.max(0, tenant.gpu_s - kept[0].gpu_s);
  });
}

function Tenants() {
  const tenants = [...live.items.tenant.values()].sort((a, b) => b.queued - a.queued || (a.name < b.name ? -1 : 1));
  if (!tenants.length) return null;
  const weights = tenants.reduce((sum, one) => sum + one.weight, 0), took = used(tenants), all = took.reduce((a, b) => a + b, 0);
  return html`<${Card} wide title="Tenants" aside="share of the last minute's GPU time"><div class="scroll"><table>
    <thead><tr><th class="name">Tenant</th><th>Weight</th><th>Share given</th><th>Share used</th><th>Running</th><th>Limit</th><th>Waiting</th><th class="low">Functions</th><th class="low">GPU time</th></tr></thead>
    <tbody>${tenants.map((one, i) => html`<tr key=${one.name}><td class="name">${one.name}</td><td>${one.weight}</td><td>${part(one.weight / weights)}</td>
      <td>${all > 0 ? part(took[i] / all) : "–"}</td><td>${count(one.in_flight)}</td><td>${one.limit ?? "none"}</td><td>${count(one.queued)}</td>
      <td class="low">${count(one.functions)}</td><td class="low">${seconds(one.gpu_s)}</td></tr>`)}</tbody></table></div><//>`;
}

export function Queues() {
  useLive();
  const {node} = live, gvt = node.gvt_s ?? 0, window = Math.max(node.over_run_s ?? 10, 0.001);
  const flows = [...live.items.fn.values()].filter(fn => fn.state !== "inactive" || fn.queued || fn.in_flight);
  flows.sort((a, b) => b.queued - a.queued || b.vt_s - a.vt_s || (a.name < b.name ? -1 : 1));
  const idle = live.items.fn.size - flows.length;
  return html`<${Card} wide title=${html`Flows in virtual time <small>${node.policy}</small>`} aside=${html`<${Pill} kind="good">active<//><${Pill} kind="busy">throttled<//>`}>
    <p class="note">A function's virtual time is the GPU time that it was given, over its weight. Who is at the left edge is served next; who reaches the right edge,
      T = ${seconds(window)} ahead, waits until the others have caught up.</p>
    ${flows.length === 0 ? html`<${Empty}>No function waits or runs.<//>` : html`<div class="flows">
      <div class="flow axis"><span>${count(flows.length)} at work</span><div><span>Global_VT ${seconds(gvt)}</span><span>+ T</span></div><span>why it waits</span></div>
      ${flows.slice(0, MOST).map(fn => html`<${Flow} key=${fn.name} fn=${fn} gvt=${gvt} window=${window} />`)}</div>`}
    ${flows.length > MOST && html`<p class="note">And ${count(flows.length - MOST)} more.</p>`}
    ${idle > 0 && html`<p class="note">${count(idle)} idle.</p>`}
  <//><${Tenants} />`;
}
