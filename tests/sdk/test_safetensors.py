"""Headers of safetensors files: what is read, and what is refused with the field, its value and the bound."""

import json
import random
import sys

import pytest
import sdk_paths  # noqa: F401
from fairlead import safetensors
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


def test_arrays_come_back_as_they_were_saved():
    numpy = pytest.importorskip("numpy")
    arrays = {"b": numpy.array([True, False]), "none": numpy.zeros((0, 3), "i2"), "scalar": numpy.float64(2.5),
              "turned": numpy.arange(6, dtype=">i4").reshape(2, 3).T, "half": numpy.array([1.5], "f2"), "größe": numpy.array([1 << 63], "u8")}
    saved = safetensors.save(arrays)
    assert safetensors.is_file(saved) and (8 + int.from_bytes(saved[:8], "little")) % 8 == 0
    loaded = safetensors.load(saved)
    assert loaded.keys() == arrays.keys()
    for name, array in arrays.items():
        assert loaded[name].shape == array.shape and (loaded[name] == array).all(), name
    loaded["turned"][0, 0] = 7  # they may be written
    assert all(array.ctypes.data % array.itemsize == 0 for array in loaded.values()), "aligned"
    assert safetensors.load(safetensors.save({})) == {}


def test_what_is_no_array_cannot_be_saved():
    numpy = pytest.importorskip("numpy")
    for value, words in (([1.0], "of type list"), (numpy.array(["a"]), "array of <U1"), (numpy.array([1j]), "complex128"), (None, "NoneType")):
        with pytest.raises(TypeError, match=words):
            safetensors.save({"x": value})
    with pytest.raises(TypeError, match="name of a tensor is 1"):
        safetensors.save({1: numpy.ones(1)})


def test_bfloat16_is_torch_s(monkeypatch):
    numpy = pytest.importorskip("numpy")
    header = json.dumps({"x": entry("BF16", (2,), 0, 4)}).encode()
    file = len(header).to_bytes(8, "little") + header + b"\x80\x3f\x00\x40"
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(FormatError, match="'x' is BF16, which NumPy has not"):
        safetensors.load(file)
    with pytest.raises(FormatError, match="F8_E4M3, which NumPy has not"):
        text = json.dumps({"x": entry("F8_E4M3", (1,), 0, 1)}).encode()
        safetensors.load(len(text).to_bytes(8, "little") + text + b"a")
    torch = pytest.importorskip("torch")
    loaded = safetensors.load(file)["x"]
    assert loaded.dtype == torch.bfloat16 and loaded.tolist() == [1, 2]
    again = safetensors.load(safetensors.save({"x": loaded, "y": torch.ones(2, 2, requires_grad=True), "none": torch.empty(0, dtype=torch.bfloat16)}))
    assert again["x"].tolist() == [1, 2] and isinstance(again["y"], numpy.ndarray) and again["none"].shape == (0,)


@pytest.mark.parametrize("payload", [b"", b"{}", b'{"a": [1, 2, 3]}', b"\x93NUMPY\x01\0v\0{", b"\x00" * 20, b"\xff" * 8 + b"{}", b"1234567 {\"a\": 1}"])
def test_what_is_no_file_is_not_taken_for_one(payload):
    assert not safetensors.is_file(payload)
