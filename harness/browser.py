"""Debian's chromium, driven over its own pipe (DevTools protocol): no driver, no package. Standard library only."""

import base64
import fcntl
import json
import os
import pathlib
import queue
import shutil
import subprocess
import tempfile
import threading
import time


def chromium():
    """Its path, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def out_of_the_way(descriptor):
    """The same, with a number that nobody else wants."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


class BrowserFailed(RuntimeError):
    pass


class Browser:
    """`with Browser() as page:` is one page. What it said on its console as an error, and what it could not load, is in page.errors."""

    PATIENCE_S = 120

    def __init__(self, width=1280, height=800, dark=False):
        self.profile = tempfile.mkdtemp(prefix="fairlead-browser-")
        to_browser, commands = map(out_of_the_way, os.pipe())
        answers, from_browser = map(out_of_the_way, os.pipe())

        def own_descriptors():  # 3 and 4 are where it looks for the pipe
            os.dup2(to_browser, 3)
            os.dup2(from_browser, 4)

        command = [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                   "--disable-background-networking", "--disable-component-update", f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(3, 4), preexec_fn=own_descriptors, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for descriptor in (to_browser, from_browser):
            os.close(descriptor)
        self.commands, self.answers = os.fdopen(commands, "wb", 0), os.fdopen(answers, "rb", 0)
        self.next_id, self.waiting, self.errors, self.session = 0, {}, [], None
        threading.Thread(target=self._read, daemon=True).start()
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.resize(width, height)
        self.theme(dark)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.commands.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    # ---- the pipe: JSON texts, each with a NUL behind it

    def _read(self):
        text = b""
        while part := self.answers.read(1 << 16):
            text += part
            *whole, text = text.split(b"\0")
            for one in whole:
                self._take(json.loads(one))
        for waiting in list(self.waiting.values()):
            waiting.put({"error": {"message": "chromium has ended"}})

    def _take(self, message):
        if "id" in message:
            self.waiting.pop(message["id"]).put(message)
        elif message["method"] == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif message["method"] == "Runtime.consoleAPICalled" and message["params"]["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in message["params"]["args"]))
        elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            entry = message["params"]["entry"]
            self.errors.append(f"{entry['text']} {entry.get('url', '')}")

    def send(self, method, **parameters):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        answer = self.waiting[self.next_id] = queue.Queue()
        self.commands.write(json.dumps(message).encode() + b"\0")
        try:
            said = answer.get(timeout=self.PATIENCE_S)
        except queue.Empty:
            raise BrowserFailed(f"{method}: no answer in {self.PATIENCE_S} s") from None
        if "error" in said:
            raise BrowserFailed(f"{method}: {said['error']['message']}")
        return said["result"]

    # ---- what a person does

    def resize(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, dark):
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        said = self.send("Page.navigate", url=url)
        if said.get("errorText"):
            raise BrowserFailed(f"{url}: {said['errorText']}")

    def value(self, expression):
        """What a JavaScript expression is, a promise's result included."""
        said = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            raise BrowserFailed(said["exceptionDetails"].get("exception", {}).get("description", expression))
        return said["result"].get("value")

    def until(self, expression, patience=PATIENCE_S):
        """The first true value of the expression."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            value = self.value(expression)
            if value:
                return value
            time.sleep(0.05)  # sleep: between two looks at the page
        raise BrowserFailed(f"not true within {patience} s: {expression}\n{self.errors}\n{self.text()[:2000]}")

    def text(self):
        return self.value("document.body.innerText") or ""

    def type(self, selector, text):
        """Into a field, as if typed."""
        self.until(f"document.querySelector({json.dumps(selector)})")
        self.value(f"document.querySelector({json.dumps(selector)}).focus(); document.querySelector({json.dumps(selector)}).select()")
        self.send("Input.insertText", text=text)

    def click(self, text):
        """The button or link with this text."""
        find = f"[...document.querySelectorAll('button, a')].find(it => it.innerText.trim() === {json.dumps(text)} && !it.disabled)"
        self.until(f"!!{find}")
        self.value(f"{find}.click()")

    def picture(self, path, whole=False):
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))
