"""docs/tutorial/objectives.md, followed as it is printed; but for the length of the bursts, a port of the test's own, and that the node knows the
code's profiles already: to measure them takes minutes where other work takes the processors (test_autoscale.py measures one)."""

import html.parser
import json
import os
import re
import shlex
import subprocess

from conftest import BUILD, ROOT, eventually

PAGE = (ROOT / "docs/tutorial/objectives.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
SHORT_S = 12
MODELS = {"classify": (150, 14, 24), "transcribe": (500, 60, 12), "answer": (400, 45, 50)}  # objective, execution, per cent of the SMs
FUNCTIONS = list(MODELS)


def know(node, name, objective, execution_ms, sms):
    """The profile that an idle machine measures."""
    node.deploy(name, BUILD / "functions/stand-in", Tags={"gpu:objective-ms": str(objective), "gpu:autoscale": "true"})
    record = json.loads(node.call("GET", f"/2015-03-31/functions/{name}")[2])["Configuration"]
    profile = {"function": name, "code_sha256": record["CodeSha256"], "device": node.status()["gpus"][0]["name"], "fixed_ms": 1.5,
               "work_ms": execution_ms * sms, "saturation_percent": sms, "error": 0.02, "ended": "", "measured_ms": 1,
               "trials": [{"width_percent": 100, "quota_percent": 97, "rate_per_s": 970 / (execution_ms + 1.5), "error": 0.02, "p50_ms": 0,
                           "p99_ms": 0, "utilisation": 0, "memory_bytes": 0, "requests": 9, "why": ""}]}
    status, _, body = node.call("PUT", f"/fairlead/v1/functions/{name}/profile", json.dumps(profile))
    assert status == 200, body


def setting_of(block):
    """(variables, options) of the block that starts the node."""
    variables, options = {}, []
    for line in block.splitlines():
        words = shlex.split(line)
        if words[:1] == ["export"]:
            variables |= dict(word.split("=", 1) for word in words[1:])
        elif words[:2] == ["fairlead", "serve"]:
            options = [word for word in words[2:] if word != "&"]
    return variables, options


class Page(html.parser.HTMLParser):
    """Tags that are open, so that a page that is cut off or not closed is seen."""

    def __init__(self, text):
        super().__init__()
        self.open, self.counts = [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in ("p", "li", "td", "tr", "rect", "path", "circle", "line"):
            self.open.pop()
        assert self.open.pop() == tag


def shell(node, folder, block, timeout=600):
    environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "FUNCTIONS": str(BUILD / "functions"),
                   "FAIRLEAD_ENDPOINT": node.endpoint}
    done = subprocess.run(["bash", "-euc", block], cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_stranger_who_follows_the_page_gets_a_page(start_node, tmp_path):
    variables, options = setting_of(BLOCKS[0])
    assert options[:3] == ["--softgpu", "--sharing", "mps"] and "--open" in options, options
    node = start_node("--sharing", "mps", gpu_environment={key: value for key, value in variables.items() if key != "SOFTGPU_HOME"})
    folder = tmp_path / "walk"
    folder.mkdir()

    for name, (objective, execution_ms, sms) in MODELS.items():
        know(node, name, objective, execution_ms, sms)
    chosen = shell(node, folder, BLOCKS[1])
    for name in FUNCTIONS:
        eventually(lambda: re.search(rf"^{name} +scaled +\d+ % +\d+ %", shell(node, folder, "fairlead autoscale"), re.MULTILINE))  # noqa: B023
    assert "0.00 GPUs in all" in chosen, chosen

    assert "--duration 90" in BLOCKS[2]
    replayed = shell(node, folder, BLOCKS[2].replace("--duration 90", f"--duration {SHORT_S}"))
    assert "CALLS" in replayed, replayed

    shell(node, folder, BLOCKS[3])
    text = (folder / "burst.html").read_text()
    page = Page(text)
    assert page.open == [] and "script" not in page.counts
    for part in ("Chosen, and at what cost", "Placed and moved", "Who waits for what", "Measured and scaled"):
        assert f"<h2>{part}</h2>" in text
    assert text.count(">chosen: ") == len(FUNCTIONS), "a heat map with the chosen rectangle for each"
    assert "GPU 1: what is promised" in text
    assert "an instance starts on GPU" in text
    books = {f["function"]: f for f in json.loads(node.call("GET", "/fairlead/v1/scaling")[2])["functions"]}
    for name in FUNCTIONS:
        totals = books[name]["totals"]
        assert totals["answered"] == totals["arrived"] > 0
        assert totals["held_gpu_seconds"] > totals["bound_gpu_seconds"] > 0, "nobody holds less than the bound"
        assert f"{totals['arrived']:.0f}" in text

    shell(node, folder, "fairlead status --html now.html")
    assert Page((folder / "now.html").read_text()).counts["svg"] == 2, "both GPUs"
    shell(node, folder, BLOCKS[4])
    eventually(lambda: "transcribe" not in node.call("GET", "/fairlead/v1/scaling")[2].decode())  # of its seats nothing is shown, either

    def states():
        return {f["function"]: f["state"] for f in json.loads(node.call("GET", "/fairlead/v1/scaling")[2])["functions"]}

    eventually(lambda: states()["classify"] == "pinned")
