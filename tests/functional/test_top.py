"""`fairlead top` on a terminal of ours: keys, sizes, a node that goes away, and the terminal as it was when it is over."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from conftest import BUILD, MISBEHAVE, eventually


class Screen:
    """A program under a pseudo terminal. text() is what it has drawn last, without colours."""

    def __init__(self, node, columns=80, lines=24, arguments=("--period", "0.1"), **variables):
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        self.process = subprocess.Popen([BUILD / "bin/fairlead", "--endpoint", node.endpoint, "top", *arguments], stdin=slave, stdout=slave,
                                        stderr=subprocess.PIPE, env={**environment, "TERM": "xterm", **variables}, start_new_session=True)
        self.slave = slave
        self.drawn = ""

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if hasattr(self, "process"):
            self.process.send_signal(signal.SIGWINCH)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self):
        while select.select([self.master], [], [], 0.05)[0]:
            self.drawn += os.read(self.master, 1 << 16).decode(errors="replace")
        return self.drawn

    def frame(self):
        """Raw: of the last whole frame."""
        frames = self.read().split("\x1b[H")
        whole = [one for one in frames[1:] if "\x1b[J" in one]
        return whole[-1].split("\x1b[J")[0] if whole else ""

    def text(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.frame())

    def wait_for(self, pattern):
        return eventually(lambda: re.search(pattern, self.text()))

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def screens():
    opened = []

    def open_one(*arguments, **options):
        opened.append(Screen(*arguments, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.end()


@pytest.fixture(scope="module")
def busy(shared_node):
    node = shared_node
    for name in ("chat", "resize", "x" * 64):
        node.deploy(name, MISBEHAVE)
    for _ in range(5):
        node.invoke("chat")
    return node


def test_calls_are_seen_and_every_line_fits(busy, screens):
    screen = screens(busy)
    screen.wait_for(r"chat +0 +0 +1 ")
    busy.invoke("chat")
    screen.wait_for(r"chat .* (\d+(\.\d+)?) (ms|s) ")
    lines = screen.text().split("\r\n")
    assert len(lines) == 24 and max(map(len, lines)) <= 80, lines
    assert "…" in screen.text(), "the name of 64 letters is cut"


def test_another_size_is_drawn_at_once(busy, screens):
    screen = screens(busy, arguments=("--period", "60"))
    screen.wait_for("FUNCTION")
    screen.resize(40, 10)
    eventually(lambda: len(screen.text().split("\r\n")) == 10)
    assert max(map(len, screen.text().split("\r\n"))) <= 40
    assert "QUEUE" in screen.text() and "ON GPU" not in screen.text()
    screen.resize(132, 50)
    screen.wait_for("ON HOST")


def test_keys_order_filter_and_end(busy, screens):
    screen = screens(busy)
    screen.wait_for("QUEUE\\*")
    screen.press("n")
    screen.wait_for("FUNCTION\\*")
    screen.press("/resi")
    screen.wait_for("/resi_")
    screen.press("\r")
    screen.wait_for("filter: resi")
    assert "chat" not in screen.text()
    screen.press("\x1b")
    screen.wait_for(r"chat +\d")
    screen.press("?")
    screen.wait_for("Keys of fairlead top")
    screen.press("\x1b[A")
    screen.wait_for("FUNCTION\\*")
    screen.press("q")
    assert screen.process.wait(timeout=20) == 0
    assert screen.read().endswith("\x1b[?7h\x1b[?25h\x1b[?1049l"), "cursor and screen are as before"
    assert termios.tcgetattr(screen.slave) == screen.before


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_however_it_ends_the_terminal_is_as_before(busy, screens, how):
    screen = screens(busy)
    screen.wait_for("FUNCTION")
    screen.process.send_signal(how)
    assert screen.process.wait(timeout=20) == 0
    assert termios.tcgetattr(screen.slave) == screen.before


def test_no_colour_where_none_is_wanted(busy, screens):
    plain = screens(busy, NO_COLOR="1")
    plain.wait_for("FUNCTION")
    assert not re.search(r"\x1b\[\d+m", plain.frame())
    coloured = screens(busy)
    coloured.wait_for("FUNCTION")
    assert re.search(r"\x1b\[7m", coloured.frame())


def test_a_node_that_goes_away_and_comes_back(start_node, screens):
    node = start_node()
    node.deploy("hello", MISBEHAVE)
    endpoint = node.endpoint
    screen = screens(node)
    screen.wait_for("hello")
    node.kill()
    screen.wait_for("NO ANSWER")
    assert "hello" in screen.text(), "what was seen last stays"
    assert screen.process.poll() is None
    screen.press("q")
    assert screen.process.wait(timeout=30) == 0
    gone = subprocess.run([BUILD / "bin/fairlead", "--endpoint", endpoint, "top", "--once"], capture_output=True, text=True, timeout=60)
    assert gone.returncode == 4 and "fairlead serve" in gone.stderr


def test_two_hundred_functions(start_node, screens, tmp_path):
    node = start_node()
    node.deploy("f000", MISBEHAVE)
    for i in range(1, 200):
        node.deploy(f"f{i:03}", MISBEHAVE)
    screen = screens(node)
    screen.press("nn")
    screen.wait_for(r"f199[\s\S]*1-\d+ of 200")
    screen.press("\x1b[F")
    screen.wait_for(r"f000 ")
    began = time.monotonic()
    screen.press("n")
    screen.wait_for(r"f1[0-9]{2} ")
    assert time.monotonic() - began < 30


def test_json_is_a_status_a_line_and_no_screen(busy):
    with subprocess.Popen([BUILD / "bin/fairlead", "--endpoint", busy.endpoint, "top", "--json", "--period", "0.1"], stdout=subprocess.PIPE, text=True) as top:
        first, second = top.stdout.readline(), top.stdout.readline()
        top.kill()
    assert {f["name"] for f in json.loads(first)["functions"]} >= {"chat", "resize"} and json.loads(second)
