#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One step for a range of lengths beside steps that are compiled for each.

lengths.py [--lengths=1000] [--apart=24] [--threads=2] [--seconds=240]

Trains a GPT (4 layers of 256, vocabulary 2,048, one row) on rows of random lengths from 37 to
4,096 by one step, then some of these lengths by steps of their own, and prints: seconds to compile
the range and the longest alone (no cache of kernels), what both take for the same lengths, and
measured and planned bytes. Needs torch and onnxscript.
"""

import argparse
import os
import statistics
import tempfile
import time

import ckopt
import numpy
import torch

LOW, HIGH, VOCABULARY = 37, 4096, 2048


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        parts = [part.view(rows, length, self.heads, -1).transpose(1, 2)
                 for part in self.qkv(self.first(x)).split(width, 2)]
        y = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))


class Model(torch.nn.Module):
    def __init__(self, width=256, layers=4):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, width)
        self.places = torch.nn.Embedding(HIGH, width)
        self.blocks = torch.nn.Sequential(*[Block(width, 4) for _ in range(layers)])
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, VOCABULARY)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, default=1000)
    parser.add_argument("--apart", type=int, default=24)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=240)
    given = parser.parse_args()
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(), "model.onnx")
    torch.onnx.export(Model(), (torch.zeros(1, 64, dtype=torch.int64),), path, dynamo=True,
                      input_names=["ids"], output_names=["logits"], verbose=False,
                      dynamic_shapes={"ids": {1: torch.export.Dim("seq", max=HIGH)}})
    settings = dict(batch=1, loss="cross_entropy", class_axis=2, optimizer="sgd", lr=1e-3, seed=1,
                    threads=given.threads)

    def compile_for(seq, **more):
        start = time.perf_counter()
        step = ckopt.compile(path, dim={"seq": seq}, **settings, **more)
        return step, time.perf_counter() - start

    _, alone = compile_for(HIGH, kernel_cache="off")
    step, seconds = compile_for(f"{LOW}..{HIGH}", kernel_cache="off")
    print(f"compiled: {seconds:.2f} s for {LOW}..{HIGH}, {alone:.2f} s for {HIGH}")

    rng = numpy.random.default_rng(0)
    lengths = [int(length) for length in rng.integers(LOW, HIGH + 1, given.lengths)]
    batches = {length: [rng.integers(0, VOCABULARY, (1, length)) for _ in range(2)]
               for length in lengths}
    took, over, start = {}, 0, time.perf_counter()
    for length in lengths:
        begin = time.perf_counter()
        step(*batches[length])
        took.setdefault(length, []).append(time.perf_counter() - begin)
        memory = step.at(dim={"seq": length}).memory
        over += memory["measured_peak_bytes"] > step.memory["planned_peak_bytes"]
        if time.perf_counter() - start > given.seconds:
            break
    done = sum(map(len, took.values()))
    total = sum(map(sum, took.values()))
    print(f"{done} rows of {len(took)} lengths: {total:.1f} s; more than planned: {over} times")

    state, mine, theirs, differ = step.state_dict(), [], [], 0.0
    for length in lengths[:given.apart]:
        single, _ = compile_for(length)
        single.load_state_dict(state)
        step.load_state_dict(state)
        one, other = step(*batches[length]), single(*batches[length])
        differ = max(differ, abs(one - other) / abs(other))
        pairs = []
        for _ in range(3):
            for which in (step, single):
                begin = time.perf_counter()
                which(*batches[length])
                pairs.append(time.perf_counter() - begin)
        mine.append(statistics.median(pairs[0::2]))
        theirs.append(statistics.median(pairs[1::2]))
    print(f"{given.apart} lengths in turn: {sum(mine):.2f} s by the range, {sum(theirs):.2f} s by "
          f"steps of their own ({sum(mine) / sum(theirs):.3f}); losses differ by {differ:.1e}")


if __name__ == "__main__":
    main()
