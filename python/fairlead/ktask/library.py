"""The built-in kernels: for each its module, its arguments in order, and its geometry. The one place that says so:
the builder reads it, docs/reference/kernel-library.md is written from it (`python3 -m fairlead.ktask`), and a test holds it
against the compiled modules.

An argument is "name: type". Types: `out` is a buffer that is written, `in` one that is read, `in?` one that may be
null; others are passed by value (s32, s64, f32, f64, c64, and s32[6] for six in a row). Grid and block are expressions
over the arguments' names; ceil(a, b) is a / b rounded up.
"""

ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "tanh": 4, "sigmoid": 5}
MATHEMATICS = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "expm1", "exp_precise",
               "log_precise", "log1p", "log2", "log10", "sigmoid_precise", "tanh_precise", "floor", "ceil", "round", "trunc", "sign",
               "reciprocal")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
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
    pairs = ("f32_f64 f64_f32 f16_f32 f32_f16 bf16_f32 f32_bf16 s32_f32 s64_f32 u8_f32 f32_s32 f32_s64 f32_u8 s64_s32 s32_s64 "
             "u8_s32 u8_s64 s64_f64 u8_f64")
    _add(" ".join(f"convert_{pair}" for pair in pairs.split()), "elementwise",
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
    _add("max_pool2d_indices_f32", "pool", "out: out, indices: out, " + f"{sides}{window}".removeprefix("out: out, ") +
         "dilation_y: s32, dilation_x: s32, count: s32", *_ELEMENTS, "the largest of each window and its place y width + x (s64)")
    _add("avg_pool2d_f32", "pool", f"{sides}{window}count_padding: s32, count: s32", *_ELEMENTS,
         "the mean of each window; count_padding 1: pixels outside count as zeros; below 0: the sum by -count_padding")
    _add("adaptive_avg_pool2d_f32", "pool", f"{sides}count: s32", *_ELEMENTS, "means that make out_height x out_width")


def _mathematics():
    _add(" ".join(f"{name}_f32" for name in MATHEMATICS), "mathematics", "out: out, in: in, count: s32", *_ELEMENTS,
         "the function of each element, to a float's full precision")
    _add(" ".join(f"{name}_f32_strided" for name in ("pow", "atan2", "fmod", "remainder", "prelu", "maximum", "minimum")), "mathematics",
         f"out: out, a: in, b: in, {_LAYOUT}", *_ELEMENTS,
         "of two tensors read with strides; prelu: a where it is above 0, else a b; maximum and minimum: NaN if one is")
    _add("leaky_relu_f32", "mathematics", "out: out, in: in, slope: f32, count: s32", *_ELEMENTS, "x above 0, slope x below")
    _add("elu_f32", "mathematics", "out: out, in: in, alpha: f32, scale: f32, input_scale: f32, count: s32", *_ELEMENTS,
         "scale x above 0, alpha scale (exp(input_scale x) - 1) below")
    _add("clamp_nan_f32", "mathematics", "out: out, in: in, low: f32, high: f32, count: s32", *_ELEMENTS,
         "x, not below low, not above high; NaN stays")
    _add("channel_affine_f32", "mathematics",
         "out: out, in: in, weight: in?, bias: in?, channels: s32, inner: s32, count: s32", *_ELEMENTS,
         "x weight[channel] + bias[channel], x being [outer][channels][inner]")


def _selections():
    types = ("f32", "f64", "s32", "s64", "u8")
    _add(" ".join(f"{name}_{t}_strided" for t in types for name in COMPARISONS), "select", f"out: out, a: in, b: in, {_LAYOUT}",
         *_ELEMENTS, "1 where it holds, else 0 (bytes), of two tensors read with strides")
    whole = [f"{name}_{t}_strided" for t in ("s32", "s64") for name in ("add", "sub", "mul", "max", "min", "remainder",
                                                                          "quotient")]
    whole += [f"{name}_{t}_strided" for t in ("u8", "s32", "s64") for name in ("and", "or", "xor")]
    _add(" ".join(whole), "select", f"out: out, a: in, b: in, {_LAYOUT}", *_ELEMENTS, "of whole numbers, read with strides; remainder and quotient as Python rounds, 0 by 0")
    for size in (1, 2, 4, 8):
        _add(f"where_b{size}", "select",
             "out: out, condition: in, a: in, b: in, shape: s32[6], c_strides: s32[6], a_strides: s32[6], b_strides: s32[6], "
             "count: s32", *_ELEMENTS, f"a where the byte is not 0, else b; elements of {size} bytes, all read with strides")
        _add(f"gather_b{size}", "select",
             "out: out, in: in, index: in, shape: s32[6], in_strides: s32[6], limit: s32, stride: s32, count: s32", *_ELEMENTS,
             f"elements of {size} bytes by index (s64, of the result's shape) along one dimension of size `limit`; 0 where there is none")
        _add(f"scatter_b{size}", "select",
             "out: out, in: in, index: in, source: in, length: s32, limit: s32, inner: s32, count: s32", *_ELEMENTS,
             f"the inverse of gather along the middle of [outer][limit][inner], elements of {size} bytes; of several the last")
    _add("scatter_reduce_f32", "select",
         "out: out, in: in, index: in, source: in, length: s32, limit: s32, inner: s32, mode: s32, include: s32, count: s32",
         *_ELEMENTS, "scatter that puts together: mode 0 sum, 1 product, 2 largest, 3 smallest, 4 mean; include: with what was there")
    lines = "length: s32, inner: s32"
    _add("cumsum_f32 cumsum_s64", "select", f"out: out, in: in, {lines}, count: s32", *_ELEMENTS,
         "running sums along the middle of [outer][length][inner]; count: lines")
    _add("sort_f32", "select", "out: out, indices: out, in: in, length: s32, descending: s32, count: s32", *_ELEMENTS,
         "rows sorted, and where each element was (s64); equal ones keep their order, NaN is the largest")
    _add("product_f32", "select", f"out: out, in: in, {lines}, count: s32", *_ELEMENTS,
         "the product over the middle of [outer][length][inner]; count: results")
    _add("extreme_f32", "select", f"out: out, indices: out, in: in, {lines}, sign: f32, count: s32", *_ELEMENTS,
         "the largest (sign 1) or smallest (sign -1) and its index (s64); NaN wins, of equal ones the first")
    _add("any_u8", "select", f"out: out, in: in, {lines}, count: s32", *_ELEMENTS,
         "whether one of the middle of [outer][length][inner] is not 0")


def _pictures():
    sides = "height: s32, width: s32, out_height: s32, out_width: s32, "
    _add("conv_transpose2d_f32", "picture",
         "out: out, in: in, weights: in, bias: in?, channels: s32, height: s32, width: s32, out_channels: s32, out_height: s32, "
         "out_width: s32, kernel_height: s32, kernel_width: s32, stride_y: s32, stride_x: s32, pad_y: s32, pad_x: s32, "
         "dilation_y: s32, dilation_x: s32, groups: s32, count: s32", *_ELEMENTS,
         "transposed convolution + bias; weights [channel][out channel of the group][y][x]")
    _add("resize_bilinear_f32", "picture", f"out: out, in: in, {sides}scale_y: f32, scale_x: f32, align_corners: s32, count: s32",
         *_ELEMENTS, "bilinear resize; scale: pixels of the picture for one of the result")
    _add("resize_nearest_f32", "picture", f"out: out, in: in, {sides}scale_y: f32, scale_x: f32, count: s32", *_ELEMENTS,
         "the pixel floor(y scale_y), floor(x scale_x)")
    for size in (2, 4):
        _add(f"pad_mirror_b{size}", "picture",
             "out: out, in: in, length: s32, out_length: s32, inner: s32, before: s32, reflect: s32, count: s32", *_ELEMENTS,
             f"padding along the middle of [outer][length][inner], elements of {size} bytes: reflect 1 mirrors at the edges, 0 repeats them")


_products()
_elementwise()
_mathematics()
_selections()
_pictures()
_moves()
_reductions()
_normalisations()
_pools()
_add("jacobi_step_f64", "jacobi", "next: out, a: in, b: in, x: in, n: s32", ("ceil(n, 8)",), ("256",),
     "one step of Jacobi's method; A is f32 [n][n], the vectors f64")


def documentation():
    """docs/reference/kernel-library.md."""
    lines = ["# The kernel library",
             "Written by `python3 -m fairlead.ktask > docs/reference/kernel-library.md` from "
             "[its table](../../python/fairlead/ktask/library.py); not edited by hand. "
             "[Kernel tasks in Python](../how-to/ktask-python.md) says how to use it.",
             "",
             "A task names module `fairlead:NAME`. Tensors are dense and row-major unless strides are arguments, and "
             "have fewer than 2^31 elements. `out` is a buffer that is written, `in` one that is read, `in?` one that "
             "may be null (the literal `{\"u64\": 0}`); the other arguments are passed by value, c64 as two f32, "
             "s32[6] as 24 bytes. Geometry is an expression over the arguments; `ceil(a, b)` is a / b rounded up; "
             "names that are no arguments (batch, images, outer, rows, blocks) are counts.",
             "",
             "On a GPU of NVIDIA's with cuBLAS, products of `fairlead:gemm` are [its calls](../how-to/kernel-tasks.md#cublas).",
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

