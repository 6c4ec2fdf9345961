"""Rows of many clients in one call (tag gpu:batch): requests a second and how long they take, beside the same function without the tag.

The function takes 10 ms of the whole GPU for a call and 0.1 ms more for each row; each client sends a row, waits for its answer, and sends
the next. The software GPU takes modelled time and no processor."""

import http.client
import json
import pathlib
import shutil
import statistics
import struct
import tempfile
import threading
import time

from bench.measure import BUILD, report
from bench.shares_cut import before_other_work
from harness.node import Node

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLIENTS = (1, 32)
SECONDS = 15
WARM_UP_S = 3
MODEL = {"gpu:model-inputs": "x:f32:-1", "gpu:model-outputs": "y:f32:-1"}


def program(folder):
    shutil.copytree(BUILD / "functions/stand-in", folder)
    shutil.copy(ROOT / "bench/batching/bootstrap", folder / "bootstrap")
    shutil.copy(ROOT / "python/fairlead/safetensors.py", folder)
    return folder


def request_of(number):
    text = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return text + struct.pack("<f", number), {"Inference-Header-Content-Length": str(len(text))}


class Client(threading.Thread):
    """One row after the other; how long each took, of those that began in the measurement."""

    def __init__(self, endpoint, name, number, begin, end):
        super().__init__()
        self.address, self.name_of, self.number, self.begin, self.end, self.took, self.wrong = endpoint, name, number, begin, end, [], None

    def run(self):
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=60)
        body, headers = request_of(self.number)
        while (began := time.monotonic()) < self.end:
            connection.request("POST", f"/v2/models/{self.name_of}/infer", body, headers)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200 or said[-4:] != body[-4:]:
                self.wrong = said
                return
            if began >= self.begin:
                self.took.append(time.monotonic() - began)
        connection.close()


def measure(node, name, count, seconds):
    """(requests a second, their median in ms, their 99th percentile in ms)"""
    begin = time.monotonic() + WARM_UP_S
    clients = [Client(node.endpoint, name, number, begin, begin + seconds) for number in range(count)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
        if client.wrong is not None:
            raise SystemExit(f"client {client.number}: {client.wrong!r}")
    took = sorted(one for client in clients for one in client.took)
    return len(took) / seconds, 1000 * statistics.median(took), 1000 * took[int(0.99 * len(took))]


def main(seconds=SECONDS):
    before_other_work()
    with tempfile.TemporaryDirectory(prefix="fairlead-batch-") as folder:
        folder = pathlib.Path(folder)
        with Node(BUILD, folder / "node", gpu_environment={"SOFTGPU_MODE": "charge"}) as node:
            node.deploy("alone", program(folder / "alone"), Timeout=60, Tags=MODEL)
            node.deploy("together", folder / "alone", Timeout=60, Tags={**MODEL, "gpu:batch": "32"})
            for count in CLIENTS:
                rate, p50, p99 = measure(node, "together", count, seconds)
                alone, p50_alone, p99_alone = measure(node, "alone", count, seconds)
                report(f"batch_requests_of_{count}", rate, "requests/s", baseline=alone, bound=5 if count > 1 else 0.97, at_least=True,
                       note=f"{count} clients, a row each, calls of 10 ms and 0.1 ms for each row: p50 {p50:.1f} ms, p99 {p99:.1f} ms; "
                            f"without the tag {p50_alone:.1f} and {p99_alone:.1f} ms")


if __name__ == "__main__":
    main()
