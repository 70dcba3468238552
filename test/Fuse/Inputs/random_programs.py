#!/usr/bin/env python3
"""Random steps through layout, fuse, remat and plan-memory: values must not change.

usage: random_programs.py FIRST LAST SCRATCH

Makes one program for each seed in [FIRST, LAST), interprets it before and after several
pipelines, and prints every difference. The exit status is 1 if there was one.
"""
import os
import random
import subprocess
import sys

T = "tensor<8x64xf32>"
V = "tensor<64xf32>"
HALF = "tensor<8x32xf32>"
SLICE = "{starts = array<i64: 0, 16>, sizes = array<i64: 8, 32>, steps = array<i64: 1, 1>}"
PIPELINES = [
    ["--canonicalize", "--cse", "--layout", "--fuse", "--plan-memory"],
    ["--layout", "--fuse", "--remat=budget=min", "--plan-memory"],
    ["--fuse=group=false", "--remat=budget-ratio=0.9", "--plan-memory"],
    ["--remat=budget=min", "--cse", "--canonicalize", "--cse"],
]


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.tensors = ["%x", "%w"]
        self.vectors = ["%b"]

    def tensor(self):
        return self.random.choice(self.tensors[-self.random.choice([3, 6, 50]) :])

    def vector(self):
        return self.random.choice(self.vectors)

    def add(self, name, text, vector=False):
        self.lines.append(f"{name} = {text}")
        (self.vectors if vector else self.tensors).append(name)

    def transposed(self, v):
        perm, shape = self.random.choice(
            [("1, 0, 2", "4x8x16xf32"), ("0, 2, 1", "8x16x4xf32")]
        )
        self.lines += [
            f"{v}a = ckopt.reshape {self.tensor()} : ({T}) -> tensor<8x4x16xf32>",
            f"{v}b = ckopt.transpose {v}a {{permutation = array<i64: {perm}>}} : (tensor<8x4x16xf32>) -> tensor<{shape}>",
        ]
        self.add(v, f"ckopt.reshape {v}b : (tensor<{shape}>) -> {T}")

    def op(self, i):
        v = f"%v{i}"
        kind = self.random.randint(0, 15)
        if kind < 4:
            name = self.random.choice(["add", "mul", "sub", "maximum"])
            self.add(v, f"ckopt.{name} {self.tensor()}, {self.tensor()} : ({T}, {T}) -> {T}")
        elif kind < 6:
            name = self.random.choice(["relu", "tanh", "neg", "sigmoid"])
            self.add(v, f"ckopt.{name} {self.tensor()} : ({T}) -> {T}")
        elif kind == 6:
            self.lines.append(
                f"{v}a = ckopt.matmul {self.tensor()}, {self.tensor()} {{transpose_rhs}} : ({T}, {T}) -> tensor<8x8xf32>"
            )
            self.add(v, f"ckopt.matmul {v}a, {self.tensor()} : (tensor<8x8xf32>, {T}) -> {T}")
        elif kind == 7:
            self.add(v, f"ckopt.softmax {self.tensor()} {{axis = 1}} : ({T}) -> {T}")
        elif kind == 8:
            self.add(
                v,
                f"ckopt.reduce mean {self.tensor()} {{axes = array<i64: 0>, keepdims = false}} : ({T}) -> {V}",
                vector=True,
            )
        elif kind == 9:
            name = self.random.choice(["add", "mul"])
            self.add(v, f"ckopt.{name} {self.tensor()}, {self.vector()} : ({T}, {V}) -> {T}")
        elif kind == 10:
            name = self.random.choice(["tanh", "relu"])
            self.add(v, f"ckopt.{name} {self.vector()} : ({V}) -> {V}", vector=True)
        elif kind == 11:
            self.transposed(v)
        elif kind == 12:
            self.lines.append(f"{v}a = ckopt.slice {self.tensor()} {SLICE} : ({T}) -> {HALF}")
            self.add(
                v,
                f"ckopt.pad {v}a {{low = array<i64: 0, 8>, high = array<i64: 0, 24>, interior = array<i64: 0, 0>}} : ({HALF}) -> {T}",
            )
        elif kind == 13:
            self.lines.append(f"{v}a = ckopt.slice {self.tensor()} {SLICE} : ({T}) -> {HALF}")
            self.add(v, f"ckopt.concat {v}a, {v}a {{axis = 1}} : ({HALF}, {HALF}) -> {T}")
        elif kind == 14:
            self.add(
                v,
                f"ckopt.dropout {self.tensor()}, %seed, %st {{ratio = 0.5, site = {i}}} : ({T}, tensor<i64>, tensor<i64>) -> {T}",
            )
        else:
            self.lines.append(
                f"{v}, {v}v = ckopt.moments {self.tensor()} {{axes = array<i64: 0>}} : ({T}) -> ({V}, {V})"
            )
            self.vectors += [v, v + "v"]

    def text(self):
        for i in range(self.random.randint(10, 60)):
            self.op(i)
        self.lines += [
            f"%l = ckopt.reduce sum {self.tensors[-1]} {{axes = array<i64: 0, 1>, keepdims = false}} : ({T}) -> tensor<f32>",
            f"%nw = ckopt.sgd %w, {self.tensor()}, %lr, %st {{momentum = 0.0, dampening = 0.0, weight_decay = 0.01}} : ({T}, {T}, tensor<f32>, tensor<i64>) -> {T}",
            f"%nb = ckopt.moving_average %b, {self.vector()} {{momentum = 0.9}} : ({V}, {V}) -> {V}",
        ]
        # Old states cannot be results: their bytes are overwritten.
        extra = [t for t in (self.tensor(), self.tensor()) if t not in ("%x", "%w")]
        types = "".join(f", {T}" for _ in extra)
        values = "".join(f", {value}" for value in extra)
        body = "\n  ".join(self.lines)
        return f"""func.func @step(%x: {T} {{ckopt.name = "x"}},
    %w: {T} {{ckopt.name = "w", ckopt.role = "parameter"}},
    %b: {V} {{ckopt.name = "b", ckopt.role = "state"}},
    %seed: tensor<i64>, %st: tensor<i64>, %lr: tensor<f32>)
    -> (tensor<f32>, {T} {{ckopt.updates = 1 : i64}}, {V} {{ckopt.updates = 2 : i64}}{types}) {{
  {body}
  return %l, %nw, %nb{values} : tensor<f32>, {T}, {V}{types}
}}
"""


def run(path, passes):
    """The printed results, and what went wrong."""
    command = ["ckopt-opt", path, *passes, "--test-reference=function=step"]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("result")]
    return lines, "" if done.returncode == 0 else done.stderr[:400] or "failed"


def main():
    first, last, scratch = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    os.makedirs(scratch, exist_ok=True)
    failures = 0
    for seed in range(first, last):
        path = os.path.join(scratch, f"{seed}.mlir")
        with open(path, "w") as file:
            file.write(Program(seed).text())
        expected, problem = run(path, [])
        if problem or not expected:
            print(f"{path}: does not run: {problem}")
            failures += 1
            continue
        for passes in PIPELINES:
            results, problem = run(path, passes)
            # A ratio may ask for less than there is.
            if "fits the budget" in problem and "budget-ratio=0.9" in passes[1]:
                continue
            if problem or results != expected:
                print(f"{path}: {' '.join(passes)}: {problem or 'other values'}")
                failures += 1
    print(f"{last - first} programs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
