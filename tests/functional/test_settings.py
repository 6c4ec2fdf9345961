"""Settings of a node as an operator sees them: which place counts, what is refused, what SIGHUP changes while it runs."""

import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess

from conftest import BUILD, MISBEHAVE, PATIENCE_S, Gate, eventually


def serve(*options, **environment):
    """`fairlead serve` with options that end it by themselves."""
    return subprocess.run([BUILD / "bin/fairlead", "serve", *map(str, options)], timeout=PATIENCE_S, capture_output=True,
                          text=True, env={**os.environ, **environment})


def effective(*options, **environment):
    printed = serve("--print-config", "--json", *options, **environment)
    assert printed.returncode == 0, printed.stderr
    return {name: (entry["value"], entry["origin"]) for name, entry in json.loads(printed.stdout)["serve"].items()}


def test_command_line_wins_over_environment_over_file(tmp_path):
    config = tmp_path / "fairlead.toml"
    config.write_text("[serve]\npool = 4\nqueue-limit = 5\ndrain = 6\n")
    environment = {"FAIRLEAD_SERVE_POOL": "7", "FAIRLEAD_SERVE_QUEUE_LIMIT": "8"}
    settings = effective("--config", config, "--pool", "10", **environment)
    assert settings["pool"] == ("10", "command line")
    assert settings["queue-limit"] == ("8", "FAIRLEAD_SERVE_QUEUE_LIMIT")
    assert settings["drain"] == ("6", f"{config}:4")
    assert settings["policy"] == ("mqfq-setup", "default")


def test_what_is_printed_can_be_given_back(tmp_path):
    options = ["--slots", "3", "--tenant", "vision:2", "--object-memory", "1GiB", "--listen", "127.0.0.1:0"]
    again = tmp_path / "again.toml"
    again.write_text(serve("--print-config", *options).stdout)
    first, second = effective(*options), effective("--config", again)
    assert {name: value for name, (value, _) in first.items()} == {name: value for name, (value, _) in second.items()}
    assert second["slots"][1].startswith(str(again)) and second["pool"][1] == "default"


def test_a_bad_value_is_refused_with_its_place_wherever_it_stands(tmp_path):
    config = tmp_path / "fairlead.toml"
    for text, options, environment, words in (
            ("[serve]\n\npool = 0\n", (), {}, ("--pool is '0'", "fairlead.toml:3", "from 1 to 1024", "default, 32")),
            ("[serve]\npool = 0\n", ("--pool", "5"), {}, ("--pool is '0'", "fairlead.toml:2")),
            ("[serve]\nslotts = 3\n", (), {}, ("fairlead.toml:2", "'slotts'", "did you mean 'slots'?")),
            ("", (), {"FAIRLEAD_SERVE_DRAIN": "soon"}, ("--drain is 'soon' (FAIRLEAD_SERVE_DRAIN)", "from 0 to 3600")),
            ("", ("--eviction", "fifo"), {}, ("--eviction is 'fifo' (command line)", "lru, inactive-first, cost")),
            ("", ("--slots", "40"), {}, ("--slots is 40", "--pool, which is 32"))):
        config.write_text(text)
        refused = serve("--print-config", "--config", config, *options, **environment)
        assert refused.returncode == 2 and refused.stdout == "", refused
        for word in words:
            assert word in refused.stderr, (word, refused.stderr)


@contextlib.contextmanager
def calls_behind_a_gate(node, count):
    """So many calls of one function that do not end before this does; gives how many of them wait in its queue."""
    node.deploy("misbehave", MISBEHAVE)
    node.invoke("misbehave", "{}")
    with Gate(node) as gate, concurrent.futures.ThreadPoolExecutor(count) as threads:
        calls = [threads.submit(node.invoke, "misbehave", gate.payload) for _ in range(count)]
        yield lambda: node.status()["functions"][0]["queued"]
        gate.open()
        assert [call.result()[0] for call in calls] == [200] * count


