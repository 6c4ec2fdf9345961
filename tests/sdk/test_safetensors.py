"""Headers of safetensors files: what is read, and what is refused with the field, its value and the bound."""

import json
import random

import pytest
import sdk_paths  # noqa: F401
from fairlead.safetensors import FormatError, read_header


def write(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(dtype="F32", shape=(2, 3), begin=0, end=24):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def read(path):
    with open(path, "rb") as file:
        return read_header(file)


def test_tensors_and_metadata(tmp_path):
    header = read(write(tmp_path / "m", {"__metadata__": {"format": "pt"}, "b": entry("F16", (4,), 24, 32), "a": entry(),
                                         "none": entry("I64", (0, 5), 32, 32)}, bytes(32)))
    assert header.tensors["a"] == ("F32", (2, 3), 0, 24)
    assert header.tensors["b"].begin == 24 and header.metadata == {"format": "pt"} and header.data_bytes == 32


HOSTILE = {
    "no file": (b"", None, b"", "at least 8"),
    "longer than the file": ({}, 1 << 40, b"", "it must be 2 to"),
    "2^63": ({}, 1 << 63, b"", "it must be 2 to"),
    "no JSON": (b"{{{{", None, b"", "not JSON"),
    "deep": (b"[" * 200_000, None, b"", "JSON"),
    "a list": ([], None, b"", "object"),
    "twice": (b'{"a": 1, "a": 2}', None, b"", "twice"),
    "no type": ({"a": entry("F17")}, None, bytes(24), "dtype is 'F17'"),
    "negative": ({"a": entry(shape=(-1, 6))}, None, bytes(24), "whole number"),
    "a fraction": ({"a": entry(shape=(1.5, 4))}, None, bytes(24), "whole number"),
    "true": ({"a": entry(shape=(True, 6))}, None, bytes(24), "whole number"),
    "huge": ({"a": entry(shape=(1 << 62, 1 << 62))}, None, bytes(24), "needs"),
    "backwards": ({"a": entry(begin=24, end=0)}, None, bytes(24), "-24 bytes"),
    "behind the end": ({"a": entry()}, None, bytes(20), "the file has 20"),
    "too short": ({"a": entry()}, None, bytes(25), "the file has 25"),
    "overlap": ({"a": entry(), "b": entry()}, None, bytes(24), "begins at 0"),
    "gap": ({"a": entry(), "b": entry(begin=32, end=56)}, None, bytes(56), "begins at 32"),
    "more fields": ({"a": {**entry(), "x": 1}}, None, bytes(24), "nothing else"),
    "dimensions": ({"a": entry(shape=[1] * 65, end=4)}, None, bytes(4), "at most 64"),
    "metadata": ({"__metadata__": {"a": 1}}, None, b"", "strings"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_trusted_is_refused(tmp_path, name):
    header, length, data, message = HOSTILE[name]
    path = tmp_path / "m"
    if name == "no file":
        path.write_bytes(b"")
    else:
        write(path, header, data, length)
    with pytest.raises(FormatError, match=message):
        read(path)


def test_any_bytes_are_read_or_refused(tmp_path):
    good = write(tmp_path / "m", {"a": entry(), "b": entry("U8", (8,), 24, 32)}, bytes(32)).read_bytes()
    chance = random.Random(1)
    read_ones = 0
    for _ in range(3000):
        mutated = bytearray(good)
        for _ in range(chance.randrange(1, 6)):
            mutated[chance.randrange(len(mutated))] = chance.choice((0, 255, 34, 123, 125, 44, 48, 57, chance.randrange(256)))
        (tmp_path / "m").write_bytes(mutated[:chance.randrange(len(mutated) + 1)] if chance.random() < 0.2 else mutated)
        try:
            header = read(tmp_path / "m")
        except FormatError:
            continue
        read_ones += 1
        assert all(0 <= tensor.begin <= tensor.end <= header.data_bytes for tensor in header.tensors.values())
    assert read_ones > 0
