#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the step that `ckopt plan --cluster` predicts with one that ranks of this machine run.

predict.py MODELS --python=PYTHON [--networks=vit_b_16:4,...]   MODELS: as parallel.py takes them

Kernels: `ckopt bench --calibrate` fits rates to each network's step of one rank's batch, as many at
once as there are ranks, since they share the machine's memory. Links: latency and bandwidth that
a run of the network --fit shows, in its smallest and its largest sums over ranks; so --fit itself is
no test of the links. Prints a table; the least steps of alternating rounds count on both sides.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

from parallel import make_samples

SGD = ["--loss=cross_entropy", "--optimizer=sgd", "--momentum=0.9", "--lr=0.001", "--quiet"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def step(args, name, batch):
    return [os.path.join(args.models, name + ".onnx"), f"--batch={batch}",
            f"--threads={args.threads}", *SGD]


def calibrate(args, folder, name, batch):
    """The rates of a rank's kernels while all ranks work."""
    paths = [os.path.join(folder, f"rates-{rank}.json") for rank in range(args.ranks)]
    benches = [subprocess.Popen([args.ckopt, "bench", *step(args, name, batch // args.ranks),
                                 "--warmup=1", f"--steps={args.steps}", f"--calibrate={path}"])
               for path in paths]
    if any([bench.wait() for bench in benches]):
        sys.exit(f"{name}: ckopt bench failed")
    found = [read(path)["rates"] for path in paths]
    return {rate: statistics.mean(rates[rate] for rates in found)
            for rate in found[0] if all(rate in rates for rates in found)}


def run(args, folder, name, batch):
    report, log = os.path.join(folder, "run.json"), os.path.join(folder, "log.jsonl")
    if os.path.exists(log):
        os.remove(log)
    subprocess.run([*shlex.split(args.mpirun), "-n", str(args.ranks), args.ckopt, "train",
                    *step(args, name, batch), f"--parallel=dp:{args.ranks}",
                    f"--data={make_samples(args, folder, name, batch)}",
                    f"--epochs={args.steps + 1}", f"--report={report}", f"--log={log}"],
                   check=True, stderr=subprocess.DEVNULL)
    with open(log, encoding="utf-8") as file:
        seconds = [json.loads(line)["seconds"] for line in file]
    return {"step": min(seconds[1:]), **read(report)["training"]["communication"]}


def fit_links(args, runs, rates):
    """A cluster file's content: one node, with the links that the runs show."""
    sums = {}
    for one in runs:
        for collective in one["collectives"]:
            sums.setdefault(collective["bytes"], []).append(collective["seconds"])
    small, large = min(sums), max(sums)
    ranks = args.ranks
    copies = large * (4 + (ranks + 1) / ranks) / rates["bandwidth"]
    moved = 2 * (ranks - 1) / ranks * large
    left = min(sums[large]) - copies
    return {"format": "ckopt-cluster/1", "name": "this machine", "nodes": 1,
            "ranks_per_node": ranks,
            # Where copies seem to take all the time, messages get it instead.
            "memory_bandwidth": rates["bandwidth"] if left > 0 else 1e15,
            "inside": {"latency": min(sums[small]) / 2,
                       "bandwidth": moved / (left if left > 0 else min(sums[large]))}}


def predict(args, folder, name, batch, rates, cluster):
    paths = [os.path.join(folder, file) for file in ("rates.json", "cluster.json", "plan.json")]
    for path, content in zip(paths, ({"format": "ckopt-profile/1", "rates": rates}, cluster)):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file)
    subprocess.run([args.ckopt, "plan", *step(args, name, batch), f"--parallel=dp:{args.ranks}",
                    f"--cost-model=profile={paths[0]}", f"--cluster={paths[1]}",
                    f"--report={paths[2]}"], check=True)
    return read(paths[2])["cluster"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models")
    parser.add_argument("--networks", default="gpt2_small:2,vit_b_16:4,bert_base:8")
    parser.add_argument("--fit", default="resnet50:8", help="the network that shows the links")
    parser.add_argument("--python", default=sys.executable, help="a Python with PyTorch, for data")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--ckopt", default="build/bin/ckopt")
    parser.add_argument("--mpirun", default="mpirun --bind-to none")
    args = parser.parse_args()
    cluster = None
    print("| network | predicted step | of it communication | measured step | of it communication | "
          "predicted / measured |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for network in [args.fit, *args.networks.split(",")]:
        name, batch = network.split(":")[0], int(network.split(":")[1])
        with tempfile.TemporaryDirectory() as folder:
            runs, rates = [], []
            for _ in range(args.rounds):
                rates.append(calibrate(args, folder, name, batch))
                runs.append(run(args, folder, name, batch))
            # The rates of the round that was disturbed least.
            best = max(rates, key=lambda found: sum(found.values()))
            best.setdefault("bandwidth", 14e9)
            cluster = cluster or fit_links(args, runs, best)
            found = predict(args, folder, name, batch, best, cluster)
        measured = min(one["step"] for one in runs)
        waited = min(one["seconds"] for one in runs)
        print(f"| {name}, batch {args.ranks} x {batch // args.ranks}"
              f"{' (links fitted)' if network == args.fit else ''} | {found['seconds']:.3f} | "
              f"{found['exposed_seconds']:.3f} | {measured:.3f} | {waited:.3f} | "
              f"{found['seconds'] / measured:.2f} |", flush=True)
    print(json.dumps(cluster), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
