"""One training step in PyTorch on a GPU: a row of the report.

bench_torch.py NETWORK BATCH eager|compile [--tf32=on|off] [--steps=N]

Networks: gpt2_small (here), resnet50 and vit_b_16 (torchvision's). SGD with
momentum 0.9, f32, random data, the same loss as ckopt's step."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(c, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class Gpt2(nn.Module):
    def __init__(self, words=50257, context=256, width=768, heads=12, layers=12):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.norm(self.blocks(self.words(x) + self.places(places))) @ self.words.weight.t()


def build(name, batch):
    """Network, input and target."""
    if name == "gpt2_small":
        tokens = torch.randint(0, 50257, (2, batch, 256), device="cuda")
        return Gpt2(), tokens[0], tokens[1]
    import torchvision.models

    x = torch.randn(batch, 3, 224, 224, device="cuda")
    return getattr(torchvision.models, name)(), x, torch.randint(0, 1000, (batch,), device="cuda")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("network", choices=["gpt2_small", "resnet50", "vit_b_16"])
    parser.add_argument("batch", type=int)
    parser.add_argument("mode", choices=["eager", "compile"])
    parser.add_argument("--tf32", choices=["on", "off"], default="off")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32 == "on"
    torch.backends.cudnn.benchmark = True
    net, x, target = build(options.network, options.batch)
    net = net.cuda().train()
    if options.mode == "compile":
        net = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = net(x)
        loss = F.cross_entropy(logits.flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    times.sort()
    peak = torch.cuda.max_memory_allocated() / 2**20
    held = torch.cuda.max_memory_reserved() / 2**20
    print(
        "PyTorch %s, CUDA %s, cuDNN %s, %s, TF32 %s | %.6f s | %.6f s | | %.1f MiB | %.1f MiB reserved in all"
        % (torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), options.mode, options.tf32,
           times[0], times[len(times) // 2], peak, held)
    )


main()
