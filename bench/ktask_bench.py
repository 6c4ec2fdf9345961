"""What kernel tasks cost: a launch beside a bare loop of launches, a warm call, a cold task beside a cold process."""

import base64
import json
import multiprocessing
import pathlib
import re
import socket
import statistics
import struct
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from bench.measure import BUILD, google_benchmark, report  # noqa: E402
from harness.node import Node  # noqa: E402

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples/ktask/vector-add"
CALL = json.dumps({"inputs": {"x": [1, 2, 3, 4, 5, 6, 7, 8], "y": [10] * 8}})
SAME = {"hello-cpp": {"n": 8}, "hello-python": {"a": [1, 2, 3, 4, 5, 6, 7, 8], "b": [10] * 8}}  # as processes


def launches():
    times = google_benchmark("device_server_bench", "(Bare|Session)Launches/(1|64|512)$", repeated=15, of=min, seconds=0.05)
    for kernels in (1, 64, 512):
        report(f"ktask_launch_of_{kernels}", times[f"BM_SessionLaunches/{kernels}"] / kernels / 1000, "us",
               baseline=times[f"BM_BareLaunches/{kernels}"] / kernels / 1000, bound=1.1 if kernels > 1 else 1.2,
               note="host time of one kernel, in turns, the least of 15; baseline: a bare loop of cuLaunchKernel")


def graphs():
    times = google_benchmark("device_server_bench", "Launches.*/100$", repeated=3, seconds=0.1)
    plain = times["BM_SessionLaunches/100"] / 100 / 1000
    report("ktask_graph_of_100", times["BM_GraphLaunches/100"] / 100 / 1000, "us", baseline=plain, bound=0.3,
           note="host time of one kernel of a graph whose buffers stay; baseline: the same session kernel by kernel")
    report("ktask_graph_of_100_partly_moved", times["BM_GraphLaunchesPartlyMoved/100"] / 100 / 1000, "us", baseline=plain,
           note="one kernel in eight has a buffer that moved since the last call")
    report("ktask_graph_of_100_moved", times["BM_GraphLaunchesMoved/100"] / 100 / 1000, "us", baseline=plain,
           note="every kernel has one: on the software GPU a change of parameters costs more than a launch")


def chain(folder, kernels):
    """The example's kernel so many times in a row."""
    task = json.loads((EXAMPLE / "task.json").read_text())
    task["kernels"] *= kernels
    folder.mkdir()
    (folder / "task.json").write_text(json.dumps(task))
    (folder / "kernels.ptx").write_text((EXAMPLE / "kernels.ptx").read_text())
    return folder


class Client:
    """Calls on one connection, as functions' clients make them. Python's own HTTP client takes longer than a warm call."""

    def __init__(self, running):
        self.address = running.host, running.port
        self.connection = socket.create_connection(self.address, timeout=120)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, path, body):
        """(seconds, answer)"""
        body = body.encode()
        request = f"POST {path} HTTP/1.1\r\nHost: {self.address[0]}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        begin = time.perf_counter()
        self.connection.sendall(request)
        answer = self.connection.recv(1 << 16)
        while (end := answer.find(b"\r\n\r\n")) < 0:
            answer += self.connection.recv(1 << 16)
        head = answer[:end].decode()
        length = int(re.search(r"^content-length: (\d+)", head, re.I | re.M).group(1))
        while len(answer) < end + 4 + length:
            answer += self.connection.recv(1 << 16)
        elapsed = time.perf_counter() - begin
        if not head.startswith("HTTP/1.1 200") or re.search("^X-Amz-Function-Error", head, re.I | re.M):
            sys.exit(f"{path}: {answer.decode()}")
        return elapsed, json.loads(answer[end + 4:])

    def invoke(self, name, payload=CALL):
        return self.post(f"/2015-03-31/functions/{name}/invocations", payload)


def cold_start(running, client, sample):
    """The first call of a process that adds two vectors with the same kernel; the median of ten functions, in seconds."""
    times = []
    for index in range(10):
        name = f"{sample}-{index}"
        running.deploy(name, running.sample(sample))
        times.append(client.invoke(name, json.dumps(SAME[sample]))[0])
    return statistics.median(times)


