#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures fine-tuning steps of ckopt and of what people use on a CPU.

finetune.py FOLDER --python=PYTHON [options]
finetune.py --table lines.jsonl              prints the tables of what was measured before

FOLDER gets the exported models (2 GiB). PYTHON has torch, transformers, onnx and onnxscript, and
for the contestants named so peft, torchao, bitsandbytes; one that does not run is said and left
out. Two models of Transformers with random weights: GPT-2 small (2 x 256 tokens) and a Llama of 8
layers of 1024 (1 x 1024). "full" trains all weights by AdamW, "lora" adapters of rank 16 on all
products but the head. Every figure comes from a fresh process, in rounds in which contestants
alternate. Seconds: the median step behind the first two. Bytes: of PyTorch the peak of resident
bytes above those of its imports, of ckopt the arena (where planned is not measured it ends) and the
peak of the whole process with compiler and libraries.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

MIB = 1 << 20
TOKENS = {"gpt2": (2, 256), "llama": (1, 1024)}
TITLES = {"gpt2": "GPT-2 small, 2 x 256 tokens", "llama": "Llama, 8 layers of 1024, 1 x 1024 tokens"}

# What runs: (work, who, how). How is a base's file and flags of ckopt, or words for PyTorch.
FULL = ["full:adamw f32", "full:adamw autocast", "full:adamw bf16", "full:torchao f32",
        "full:torchao bf16", "full:bitsandbytes f32"]
LORA = ["lora:bf16", "lora:bf16 checkpointing", "lora:torchao-int8", "lora:bitsandbytes-int8",
        "lora:bitsandbytes-nf4"]
OURS = {
    "full:f32": ("f32", ["--precision=f32"]),
    "full:bf16 products": ("f32", ["--precision=bf16"]),
    "full:int8 states": ("f32", ["--precision=bf16", "--state-type=int8"]),
    "full:bf16 weights, bf16 states": ("f32", ["--precision=bf16", "--param-type=bf16",
                                               "--state-type=bf16"]),
    "full:bf16 weights, int8 states": ("f32", ["--precision=bf16", "--param-type=bf16",
                                               "--state-type=int8"]),
    "lora:bf16": ("bf16", ["--precision=bf16", "--lora=16"]),
    "lora:int8": ("int8", ["--precision=bf16", "--lora=16"]),
    "lora:int4": ("int4", ["--precision=bf16", "--lora=16"]),
    "lora:nf4": ("nf4", ["--precision=bf16", "--lora=16"]),
}


def build(name, dtype):
    import torch
    import transformers as t
    torch.manual_seed(0)
    if name == "gpt2":
        net = t.GPT2LMHeadModel(t.GPT2Config(attn_pdrop=0, embd_pdrop=0, resid_pdrop=0,
                                             use_cache=False))
    else:
        net = t.LlamaForCausalLM(t.LlamaConfig(
            vocab_size=32000, hidden_size=1024, intermediate_size=4096, num_hidden_layers=8,
            num_attention_heads=16, num_key_value_heads=4, use_cache=False))
    return net.to(dtype).train()


def export(name, path):
    import torch

    class Loss(torch.nn.Module):
        def __init__(self, net):
            super().__init__()
            self.model = net

        def forward(self, input_ids, labels):
            return self.model(input_ids=input_ids, labels=labels).loss

    dtype = torch.bfloat16 if path.endswith("bf16.onnx") else torch.float32
    ids = [torch.randint(0, 32000, TOKENS[name]) for _ in range(2)]
    torch.onnx.export(Loss(build(name, dtype)), tuple(ids), dynamo=True, verbose=False,
                      input_names=["input_ids", "labels"], output_names=["loss"]).save(
                          path, external_data=True)


def adapted(name, base, folder):
    """A model with PEFT's adapters on a frozen base."""
    import peft
    import torch
    net = build(name, torch.bfloat16)
    if base.startswith("bitsandbytes"):
        import transformers as t
        net.save_pretrained(folder)
        few = (t.BitsAndBytesConfig(load_in_8bit=True) if base.endswith("int8") else
               t.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                                    bnb_4bit_compute_dtype=torch.bfloat16))
        net = type(net).from_pretrained(folder, quantization_config=few, device_map="cpu",
                                        dtype=torch.bfloat16).train()
    elif base == "torchao-int8":
        from torchao.quantization import Int8WeightOnlyConfig, quantize_
        quantize_(net.base_model, Int8WeightOnlyConfig())
    return peft.get_peft_model(net, peft.LoraConfig(r=16, lora_alpha=8, task_type="CAUSAL_LM",
                                                    target_modules="all-linear"))


