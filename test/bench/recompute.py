#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what recomputation costs: predicted and measured time at budgets.

recompute.py MODELS --networks=NAME:BATCH:MIB,... [options]

MIB: what a step may take beside parameters, optimizer state, running statistics
and data; several, and `min`, separated by +. Each step is compiled once; then
processes with some steps alternate between all budgets and none. Of a process
its median step counts, of rounds the median of ratios within a round; beside it
the ratio of the least steps of all.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from steps import MIB, TITLES


def compile_step(args, folder, name, batch, budget):
    """Returns the path of a step and its plan; `budget` in bytes of the arena, "min" or None."""
    path = os.path.join(folder, f"{name}-{budget}.so")
    report = path + ".json"
    flags = [f"--memory-budget={budget}"] if budget is not None else []
    subprocess.run(
        [args.ckopt, "compile", os.path.join(args.models, name + ".onnx"), "-o", path,
         f"--batch={batch}", "--loss=cross_entropy", "--optimizer=sgd", "--momentum=0.9",
         f"--threads={args.threads}", "--quiet", f"--report={report}", *flags, *args.flag],
        check=True)
    with open(report, encoding="utf-8") as file:
        return path, json.load(file)["plan"]


def random_data(args, path):
    """Flags of ckopt-run for numbers as data; labels and tokens are of two classes."""
    listing = subprocess.run([args.run, path, "--list"], check=True, text=True, capture_output=True)
    lines = [line.split() for line in listing.stdout.splitlines()]
    return [f"--random={line[3]}:{'-1:1' if line[1].startswith('f') else '0:2'}" for line in lines
            if line and line[0] in ("input", "target")]


def step_seconds(args, path):
    """The least and the median of one process's steps, which ckopt-run times."""
    run = subprocess.run(
        [args.run, path, f"--steps={args.steps}", "--time", *random_data(args, path)],
        check=True, text=True, capture_output=True)
    words = run.stdout.split()
    return float(words[words.index("best") + 2]), float(words[words.index("median") + 1])


def measure(args, folder, network):
    name, batch, budgets = network.split(":")
    plain, plan = compile_step(args, folder, name, batch, None)
    lives = sum(plan[key] for key in ("parameter_bytes", "optimizer_bytes", "state_bytes",
                                      "data_bytes"))
    steps = []
    for budget in budgets.split("+"):
        arena = budget if budget == "min" else lives + int(float(budget) * MIB)
        steps.append(compile_step(args, folder, name, batch, arena))
    ratios, least = [[] for _ in steps], [float("inf")] * len(steps)
    shortest = float("inf")
    for _ in range(args.rounds):
        best, base = step_seconds(args, plain)
        shortest = min(shortest, best)
        for i, (path, _) in enumerate(steps):
            best, median = step_seconds(args, path)
            ratios[i].append(median / base)
            least[i] = min(least[i], best)
    full = (plan["full_arena_bytes"] - lives) / MIB
    for (_, tight), found, best in zip(steps, ratios, least, strict=True):
        extra = (tight["planned_peak_bytes"] - lives) / MIB
        predicted = 100 * (tight["seconds"] / tight["base_seconds"] - 1)
        bound = 100 * (tight["lower_bound_seconds"] / tight["base_seconds"] - 1)
        measured = 100 * (statistics.median(found) - 1)
        print(f"| {TITLES.get(name, name)}, batch {batch} | {full:.0f} | {extra:.0f} "
              f"| {tight['recomputed_steps']} of {tight['steps']} | {bound:.1f} % "
              f"| {predicted:.1f} % | {measured:.1f} % | {100 * (best / shortest - 1):.1f} % |",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", help="folder of ONNX models without weights")
    parser.add_argument("--networks", required=True, help="NAME:BATCH:MIB[+MIB...],...")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5, help="of each process")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ckopt", default="build/bin/ckopt")
    parser.add_argument("--run", default="build/bin/ckopt-run")
    parser.add_argument("--flag", action="append", default=[], help="one more for `ckopt compile`")
    args = parser.parse_args()
    print("| network | extra MiB without a budget | with | recomputed | proven, at least "
          "| predicted | measured, medians | least |\n"
          "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for network in args.networks.split(","):
            measure(args, folder, network)
    return 0


if __name__ == "__main__":
    sys.exit(main())
