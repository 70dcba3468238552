#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures training steps of ckopt and of PyTorch in one sitting.

steps.py MODELS [options]       MODELS: a folder with resnet50.onnx and the others
steps.py --table lines.jsonl    prints the table of what was measured before

Every figure comes from a fresh process, in rounds in which the contestants
alternate; the least of all steps counts. A step includes the loss and SGD with
momentum (or --optimizer=adamw); denormals are flushed on both sides. Roofline: for each kernel of
ckopt's f32 step the larger of the best time that ckopt-roofline found for its
shape alone and of a copy of its bytes. Memory: ckopt's arena without
recomputation less parameters, optimizer state, running statistics and data,
against the peak of PyTorch's resident bytes in a step above those between steps
(where gradients are, too).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

DEFAULT = ["resnet50:8", "gpt2_small:2", "vit_b_16:4", "bert_base:8", "unet:2", "mobilenet_v2:8",
           "densenet121:8"]
TITLES = {"resnet50": "ResNet-50", "gpt2_small": "GPT-2 small", "vit_b_16": "ViT-B/16",
          "bert_base": "BERT-base", "unet": "U-Net", "mobilenet_v2": "MobileNet-V2",
          "densenet121": "DenseNet-121"}
TEXT = ("gpt2_small", "vit_b_16", "bert_base")  # no images inside: channels-last has no meaning
OPTIMIZERS = {"sgd": ["--optimizer=sgd", "--momentum=0.9"], "adamw": ["--optimizer=adamw"]}
MIB = 1 << 20


def torch_step(name, batch, mode, steps, threads, kind):
    """Times one network in this process and prints a line of JSON."""
    import ctypes
    import gc
    import torch
    from networks import NETWORKS

    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    build, make, labels, classes = NETWORKS[name]
    net, x = build().train(), make(batch)
    parameters = 4 * sum(p.numel() for p in net.parameters())
    y = torch.randint(0, classes, (batch, *labels))
    flags = mode.split("+")
    if "channels_last" in flags:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    run = torch.compile(net) if "compile" in flags else net
    if kind == "adamw":
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, fused=True)
    for p in net.parameters():
        p.grad = torch.zeros_like(p)

    def step():
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in flags):
            out = run(x)
        out = out.float()
        if out.dim() == 3:
            loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), y.flatten())
        else:
            loss = torch.nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    def status(key):
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(key))

    step()
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    rest = status("VmRSS:")
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # forgets the peak so far
    wall, cpu = [], []
    for _ in range(steps):
        start, used = time.perf_counter(), time.process_time()
        loss = step()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    print(json.dumps({"wall": min(wall), "cpu": min(cpu), "loss": loss, "parameters": parameters,
                      "extra": status("VmHWM:") - rest, "torch": torch.__version__}))


def ckopt_step(args, name, batch, precision):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        subprocess.run(
            [args.ckopt, "bench", os.path.join(args.models, name + ".onnx"), f"--batch={batch}",
             "--loss=cross_entropy", *OPTIMIZERS[args.optimizer], "--lr=0.001",
             f"--precision={precision}", f"--threads={args.threads}", "--warmup=1",
             f"--steps={args.steps}", "--profile", "--quiet",
             f"--report={report}", *args.flag],
            check=True)
        with open(report, encoding="utf-8") as file:
            result = json.load(file)
    plan, times = result["plan"], result["times"]
    lives = sum(plan[key] for key in ("parameter_bytes", "optimizer_bytes", "state_bytes",
                                      "data_bytes"))
    kernels = [{key: kernel[key] for key in ("kernel", "calls", "seconds", "processor_seconds",
                                             "bytes_a_call", "primitive", "source")}
               for kernel in result["kernels"]]
    return {"wall": times["best_seconds"], "cpu": times["processor_seconds"], "loss": times["loss"],
            "parameters": plan["parameter_bytes"], "arena": plan["full_arena_bytes"],
            "extra": plan["full_arena_bytes"] - lives, "kernels": kernels}


def roofline(args, kernels):
    """Least seconds of each kernel's calls in a step, by shape and by bytes."""
    asked = list(dict.fromkeys(
        line for kernel in kernels
        for line in (kernel["primitive"], f"copy {kernel['bytes_a_call']}") if line))
    answer = subprocess.run([args.roofline], input="\n".join(asked) + "\n", text=True, check=True,
                            capture_output=True,
                            env=dict(os.environ, OMP_NUM_THREADS=str(args.threads)))
    seconds = [float(line.split("\t")[0]) for line in answer.stdout.splitlines()]
    best = dict(zip(asked, seconds, strict=True))
    return [kernel["calls"] * max(best.get(kernel["primitive"], 0),
                                  best[f"copy {kernel['bytes_a_call']}"]) for kernel in kernels]


