// What all screens are made of. Whatever the node, a function or its author says becomes a text node: nothing here makes HTML of text.
import {h} from "./vendor/preact.js";
import {useEffect, useLayoutEffect, useRef, useState} from "./vendor/hooks.js";
import htm from "./vendor/htm.js";
import {live} from "./live.js";

export const html = htm.bind(h);
export {useEffect, useLayoutEffect, useRef, useState};

export const colours = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];

export function useLive() {
  const [, again] = useState(0);
  useEffect(() => {
    again(n => n + 1); // of what happened since this was drawn
    return live.listen(() => again(n => n + 1));
  }, []);
  return live;
}

// What `load` gives, again each `seconds` while the page is seen: {value, error}.
export function usePolled(load, seconds, keys) {
  const [state, set] = useState({});
  useEffect(() => {
    let stopped = false, timer;
    const turn = async () => {
      if (!document.hidden) {
        try {
          const value = await load();
          if (!stopped) set({value});
        } catch (error) {
          if (!stopped) set(before => ({value: before.value, error}));
        }
      }
      if (!stopped) timer = setTimeout(turn, seconds * 1000);
    };
    set({});
    turn();
    return () => { stopped = true; clearTimeout(timer); };
  }, keys);
  return state;
}

const thousands = new Intl.NumberFormat("en-US");
export const count = n => thousands.format(Math.round(n ?? 0));
export const rate = n => (n >= 100 ? count(n) : n >= 10 ? n.toFixed(0) : n > 0 ? n.toFixed(1) : "0");
export const part = n => (Number.isFinite(n) ? `${Math.round(n * 100)} %` : "–");

export function seconds(s) {
  if (!Number.isFinite(s)) return "–";
  if (s < 5e-7) return "0 s";
  if (s < 0.0009995) return `${Math.round(s * 1e6)} µs`;
  if (s < 0.0995) return `${(s * 1e3).toFixed(s < 0.00995 ? 1 : 0)} ms`;
  if (s < 0.9995) return `${Math.round(s * 1e3)} ms`;
  if (s < 99.5) return `${s.toFixed(s < 9.95 ? 2 : 1)} s`;
  if (s < 5940) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} d`;
}

export function bytes(n) {
  if (!Number.isFinite(n)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < 4) { n /= 1024; i++; }
  return `${n >= 100 || i === 0 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

export const clock = ms => new Date(ms).toLocaleTimeString("en-GB");
export const to = (...path) => "#/" + path.map(encodeURIComponent).join("/");

export const Card = ({title, aside, children, wide, ...rest}) => html`
  <section class=${"card" + (wide ? " wide" : "")} ...${rest}>
    ${title && html`<header><h2>${title}</h2><div class="aside">${aside}</div></header>`}${children}
  </section>`;

export const Pill = ({kind, children}) => html`<span class=${"pill " + (kind ?? "")}>${children}</span>`;

export const Tile = ({label, value, note, kind, name}) => html`
  <div class=${"tile " + (kind ?? "")}><span>${label}</span><b data-test=${name}>${value}</b><small>${note}</small></div>`;

// Parts of a whole, side by side: [{label, value, colour}].
export const Stack = ({parts, whole, label}) => html`
  <div class="stack" role="img" aria-label=${label}>
    ${parts.filter(one => one.value > 0).map(one => html`
      <i key=${one.label} title=${one.label} style=${{width: `${100 * one.value / Math.max(whole, 1e-9)}%`, background: `var(${one.colour})`}} />`)}
  </div>`;

export const Legend = ({parts}) => html`
  <ul class="legend">${parts.map(one => html`<li key=${one.label}><i style=${{background: `var(${one.colour})`}} />${one.label}${one.text && html` <b>${one.text}</b>`}</li>`)}</ul>`;

export const Empty = ({children}) => html`<p class="empty">${children}</p>`;

export const Fault = ({error}) => error && html`<p class="fault" role="alert">${error.status ? `${error.status}: ` : ""}${error.message}</p>`;

export const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function useWidth(ref) {
  const [width, set] = useState(0);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => set(Math.floor(entry.contentRect.width)));
    watch.observe(ref.current);
    set(Math.floor(ref.current.clientWidth));
    return () => watch.disconnect();
  }, []);
  return width;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
export function useTheme() {
  const [is, set] = useState(dark.matches);
  useEffect(() => {
    const change = () => set(dark.matches);
    dark.addEventListener("change", change);
    return () => dark.removeEventListener("change", change);
  }, []);
  return is ? "dark" : "light";
}

// Lines over time. data: [[t...], [y...], ...]; lines: [{label, colour, fill}].
export function Chart({data, lines, format, height = 150, label}) {
  const box = useRef(), plot = useRef(), width = useWidth(box), theme = useTheme();
  useLayoutEffect(() => {
    if (!width) return undefined;
    const axis = {stroke: style("--muted"), grid: {stroke: style("--line"), width: 1}, ticks: {show: false}, font: "11px system-ui, sans-serif"};
    plot.current = new uPlot({
      width, height, legend: {show: false}, padding: [10, 24, 0, 0],
      cursor: {points: {size: 6}, y: false, drag: {x: false, y: false}},
      scales: {x: {time: true}, y: {range: (_, low, high) => [0, Math.max(high, 1e-3) * 1.15]}},
      axes: [{...axis, size: 26, space: 80, values: (_, ticks) => ticks.map(t => clock(t * 1000).slice(0, 8))},
             {...axis, size: 48, space: 32, values: (_, ticks) => ticks.map(format)}],
      series: [{}, ...lines.map(line => ({
        label: line.label, stroke: style(line.colour), width: 1.5, points: {show: false},
        fill: line.fill ? style(line.colour) + "22" : undefined,
      }))],
      hooks: {setCursor: [u => box.current?.dispatchEvent(new CustomEvent("at", {detail: u.cursor.idx}))]},
    }, data, box.current);
    return () => plot.current.destroy();
  }, [width, theme, lines.length]);
  useLayoutEffect(() => plot.current?.setData(data), [data]);
  const [at, setAt] = useState(null);
  useEffect(() => {
    const on = event => setAt(event.detail ?? null);
    box.current.addEventListener("at", on);
    return () => box.current?.removeEventListener("at", on);
  }, []);
  const index = at ?? data[0].length - 1;
  return html`<figure class="chart" role="img" aria-label=${label}>
    <figcaption>${lines.map((line, i) => html`<span key=${line.label}><i style=${{background: `var(${line.colour})`}} />${line.label} <b>${format(data[i + 1][index] ?? 0)}</b></span>`)}
      <time>${at != null && data[0][at] ? clock(data[0][at] * 1000) : ""}</time></figcaption>
    <div ref=${box} style=${{height: `${height}px`}} /></figure>`;
}
