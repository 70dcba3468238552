# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step in PyTorch: a row of the report.

bench_torch.py NETWORK BATCH eager|compile [--tf32=on|off] [--amp=bf16] [--channels-last]
               [--steps=N] [--device=cuda:0|cpu] [--weights=FILE] [--tiny]

The networks are those of ckopt's step: same parameters by the same names (those
of torchvision, which is not needed here), same loss. SGD with momentum 0.9, f32
or autocast to bf16, random data. A compiled step replays CUDA graphs, as ckopt's
does. --tiny takes networks of the same kinds of layers that a CPU trains at
once: it tries the script out, and its times say nothing. Prints "row ...",
"json {...}", "parameters N" and "loss X" (of the first step)."""

import argparse
import contextlib
import json
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

# --- GPT-2 small: 256 tokens, head tied to the embedding ------------------------


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.o = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in self.qkv(x).split(c, dim=2))
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.a = Attention(width, heads)
        self.m = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.m(self.n2(x))


class Gpt2(nn.Module):
    def __init__(self, words=50257, context=256, width=768, heads=12, layers=12):
        super().__init__()
        self.t, self.p = nn.Embedding(words, width), nn.Embedding(context, width)
        self.b, self.n = nn.Sequential(*[Block(width, heads) for _ in range(layers)]), nn.LayerNorm(width)
        for table in (self.t, self.p):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, x):
        return self.n(self.b(self.t(x) + self.p(torch.arange(x.shape[1], device=x.device)))) @ self.t.weight.t()


# --- ResNet-50: the stride in the 3x3 convolution -------------------------------


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = nn.Identity()
        if stride != 1 or inputs != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        return F.relu(self.bn3(self.conv3(y)) + self.downsample(x), inplace=True)


class ResNet50(nn.Module):
    def __init__(self, stages=((64, 3), (128, 4), (256, 6), (512, 3))):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        inputs = 64
        for index, (width, blocks) in enumerate(stages):
            stage = []
            for block in range(blocks):
                stage.append(Bottleneck(inputs, width, 2 if index > 0 and block == 0 else 1))
                inputs = 4 * width
            setattr(self, "layer%d" % (index + 1), nn.Sequential(*stage))
        self.fc = nn.Linear(inputs, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


# --- ViT-B/16 -----------------------------------------------------------------


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        # The last one by its place: between them is a dropout of 0.
        self.mlp = nn.ModuleDict({"0": nn.Linear(width, 4 * width), "3": nn.Linear(4 * width, width)})

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.self_attention(y, y, y, need_weights=False)[0]
        return x + self.mlp["3"](F.gelu(self.mlp["0"](self.ln_2(x))))


class Encoder(nn.Module):
    def __init__(self, width, heads, layers, tokens):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, tokens, width).normal_(std=0.02))
        self.layers = nn.Sequential()
        for index in range(layers):
            self.layers.add_module("encoder_layer_%d" % index, EncoderLayer(width, heads))
        self.ln = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x):
        return self.ln(self.layers(x + self.pos_embedding))


class Vit(nn.Module):
    def __init__(self, width=768, heads=12, layers=12, pixels=224):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, width, 16, 16)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.encoder = Encoder(width, heads, layers, (pixels // 16) ** 2 + 1)
        self.heads = nn.ModuleDict({"head": nn.Linear(width, 1000)})

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1)
        return self.heads["head"](self.encoder(x)[:, 0])


# --- the measurement ------------------------------------------------------------

NETWORKS = {"gpt2_small": Gpt2, "resnet50": ResNet50, "vit_b_16": Vit}
TINY = {
    "gpt2_small": {"words": 97, "context": 16, "width": 32, "heads": 2, "layers": 2},
    "resnet50": {"stages": ((4, 1), (8, 2), (8, 1), (16, 1))},
    "vit_b_16": {"width": 32, "heads": 2, "layers": 2, "pixels": 64},
}


def splitmix(seed, index):
    """The stream that ckopt-run draws --random data from, in [0, 1)."""
    mask = 2**64 - 1
    z = ((seed + 1) * 0xD1342543DE82EF95 + (index + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


def draw(shape, low, high, whole, device):
    """What ckopt-run's --random=NAME:LOW:HIGH gives with seed 0."""
    count = 1
    for extent in shape:
        count *= extent
    values = torch.tensor([low + splitmix(0, i) * (high - low) for i in range(count)], dtype=torch.float64)
    return (values.floor().long() if whole else values.float()).reshape(shape).to(device)