def measure(args, out):
    def record(line):
        out.append(line)
        shown = {key: line[key] for key in ("name", "who", "wall", "cpu", "loss") if key in line}
        print(json.dumps(shown), file=sys.stderr)
        if args.output:
            with open(args.output, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    for network in args.networks.split(","):
        name, batch = network.split(":")
        base = {"name": name, "batch": int(batch), "threads": args.threads,
                "optimizer": args.optimizer}
        modes = [mode for mode in args.modes.split(",") if mode] if args.python else []
        if name in TEXT:
            modes = [mode for mode in modes if "channels_last" not in mode]
        ours = kernels = None  # bytes of parameters, kernels of the f32 step
        for _ in range(args.rounds):
            for precision in filter(None, args.precisions.split(",")):
                line = base | {"who": f"ckopt {precision}"}
                line |= ckopt_step(args, name, batch, precision)
                ours = line["parameters"]
                if precision == "f32":
                    kernels = line["kernels"]
                record(line)
            for mode in modes:
                command = [args.python, os.path.abspath(__file__), "--torch", name, batch, mode,
                           str(args.steps), str(args.threads), args.optimizer]
                result = subprocess.run(command, text=True, capture_output=True, check=False)
                if result.returncode:
                    sys.exit(f"{name} {mode}: PyTorch failed\n{result.stderr}")
                line = base | {"who": mode} | json.loads(result.stdout.splitlines()[-1])
                if ours is not None and line["parameters"] != ours:
                    sys.exit(f"{name}: the networks differ, {line['parameters']} bytes of "
                             f"parameters in PyTorch and {ours} in ckopt")
                record(line)
        if args.roofline and kernels:
            record(base | {"who": "roofline", "kernels": kernels,
                           "roofline": roofline(args, kernels)})


def least(lines, key):
    return min(lines, key=lambda line: line[key]) if lines else None


def row(lines, clock):
    """One network: times and ratios, share of the roofline, memory."""
    def ours(precision):
        return [line for line in lines if line["who"] == f"ckopt {precision}"]

    def peers(bf16):
        return [line for line in lines if not line["who"].startswith(("ckopt", "roofline"))
                and ("bf16" in line["who"]) == bf16]

    name = lines[0]["name"]
    adamw = lines[0].get("optimizer") == "adamw"
    cells = [f"{TITLES.get(name, name)}, batch {lines[0]['batch']}" + ", AdamW" * adamw]
    for precision in ("f32", "bf16"):
        mine, best = least(ours(precision), clock), least(peers(precision == "bf16"), clock)
        cells.append(f"{mine[clock]:.2f}" if mine else "-")
        cells.append(f"{best[clock]:.2f} ({best['who']})" if best else "-")
        cells.append(f"{mine[clock] / best[clock]:.2f}" if mine and best else "-")
    floors = [sum(line["roofline"]) for line in lines if "roofline" in line]
    if floors and ours("f32"):
        cells.append(f"{100 * min(floors) / least(ours('f32'), clock)[clock]:.0f} %")
    else:
        cells.append("-")
    mine, best = least(ours("f32"), "extra"), least(peers(False), "extra")
    cells.append(f"{mine['extra'] / MIB:.0f}" if mine else "-")
    cells.append(f"{best['extra'] / MIB:.0f} ({best['who']})" if best else "-")
    cells.append(f"{mine['extra'] / best['extra']:.2f}" if mine and best else "-")
    # PyTorch's whole: parameters, gradients, optimizer state, and what a step adds.
    cells.append(f"{mine['arena'] / MIB:.0f}" if mine else "-")
    cells.append(f"{((3 + adamw) * best['parameters'] + best['extra']) / MIB:.0f}" if best else "-")
    return "| " + " | ".join(cells) + " |"


def table(lines, clock):
    titles = ["network", "ckopt f32", "PyTorch f32", "ratio", "ckopt bf16", "PyTorch bf16",
              "ratio", "of the roofline, f32", "extra MiB, ckopt", "extra MiB, PyTorch", "ratio",
              "all MiB, ckopt", "all MiB, PyTorch"]
    print("| " + " | ".join(titles) + " |")
    print("| --- |" + " ---: |" * (len(titles) - 1))
    def key(line):
        return line["name"], line["batch"], line.get("optimizer", "sgd")
    for one in dict.fromkeys(map(key, lines)):
        print(row([line for line in lines if key(line) == one], clock))


def gaps(lines, clock, most=12):
    """Kernels that lose most time against their roofline, one table a network."""
    for line in lines:
        if "roofline" not in line:
            continue
        print(f"\n{line['name']}: seconds, of them above the roofline, calls, kernel")
        key = "processor_seconds" if clock == "cpu" else "seconds"
        rows = [(kernel[key] - floor, kernel)
                for kernel, floor in zip(line["kernels"], line["roofline"], strict=True)]
        for lost, kernel in sorted(rows, key=lambda entry: -entry[0])[:most]:
            print(f"{kernel[key]:.4f} {lost:.4f} {kernel['calls']:4} {kernel['kernel']} "
                  f"{kernel['primitive']} {kernel['bytes_a_call'] / MIB:.1f} MiB "
                  f"({kernel['source']})")


def main():
    if sys.argv[1:2] == ["--torch"]:
        name, batch, mode, steps, threads, kind = sys.argv[2:]
        return torch_step(name, int(batch), mode, int(steps), int(threads), kind)
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", help="folder of ONNX models without weights")
    parser.add_argument("--networks", default=",".join(DEFAULT), help="NAME:BATCH,...")
    parser.add_argument("--python", help="a Python with PyTorch; without one ckopt runs alone")
    parser.add_argument("--modes", default="eager,channels_last,compile,bf16,bf16+channels_last,"
                        "bf16+compile", help="ways to run PyTorch")
    parser.add_argument("--precisions", default="f32,bf16", help="of ckopt")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3, help="of each process, after one")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd", help="on both sides")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: processor time of all threads, for machines that are busy")
    parser.add_argument("--ckopt", default="build/bin/ckopt")
    parser.add_argument("--roofline", default="build/bin/ckopt-roofline", help="empty: no roofline")
    parser.add_argument("--flag", action="append", default=[], help="one more for `ckopt bench`")
    parser.add_argument("-o", "--output", help="appends what was measured, JSON lines")
    parser.add_argument("--table", help="reads such lines instead of measuring")
    parser.add_argument("--gaps", action="store_true", help="lists the kernels that lose most")
    args = parser.parse_args()
    lines = []
    if args.table:
        with open(args.table, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    elif args.models:
        measure(args, lines)
    else:
        parser.error("MODELS or --table")
    table(lines, args.clock)
    if args.gaps:
        gaps(lines, args.clock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
