# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of PyTorch's scaled_dot_product_attention in bf16 by each of its kernels.

sdpa.py BATCHxHEADS[/KEY HEADS]xTOKENSxCOLUMNS[:causal] [--steps=N] [--device=cuda:0]

The backward pass is that of both passes less the forward pass, each replayed from
a graph. Prints a line of JSON: seconds by kernel, or why one refuses."""

import argparse
import json

import torch
import torch.nn.functional as F
from bench_torch import KINDS, attention_by, replayed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shape")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    torch.cuda.set_device(torch.device(options.device))
    batch, heads, tokens, columns = options.shape.split(":")[0].split("x")
    heads, key_heads = (heads.split("/") * 2)[:2]

    def tensor(count):
        # Heads lie beside each other in a token's row, as projections leave them.
        made = torch.randn(int(batch), int(tokens), int(count), int(columns), device=options.device, dtype=torch.bfloat16)
        return made.transpose(1, 2).requires_grad_()

    q, k, v = tensor(heads), tensor(key_heads), tensor(key_heads)
    gradient = torch.randn_like(q)

    def forward():
        return F.scaled_dot_product_attention(q, k, v, is_causal=options.shape.endswith(":causal"), enable_gqa=heads != key_heads)

    def both():
        torch.autograd.grad(forward(), (q, k, v), gradient)

    found = {"PyTorch": torch.__version__}
    for kind in KINDS:
        try:
            with attention_by(kind):
                one = replayed(forward, options.steps)[0]
                found.update({kind + " forward": one, kind + " backward": replayed(both, options.steps)[0] - one})
        except RuntimeError as why:
            found[kind] = "refused: " + str(why).splitlines()[0]
            torch.cuda.synchronize()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
