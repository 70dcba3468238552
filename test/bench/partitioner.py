#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures ckopt.torch.partitioner against torch.compile's own memory budget.

partitioner.py [NETWORK...] [-o lines.jsonl]: for each network torch.compile as it
is, at its ratios, and ckopt's partitioner at three budgets, each in a fresh
process: resident bytes at the peak of the third step less those before the model
is built (after a small model was compiled, so that the compiler itself is
loaded), and the fastest of some later steps.
partitioner.py --table lines.jsonl: the table of docs/benchmarks/partitioner.md.
"""

import argparse
import json
import os
import subprocess
import sys
import time

RATIOS = [1.0, 0.75, 0.5]
SHARES = [0.8, 0.65, 0.5]  # of what torch.compile takes above parameters, gradients and state
# Convolutions make again what lies beside all of a block's values: there is less to gain.
CONVOLUTION_SHARES = [0.9, 0.8, 0.7]
# Compiled code, graphs and what PyTorch's libraries hold: no tensors, but resident.
RESERVE = 40 << 20
THRESHOLD = "65536"


def networks():
    """Name to a function that makes (module, batch)."""
    import torch
    from torch import nn
    F = nn.functional

    class Block(nn.Module):
        def __init__(self, d, heads, drop, causal, fused):
            super().__init__()
            self.heads, self.causal, self.fused, self.drop = heads, causal, fused, drop
            self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d),
                                     nn.Dropout(drop))

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            if self.fused:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            else:
                a = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5
                if self.causal:
                    mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
                    a = a.masked_fill(~mask, float("-inf"))
                y = F.dropout(a.softmax(-1), self.drop, self.training) @ v
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.mlp(self.n2(x))

    class Text(nn.Module):
        def __init__(self, layers, d, heads, words, length, causal):
            super().__init__()
            self.e, self.p = nn.Embedding(words, d), nn.Embedding(length, d)
            self.b = nn.ModuleList([Block(d, heads, 0.1, causal, False) for _ in range(layers)])
            self.n, self.u = nn.LayerNorm(d), nn.Linear(d, words)

        def forward(self, x, y):
            h = self.e(x) + self.p.weight[:x.shape[1]]
            for b in self.b:
                h = b(h)
            return F.cross_entropy(self.u(self.n(h)).flatten(0, 1), y.flatten())

    class Vit(nn.Module):
        def __init__(self, layers, d, heads):
            super().__init__()
            self.c = nn.Conv2d(3, d, 16, 16)
            self.p = nn.Parameter(torch.randn(1, 196, d) * 0.02)
            self.b = nn.ModuleList([Block(d, heads, 0.1, False, True) for _ in range(layers)])
            self.n, self.u = nn.LayerNorm(d), nn.Linear(d, 100)

        def forward(self, x, y):
            h = self.c(x).flatten(2).transpose(1, 2) + self.p
            for b in self.b:
                h = b(h)
            return F.cross_entropy(self.u(self.n(h).mean(1)), y)

    class Bottleneck(nn.Module):
        def __init__(self, i, m, stride):
            super().__init__()
            o = 4 * m
            self.c1, self.c2 = nn.Conv2d(i, m, 1, bias=False), nn.Conv2d(m, m, 3, stride, 1,
                                                                         bias=False)
            self.c3 = nn.Conv2d(m, o, 1, bias=False)
            self.b1, self.b2, self.b3 = nn.BatchNorm2d(m), nn.BatchNorm2d(m), nn.BatchNorm2d(o)
            self.d = nn.Identity() if i == o and stride == 1 else nn.Sequential(
                nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

        def forward(self, x):
            h = F.relu(self.b1(self.c1(x)))
            h = F.relu(self.b2(self.c2(h)))
            return F.relu(self.b3(self.c3(h)) + self.d(x))

    class Resnet(nn.Module):
        def __init__(self, blocks):
            super().__init__()
            self.c, self.b = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
            layers, i = [], 64
            for stage, count in enumerate(blocks):
                for k in range(count):
                    m = 64 << stage
                    layers.append(Bottleneck(i, m, 2 if stage and not k else 1))
                    i = 4 * m
            self.l, self.u = nn.Sequential(*layers), nn.Linear(i, 100)

        def forward(self, x, y):
            h = F.max_pool2d(F.relu(self.b(self.c(x))), 3, 2, 1)
            return F.cross_entropy(self.u(self.l(h).mean((2, 3))), y)

    class Unet(nn.Module):
        def __init__(self, widths):
            super().__init__()

            def twice(i, o):
                return nn.Sequential(nn.Conv2d(i, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o),
                                     nn.ReLU(), nn.Conv2d(o, o, 3, 1, 1, bias=False),
                                     nn.BatchNorm2d(o), nn.ReLU())
            self.down = nn.ModuleList([twice(i, o) for i, o in zip((3,) + widths, widths)])
            self.up = nn.ModuleList([twice(o + i, i) for i, o in zip(widths, widths[1:])])
            self.u = nn.Conv2d(widths[0], 2, 1)

        def forward(self, x, y):
            kept = []
            for k, block in enumerate(self.down):
                x = block(F.max_pool2d(x, 2) if k else x)
                kept.append(x)
            for block, skip in list(zip(self.up, kept))[::-1]:
                x = block(torch.cat([F.interpolate(x, scale_factor=2.0), skip], 1))
            return F.cross_entropy(self.u(x), y)

    class Next(nn.Module):
        """A block of ConvNeXt: depthwise convolution, then a wide MLP over channels."""

        def __init__(self, d):
            super().__init__()
            self.c, self.n = nn.Conv2d(d, d, 7, padding=3, groups=d), nn.LayerNorm(d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
            self.scale = nn.Parameter(torch.full((d,), 0.1))

        def forward(self, x):
            return x + (self.scale * self.mlp(self.n(self.c(x).permute(0, 2, 3, 1)))).permute(
                0, 3, 1, 2)

    class Convnext(nn.Module):
        def __init__(self, widths, blocks):
            super().__init__()
            layers, i, size = [], 3, 4
            for o, count in zip(widths, blocks):
                layers += [nn.Conv2d(i, o, size, size), *[Next(o) for _ in range(count)]]
                i, size = o, 2
            self.l, self.u = nn.Sequential(*layers), nn.Linear(i, 100)

        def forward(self, x, y):
            return F.cross_entropy(self.u(self.l(x).mean((2, 3))), y)

    def words(v, b, t):
        return torch.randint(0, v, (b, t)), torch.randint(0, v, (b, t))

    def images(b, size, classes):
        return torch.randn(b, 3, size, size), torch.randint(0, classes, (b,))

    return {
        "gpt": lambda: (Text(6, 512, 8, 2048, 256, True), words(2048, 8, 256)),
        "bert": lambda: (Text(8, 256, 4, 4096, 256, False), words(4096, 16, 256)),
        "vit": lambda: (Vit(8, 384, 6), images(16, 224, 100)),
        "resnet": lambda: (Resnet((2, 2, 2, 2)), images(24, 160, 100)),
        "convnext": lambda: (Convnext((96, 192), (3, 3)), images(32, 128, 100)),
        "unet": lambda: (Unet((32, 64, 128, 256)),
                         (torch.randn(14, 3, 128, 128), torch.randint(0, 2, (14, 128, 128)))),
    }


def measure(name, kind, amount, steps):
    """One process: prints a JSON object."""
    import gc
    import resource
    import torch
    import torch._functorch.config
    import torch._inductor.config

    from torch._dynamo.utils import counters

    def status(key):
        with open("/proc/self/status", encoding="utf-8") as file:
            return next(int(l.split()[1]) * 1024 for l in file if l.startswith(key + ":"))

    def user():
        return resource.getrusage(resource.RUSAGE_SELF).ru_utime

    torch.set_num_threads(2)
    tiny = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
    torch.compile(tiny)(torch.randn(4, 8)).sum().backward()
    make = networks()[name]
    import ckopt.torch
    torch._dynamo.reset()
    gc.collect()
    base = status("VmRSS")
    torch.manual_seed(0)
    module, batch = make()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    hook = None
    if kind == "ckopt":
        hook = ckopt.torch.partitioner(int(amount), optimizer=optimizer, reserve=RESERVE)
        torch._inductor.config.custom_partitioner_fn = hook
    else:
        torch._functorch.config.activation_memory_budget = amount
    step = torch.compile(module, dynamic=False)
    losses, seconds, cpus, peak, floor = [], [], [], 0, 0
    begin = time.time()
    for i in range(steps):
        if i == 2:
            gc.collect()
            with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:
                file.write("5")
        at, cpu = time.perf_counter(), user()
        optimizer.zero_grad()
        if i == 2:
            floor = status("VmRSS") - base
        loss = step(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if i:
            seconds.append(time.perf_counter() - at)
            cpus.append(user() - cpu)
        else:
            compiled = time.time() - begin
        if i == 2:
            peak = status("VmHWM") - base
    fixed = 4 * sum(p.numel() * p.element_size() for p in module.parameters())
    print(json.dumps({"network": name, "kind": kind, "amount": amount, "bytes": peak,
                      "seconds": min(seconds[1:], default=0),
                      "cpu": min(cpus[1:], default=0), "compile": compiled, "losses": losses[:3],
                      "fixed": fixed, "floor": floor,
                      "cached": counters["aot_autograd"]["autograd_cache_hit"],
                      "figures": dict(hook.figures) if hook and hook.figures else None}))


def run(name, kind, amount, out):
    environment = dict(os.environ, MALLOC_MMAP_THRESHOLD_=THRESHOLD)
    environment.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.abspath(out) + ".cache")
    result, figures, compiled = {}, None, 0
    for steps in ("1", "5"):  # compile, then measure
        done = subprocess.run([sys.executable, __file__, "--one", name, kind, str(amount), steps],
                              env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [l for l in done.stderr.splitlines() if "Error" in l]
            result = {"network": name, "kind": kind, "amount": amount,
                      "error": (lines or ["?"])[-1][:400]}
            break
        result = json.loads(done.stdout.splitlines()[-1])
        figures, compiled = figures or result["figures"], compiled or result["compile"]
        result.update(figures=figures, compile=compiled)
    with open(out, "a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")
    print({k: v for k, v in result.items() if k not in ("losses", "figures")}, flush=True)
    return result


def table(path):
    """Rows by network and kind."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    mib = 2**20
    print("| network | | asked | measured MiB | of the budget | s a step, of CPU | "
          "planned, checked in s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for line in lines:
        ours = line["kind"] == "ckopt"
        asked = f"{line['amount'] / mib:.0f} MiB" if ours else f"ratio {line['amount']}"
        who = "ckopt" if ours else "PyTorch"
        if "error" in line:
            print(f"| {line['network']} | {who} | {asked} | {line['error'][:120]} | | | |")
            continue
        share = f"{100 * line['bytes'] / line['amount']:.1f} %" if ours else ""
        figures = line.get("figures") or {}
        times = f"{figures['planning_seconds']}, {figures['checking_seconds']}" if figures else ""
        print(f"| {line['network']} | {who} | {asked} | {line['bytes'] / mib:.0f} | {share} | "
              f"{line['seconds']:.2f}, {line['cpu']:.2f} | {times} |")


def main():
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--one", nargs=4)
    parser.add_argument("--table")
    parser.add_argument("-o", default="partitioner.jsonl")
    parser.add_argument("--budgets", type=int, nargs="*", help="bytes, in place of shares")
    parser.add_argument("--ratios", type=float, nargs="*", default=RATIOS)
    options = parser.parse_args()
    if options.one:
        measure(options.one[0], options.one[1], float(options.one[2]), int(options.one[3]))
    elif options.table:
        table(options.table)
    else:
        for name in options.networks or list(networks()):
            budgets = options.budgets
            if not budgets:
                first = run(name, "torch", 1.0, options.o)
                if "error" in first:
                    continue
                above = first["bytes"] - first["fixed"]
                shares = CONVOLUTION_SHARES if name in ("resnet", "unet") else SHARES
                budgets = [int(first["fixed"] + share * above) for share in shares]
            for budget in budgets:
                run(name, "ckopt", budget, options.o)
            for ratio in options.ratios:
                if ratio != 1.0:
                    run(name, "torch", ratio, options.o)


if __name__ == "__main__":
    main()