def requested(client):
    """A warm one-off request, in seconds."""
    files = {"kernels.ptx": base64.b64encode((EXAMPLE / "kernels.ptx").read_bytes()).decode()}
    task = json.loads((EXAMPLE / "task.json").read_text())
    return client.post("/v1/ktasks", json.dumps({"task": task, "files": files, "call": json.loads(CALL)}))[0]


def requests(running, client):
    """In turns with Invoke of the same task."""
    running.deploy("same", EXAMPLE)
    pairs = [(requested(client), client.invoke("same")[0]) for _ in range(300)][50:]
    one_off, invoked = (statistics.median(times) for times in zip(*pairs))
    report("ktask_warm_request", one_off * 1e6, "us", baseline=invoked * 1e6, bound=1.5,
           note="a one-off request that brings its task and module; baseline: Invoke of the same task, deployed")


def deploy_with_constant(running, folder, number):
    """Deploys the example with a constant of 1 MiB in y's place, both its module and that different from all others, and waits
    until its session is there."""
    task = json.loads((EXAMPLE / "task.json").read_text())
    task["buffers"]["y"] = {"role": "constant", "type": "f32", "shape": [1 << 18], "file": "y.bin"}
    folder.mkdir()
    (folder / "task.json").write_text(json.dumps(task))
    (folder / "kernels.ptx").write_text((EXAMPLE / "kernels.ptx").read_text() + f"// {number}\n")
    (folder / "y.bin").write_bytes(struct.pack("<f", number) * (1 << 18))
    running.deploy(folder.name, folder)
    is_idle = re.compile(rf'^fairlead_instances\{{(?=[^}}]*"{folder.name}")(?=[^}}]*"idle")[^}}]*\}} 1$', re.M)
    deadline = time.monotonic() + 60
    while not is_idle.search(running.call("GET", "/metrics")[2].decode()):
        if time.monotonic() > deadline:
            sys.exit(f"no session of {folder.name} after a minute")
        time.sleep(0.01)


def rested_call(running, client, name, call):
    """A call after nothing was called for a moment, as before the first one; the median of five, in seconds."""
    times = []
    for _ in range(5):
        time.sleep(0.01)
        running.call("GET", "/metrics")
        times.append(client.invoke(name, call)[0])
    return statistics.median(times)


def first_calls(running, client, home):
    """Tasks that are deployed and were never called, beside their next calls: those at once, and those after a rest."""
    call = json.dumps({"inputs": {"x": [1, 2, 3, 4, 5, 6, 7, 8]}})
    first, warm, rested = [], [], []
    for number in range(15):
        deploy_with_constant(running, home / f"deployed-{number}", number)
        times = [client.invoke(f"deployed-{number}", call)[0] for _ in range(21)]
        first.append(times[0])
        warm.append(statistics.median(times[1:]))
        rested.append(rested_call(running, client, f"deployed-{number}", call))
    report("ktask_first_call_of_deployed", statistics.median(first) * 1e6, "us", baseline=statistics.median(warm) * 1e6, bound=1.5,
           note="of 15 tasks with constants of 1 MiB each, deployed and not called before; baseline: their next 20 calls")
    report("ktask_first_call_beside_rested", statistics.median(first) * 1e6, "us", baseline=statistics.median(rested) * 1e6, bound=1.5,
           note="baseline: later calls of the same tasks, each after 10 ms in which nothing was called, as before the first")


def send_refused(address, body, stop, refused):
    """A tenant's connection: requests that are refused, one after the other."""
    with socket.create_connection(address, timeout=120) as connection:
        request = f"POST /v1/ktasks HTTP/1.1\r\nHost: {address[0]}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        while not stop.is_set():
            connection.sendall(request)
            answer = connection.recv(1 << 16)
            while (end := answer.find(b"\r\n\r\n")) < 0:
                answer += connection.recv(1 << 16)
            length = int(re.search(rb"content-length: (\d+)", answer[:end], re.I).group(1))
            while len(answer) < end + 4 + length:
                answer += connection.recv(1 << 16)
            if not answer.startswith(b"HTTP/1.1 400"):
                raise SystemExit(answer.decode(errors="replace"))
            with refused.get_lock():
                refused.value += 1


