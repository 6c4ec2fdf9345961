"""Models of tools/torch_coverage.py: the smallest builder of every architecture family of torchvision.models, and those that the
vision library lacks. Random weights, reduced width or size."""

import math

import torch
from torch import nn
from torch.nn import functional as F

SIZE = 64  # of pictures; families that need more say so
# frames, height and width of video
FRAMES = {"video.mvit": (4, 32, 32), "video.s3d": (16, 224, 224)}
SIZES = {"inception_v3": 96, "alexnet": 96, "vgg11": 32, "vit_b_32": 64, "maxvit_t": 64}


def settled(module):
    """In evaluation mode, with statistics of batch normalisations that are not 0 and 1."""
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.8, 1.2)
        if isinstance(part, nn.Linear) and not part.weight.any():  # a head that begins at zero would hide what comes before it
            nn.init.normal_(part.weight, 0, 0.1)
    return module.eval()


def families():
    """{family: its smallest builder}: a family is a module of torchvision's that registers builders."""
    import inspect

    import torchvision
    found = {}
    for name in torchvision.models.list_models():
        builder = torchvision.models.get_model_builder(name)
        family = inspect.unwrap(builder).__module__.removeprefix("torchvision.models.")
        found.setdefault(family, []).append(name)
    return found


def _parameters(name):
    import torchvision
    try:
        weights = torchvision.models.get_model_weights(name)
        return min(weight.meta["num_params"] for weight in weights)
    except (ValueError, KeyError):
        return math.inf


def _vision(name, family):
    def make():
        import torchvision
        more = {"num_classes": 10} if not family.startswith("optical_flow") else {}
        size = SIZES.get(name.removeprefix("quantized_"), SIZE)
        if name.startswith("vit"):
            more["image_size"] = size
        if name.startswith("maxvit"):
            module = torchvision.models.MaxVit(input_size=(64, 64), stem_channels=16, partition_size=2, block_channels=[16, 32],
                                               block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0, num_classes=10)
            return module, [torch.randn(1, 3, 64, 64)]
        if family.startswith(("detection", "segmentation")):
            more["weights_backbone"] = None
        if name.startswith("mvit"):
            return _mvit(), [torch.randn(1, 3, *FRAMES[family])]
        module = torchvision.models.get_model(name, weights=None, **more)
        if family.startswith("video"):
            return module, [torch.randn(1, 3, *(FRAMES.get(family, (8, size, size))))]
        if family.startswith("optical_flow"):
            return module, [torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)]
        if family.startswith("detection"):
            return _List(module), [torch.randn(3, size, size)]
        return module, [torch.randn(1, 3, size, size)]
    return make


def _mvit():
    """Two blocks of the second version: with pooled queries, relative positions and residual pooling."""
    from torchvision.models.video.mvit import MSBlockConfig, MViT
    taps = {"kernel_q": [3, 3, 3], "kernel_kv": [3, 3, 3]}
    blocks = [MSBlockConfig(num_heads=1, input_channels=24, output_channels=48, stride_q=[1, 1, 1], stride_kv=[1, 2, 2], **taps),
              MSBlockConfig(num_heads=2, input_channels=48, output_channels=48, stride_q=[1, 2, 2], stride_kv=[1, 1, 1], **taps)]
    return MViT(spatial_size=(32, 32), temporal_size=4, block_setting=blocks, residual_pool=True, residual_with_cls_embed=False,
                rel_pos_embed=True, proj_after_attn=True, stochastic_depth_prob=0, num_classes=10)


