"""fairlead.torch.load: its logic, with memory of the host in place of the GPU's, on any build of PyTorch."""

import ctypes
import gc
import json
import struct
import sys
import weakref

import pytest
from environment import ROOT, require

sys.path.insert(0, str(ROOT / "python"))


class HostMemory:
    dlpack_device = (1, 0)  # kDLCPU

    def __init__(self, data):
        self.buffer = ctypes.create_string_buffer(data, len(data))
        self.address, self.bytes = ctypes.addressof(self.buffer), len(data)


class HostStore:
    """What a node does, for one process."""

    def __init__(self):
        self.kept, self.filled = {}, 0

    def get(self, name):
        from fairlead.models import ModelError

        if name not in self.kept:
            raise ModelError(1, "absent")
        return self.kept[name]

    def store(self, name, size, fill, digest):
        from fairlead.models import ModelError

        assert len(digest) == 32 and name not in self.kept
        memory = HostMemory(bytes(size))

        class Gpu:
            @staticmethod
            def upload(address, piece):
                assert memory.address <= address and address + len(piece) <= memory.address + size, ModelError
                ctypes.memmove(address, bytes(piece), len(piece))

        memory.gpu = Gpu
        fill(memory)
        self.filled += 1
        self.kept[name] = memory
        return memory


@pytest.fixture
def file(tmp_path):
    values = {"w": ("F32", (2, 3), struct.pack("<6f", *range(6))), "h": ("BF16", (2,), b"\x80\x3f\x00\x40"),
              "i": ("I64", (1,), struct.pack("<q", -7)), "flag": ("BOOL", (3,), b"\1\0\1"), "none": ("F16", (0, 4), b"")}
    header, data = {}, b""
    for name, (dtype, shape, content) in values.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_tensors_are_views_of_the_models_memory(file):
    require("torch")
    import torch
    import fairlead.torch

    store = HostStore()
    weights = fairlead.torch.load(str(file), store=store)
    assert torch.equal(weights["w"], torch.arange(6, dtype=torch.float32).reshape(2, 3))
    assert torch.equal(weights["h"], torch.tensor([1.0, 2.0], dtype=torch.bfloat16))
    assert weights["i"].item() == -7 and weights["flag"].tolist() == [True, False, True]
    assert weights["none"].shape == (0, 4) and weights["none"].dtype == torch.float16
    memory = store.kept["model.safetensors"]
    assert weights["w"].data_ptr() == memory.address  # no copy
    again = fairlead.torch.load(str(file), store=store)
    assert again["w"].data_ptr() == memory.address and store.filled == 1
    module = torch.nn.Linear(3, 2, bias=False)
    module.load_state_dict({"weight": weights["w"]}, assign=True)
    assert module.weight.data_ptr() == memory.address


def test_a_tensor_keeps_its_memory(file):
    require("torch")
    import fairlead.torch

    store = HostStore()
    weights = fairlead.torch.load(str(file), store=store)
    memory = weakref.ref(store.kept.pop("model.safetensors"))
    kept = weights.pop("w")
    del weights
    gc.collect()
    assert memory() is not None and kept[1, 2].item() == 5
    del kept
    gc.collect()
    assert memory() is None


def test_another_file_under_the_same_name_is_refused(file, tmp_path):
    require("torch")
    import fairlead.models
    import fairlead.torch

    store = HostStore()
    fairlead.torch.load(str(file), store=store)
    store.kept["model.safetensors"].bytes += 1
    with pytest.raises(fairlead.models.ModelError, match="on the GPU has"):
        fairlead.torch.load(str(file), store=store)
