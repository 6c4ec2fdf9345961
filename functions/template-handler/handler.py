"""hello-handler: adds two lists of numbers on the GPU.

    fairlead dev hello-handler            # deploys, and again whenever a file of this folder changes
    fairlead invoke hello-handler -d '{"a": [1, 2, 3], "b": [10, 20, 30]}'

What lies outside of the handler runs once, when an instance starts. Packages of PyPI: requirements=["numpy>=1.26,<3"].
"""

import array
import pathlib

import fairlead
from fairlead_runtime import Gpu

THREADS = 256

gpu = Gpu()
add = gpu.load((pathlib.Path(__file__).parent / "vector_add.ptx").read_text()).kernel("vector_add")
print("ready on", gpu.name)


@fairlead.function(name="hello-handler", gpu_memory="256Mi")
def handler(event):
    a, b = (array.array("f", event[name]) for name in ("a", "b"))
    if not 0 < len(a) == len(b) <= 1_000_000:
        raise ValueError(f"a has {len(a)} numbers and b has {len(b)}; both need the same count, 1 to 1000000")
    on_gpu_a, on_gpu_b = gpu.upload(a), gpu.upload(b)
    add.launch(((len(a) + THREADS - 1) // THREADS,), (THREADS,), on_gpu_a, on_gpu_b, len(a))
    return {"sum": on_gpu_a.download("f").tolist()}