def beside_refused(running, client):
    """A neighbour's warm calls while four connections send tasks that are one kernel too large."""
    running.deploy("neighbour", EXAMPLE)
    task = json.loads((EXAMPLE / "task.json").read_text())
    task["kernels"] *= 16_385
    files = {"kernels.ptx": base64.b64encode((EXAMPLE / "kernels.ptx").read_bytes()).decode()}
    body = json.dumps({"task": task, "files": files, "call": json.loads(CALL)}).encode()

    def p50():
        return statistics.median([client.invoke("neighbour")[0] for _ in range(600)][100:])
    before = p50()
    stop, refused = multiprocessing.Event(), multiprocessing.Value("q", 0)
    senders = [multiprocessing.Process(target=send_refused, args=(client.address, body, stop, refused)) for _ in range(4)]
    for sender in senders:
        sender.start()
    while refused.value < len(senders):
        time.sleep(0.01)
    began, count = time.monotonic(), refused.value
    beside = p50()
    per_second = (refused.value - count) / (time.monotonic() - began)
    stop.set()
    for sender in senders:
        sender.join()
    alone = statistics.median([before, p50()])
    report("ktask_p50_beside_refused_tasks", beside * 1e6, "us", baseline=alone * 1e6,
           note=f"four connections send tasks of 16,385 kernels, {len(body) >> 10} KiB each, which are refused, {per_second:.0f} a second in "
                "all; baseline: the same calls with nobody beside")


def calls(home):
    with Node(BUILD, home / "node") as running:
        client = Client(running)
        in_cpp, in_python = (cold_start(running, client, sample) for sample in ("hello-cpp", "hello-python"))
        running.deploy("first", EXAMPLE)
        report("ktask_first_call", client.invoke("first")[0] * 1000, "ms", note="starts the device server too")
        cold = []
        for index in range(10):
            running.deploy(f"cold-{index}", chain(home / f"cold-{index}", 1 + index))
            cold.append(client.invoke(f"cold-{index}")[0])
        for kernels in (1, 64):
            name = f"warm-{kernels}"
            running.deploy(name, chain(home / name, kernels))
            answers = [client.invoke(name) for _ in range(300)][50:]
            overhead = statistics.median(answer["phases_us"]["overhead"] for _, answer in answers)
            report(f"ktask_overhead_{kernels}_kernels", overhead, "us", bound=150,
                   note="of a warm call in the device server, beside its kernels and copies")
            report(f"ktask_warm_call_{kernels}_kernels", statistics.median(t for t, _ in answers) * 1e6, "us")
        requests(running, client)
        cold_ms = statistics.median(cold) * 1000
        report("ktask_cold_call", cold_ms, "ms", baseline=in_python * 1000, bound=0.02,
               note="first call of a task whose device server runs; baseline: first call of a Python process with the same kernel")
        report("ktask_cold_call_beside_cpp", cold_ms, "ms", baseline=in_cpp * 1000, bound=0.02,
               note="baseline: the same in C++")


def neighbours(home):
    """On a node of their own: where the pool is full, nothing starts ahead of its first call."""
    with Node(BUILD, home / "neighbours") as running:
        client = Client(running)
        first_calls(running, client, home)
        beside_refused(running, client)


def of_server(home, *options):
    """(median first call that starts a server, median warm call), in seconds, of five nodes."""
    first, warm = [], []
    for index in range(5):
        with Node(BUILD, home / f"server-{len(options)}-{index}", options=options) as running:
            client = Client(running)
            running.deploy("task", EXAMPLE)
            first.append(client.invoke("task")[0])
            warm.append(statistics.median(client.invoke("task")[0] for _ in range(500)))
    return statistics.median(first), statistics.median(warm)


def jails(home):
    jailed, free = of_server(home), of_server(home, "--no-jail")
    report("ktask_first_call_jailed", jailed[0] * 1000, "ms", baseline=free[0] * 1000,
           note="right after the deploy, with the start of a device server; baseline: --no-jail")
    report("ktask_warm_call_jailed", jailed[1] * 1e6, "us", baseline=free[1] * 1e6, note="baseline: --no-jail")


def main():
    launches()
    graphs()
    with tempfile.TemporaryDirectory() as home:
        calls(pathlib.Path(home))
        neighbours(pathlib.Path(home))
        jails(pathlib.Path(home))


if __name__ == "__main__":
    main()