def torch_step(name, what, steps, threads):
    """Times one contestant in this process and prints a line of JSON."""
    import gc
    import time
    import torch
    import transformers  # noqa: F401  imported before the resting bytes are read
    work, words = what.split(":")
    words = words.split()
    for module in ("peft", "torchao.optim", "torchao.quantization", "bitsandbytes"):
        if module == "peft" and work == "lora" or module.split(".")[0] in words[0]:
            __import__(module)
    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)

    def status(key):
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(key))

    rest = status("VmRSS:")
    with tempfile.TemporaryDirectory() as folder:
        net = (adapted(name, words[0], folder) if work == "lora" else
               build(name, torch.bfloat16 if "bf16" in words else torch.float32))
    if "checkpointing" in words:
        net.enable_input_require_grads()
        net.gradient_checkpointing_enable()
    weights = [p for p in net.parameters() if p.requires_grad]
    if words[0] == "torchao":
        from torchao.optim import AdamW8bit
        optimizer = AdamW8bit(weights, lr=1e-4, bf16_stochastic_round="bf16" in words)
    elif words[0] == "bitsandbytes":
        import bitsandbytes
        optimizer = bitsandbytes.optim.AdamW8bit(weights, lr=1e-4)
    else:
        optimizer = torch.optim.AdamW(weights, lr=1e-4, fused=True)
    ids = torch.randint(0, 32000, TOKENS[name])
    wall, cpu = [], []
    for i in range(steps + 2):
        if i == 2:  # the second step on, all states are there: forgets loading and compilation
            gc.collect()
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")
        start, used = time.perf_counter(), time.process_time()
        with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in words):
            loss = net(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    print(json.dumps({"wall": statistics.median(wall[2:]), "cpu": min(cpu[2:]),
                      "process": status("VmHWM:") - rest, "loss": loss.item()}))


def prepare(args, name, base):
    """Returns a model's file, exported or quantized at the first call."""
    path = os.path.join(args.folder, f"{name}-{base}.onnx")
    if os.path.exists(path):
        return path
    if base in ("f32", "bf16"):
        subprocess.run([args.python, os.path.abspath(__file__), "--export", name, path],
                       check=True, capture_output=True)
    else:
        subprocess.run([args.ckopt, "quantize", prepare(args, name, "bf16"), "-o", path,
                        f"--type={base}", "--group-size=128"], check=True, capture_output=True)
    return path


def ckopt_step(args, name, what):
    base, flags = OURS[what]
    model = prepare(args, name, base)
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        child = subprocess.Popen(
            [args.ckopt, "bench", model, *flags,
             "--optimizer=adamw", "--lr=1e-4", f"--threads={args.threads}", "--warmup=2",
             f"--steps={args.steps}", "--quiet", f"--report={report}", *args.flag])
        _, failed, usage = os.wait4(child.pid, 0)
        if failed:
            sys.exit(f"{name} {what}: ckopt failed")
        with open(report, encoding="utf-8") as file:
            result = json.load(file)
    times = result["times"]
    if times["measured_peak"] != result["plan"]["planned_peak_bytes"]:
        sys.exit(f"{name} {what}: the step took other bytes than were planned")
    return {"wall": times["median_seconds"], "cpu": times["processor_seconds"],
            "arena": times["measured_peak"], "process": usage.ru_maxrss << 10,
            "loss": times["loss"]}


def measure(args):
    lines, missing = [], set()
    for name in args.models.split(","):
        work = [("ckopt", what) for what in OURS] + [("PyTorch", what) for what in FULL + LORA]
        work = [one for one in work if re.search(args.only, ", ".join(one))
                and not (name == "gpt2" and one[1].startswith("lora:"))]
        for _ in range(args.rounds):
            for who, what in work:
                if (name, what) in missing:
                    continue
                if who == "ckopt":
                    line = ckopt_step(args, name, what)
                else:
                    command = [args.python, os.path.abspath(__file__), "--torch", name, what,
                               str(args.steps), str(args.threads)]
                    result = subprocess.run(command, text=True, capture_output=True, check=False)
                    if result.returncode:
                        missing.add((name, what))
                        print(f"{name} {what}: {result.stderr[-400:]}", file=sys.stderr)
                        continue
                    line = json.loads(result.stdout.splitlines()[-1])
                lines.append({"name": name, "who": who, "what": what} | line)
                print(json.dumps(lines[-1]), file=sys.stderr)
                if args.output:
                    with open(args.output, "a", encoding="utf-8") as file:
                        file.write(json.dumps(lines[-1]) + "\n")
    return lines


def table(lines, clock):
    for name, work in dict.fromkeys((line["name"], line["what"].split(":")[0]) for line in lines):
        print(f"\n{TITLES[name]}, {work}\n\n| | seconds ({clock}) | arena MiB | process MiB |")
        print("| --- | ---: | ---: | ---: |")
        mine = [line for line in lines if line["name"] == name and line["what"].startswith(work)]
        for who, what in dict.fromkeys((line["who"], line["what"]) for line in mine):
            same = [line for line in mine if (line["who"], line["what"]) == (who, what)]
            seconds = statistics.median(line[clock] for line in same)
            arena = f"{same[0]['arena'] / MIB:.0f}" if "arena" in same[0] else "-"
            process = max(line["process"] for line in same) / MIB
            print(f"| {who}, {what.split(':')[1]} | {seconds:.2f} | {arena} | {process:.0f} |")


def main():
    if sys.argv[1:2] == ["--export"]:
        return export(*sys.argv[2:])
    if sys.argv[1:2] == ["--torch"]:
        return torch_step(*sys.argv[2:4], *map(int, sys.argv[4:]))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", help="for exported models")
    parser.add_argument("--python", help="a Python with PyTorch and the peers")
    parser.add_argument("--models", default="gpt2,llama")
    parser.add_argument("--only", default="", help="regular expression on 'ckopt, lora:int4', ...")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3, help="of each process, after two")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: least processor time, for busy machines (with --threads=1)")
    parser.add_argument("--ckopt", default="build/bin/ckopt")
    parser.add_argument("--flag", action="append", default=[], help="one more for `ckopt bench`")
    parser.add_argument("-o", "--output", help="appends what was measured, JSON lines")
    parser.add_argument("--table", help="reads such lines instead of measuring")
    args = parser.parse_args()
    if args.table:
        with open(args.table, encoding="utf-8") as file:
            table([json.loads(line) for line in file], args.clock)
    elif args.folder and args.python:
        table(measure(args), args.clock)
    else:
        parser.error("FOLDER and --python, or --table")
    return 0


if __name__ == "__main__":
    sys.exit(main())
