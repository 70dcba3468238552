#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures training steps of several ranks on one machine, ckopt's and PyTorch's.

parallel.py MODELS --python=PYTHON [options]   MODELS: a folder with resnet50.onnx and the others
parallel.py --table lines.jsonl                prints the table of what was measured before

Ours: `mpirun -n N ckopt train --parallel=...`; PyTorch: DistributedDataParallel and FSDP2
(fully_shard on each block and the whole, over a mesh of CPUs), both over gloo. Every run is of
fresh processes, in rounds in which the contestants alternate; of each run the median of its
steps counts, without the first, and of all runs the median. The batch is that of all ranks. A
step includes the loss and SGD with momentum (or --optimizer=adamw), no reading of samples.

Memory of one rank, as in steps.py: the arena less parameters, optimizer state, running statistics
and data, against the peak of resident bytes in a step above those between steps (where gradients
are, too). The whole is the arena, against that peak and the tensors that a rank of PyTorch keeps.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

from steps import MIB, OPTIMIZERS, TEXT, TITLES

DEFAULT = ["resnet50:8", "gpt2_small:2", "vit_b_16:4", "bert_base:8"]
# Modules that fully_shard gets one by one, as its documentation asks for.
BLOCKS = ("Block", "Bottleneck", "Inverted", "Dense")


def status(key):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key))


def kept_bytes(net, optimizer, mode):
    """Bytes of tensors that a rank keeps between steps."""
    def size(tensor):
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        return local.numel() * local.element_size()

    parameters = sum(map(size, net.parameters()))
    state = sum(size(value) for entry in optimizer.state.values() for value in entry.values()
                if hasattr(value, "numel") and value.numel() > 1)
    buckets = parameters if "ddp" in mode and "views" not in mode else 0
    return 2 * parameters + state + buckets


def torch_rank(name, batch, mode, steps, threads, kind, store):
    """One rank in this process; rank 0 prints a line of JSON."""
    import ctypes
    import gc
    import torch
    import torch.distributed as dist
    from networks import NETWORKS

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    flags = mode.split("+")
    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    build, make, labels, classes = NETWORKS[name]
    net = build().train()
    parameters = 4 * sum(p.numel() for p in net.parameters())
    torch.manual_seed(rank)
    x, y = make(batch // ranks), torch.randint(0, classes, (batch // ranks, *labels))
    if "channels_last" in flags:
        x = x.to(memory_format=torch.channels_last)
        if "fsdp2" not in flags:  # its shards are rows of contiguous parameters
            net = net.to(memory_format=torch.channels_last)
    if "fsdp2" in flags:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (ranks,))
        for module in net.modules():
            if type(module).__name__ in BLOCKS:
                fully_shard(module, mesh=mesh)
        run = fully_shard(net, mesh=mesh)
    else:
        run = torch.nn.parallel.DistributedDataParallel(
            net, gradient_as_bucket_view="views" in flags)
    if kind == "adamw":
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused="fsdp2" not in flags)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9,
                                    fused="fsdp2" not in flags)

    def step():
        optimizer.zero_grad(set_to_none=False)
        out = run(x)
        if out.dim() == 3:
            loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), y.flatten())
        else:
            loss = torch.nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    step()
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    rest = status("VmRSS:")
    dist.barrier()
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # forgets the peak so far
    wall, cpu = [], []
    for _ in range(steps):
        start, used = time.perf_counter(), time.process_time()
        loss = step()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    extra = torch.tensor([status("VmHWM:") - rest])
    dist.all_reduce(extra, op=dist.ReduceOp.MAX)  # the rank that needs most
    if rank == 0:
        print(json.dumps({"wall": statistics.median(wall), "cpu": statistics.median(cpu),
                          "loss": loss, "parameters": parameters, "extra": int(extra),
                          "all": int(extra) + kept_bytes(net, optimizer, mode),
                          "torch": torch.__version__}))
    dist.destroy_process_group()


def torch_run(args, name, batch, mode):
    """Starts the ranks as torchrun does, meeting in a file."""
    with tempfile.TemporaryDirectory() as folder:
        command = [args.python, os.path.abspath(__file__), "--torch", name, str(batch), mode,
                   str(args.steps), str(args.threads), args.optimizer,
                   os.path.join(folder, "store")]
        ranks = [subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE,
                                  env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(args.ranks),
                                           LOCAL_RANK=str(rank),
                                           OMP_NUM_THREADS=str(args.threads)))
                 for rank in range(args.ranks)]
        outputs = [rank.communicate() for rank in ranks]
    for rank, (_, errors) in zip(ranks, outputs, strict=True):
        if rank.returncode:
            sys.exit(f"{name} {mode}: PyTorch failed\n{errors}")
    return json.loads(outputs[0][0].splitlines()[-1])


SAMPLES = """
import sys, numpy, torch
from networks import NETWORKS
build, make, labels, classes = NETWORKS[sys.argv[1]]
torch.manual_seed(0)
x, y = make(int(sys.argv[2])), torch.randint(0, classes, (int(sys.argv[2]), *labels))
numpy.savez(sys.argv[3], x=x.numpy(), y=y.numpy())
"""


def make_samples(args, folder, name, count):
    path = os.path.join(folder, name + ".npz")
    if not os.path.exists(path):
        subprocess.run([args.python, "-c", SAMPLES, name, str(count), path], check=True,
                       env=dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__))))
    return path


