"""PyTorch modules as kernel tasks, compared with PyTorch's own results.

usage: fairlead_torch.py NAME
"""

import pathlib
import sys
from math import prod

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from fairlead import torch as fairlead_torch

torch.manual_seed(7)


def settle(module):
    """In evaluation mode, with statistics of batch normalisations that are not 0 and 1."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
            nn.init.normal_(part.weight)
            nn.init.normal_(part.bias)
    return module.eval()


def compare(module, *inputs, kernels=None):
    """The task computes what the module does, in so many kernels where that is said."""
    task = fairlead_torch.from_module(module, inputs)
    with torch.no_grad():
        expected = module(*inputs)
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    names = [name for name, buffer in task._named.items() if buffer.role == "input"]
    answer = task.run(**{name: value.numpy() for name, value in zip(names, inputs)})
    for result, wanted in zip(answer.values(), expected, strict=True):
        assert result.shape == (tuple(wanted.shape) or (1,)), (result.shape, wanted.shape)
        numpy.testing.assert_allclose(result, wanted.numpy().reshape(result.shape), rtol=2e-4, atol=2e-4)
    used = [launch.kernel for launch in task.launches]
    assert kernels is None or len(used) == kernels, used


class Block(nn.Module):
    """Of a residual network."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.relu(self.first_norm(self.first(x)))
        out = self.second_norm(self.second(out))
        out += self.shortcut(x)
        return self.relu(out)


def resnet():
    """11 convolutions with all that follows each of them, a pooling, a mean, a product."""
    body = [Block(8, 8, 1), Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 1)]
    module = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                           nn.MaxPool2d(3, 2, 1), *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    compare(settle(module), torch.randn(2, 3, 33, 33), kernels=1 + 8 + 1 + 1 + 1 + 1)


def cnn():
    module = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(6),
                           nn.Conv2d(6, 12, 3, groups=2, padding="same"), nn.Sigmoid(), nn.AvgPool2d(2), nn.Dropout(),
                           nn.Flatten(), nn.Linear(12 * 7 * 7, 20), nn.Tanh(), nn.Linear(20, 5), nn.Softmax(-1))
    compare(settle(module), torch.randn(3, 3, 32, 32))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.inner, self.outer = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        query, key, value = self.inner(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.outer(out.transpose(1, 2).reshape(batch, tokens, width))


class Transformer(nn.Module):
    """Words in, scores out: embedding, two layers, as GPT has them."""

    def __init__(self, words=50, width=32, heads=4, tokens=9):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(tokens, width))
        self.layers = nn.ModuleList(nn.ModuleDict({
            "before": nn.LayerNorm(width), "attention": Attention(width, heads), "between": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))})
            for _ in range(2))
        self.last = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.words(tokens) + self.places
        for layer in self.layers:
            x = x + layer["attention"](layer["before"](x))
            x = x + layer["mlp"](layer["between"](x))
        return self.last(x) @ self.words.weight.t()


def transformer():
    compare(Transformer().eval(), torch.randint(0, 50, (2, 9)))


def encoder():
    """PyTorch's own layer, with its own attention."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
    compare(layer.eval(), torch.randn(2, 5, 16))


class Many(nn.Module):
    """Operators that the networks above do not use."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(12, dtype=torch.float32).reshape(3, 4))
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x, y):
        a, b = torch.cat([x, 2 * y], dim=1).chunk(2, dim=1)
        c = (a - b) / (1 + b.abs()) - 3 + (1 - a) ** 2
        d = torch.stack([c, torch.clamp(c, -1, 1)]).mean(dim=(0, 2))
        e = x[:, 1:, ::2] * F.silu(x[:, 1:, ::2]) + torch.exp(-y[:, 1:, ::2].pow(2))
        f = torch.softmax(x, 1).sum(-1, keepdim=True) + self.table.sum() + x.amax(-1, keepdim=True)
        g = torch.addmm(self.table[0], x[0], self.table.t() @ self.table) + F.relu6(x[0]) - x.select(0, 1).unsqueeze(0)
        picture = self.norm(x.reshape(2, 3, 2, 2).expand(2, 3, 2, 2) + self.table.new_zeros(3, 1, 1))
        return d, e, f, g.squeeze(0), torch.rsqrt(picture.square() + 1), torch.maximum(x, y) @ x[0, 0]


def many():
    compare(settle(Many()), torch.randn(2, 3, 4), torch.randn(2, 3, 4))


