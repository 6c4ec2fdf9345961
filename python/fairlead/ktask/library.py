"""The built-in kernels: for each its module, its arguments in order, and its geometry. The one place that says so:
the builder reads it, docs/kernel-library.md is written from it (`python3 -m fairlead.ktask`), and a test holds it
against the compiled modules.

An argument is "name: type". Types: `out` is a buffer that is written, `in` one that is read, `in?` one that may be
null; others are passed by value (s32, s64, f32, f64, c64, and s32[6] for six in a row). Grid and block are expressions
over the arguments' names; ceil(a, b) is a / b rounded up.
"""

ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "tanh": 4, "sigmoid": 5}
ELEMENTS_PER_BLOCK = 256
MAX_GRID_YZ = 65535


def ceil(a, b):
    return -(-a // b)


class Kernel:
    def __init__(self, name, module, arguments, grid, block, what):
        self.name, self.module, self.what = name, module, what
        self.arguments = [tuple(part.strip() for part in argument.split(":")) for argument in arguments.split(",")]
        self.grid, self.block = grid, block

    def geometry(self, values):
        """(grid, block), three ints each, for arguments {name: value}."""
        known = {"ceil": ceil, "min": min, "__builtins__": {}, **values}
        return tuple(tuple(int(eval(expression, known)) for expression in (*side, "1", "1")[:3])
                     for side in (self.grid, self.block))


KERNELS = {}


def _add(names, module, arguments, grid, block, what):
    for name in names.split():
        KERNELS[name] = Kernel(name, module, arguments, grid, block, what)


_ELEMENTS = ((f"ceil(count, {ELEMENTS_PER_BLOCK})",), (str(ELEMENTS_PER_BLOCK),))
_LAYOUT = "shape: s32[6], a_strides: s32[6], b_strides: s32[6], count: s32"


def _products():
    for suffix, tile, threads in (("", 64, 256), ("_small", 32, 64)):
        for type_name in ("f32", "c64", "f64"):
            _add(f"gemm_{type_name}{suffix}", "gemm",
                 "c: out, a: in, b: in, d: in?, bias: in?, m: s32, n: s32, k: s32, a_row: s64, a_column: s64, "
                 "a_batch: s64, b_row: s64, b_column: s64, b_batch: s64, c_row: s64, c_batch: s64, "
                 f"alpha: {type_name}, beta: {type_name}, bias_axis: s32, activation: s32",
                 (f"ceil(n, {tile})", f"ceil(m, {tile})", "batch"), (str(threads),),
                 "C = activation(alpha A x B + beta D + bias), m x n over k, for each of `batch` matrices. "
                 "`a_row`, `a_column`: strides in elements; `a_batch`: from one matrix to the next. "
                 "bias_axis 0: one for each row, 1: for each column")
        _add(f"conv2d_f32{suffix}", "conv2d",
             "out: out, in: in, weights: in, bias: in?, addend: in?, channels: s32, height: s32, width: s32, "
             "out_channels: s32, out_height: s32, out_width: s32, kernel_height: s32, kernel_width: s32, "
             "stride_y: s32, stride_x: s32, pad_y: s32, pad_x: s32, dilation_y: s32, dilation_x: s32, groups: s32, "
             "activation: s32",
             (f"ceil(out_height * out_width, {tile})", f"ceil(out_channels // groups, {tile})", "images * groups"),
             (str(threads),),
             "activation(convolution + bias + addend); pictures [image][channel][y][x], weights "
             "[out channel][channel of the group][y][x], addend as the result")


def _elementwise():
    _add(" ".join(f"{name}_f32" for name in ("relu", "gelu", "gelu_tanh", "tanh", "sigmoid", "silu", "exp", "log",
                                             "sqrt", "rsqrt", "abs", "square")),
         "elementwise", "out: out, in: in, count: s32", *_ELEMENTS, "the function of each element")
    binary = [f"{name}_{t}" for name in ("add", "sub", "mul", "div") for t in ("f32", "f64")]
    binary += ["max_f32", "min_f32", "add_c64", "sub_c64", "mul_c64"]
    _add(" ".join(binary), "elementwise", "out: out, a: in, b: in, count: s32", *_ELEMENTS,
         "of two tensors of one shape")
    _add(" ".join(f"{name}_strided" for name in binary), "elementwise", f"out: out, a: in, b: in, {_LAYOUT}",
         *_ELEMENTS, "of two tensors read with strides (0 repeats), for broadcasting")
    for t in ("f32", "f64", "c64"):
        _add(f"scale_{t}", "elementwise", f"out: out, x: in, alpha: {t}, beta: {t}, count: s32", *_ELEMENTS,
             "alpha x + beta")
        _add(f"axpy_{t}", "elementwise", f"out: out, x: in, y: in, alpha: {t}, count: s32", *_ELEMENTS, "alpha x + y")
    _add("clamp_f32", "elementwise", "out: out, x: in, low: f32, high: f32, count: s32", *_ELEMENTS,
         "x, not below low, not above high")
    _add("bias_add_f32", "elementwise", "out: out, x: in, bias: in, channels: s32, inner: s32, count: s32", *_ELEMENTS,
         "x + bias[channel], x being [outer][channels][inner]")
    _add("convert_f32_f64 convert_f64_f32 convert_s32_f32 convert_s64_s32 convert_s32_s64", "elementwise",
         "out: out, in: in, count: s32", *_ELEMENTS, "from the first type to the second")


def _moves():
    for size, value in ((1, "u8"), (2, "u16"), (4, "u32"), (8, "u64")):
        _add(f"copy_b{size}", "move", "out: out, in: in, count: s32", *_ELEMENTS, f"elements of {size} bytes, copied")
        _add(f"copy_strided_b{size}", "move",
             "out: out, in: in, size: s32[6], out_stride: s32[6], in_stride: s32[6], count: s32", *_ELEMENTS,
             f"elements of {size} bytes from strided places to strided places: permute, slice, concatenate, expand")
        _add(f"transpose_b{size}", "move", "out: out, in: in, rows: s32, columns: s32",
             ("ceil(columns, 32)", "ceil(rows, 32)", "batch"), ("32", "8"),
             f"each of `batch` matrices [rows][columns], elements of {size} bytes, transposed")
        _add(f"fill_b{size}", "move", f"out: out, value: {value}, count: s32", *_ELEMENTS,
             f"one value of {size} bytes everywhere")
    _add("embedding_f32_s32 embedding_f32_s64", "move",
         "out: out, table: in, indices: in, rows: s32, width: s32, count: s32", *_ELEMENTS,
         "rows of a table by index (s32 or s64); NaN where there is no such row")


def _reductions():
    lines = ("outer * inner",)
    for t in ("f32", "f64", "c64"):
        _add(f"sum_{t}", "reduce", f"out: out, in: in, length: s32, inner: s32, scale: {t}", lines, ("256",),
             "scale times the sum over the middle of [outer][length][inner]; scale 1 / length gives the mean")
        _add(f"dot_{t}", "reduce", "out: out, x: in, y: in, count: s32", ("blocks",), ("256",),
             "one partial sum of x[i] y[i] for each of `blocks`; sum_* over them is the scalar product (complex: "
             "nothing is conjugated)")
    _add("max_reduce_f32 max_reduce_f64", "reduce", "out: out, in: in, length: s32, inner: s32", lines, ("256",),
         "the largest over the middle of [outer][length][inner]")
    _add("argmax_f32", "reduce", "out: out, in: in, length: s32, inner: s32", lines, ("256",),
         "the index (s32) of the largest, of equal ones the first")


def _normalisations():
    _add("softmax_f32", "normalise", "out: out, in: in, length: s32", ("rows",), ("256",), "softmax of each row")
    _add("layer_norm_f32", "normalise", "out: out, in: in, weight: in?, bias: in?, length: s32, epsilon: f32",
         ("rows",), ("256",), "each row to mean 0 and variance 1, times weight, plus bias")
    _add("batch_norm_f32", "normalise",
         "out: out, in: in, weight: in, bias: in, mean: in, variance: in, epsilon: f32, channels: s32, inner: s32, "
         "activation: s32, count: s32", *_ELEMENTS, "inference on [outer][channels][inner] with stored statistics")


def _pools():
    window = ("kernel_height: s32, kernel_width: s32, stride_y: s32, stride_x: s32, pad_y: s32, pad_x: s32, ")
    sides = "out: out, in: in, height: s32, width: s32, out_height: s32, out_width: s32, "
    _add("max_pool2d_f32", "pool", f"{sides}{window}count: s32", *_ELEMENTS, "the largest of each window")
    _add("avg_pool2d_f32", "pool", f"{sides}{window}count_padding: s32, count: s32", *_ELEMENTS,
         "the mean of each window; count_padding: pixels outside count as zeros")
    _add("adaptive_avg_pool2d_f32", "pool", f"{sides}count: s32", *_ELEMENTS, "means that make out_height x out_width")


_products()
_elementwise()
_moves()
_reductions()
_normalisations()
_pools()
_add("jacobi_step_f64", "jacobi", "next: out, a: in, b: in, x: in, n: s32", ("ceil(n, 8)",), ("256",),
     "one step of Jacobi's method; A is f32 [n][n], the vectors f64")


def documentation():
    """docs/kernel-library.md."""
    lines = ["# The kernel library",
             "Written by `python3 -m fairlead.ktask > docs/kernel-library.md` from "
             "[its table](../python/fairlead/ktask/library.py); not edited by hand. "
             "[Kernel tasks in Python](ktask-python.md) says how to use it.",
             "",
             "A task names module `fairlead:NAME`. Tensors are dense and row-major unless strides are arguments, and "
             "have fewer than 2^31 elements. `out` is a buffer that is written, `in` one that is read, `in?` one that "
             "may be null (the literal `{\"u64\": 0}`); the other arguments are passed by value, c64 as two f32, "
             "s32[6] as 24 bytes. Geometry is an expression over the arguments; `ceil(a, b)` is a / b rounded up; "
             "names that are no arguments (batch, images, outer, rows, blocks) are counts.",
             "",
             "On a GPU of NVIDIA's with cuBLAS, products of `fairlead:gemm` are [its calls](kernel-tasks.md#cublas).",
             "",
             "Activations: " + ", ".join(f"{number} {name or 'none'}" for name, number in ACTIVATIONS.items()) + ".",
             ""]
    groups = {}
    for kernel in KERNELS.values():
        key = (kernel.module, tuple(kernel.arguments), kernel.grid, kernel.block, kernel.what)
        groups.setdefault(key, []).append(kernel.name)
    for module in sorted({kernel.module for kernel in KERNELS.values()}):
        lines += [f"## fairlead:{module}", "", "| kernels | what | arguments | grid | block |",
                  "| --- | --- | --- | --- | --- |"]
        for (owner, arguments, grid, block, what), names in groups.items():
            if owner == module:
                lines.append("| {} | {} | {} | {} | {} |".format(
                    ", ".join(f"`{name}`" for name in names), what,
                    ", ".join(f"{name} {kind}" for name, kind in arguments), f"`{', '.join(grid)}`",
                    f"`{', '.join(block)}`"))
        lines.append("")
    return "\n".join(lines)