class Configured:
    """A node with a file of settings, and what its log says after a reload."""

    def __init__(self, start_node, tmp_path, text, *options):
        self.config = tmp_path / "fairlead.toml"
        self.config.write_text("[serve]\n" + text)
        self.node = start_node("--config", self.config, *options)

    def reload(self, text, *words):
        """The lines that the log gets, once all words are in them."""
        self.config.write_text("[serve]\n" + text)
        before = len(self.log())
        self.node.process.send_signal(signal.SIGHUP)
        eventually(lambda: all(word in self.log()[before:] for word in words))
        return self.log()[before:]

    def log(self):
        return self.node.log_path.read_text()

    def settings(self):
        return self.node.status()["settings"]


def test_reload_changes_what_can_change_and_names_what_cannot(start_node, tmp_path):
    running = Configured(start_node, tmp_path, "slots = 2\nqueue-limit = 100\n")
    assert running.settings()["queue_limit"] == 100
    log = running.reload('slots = 3\nqueue-limit = 7\nlog-level = "debug"\npool = 16\n',
                         "--slots is 3, it was 2", "--queue-limit is 7, it was 100", "--log-level is debug, it was info",
                         "--pool is 16 after a restart; the node runs on with 32")
    assert "error" not in log
    assert running.settings()["queue_limit"] == 7
    assert running.settings()["instances_per_gpu"] == 32
    assert {gpu["slots"] for gpu in running.node.status()["gpus"]} == {3}
    running.reload('slots = 3\nqueue-limit = 7\nlog-level = "debug"\n', "no setting has changed")
    assert running.node.stop() == 0


def test_another_d_lets_what_waits_run(start_node, tmp_path):
    running = Configured(start_node, tmp_path, "slots = 1\n")
    node = running.node
    with calls_behind_a_gate(node, 2) as queued:
        eventually(lambda: queued() == 1)
        running.reload("slots = 2\n", "--slots is 2, it was 1")
        eventually(lambda: queued() == 0)
    assert node.stop() == 0


def test_a_bad_file_changes_nothing(start_node, tmp_path):
    running = Configured(start_node, tmp_path, "slots = 2\nqueue-limit = 100\n")
    before = running.settings()
    for text, word in (("queue-limit = 5\npool = 0\n", "--pool is '0' ("),
                       ("queue-limit = 5\nquue-limit = 6\n", "did you mean 'queue-limit'?"),
                       ("queue-limit = 5\nslots = 33\n", "--pool, which is 32"),
                       ("queue-limit = 5\nslots = 33\npool = 64\n", "--pool, which is 32"),  # until it is started again
                       ("queue-limit = \n", "fairlead.toml:2")):
        running.reload(text, word, "nothing was changed")
        assert running.settings() == before, text
    running.config.unlink()
    running.node.process.send_signal(signal.SIGHUP)
    eventually(lambda: running.log().count("nothing was changed") == 6)
    assert running.settings() == before
    running.reload("slots = 2\nqueue-limit = 5\n", "--queue-limit is 5, it was 100")
    assert running.node.stop() == 0


def test_the_command_line_still_wins_after_a_reload(start_node, tmp_path):
    running = Configured(start_node, tmp_path, "drain = 5\n", "--queue-limit", "50")
    running.reload("drain = 6\nqueue-limit = 7\n", "--drain is 6, it was 5")
    assert running.settings()["queue_limit"] == 50
    assert running.node.stop() == 0


def test_a_limit_that_was_reloaded_refuses(start_node, tmp_path):
    """The number that status shows is the one that counts."""
    running = Configured(start_node, tmp_path, "slots = 1\nqueue-limit = 100\n")
    node = running.node
    with calls_behind_a_gate(node, 2) as queued:
        eventually(lambda: queued() == 1)
        running.reload("slots = 1\nqueue-limit = 1\n", "--queue-limit is 1, it was 100")
        assert node.invoke("misbehave", "{}")[0] == 429
    assert node.stop() == 0


def test_what_help_and_page_say_is_the_same():
    page, help_text = serve("--settings").stdout, " ".join(serve("--help").stdout.split())
    names = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert len(names) > 30
    for name in names:
        assert f"--{name}" in help_text, name
