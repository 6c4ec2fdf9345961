// Cluster: the nodes as this one knows them, how much they have to do, and which functions are whose.
import {call} from "./live.js";
import {Card, Empty, Fault, Pill, Tile, count, html, part, seconds, usePolled} from "./ui.js";

const kinds = {alive: "good", draining: "busy", suspect: "busy", dead: "bad"};

function Member({member, mean}) {
  const heat = mean > 0 ? member.load_s_per_slot / mean : 0;
  return html`<${Card} title=${member.name || member.address} aside=${html`<${Pill} kind=${kinds[member.state]}>${member.state}<//>`}>
    ${member.error && html`<p class="note">${member.error}</p>`}
    <dl class="facts">
      <div><dt>Backlog</dt><dd><span class="meter"><i style=${{width: `${Math.min(100, heat * 50)}%`}} /></span> ${seconds(member.backlog_s)}</dd></div>
      <div><dt>Of the mean</dt><dd>${mean > 0 ? part(heat) : "–"}</dd></div>
      <div><dt>Slots</dt><dd>${member.slots}</dd></div>
      ${member.address && html`<div><dt>Address</dt><dd>${member.address}</dd></div>`}
      ${member.forwarded != null && html`<div><dt>Forwarded, failed, sent back</dt><dd>${count(member.forwarded)}, ${count(member.failed)}, ${count(member.misdirected)}</dd></div>
        <div><dt>Calls under way</dt><dd>${count(member.calls)} over ${count(member.connections)} connections</dd></div>`}
    </dl><//>`;
}

export function Cluster() {
  const {value, error} = usePolled(() => call("GET", "/fairlead/v1/cluster"), 1, []);
  if (error?.status === 404) {
    return html`<${Card} wide title="Cluster"><${Empty}>This node is alone. <code>fairlead serve --peer URL --cluster-key FILE</code> makes it one of several.<//><//>`;
  }
  if (!value) return html`<${Fault} error=${error} />`;
  const {members, functions, calls} = value;
  const mean = members.reduce((sum, one) => sum + one.load_s_per_slot, 0) / Math.max(1, members.length);
  const homes = new Map();
  for (const one of functions) homes.set(one.home ?? "", [...(homes.get(one.home ?? "") ?? []), one]);
  return html`<${Fault} error=${error} />
    <div class="grid gpus">${members.map(member => html`<${Member} key=${member.name || member.address} member=${member} mean=${mean} />`)}</div>
    <${Card} wide title=${html`Homes <small>${count(value.functions_in_all)}</small>`} aside=${`epoch ${value.epoch}`}>
      ${functions.length === 0 ? html`<${Empty}>No functions yet.<//>` : html`<div class="scroll"><table>
        <thead><tr><th class="name">Node</th><th class="text">Functions</th><th>How many</th></tr></thead>
        <tbody>${[...homes].map(([home, its]) => html`<tr key=${home}><td class="name">${home || "no node"}</td>
          <td class="text failure">${its.slice(0, 12).map(one => one.name).join(", ")}${its.length > 12 ? " …" : ""}</td><td>${count(its.length)}</td></tr>`)}</tbody></table></div>`}<//>
    <${Card} wide title="Calls through this node"><div class="tiles">${Object.entries(calls).map(([name, n]) => html`<${Tile} key=${name} label=${name} value=${count(n)} />`)}</div><//>`;
}
