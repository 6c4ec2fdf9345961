// What the node says: its API, with the session's cookie, and its live frames (GET /fairlead/v1/watch).
// Frames are read with fetch, not EventSource: only fetch can send the header without which the cookie counts for nothing.

const MARK = {"X-Fairlead-Console": "1"};
const SILENT_MS = 30_000; // the node says something each 15 s
const KEPT_S = 900;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function fail(answer) {
  let text = await answer.text().catch(() => "");
  try {
    const said = JSON.parse(text);
    text = String(said.Message ?? said.message ?? text);
  } catch { /* not JSON: as it is */ }
  throw new ApiError(answer.status, text.slice(0, 2000) || `HTTP ${answer.status}`);
}

export async function request(method, path, {body, headers} = {}) {
  const answer = await fetch(path, {method, body, headers: {...headers, ...MARK}, cache: "no-store", credentials: "same-origin"});
  if (answer.status === 401) {
    live.viewer = null;
    live.signedOut();
  }
  return answer;
}

export async function call(method, path, options) {
  const answer = await request(method, path, options);
  if (!answer.ok) await fail(answer);
  return (answer.headers.get("Content-Type") ?? "").includes("json") ? answer.json() : answer.text();
}

const secure = () => (location.protocol === "https:" ? "?secure=1" : "");

export async function signIn(token) {
  const answer = await fetch("/console/session" + secure(), {method: "POST", headers: {...MARK, Authorization: "Bearer " + token}});
  if (!answer.ok) await fail(answer);
  live.start();
}

export async function signOut() {
  await fetch("/console/session/end" + secure(), {method: "POST", headers: MARK});
  live.viewer = null;
  live.signedOut();
}

// Of cumulative counts per bucket; NaN where there are none.
export function percentile(counts, bounds, part) {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (!all || !bounds) return NaN;
  let left = part * all;
  for (let i = 0; i < counts.length; i++) {
    if (counts[i] >= left && counts[i] > 0) {
      const low = i ? bounds[i - 1] : 0, high = bounds[i] ?? bounds[bounds.length - 1] * 2;
      return low + (high - low) * (left / counts[i]);
    }
    left -= counts[i];
  }
  return NaN;
}

class Live {
  state = "starting"; // "live", "reconnecting", "signed out"
  viewer = null;
  node = null;
  items = {fn: new Map(), gpu: new Map(), tenant: new Map(), inst: new Map()};
  samples = []; // one a second, for 15 minutes
  was = new Map(); // function -> what its counters were, [{t, calls, durations}]
  error = "";
  #listeners = new Set();
  #id = "";
  #abort = null;
  #run = 0;