class _List(nn.Module):
    """Detection takes a list of pictures."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, picture):
        return self.module([picture])


class CausalAttention(nn.Module):
    """nanoGPT's, with the mask that it has for PyTorch without flash attention."""

    def __init__(self, width, heads, block):
        super().__init__()
        self.c_attn, self.c_proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.register_buffer("bias", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        k, q, v = (y.view(B, T, self.heads, C // self.heads).transpose(1, 2) for y in (k, q, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class NanoGpt(nn.Module):
    def __init__(self, words=65, width=48, heads=4, layers=2, block=32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(block, width)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "ln_1": nn.LayerNorm(width), "attn": CausalAttention(width, heads, block), "ln_2": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))}) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, idx):
        pos = torch.arange(0, idx.size(1), dtype=torch.long)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.blocks:
            x = x + block["attn"](block["ln_1"](x))
            x = x + block["mlp"](block["ln_2"](x))
        return self.lm_head(self.ln_f(x)[:, [-1], :])


class Rms(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.to(torch.float32)
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class LlamaBlock(nn.Module):
    """Grouped heads, rotary positions, SwiGLU."""

    def __init__(self, width=64, heads=4, groups=2, inner=128):
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, width // heads
        self.q, self.k, self.v = (nn.Linear(width, n * self.head, bias=False) for n in (heads, groups, groups))
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = nn.Linear(width, inner, False), nn.Linear(width, inner, False), nn.Linear(inner, width, False)
        self.before, self.between = Rms(width), Rms(width)
        self.register_buffer("inv", 1.0 / (10000 ** (torch.arange(0, self.head, 2).float() / self.head)))

    def forward(self, x):
        B, T, C = x.shape
        angles = torch.outer(torch.arange(T).float(), self.inv)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)

        def rotate(y):
            a, b = y.chunk(2, dim=-1)
            return y * cos + torch.cat((-b, a), dim=-1) * sin

        h = self.before(x)
        q = rotate(self.q(h).view(B, T, self.heads, self.head).transpose(1, 2))
        k = rotate(self.k(h).view(B, T, self.groups, self.head).transpose(1, 2))
        v = self.v(h).view(B, T, self.groups, self.head).transpose(1, 2)
        k, v = (y.repeat_interleave(self.heads // self.groups, dim=1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(B, T, C))
        h = self.between(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()

        def pair(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                                 nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))

        self.down = nn.ModuleList([pair(3, width), pair(width, 2 * width), pair(2 * width, 4 * width)])
        self.ups = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)])
        self.after = nn.ModuleList([pair(4 * width, 2 * width), pair(2 * width, width)])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for block in self.down[:-1]:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.down[-1](x)
        for up, block, skip in zip(self.ups, self.after, reversed(kept)):
            x = block(torch.cat([skip, up(x)], dim=1))
        return self.last(x)


class First(nn.Module):
    """A recurrent layer with its sequence alone."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


def _conv1d():
    return nn.Sequential(nn.Conv1d(4, 8, 5, padding=2), nn.GroupNorm(2, 8), nn.GELU(), nn.MaxPool1d(2),
                         nn.Conv1d(8, 8, 3, dilation=2, groups=2), nn.InstanceNorm1d(8, affine=True), nn.AdaptiveAvgPool1d(4), nn.Flatten(),
                         nn.Linear(32, 5))


OTHERS = {
    "nanoGPT": lambda: (NanoGpt(), [torch.randint(0, 65, (2, 16))]),
    "Llama block": lambda: (LlamaBlock(), [torch.randn(2, 9, 64)]),
    "UNet": lambda: (UNet(), [torch.randn(1, 3, 32, 32)]),
    "LSTM": lambda: (First(nn.LSTM(12, 16, 2, batch_first=True, bidirectional=True)), [torch.randn(2, 7, 12)]),
    "GRU": lambda: (First(nn.GRU(12, 16, 2, batch_first=True)), [torch.randn(2, 7, 12)]),
    "Conv1d": lambda: (_conv1d(), [torch.randn(2, 4, 40)]),
}


def all_models():
    for name, make in OTHERS.items():
        yield name, make
    for family, names in sorted(families().items()):
        name = min(names, key=lambda name: (_parameters(name), name))
        yield f"{family} ({name})", _vision(name, family)
