"""Triton kernels as kernels of a task.

    kernel = fairlead.triton.compile(add, "*f32, *f32, *f32, s32", BLOCK=256)
    kernel(task, grid=4, out=ktask.write(y), x=x, y=x, n=1024)

Compiled ahead of time for a named target, on a machine that need not have a GPU.
"""

import re

from fairlead.ktask.graph import Argument, Scalar, Tensor
from fairlead.types import TaskError, element_count

# Our names of types; Triton's own are taken, too.
_TRITON_TYPES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "s8": "i8", "s16": "i16", "s32": "i32",
                 "s64": "i64", "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64"}
_OUR_TYPES = {theirs: ours for ours, theirs in _TRITON_TYPES.items()}
WARP = 32


def compile(kernel, signature, target=80, image="ptx", num_warps=4, num_stages=3, **constants):
    """A kernel decorated with triton.jit for a GPU of compute capability `target` (80 is 8.0).

    signature: the types of the arguments that are no constants, in order: "*f32" is a pointer, "s32" a value; a string
    with commas, or a list. constants: values of the tl.constexpr arguments. image: "ptx", which newer GPUs take too, or
    "cubin", machine code of this target alone, for which NVIDIA's assembler must be installed with Triton."""
    if image not in ("ptx", "cubin"):
        raise TaskError(f"image is {image}, ptx and cubin are possible")
    types = _types(kernel, signature, constants)
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler import compile as triton_compile

    source = ASTSource(kernel, constexprs=constants, signature={
        name: types.get(name, "constexpr") for name in (parameter.name for parameter in kernel.params)})
    with _Stages(image):
        compiled = triton_compile(source, target=GPUTarget("cuda", target, WARP),
                                  options={"num_warps": num_warps, "num_stages": num_stages})
    return Kernel(compiled, image, types)


def _types(kernel, signature, constants):
    """{argument: Triton's name of its type}"""
    said = [part.strip() for part in signature.split(",")] if isinstance(signature, str) else list(signature)
    names = [parameter.name for parameter in kernel.params if parameter.name not in constants]
    missing = [parameter.name for parameter in kernel.params
               if parameter.is_constexpr and parameter.name not in constants]
    if missing:
        raise TaskError(f"{kernel.__name__}: constant {missing[0]} has no value")
    unknown = set(constants) - {parameter.name for parameter in kernel.params}
    if unknown:
        raise TaskError(f"{kernel.__name__} has no argument {min(unknown)}")
    if len(said) != len(names):
        raise TaskError(f"{kernel.__name__}: the signature has {len(said)} types, "
                        f"wanted are those of {', '.join(names)}")
    return {name: _triton_type(kernel, name, type) for name, type in zip(names, said)}


def _triton_type(kernel, name, type):
    star, plain = ("*", type[1:]) if type.startswith("*") else ("", type)
    plain = _TRITON_TYPES.get(plain, plain)
    if plain not in _OUR_TYPES:
        raise TaskError(f"{kernel.__name__}: argument {name} is of type {type}, one of "
                        f"{', '.join(_TRITON_TYPES)} is possible, or a pointer such as *f32")
    return star + plain


class _Stages:
    """While this is entered Triton stops at PTX instead of assembling it."""

    def __init__(self, image):
        self.image = image

    def __enter__(self):
        from triton import knobs
        self.knobs, self.before = knobs.runtime, knobs.runtime.add_stages_inspection_hook
        if self.image == "ptx":
            self.knobs.add_stages_inspection_hook = self._stop_at_ptx

    def __exit__(self, *_):
        self.knobs.add_stages_inspection_hook = self.before

    @staticmethod
    def _stop_at_ptx(backend=None, stages=None, *_):
        if stages is None:
            return "ptx", "ptx"  # part of the key in Triton's cache
        stages["cubin"] = lambda ptx, metadata: ptx.encode()


class Kernel:
    """Compiled code. Called with a task, a grid and the arguments by name, it appends a launch."""

    def __init__(self, compiled, image, types):
        self.code = compiled.asm[image]
        self.name, self.shared_bytes = compiled.metadata.name, compiled.metadata.shared
        self.threads = WARP * compiled.metadata.num_warps
        self._types = types
        self._scratch_bytes = getattr(compiled.metadata, "global_scratch_size", 0)
        if getattr(compiled.metadata, "num_ctas", 1) != 1:
            raise TaskError(f"{self.name}: a task launches no clusters, here of {compiled.metadata.num_ctas} blocks")
        # Triton appends arguments of its own, which differ between its versions; the PTX says how many there are.
        entry = re.search(rf"\.entry\s+{re.escape(self.name)}\s*\((.*?)\)", compiled.asm["ptx"], re.DOTALL)
        self._hidden = entry.group(1).count(".param") - len(types)

    def __call__(self, task, grid, **arguments):
        if set(arguments) != set(self._types):
            raise TaskError(f"{self.name}: arguments given: {', '.join(arguments) or 'none'}; "
                            f"wanted: {', '.join(self._types)}")
        grid = (grid,) if isinstance(grid, int) else tuple(grid)
        values = [self._argument(name, type, arguments[name]) for name, type in self._types.items()]
        hidden = [Scalar("u64", 0)] * self._hidden
        if self._scratch_bytes:
            hidden[0] = task.temporary("bytes", (self._scratch_bytes * element_count(grid),))
        task.launch(task.module(self.code), self.name, grid, self.threads, values + hidden, self.shared_bytes)

    def _argument(self, name, type, value):
        if not type.startswith("*"):
            return Scalar(_OUR_TYPES[type], value)
        tensor = value.tensor if isinstance(value, Argument) else value
        if not isinstance(tensor, Tensor):
            raise TaskError(f"{self.name}: argument {name} is {value!r}, a tensor is wanted")
        wanted = _OUR_TYPES[type[1:]]
        if tensor.type.bytes != len(Scalar(wanted, 0).pack()):
            raise TaskError(f"{self.name}: argument {name} is a tensor of {tensor.type}, "
                            f"a pointer to {wanted} is wanted")
        return value
