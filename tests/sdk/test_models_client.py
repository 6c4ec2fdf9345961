"""The loader of models without a node: who closes what, which file is which, and a node of another release."""

import os
import socket
import struct
import threading

import pytest
from fairlead.models import Model, ModelError, Store, _name_of


class Memory:
    """Of a model, as far as closing goes."""

    def __init__(self):
        self.tensor, self.address, self.bytes, self.closed = 7, 4096, 16, 0

    def close(self):
        self.closed += 1


class Header:
    metadata, tensors = {}, {"w": None}


@pytest.fixture
def store(monkeypatch):
    made = Store("/nowhere")
    monkeypatch.setattr(made, "_ask", lambda *_: Memory())
    return made


def test_closing_what_is_not_open_has_no_effect(store):
    memory = store.get("m")
    assert store.store("m", 16, None) is memory
    store.close("m")
    store.close("m")
    store.close("never opened")
    assert memory.closed == 1
    assert store.get("m") is not memory, "opened anew"


def test_a_model_that_is_closed_twice_is_closed_once(store):
    one, other = (Model(store.get("m"), Header, store, "m") for _ in range(2))
    one.close()
    one.close()
    assert other.memory.closed == 0, "the other uses it"
    with pytest.raises(ModelError, match="model 'm' is closed"):
        one["w"]
    other.close()
    other.close()
    assert other.memory.closed == 1
    again = Model(store.get("m"), Header, store, "m")
    assert again.memory is not other.memory
    again.close()
    assert again.memory.closed == 1


def name(path):
    with open(path, "rb") as file:
        return _name_of(path, file)


def test_a_file_that_is_written_over_is_another_model(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"one.")
    before, status = name(path), path.stat()
    assert name(path) == before
    while path.stat().st_ctime_ns == status.st_ctime_ns:  # within a tick of the file system's clock nothing is seen
        path.write_bytes(b"two.")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert name(path) != before, "in place, of the same size, with the old time put back"
    other = tmp_path / "other"
    other.write_bytes(b"one.")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(other, path)
    assert name(path) != before, "another file in its place"
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    (deep / "m").write_bytes(b"x")
    assert len(name(deep / "m").encode()) <= 255


def test_a_node_of_another_release_is_named():
    ours, nodes = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    store = Store("/nowhere")
    store._socket = ours
    answers = threading.Thread(target=lambda: (nodes.recv(4096), nodes.send(struct.pack("=II", 9, 1) + bytes(40))))
    answers.start()
    with pytest.raises(ModelError, match="speaks version 9 of the protocol of models, this package 1"):
        store.get("m")
    answers.join()
    nodes.close()
