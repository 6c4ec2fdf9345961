// The frame around the screens: which one is shown (the address behind #), the connection's state, and signing in.
import {render} from "./vendor/preact.js";
import {live, signIn, signOut} from "./live.js";
import {Fault, Pill, html, useEffect, useLive, useState} from "./ui.js";
import {Cluster} from "./cluster.js";
import {Function} from "./function.js";
import {Now} from "./now.js";
import {Queues} from "./queues.js";
import {Timeline} from "./timeline.js";

const screens = {now: ["Now", Now], queues: ["Queues", Queues], timeline: ["Timeline", Timeline], cluster: ["Cluster", Cluster], function: ["", Function]};
const tabs = () => (live.viewer?.tenant ? ["now", "timeline"] : ["now", "queues", "timeline", "cluster"]);

function read() {
  const [, screen, name] = location.hash.split("/");
  try {
    return {screen: Object.hasOwn(screens, screen) ? screen : "now", name: decodeURIComponent(name ?? "")};
  } catch {
    return {screen: "now", name: ""};
  }
}

function useAddress() {
  const [at, set] = useState(read);
  useEffect(() => {
    const change = () => { set(read()); scrollTo(0, 0); };
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return at;
}

function SignIn() {
  const [token, setToken] = useState(""), [error, setError] = useState(null), [busy, setBusy] = useState(false);
  const submit = async event => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await signIn(token.trim());
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<main class="sign-in"><form class="card" onSubmit=${submit}>
    <img src="icon.svg" alt="" width="44" height="44" /><h1>Fairlead</h1>
    <label>API key<input type="password" name="token" autocomplete="current-password" autofocus placeholder="ID.SECRET" spellcheck=${false}
      value=${token} onInput=${event => setToken(event.target.value)} /></label>
    <button class="main" disabled=${busy || !token.trim()}>Sign in</button>
    <${Fault} error=${error} />
    ${live.viewer && html`<button type="button" onClick=${() => live.start()}>Look without a key</button>`}
    <p class="note">On the node's machine, <code>fairlead tenant add '*' --role reader</code> makes a key that sees everything and changes nothing.</p>
  </form></main>`;
}

function App() {
  useLive();
  const at = useAddress();
  useEffect(() => { document.title = at.name ? `${at.name} · Fairlead` : `Fairlead · ${screens[at.screen][0]}`; }, [at]);
  if (live.state === "signed out") return html`<${SignIn} />`;
  const {viewer, node} = live;
  const status = {live: "good", reconnecting: "bad"}[live.state] ?? "";
  return html`
    <header class="top"><a class="brand" href="#/now"><img src="icon.svg" alt="" width="22" height="22" />Fairlead</a>
      <nav>${tabs().map(name => html`<a key=${name} href=${"#/" + name} aria-current=${at.screen === name ? "page" : null}>${screens[name][0]}</a>`)}
        ${at.screen === "function" && html`<a class="here" href=${location.hash} aria-current="page">${at.name}</a>`}</nav>
      <div class="who">${node?.draining && html`<${Pill} kind="busy">draining<//>`}
        <span data-test="state" class=${"state " + status} title=${live.error}>${live.state}</span>
        ${viewer && html`<span class="viewer" title=${viewer.name}>${viewer.note || viewer.role}${viewer.tenant ? ` · ${viewer.tenant}` : ""}</span>
          ${viewer.key ? html`<button onClick=${signOut}>Sign out</button>` : html`<button onClick=${() => live.signedOut()}>Sign in</button>`}`}</div></header>
    <main>${live.state === "reconnecting" && live.error && html`<p class="fault" role="status">Reconnecting: ${live.error}</p>`}
      ${node ? html`<${screens[at.screen][1]} key=${at.screen + at.name} name=${at.name} />` : html`<p class="boot">…</p>`}</main>
    <footer>${node && html`<span>Fairlead ${node.version}${node.policy ? ` · ${node.policy}` : ""}</span>`}<a href="licenses.txt">Licences</a></footer>`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
live.start();