  constructor() {
    setInterval(() => this.#sample(), 1000);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.state === "reconnecting") this.start();
    });
  }

  listen(callback) {
    this.#listeners.add(callback);
    return () => this.#listeners.delete(callback);
  }

  #tell() {
    for (const callback of this.#listeners) callback();
  }

  signedOut() {
    if (this.state === "signed out") return;
    this.#run++;
    this.#abort?.abort();
    this.#forget();
    this.state = "signed out";
    this.#tell();
  }

  #forget() {
    this.#id = "";
    this.node = null;
    this.samples = [];
    this.was.clear();
    for (const map of Object.values(this.items)) map.clear();
  }

  async start() {
    const run = ++this.#run;
    this.#abort?.abort();
    let wait = 250;
    while (run === this.#run) {
      try {
        await this.#watch(() => { wait = 250; });
      } catch (error) {
        if (run !== this.#run) return;
        this.error = String(error?.message ?? error);
      }
      if (run !== this.#run) return;
      this.state = "reconnecting";
      this.#tell();
      await new Promise(resolve => setTimeout(resolve, wait));
      wait = Math.min(5000, wait * 2);
    }
  }

  async #watch(works) {
    this.viewer = await call("GET", "/console/session");
    this.#abort = new AbortController();
    const headers = this.#id ? {...MARK, "Last-Event-ID": this.#id} : MARK;
    const answer = await fetch("/fairlead/v1/watch", {headers, signal: this.#abort.signal, cache: "no-store"});
    if (answer.status === 401) {
      this.viewer = null;
      return this.signedOut();
    }
    if (!answer.ok) await fail(answer);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "", silence;
    try {
      while (true) {
        clearTimeout(silence);
        silence = setTimeout(() => this.#abort.abort(), SILENT_MS);
        const {value, done} = await reader.read();
        if (done) return;
        text += value;
        const events = text.split("\n\n");
        text = events.pop();
        for (const event of events) this.#event(event);
        if (events.length) works();
      }
    } finally {
      clearTimeout(silence);
    }
  }

  #event(text) {
    let data = "", id = "";
    for (const line of text.split("\n")) {
      if (line.startsWith("data: ")) data += line.slice(6);
      else if (line.startsWith("id: ")) id = line.slice(4);
    }
    if (!data) return;
    const frame = JSON.parse(data);
    if (frame.full) for (const map of Object.values(this.items)) map.clear();
    for (const [key, item] of Object.entries(frame.set)) {
      const [kind, name] = this.#place(key);
      if (kind === "node") this.node = item;
      else this.items[kind]?.set(name, item);
    }
    for (const key of frame.gone) {
      const [kind, name] = this.#place(key);
      this.items[kind]?.delete(name);
    }
    this.#id = id;
    this.error = "";
    this.state = "live";
    this.#tell();
  }

  #place(key) {
    const slash = key.indexOf("/");
    return slash < 0 ? [key, ""] : [key.slice(0, slash), key.slice(slash + 1)];
  }

  #sample() {
    if (this.state !== "live" || !this.node) return;
    const t = Date.now() / 1000, durations = [];
    const sum = {arrived: 0, failed: 0, cold: 0, host_warm: 0, warm: 0, queued: 0};
    for (const [name, fn] of this.items.fn) {
      const {stats} = fn;
      sum.arrived += stats.calls;
      sum.failed += stats.errors + stats.timeouts + stats.crashes;
      sum.cold += stats.cold;
      sum.host_warm += stats.host_warm;
      sum.warm += stats.warm;
      sum.queued += fn.queued;
      stats.durations.forEach((count, i) => { durations[i] = (durations[i] ?? 0) + count; });
      this.#remember(name, stats, t);
    }
    this.samples.push({t, ...sum, durations});
    while (this.samples.length && this.samples[0].t < t - KEPT_S) this.samples.shift();
    for (const name of this.was.keys()) if (!this.items.fn.has(name)) this.was.delete(name);
    this.#tell();
  }

  #remember(name, stats, t) {
    const kept = this.was.get(name) ?? [];
    if (!kept.length) this.was.set(name, kept);
    const last = kept[kept.length - 1];
    if (!last || t - last.t >= 10) kept.push({t, calls: stats.calls, durations: stats.durations});
    while (kept.length > 1 && kept[0].t < t - KEPT_S) kept.shift();
  }

  // What of a function's histogram is of the last 15 minutes, or since this page was opened; where nothing is, of all.
  durations(name) {
    const now = this.items.fn.get(name)?.stats.durations ?? [], then = this.was.get(name)?.[0]?.durations;
    const since = then && then.length === now.length ? now.map((count, i) => count - then[i]) : now;
    return since.some(count => count > 0) ? since : now;
  }

  // Calls per second over the last seconds.
  rate(name) {
    const kept = this.was.get(name), stats = this.items.fn.get(name)?.stats;
    if (!kept?.length || !stats) return 0;
    const t = Date.now() / 1000;
    const then = kept.findLast(one => one.t <= t - 5) ?? kept[0];
    return Math.max(0, stats.calls - then.calls) / Math.max(1, t - then.t);
  }
}

export const live = new Live();
