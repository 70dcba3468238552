#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks ckopt-roofline for one shape of each kind, and for nonsense.

Looks at no time but that there is one, and that it is of the shape asked for:
the library that reached it is named.
"""

import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "test"))
import cpu

SHAPES = {
    "copy 65536": "copy",
    "copy 1": "copy",
    "matmul f32 32x48x64": None,
    "matmul f32 32x48x64, added": None,
    "matmul f32 2x3: 16x16x8": "oneDNN",
    "matmul bf16 to f32 32x48x64": "oneDNN",
    "attention f32 1x2: 16x24, heads of 8 and 4, 1 key heads, bias, mask": "products: oneDNN",
    "attention gradient f32 1x2: 16x16, heads of 8, causal, dropout": "products: oneDNN",
    "attention f32 1x2: 16x16, heads of 8, causal, window 4": "products: oneDNN",
    "convolution f32 2x8x9x9 to 16x5x5, kernel 3x3, strides 2x2, groups 1, channels last": "oneDNN",
    "convolution input gradient f32 2x8x9x9 to 8x9x9, kernel 3x3, strides 1x1, groups 8, "
    "channels last": "oneDNN",
    "convolution weight gradient bf16 to f32 2x16x8x8 to 16x8x8, kernel 3x3, strides 1x1, "
    "groups 1, channels first": "oneDNN",
    "convolution weight gradient f32 2x16x8x8 to 32x8x8, kernel 1x1, strides 1x1, groups 1, "
    "channels last": None,
}


def ask(tool, lines):
    return subprocess.run([tool], input="\n".join(lines) + "\n", text=True, capture_output=True,
                          check=False)


def main():
    tool = sys.argv[1]
    shapes = SHAPES
    if not cpu.multiplies_bf16():
        print("this CPU has no products of bf16: they are NOT timed")
        shapes = {shape: by for shape, by in SHAPES.items() if "bf16" not in shape}
    answer = ask(tool, shapes)
    lines = answer.stdout.splitlines()
    assert answer.returncode == 0 and len(lines) == len(shapes), answer
    for line, (shape, by) in zip(lines, shapes.items()):
        seconds, who = line.split("\t")
        assert float(seconds) > 0 and (by is None or who.startswith(by)), f"{shape}: {line}"
    for wrong in ("matmul f32 3x4", "copy", "matmul f64 3x4x5",
                  "convolution f32 2x8x9x9 to 16x5x5, kernel 3, strides 2x2, groups 1"):
        answer = ask(tool, [wrong])
        assert answer.returncode == 1 and wrong in answer.stderr, answer


if __name__ == "__main__":
    main()
