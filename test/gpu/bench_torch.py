# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step in PyTorch, to compare times with.

bench_torch.py NETWORK BATCH eager|compile --precision=f32|tf32|bf16 [--steps=N] [--device=cuda:0]
               [--tokens=N] [--sdpa=flash|cudnn|math] [--activations=SHARE | --budget=BYTES]

The networks are those of ckopt's step: same parameters, same loss, random data;
SGD with momentum 0.9, AdamW for Llama, fused; bf16 by autocast, images
channels-last. The whole step, optimizer included, is captured as one graph and
replayed without a synchronization between steps; the device's clock times each.
Compiled steps recompute by PyTorch's share of the activations, or by ckopt's
partitioner within a budget. Prints a line of JSON; `peak` is of a step before the
capture, `fixed` what parameters, gradients and optimizer state take of it."""

import argparse
import contextlib
import json

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


# --- Llama: 16 layers of 2048, head tied to the embedding -----------------------


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden):
        super().__init__()
        self.counts, self.size = (heads, kv_heads, kv_heads), width // heads
        self.n1, self.n2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.q, self.k, self.v = (nn.Linear(width, count * self.size, bias=False) for count in self.counts)
        self.o, self.down = nn.Linear(width, width, bias=False), nn.Linear(hidden, width, bias=False)
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))

    def forward(self, x, cosines, sines):
        def turned(part):
            one, two = part.chunk(2, -1)
            return torch.cat([one * cosines - two * sines, two * cosines + one * sines], -1).to(part.dtype)

        y = self.n1(x)
        q, k, v = (make(y).unflatten(-1, (count, self.size)).transpose(1, 2)
                   for make, count in zip((self.q, self.k, self.v), self.counts))
        y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, tokens, layers=16, width=2048, heads=32, kv_heads=8, hidden=8192, words=128256):
        super().__init__()
        self.e, self.n = nn.Embedding(words, width), nn.RMSNorm(width, eps=1e-5)
        self.layers = nn.ModuleList([LlamaLayer(width, heads, kv_heads, hidden) for _ in range(layers)])
        size = width // heads
        angles = torch.arange(tokens)[:, None] * 500000.0 ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())
        nn.init.normal_(self.e.weight, std=0.02)

    def forward(self, x):
        x = self.e(x)
        for layer in self.layers:
            x = layer(x, self.cosines, self.sines)
        return self.n(x) @ self.e.weight.t()


# --- the measurement ------------------------------------------------------------

NETWORKS = {"gpt2_small": Gpt2, "resnet50": ResNet50, "vit_b_16": Vit, "llama1b": Llama}
WORDS = {"gpt2_small": 50257, "llama1b": 128256}
KINDS = {"flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "math": "MATH"}


def attention_by(kind):
    """Attention by this kernel or not at all."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(getattr(SDPBackend, KINDS[kind]))


def replayed(function, steps, before=lambda: None):
    """(best, median) seconds of `function`, captured as a graph after three calls
    outside of it; `before` each of these, and before the capture."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            before()
            function()
    torch.cuda.current_stream().wait_stream(side)
    before()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    for _ in range(3):
        graph.replay()
    events[0].record()
    for event in events[1:]:
        graph.replay()
        event.record()
    torch.cuda.synchronize()
    times = sorted(one.elapsed_time(two) / 1e3 for one, two in zip(events, events[1:]))
    return times[0], times[len(times) // 2]


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


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("batch", type=int)
    parser.add_argument("mode", choices=["eager", "compile"])
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--sdpa", choices=sorted(KINDS), help="(default: as PyTorch chooses)")
    parser.add_argument("--activations", type=float, default=1.0, help="PyTorch's activation_memory_budget")
    parser.add_argument("--budget", type=int, help="bytes of a step, by ckopt's partitioner")
    return parser.parse_args()


def compiled(net, optimizer, options):
    """The module, and what ckopt's partitioner tells after the first step."""
    import torch._functorch.config
    import torch._inductor.config

    told = None
    torch._functorch.config.activation_memory_budget = options.activations
    if options.budget:
        import ckopt.torch

        told = torch._inductor.config.custom_partitioner_fn = ckopt.torch.partitioner(options.budget, optimizer=optimizer)
    return torch.compile(net, dynamic=False, fullgraph=True), told


def held(net, optimizer):
    """Bytes of parameters, gradients and optimizer state."""
    tensors = [tensor for p in net.parameters() for tensor in (p, p.grad, *optimizer.state[p].values()) if torch.is_tensor(tensor)]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def main():
    options = parse()
    device = torch.device(options.device)
    torch.cuda.set_device(device)
    torch.backends.cudnn.benchmark = True
    set_tf32(options.precision != "f32")
    torch.manual_seed(0)
    words = WORDS.get(options.network)
    with device:
        net = NETWORKS[options.network](*([options.tokens] if options.network == "llama1b" else [])).train()
        if words:
            x, target = (torch.randint(0, words, (options.batch, options.tokens)) for _ in range(2))
        else:
            x = torch.empty((options.batch, 3, 224, 224)).uniform_(-1.7, 1.7).to(memory_format=torch.channels_last)
            target = torch.randint(0, 1000, (options.batch,))
    net = net.to(memory_format=torch.channels_last)
    if options.network == "llama1b":
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True, capturable=True)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, fused=True)
    run, told = compiled(net, optimizer, options) if options.mode == "compile" else (net, None)

    def clear():
        optimizer.zero_grad(set_to_none=True)

    def step():
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=options.precision == "bf16"):
            loss = F.cross_entropy(run(x).flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()

    with attention_by(options.sdpa) if options.sdpa else contextlib.nullcontext():
        for _ in range(3):
            clear()
            step()
        clear()
        torch.cuda.reset_peak_memory_stats()
        step()
        peak = torch.cuda.max_memory_allocated()
        fixed = held(net, optimizer)
        best, median = replayed(step, options.steps, clear)
    found = {"best": best, "median": median, "peak": peak, "fixed": fixed, "PyTorch": torch.__version__}
    if told:
        found["partitioner"] = told.figures
    print(json.dumps(found))


if __name__ == "__main__":
    main()