def ckopt_run(args, folder, name, batch, parallel):
    data = make_samples(args, folder, name, batch)
    report, log = (os.path.join(folder, file) for file in ("report.json", "log.jsonl"))
    for file in (report, log):
        if os.path.exists(file):
            os.remove(file)
    subprocess.run(
        [*shlex.split(args.mpirun), "-n", str(args.ranks), args.ckopt, "train",
         os.path.join(args.models, name + ".onnx"), f"--data={data}", f"--batch={batch}",
         f"--epochs={args.steps + 1}", "--loss=cross_entropy", *OPTIMIZERS[args.optimizer],
         "--lr=0.001", f"--threads={args.threads}", f"--parallel={parallel}", "--quiet",
         f"--report={report}", f"--log={log}", *args.flag],
        check=True, stderr=subprocess.DEVNULL if args.silent else None)
    with open(report, encoding="utf-8") as file:
        result = json.load(file)
    with open(log, encoding="utf-8") as file:
        walls = [json.loads(line)["seconds"] for line in file]
    plan, training = result["plan"], result["training"]
    lives = sum(plan[key] for key in ("parameter_bytes", "optimizer_bytes", "state_bytes",
                                      "data_bytes"))
    arena = max(training["communication"]["peaks"])
    return {"wall": statistics.median(walls[1:]), "loss": training["final_loss"],
            "communication": training["communication"]["seconds"],
            "parameters": plan["parameter_bytes"], "extra": arena - lives, "all": arena}


def measure(args, out):
    def record(line):
        out.append(line)
        shown = {key: line[key] for key in ("name", "who", "wall", "extra", "all")}
        print(json.dumps(shown), file=sys.stderr)
        if args.output:
            with open(args.output, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        for network in args.networks.split(","):
            name, batch = network.split(":")
            base = {"name": name, "batch": int(batch), "ranks": args.ranks,
                    "threads": args.threads, "optimizer": args.optimizer}
            modes = [mode for mode in args.modes.split(",") if mode]
            if name in TEXT:
                modes = [mode for mode in modes if "channels_last" not in mode]
            for _ in range(args.rounds):
                for parallel in filter(None, args.ours.split(";")):
                    line = base | {"who": f"ckopt {parallel}"}
                    record(line | ckopt_run(args, folder, name, int(batch), parallel))
                for mode in modes:
                    record(base | {"who": mode} | torch_run(args, name, int(batch), mode))
            if len({line["parameters"] for line in out if line["name"] == name}) > 1:
                sys.exit(f"{name}: the networks differ in their bytes of parameters")


def medians(lines):
    """Who: the median of each figure of all runs."""
    return {who: {key: statistics.median(line[key] for line in lines if line["who"] == who)
                  for key in ("wall", "extra", "all")}
            for who in dict.fromkeys(line["who"] for line in lines)}


def table(lines):
    titles = ["network", "step, ckopt", "step, PyTorch", "ratio", "extra MiB, ckopt",
              "extra MiB, PyTorch", "ratio", "all MiB, ckopt", "all MiB, PyTorch", "ratio", "runs"]
    print("| " + " | ".join(titles) + " |")
    print("| --- |" + " ---: |" * (len(titles) - 1))
    def key(line):
        return line["name"], line["batch"], line["ranks"], line["optimizer"]
    for one in dict.fromkeys(map(key, lines)):
        mine = [line for line in lines if key(line) == one]
        figures = medians(mine)
        name, batch, ranks, kind = one
        cells = [f"{TITLES.get(name, name)}, batch {ranks} x {batch // ranks}"
                 + ", AdamW" * (kind == "adamw")]
        for what, unit in (("wall", 1), ("extra", MIB), ("all", MIB)):
            sides = [{who: of for who, of in figures.items() if who.startswith("ckopt") == ours}
                     for ours in (True, False)]
            best = [min(side, key=lambda who: side[who][what]) if side else None for side in sides]
            digits = 3 if what == "wall" else 0
            cells += [f"{figures[who][what] / unit:.{digits}f} ({who.removeprefix('ckopt ')})"
                      if who else "-" for who in best]
            cells.append(f"{figures[best[0]][what] / figures[best[1]][what]:.2f}"
                         if all(best) else "-")
        cells.append(str(min(sum(line["who"] == who for line in mine) for who in figures)))
        print("| " + " | ".join(cells) + " |")


def main():
    if sys.argv[1:2] == ["--torch"]:
        name, batch, mode, steps, threads, kind, store = sys.argv[2:]
        return torch_rank(name, int(batch), mode, int(steps), int(threads), kind, store)
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", help="folder of ONNX models without weights")
    parser.add_argument("--networks", default=",".join(DEFAULT), help="NAME:BATCH,... of all ranks")
    parser.add_argument("--python", default=sys.executable, help="a Python with PyTorch")
    parser.add_argument("--modes", default="ddp,ddp+views,ddp+views+channels_last,fsdp2,"
                        "fsdp2+channels_last",
                        help="ways to run PyTorch (views: gradient_as_bucket_view)")
    parser.add_argument("--ours", default="dp:2", help="of --parallel, separated by ';'")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5, help="of each run, after one")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd", help="on both sides")
    parser.add_argument("--ckopt", default="build/bin/ckopt")
    parser.add_argument("--mpirun", default="mpirun --bind-to none", help="what starts our ranks")
    parser.add_argument("--flag", action="append", default=[], help="one more for `ckopt train`")
    parser.add_argument("--silent", action="store_true", help="no messages of ckopt")
    parser.add_argument("-o", "--output", help="appends what was measured, JSON lines")
    parser.add_argument("--table", help="reads such lines instead of measuring")
    args = parser.parse_args()
    lines = []
    if args.table:
        with open(args.table, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    elif args.models:
        measure(args, lines)
    else:
        parser.error("MODELS or --table")
    table(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