class Unsupported(nn.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x)  # the culprit


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return x + 1


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def types():
    """What PyTorch promotes, and what a careless front end would compute in the wrong type."""
    x, n, m = torch.randn(3, 4), torch.randint(-5, 5, (3, 4)), torch.tensor([[True], [False], [True]])
    cases = [lambda x, n, m: (x * m, x + n, n * 2.5, n / 2, n + 1, n - n * 3, -n, n.abs()),
             lambda x, n, m: (n > 0.5, x == n, (x > 0) & m, ~m, m.sum(), m.float().mean(), n.sum(1), (n > 0).any(0), (n > 0).all(1)),
             lambda x, n, m: (torch.where(m, x, n), torch.where(x > 0, 1.0, x), x.masked_fill(m, -1), n.clamp(-2, 2), x.clamp(min=n)),
             lambda x, n, m: (2 ** x, x ** 3, x ** n, 3 - n, 1 / x, x // 1 if False else x.trunc(), x.round(), torch.fmod(x, 0.3), x % 0.3),
             lambda x, n, m: (x.double() * 2, (x.double() @ x.double().T).float(), n.double(), n.to(torch.int32) + 1, x.to(torch.int64)),
             lambda x, n, m: (x.sort(0)[0], x.topk(2)[1], x.argmax(), x.cumsum(1), n.cumsum(0), x.flip(1), x.roll(1, 1), x.var(0), x.std()),
             lambda x, n, m: (x[n[:, 0] % 3], x[:, [0, -1]], x[n[:, 0] % 3, n[:, 1] % 4], x.gather(1, n % 4), x.amin(1), x.prod(0))]
    for case in cases:
        compare(Function(case).eval(), x, n, m)
    nan = torch.tensor([float("nan"), -1.0, 2.0, float("inf")])
    compare(Function(lambda x: (torch.relu(x), x.clamp(-1, 1), x.max(), x.argmax(), x.isnan(), x.isinf(), x.sort()[1], torch.maximum(x, -x),
                                F.max_pool1d(x[None], 2), F.leaky_relu(x))).eval(), nan)
    compare(Function(lambda pixels: pixels.float() / 255).eval(), torch.randint(0, 256, (2, 5), dtype=torch.uint8))
    q, mask = torch.randn(2, 3, 4, 8), torch.tensor([[True, False, True, True], [False] * 4, [True] * 4, [False, True, False, False]])
    compare(Function(lambda q, mask: F.scaled_dot_product_attention(q, q, q, mask)).eval(), q, mask)  # one row sees nothing
    compare(Function(lambda q: F.scaled_dot_product_attention(q, q, q, mask)).eval(), q)
    scalar = torch.tensor(2.5)
    compare(Function(lambda x, s: (x * s, s + 1, (x * s).sum())).eval(), x, scalar)


def halves():
    """f16 and bf16: as close to f32's result as PyTorch's own."""
    for dtype, digits in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 16), nn.LayerNorm(16), nn.GELU())
        net, x = settle(net).to(dtype), torch.randn(2, 3, 8, 8).to(dtype)
        task = fairlead_torch.from_module(net, (x,))
        raw = x.view(torch.int16).numpy().view("uint16") if dtype == torch.bfloat16 else x.numpy()
        answer = torch.from_numpy(task.run(input=raw)["output"].copy())
        answer = (answer.view(torch.bfloat16) if dtype == torch.bfloat16 else answer).float()
        with torch.no_grad():
            wide = net.float()(x.float())
        assert (answer - wide).abs().max() <= digits * (1 + wide.abs().max()), (answer - wide).abs().max()


def sequences():
    """Recurrent layers, one dimension, nanoGPT's and Llama's attention."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
    import torch_models
    for name, make in torch_models.OTHERS.items():
        module, inputs = make()
        compare(torch_models.settled(module), *inputs)


class Scribbling(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


def refusals():
    def refused(module, x, *words):
        try:
            fairlead_torch.from_module(module, (x,))
        except ValueError as error:
            assert all(word in str(error) for word in words), error
        else:
            raise AssertionError(f"not refused: {words}")

    x = torch.randn(4, prod((2, 2)))
    refused(nn.Sequential(nn.Linear(4, 4), Unsupported()).eval(), x, "svd", "fairlead_torch.py",
            "torch.linalg.svdvals(x)  # the culprit")
    refused(Counting().eval(), x, "changes its own state (calls)")
    refused(nn.Linear(4, 4), x, "training mode")
    refused(nn.Linear(4, 4).to(torch.complex128).eval(), x.to(torch.complex128), "complex128")
    refused(Scribbling().eval(), x.clone(), "changes its own state")
    refused(Function(lambda x: F.dropout(x, 0.5, training=True)).eval(), x, "a dropout that is on")
    refused(Function(lambda x: x + torch.rand_like(x)).eval(), x, "random")
    refused(Function(torch.nonzero).eval(), x, "nonzero")
    refused(Function(lambda x: x + 1).eval(), torch.ones(3, dtype=torch.uint8), "add of torch.uint8")
    refused(Function(torch.fft.fft).eval(), x, "fft")
    refused(Function(lambda x: x[x > 0].sum()).eval(), x)


CASES = {case.__name__: case for case in (resnet, cnn, transformer, encoder, many, types, halves, sequences, refusals)}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