def data(name, batch, device, same, tiny):
    """Input and target; `same`: those of ckopt-run (slow), else any."""
    words, context, pixels = (97, 16, 64) if tiny else (50257, 256, 224)

    def make(shape, low, high, whole):
        if same:
            return draw(shape, low, high, whole, device)
        if whole:
            return torch.randint(low, high, shape, device=device)
        return torch.empty(shape, device=device).uniform_(low, high)

    if name == "gpt2_small":
        return make((batch, context), 0, words, True), make((batch, context), 0, words, True)
    return make((batch, 3, pixels, pixels), -1.7, 1.7, False), make((batch,), 0, 1000, True)


def set_tf32(on):
    """For matrix products and convolutions, and nothing else differs. From 2.9
    on flags of the new kind are read; the old ones set them, too, and are all
    that older releases have."""
    torch.set_float32_matmul_precision("high" if on else "highest")
    torch.backends.cudnn.allow_tf32 = on
    for flags in (torch.backends.cuda.matmul, getattr(torch.backends.cudnn, "conv", None)):
        with contextlib.suppress(AttributeError):
            found = flags.fp32_precision
            if found not in (["tf32"] if on else ["ieee", "none"]):
                raise SystemExit("PyTorch %s has fp32_precision %s with TF32 %s" % (torch.__version__, found, on))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("batch", type=int)
    parser.add_argument("mode", choices=["eager", "compile"])
    parser.add_argument("--tf32", choices=["on", "off"], default="off")
    parser.add_argument("--amp", choices=["off", "bf16"], default="off", help="autocast")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--weights", help=".safetensors to write first weights to; the data is then that of ckopt-run")
    parser.add_argument("--tiny", action="store_true", help="a small network of the same kinds of layers: tries this script out")
    options = parser.parse_args()
    device = torch.device(options.device)
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
    else:
        torch.set_flush_denormal(True)
    set_tf32(options.tf32 == "on")
    torch.manual_seed(0)
    net = NETWORKS[options.network](**(TINY[options.network] if options.tiny else {})).to(device).train()
    x, target = data(options.network, options.batch, device, bool(options.weights), options.tiny)
    if options.channels_last:
        net = net.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last) if x.dim() == 4 else x
    parameters = list(net.parameters())
    if options.weights:
        save(net, options.weights)
    if options.mode == "compile":
        net = torch.compile(net, mode="reduce-overhead" if cuda else None)
    optimizer = torch.optim.SGD(parameters, lr=0.001, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=options.amp == "bf16"):
            loss = F.cross_entropy(net(x).flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()
        return loss

    def wait():
        if cuda:
            torch.cuda.synchronize()

    first = step().item()
    for _ in range(options.warmup - 1):
        step()
    wait()
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        wait()
        times.append(time.perf_counter() - start)
    times.sort()
    peak, versions, held = "", "CPU", ""
    told = {"best": times[0], "median": times[len(times) // 2], "parameters": sum(p.numel() for p in parameters), "loss": first}
    if cuda:
        versions = "CUDA %s, cuDNN %s" % (torch.version.cuda, torch.backends.cudnn.version())
        peak = "%.1f MiB" % (torch.cuda.max_memory_allocated() / 2**20)
        told["peak"] = torch.cuda.max_memory_allocated()
        held = "%.1f MiB reserved in all" % (torch.cuda.max_memory_reserved() / 2**20)
    print("json " + json.dumps(told))
    print("row PyTorch %s, %s, %s, TF32 %s | %.6f s | %.6f s | | %s | %s" %
          (torch.__version__, versions, options.mode, options.tf32, times[0], times[len(times) // 2], peak, held))
    print("parameters %d" % sum(p.numel() for p in parameters))
    print("loss %.9g" % first)


def save(net, path):
    """Parameters and running statistics as .safetensors, without its package."""
    import json
    import struct

    header, parts, offset = {}, [], 0
    for name, value in net.state_dict().items():
        if value.dtype != torch.float32:
            continue
        part = value.detach().cpu().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [offset, offset + len(part)]}
        parts.append(part)
        offset += len(part)
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.writelines(parts)


main()
