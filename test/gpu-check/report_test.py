#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""report_test.py TOOLS CKOPT MODEL: what the report of tools/gpu-check says of
results that are made here, so that what it must say is known.

Kernels that take what a device's rates give are predicted without error at
these rates, and the rates come out of them at others; `ckopt plan
--device-rates` takes the file. Ratios to PyTorch's steps are those of the
numbers. Half a visit, a cut line and no visit at all have reports, too."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
tools, ckopt, model = sys.argv[1:]
sys.path.insert(0, tools)
import predictions
import report
import visit

START = {"bandwidth": 2e12, "matmul": 1e14, "conv": 9e13, "depthwise_conv": 2e12, "vector": 6e12, "overhead": 2.5e-6,
         "cache_bandwidth": 4e12, "cache_bytes": 2e7}
TRUE = dict(START, bandwidth=3e12, matmul=2e14, conv=1.5e14, overhead=4e-6)
# Work and calls of each kernel: five of each rate, and one in the cache.
KERNELS = {}
for n in range(1, 6):
    KERNELS["matmul%d" % n] = ({"bandwidth": 3e7 * n, "matmul": 2e11 * n}, n)
    KERNELS["conv%d" % n] = ({"bandwidth": 3e7 * n, "conv": 3e11 * n}, 1)
    KERNELS["copy%d" % n] = ({"bandwidth": 2e9 * n}, n)
    KERNELS["small%d" % n] = ({"bandwidth": 100.0 * n, "vector": 10.0}, 7)
KERNELS["cached"] = ({"bandwidth": 1.9e7}, 2)


def seconds(work, rates):
    cached = work["bandwidth"] < rates["cache_bytes"]
    arithmetic = sum(work.get(kind, 0) / rates[kind] for kind in predictions.KINDS)
    return max(arithmetic, work["bandwidth"] / rates["cache_bandwidth" if cached else "bandwidth"]) + rates["overhead"]


def check(right, *what):
    if not right:
        sys.exit("report_test.py: " + " ".join(map(str, what)))


def has(text, *lines):
    for line in lines:
        check(line in text.splitlines(), "no line\n%s\nin\n%s" % (line, text))


def archive(folder, rates):
    step = folder / "steps" / "toy" / "none" / "tf32"
    step.mkdir(parents=True, exist_ok=True)
    known = {name: {"flops": work.get("matmul", 1.0), "bytes": work["bandwidth"], "what": "", "work": work,
                    "predicted_seconds": seconds(work, rates)} for name, (work, _) in KERNELS.items()}
    (step / "work.json").write_text(json.dumps({"kernels": known, "rates": rates, "seconds": 1.0,
                                               "device": "h200", "precision": "tf32"}))
    return folder


def write(folder, results):
    folder.mkdir(exist_ok=True)
    lines = [json.dumps(dict({"status": "ok", "why": "", "id": name}, **values)) for name, values in results.items()]
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n")
    return visit.read_results(folder / "results.jsonl")


def main(folder):
    launches = [[name, name + "_s0", calls, seconds(work, TRUE), work["bandwidth"]] for name, (work, calls) in KERNELS.items()]
    timed = {"best": 0.012, "median": 0.013, "planned": 1 << 20, "launches": launches}
    results = {
        "inventory/device": {"device": "a device", "driver": "a driver"},
        "golden/mlp/f32": {"hash": "1", "same_bits": True, "largest": "1e-7"},
        "golden/gpt/f32": {"hash": "2", "same_bits": False, "status": "failed", "why": "other bits"},
        "large/toy/none/tf32": timed,
        "large/toy/auto/tf32": {"best": 0.009, "launches": []},
        "torch/toy/eager/tf32": {"best": 0.015},
        "torch/toy/eager+channels-last/tf32": {"best": 0.010},
        "torch/toy/compile/tf32": {"best": 0.008},
        "torch/toy/compile/bf16": {"status": "skipped", "why": "no compiler"},
    }
    state = folder / "state"
    known = write(state, results)

    # At the device's own rates nothing is predicted wrong; at others half is.
    words = report.write(state, archive(folder, TRUE))
    total = 1e3 * sum(calls * seconds(work, TRUE) for work, calls in KERNELS.values())
    has(words, "| toy | tf32 | %.2f | %.2f | +0 %% | 100 %% |" % (total, total), "1 of 2 networks have the same gradients to the bit.",
        "| toy | tf32 | 12.00 | 9.00 | 10.00 | 8.00 | 1.20 | 1.50 | 1.12 |", "- torch/toy/compile/bf16: no compiler",
        "- golden/gpt/f32: other bits", "## Failed (1)")
    check("| toy | bf16 |" not in words, "a row without numbers")
    brief = report.brief(known, ["large/toy/none/min"])
    has(brief, "| toy | tf32 | 12.00 | 9.00 | 10.00 | 8.00 | 1.20 | 1.50 | 1.12 |", "- large/toy/none/min", "- golden/gpt/f32: other bits")

    # From other rates those of the device come out, but for the cache's.
    done = subprocess.run([sys.executable, os.path.join(tools, "report.py"), str(state), str(archive(folder, START))],
                          stdout=subprocess.PIPE, universal_newlines=True, check=True)
    check("| +0 % | 100 % |" not in done.stdout, "predictions at wrong rates are right")
    has(done.stdout, "| tf32 | bandwidth | 2000 | 3000 | GB/s | 5 | %.2f |" % (1e3 * sum(
        calls * seconds(work, TRUE) for name, (work, calls) in KERNELS.items() if name.startswith("copy"))))
    written = json.loads((state / "rates-tf32.json").read_text())
    check(written["device"] == "h200" and written["precision"] == "tf32", written)
    rates = written["rates"]
    check(sorted(rates) == ["bandwidth", "conv", "matmul", "overhead"], rates)
    for name, value in rates.items():
        check(abs(value / TRUE[name] - 1) < 1e-3, name, value, TRUE[name])

    def planned(rates):
        text = subprocess.run([ckopt, "plan", model, "--loss=cross_entropy", "--batch=8", "--target=cuda", "--matmul-precision=tf32",
                               "--device-rates=%s" % rates], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
        return next(line for line in text.splitlines() if line.startswith("predicted step"))

    check(planned(state / "rates-tf32.json") != planned("h100"), "a plan does not read the rates")

    # A visit that ended early, a line that was cut, and nothing at all.
    half = folder / "half"
    write(half, {name: results[name] for name in list(results)[:4]})
    with open(half / "results.jsonl", "a") as file:
        file.write('{"id": "golden/lstm/f32", "stat\n{"id": "golden/vit/f32"}\n[1]\n')
    has(report.write(half, folder), "1 of 2 networks have the same gradients to the bit.", "| toy | tf32 | 12.00 |  |  |  |  |  |  |")
    has(report.write(half), "## Failed (1)")
    (folder / "none").mkdir()
    has(report.write(folder / "none"), "# ckopt on an unknown device", "Nothing was checked.")
    check(not list(folder.glob("*/*.tmp")), "temporary files are left")


with tempfile.TemporaryDirectory() as name:
    main(pathlib.Path(name))
