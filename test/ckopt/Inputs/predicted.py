# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""predicted.py MODELS MEASURED NETWORK BATCH: what ckopt plan predicts for the
kernels of a step on an H200 is near what they take there. MEASURED has the
milliseconds by network, precision and kind of kernel; kinds that take less than a fiftieth of the step
count in the sum alone, which has a bound of its own. Kinds whose kernels have
changed since are named, and not compared. Devices come in the order of their
rates."""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

models, measured, network, batch = sys.argv[1:]


def kind_of(symbol, what):
    """What a kernel is, as its symbol says it (k_KIND_NUMBER)."""
    if what.startswith("attention"):
        return "attention"
    name = symbol.split("_")[1] if symbol.startswith("k_") else "other"
    return {"library": "products", "cast": "elementwise", "reduction": "reductions", "row": "rows", "joined": "updates"}.get(name, name)


KIND, STEP, LEAST = 0.30, 0.20, 0.02


def plan(precision, device, folder):
    """The folder with the IR of a plan."""
    flag = "--precision=bf16" if precision == "stored-bf16" else "--matmul-precision=" + precision
    command = ["ckopt", "plan", "%s/%s.onnx" % (models, network), "--loss=cross_entropy", "--optimizer=sgd", "--momentum=0.9",
               "--init=auto", "--batch=" + batch, "--target=cuda", "--sm=90", "--cuda-libs=none", flag,
               "--device-rates=" + device, "--quiet", "--report=%s/report.json" % folder, "--dump-phases=" + folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return pathlib.Path(folder)


def seconds(precision, device):
    with tempfile.TemporaryDirectory() as folder:
        return json.loads((plan(precision, device, folder) / "report.json").read_text())["plan"]["seconds"]


def by_kind(precision):
    """Predicted milliseconds of a step on an H200, by kind of kernel."""
    with tempfile.TemporaryDirectory() as folder:
        text = next(plan(precision, "h200", folder).glob("*plan-memory*")).read_text()
    attention = set(re.findall(r"func\.func private @(\w+)\([^\n]*\n\s*%[^\n]*ckopt\.attention", text))
    # Beside the step there is a function that evaluates.
    text = text[text.index("func.func @step("):].split("func.func @eval(")[0]
    sums = collections.Counter()
    for symbol, cost in re.findall(r"ckopt\.kernel_call @(\w+)\([^\n]*?\{cost = ([0-9.E+-]+) : f64", text):
        sums[kind_of(symbol, "attention" if symbol in attention else "")] += 1e3 * float(cost)
    return sums


wrong = False


def check(what, found, wanted, share):
    global wrong
    print("%s %s: %.2f ms, measured %.2f (%+.0f %%)" % (network, what, found, wanted, 100 * (found / wanted - 1)))
    wrong |= abs(found / wanted - 1) > share


figures = json.loads(pathlib.Path(measured).read_text())
changed = figures.get("changed since", [])
print("not compared, changed since they were measured: %s" % (", ".join(changed) or "none"))
for precision, all_kinds in figures[network].items():
    kinds = {kind: wanted for kind, wanted in all_kinds.items() if kind not in changed}
    found, step = by_kind(precision), sum(kinds.values())
    for kind, wanted in kinds.items():
        if wanted >= LEAST * step:
            check(precision + ", " + kind, found[kind], wanted, KIND)
    check(precision, sum(found[kind] for kind in kinds), step, STEP)
times = [seconds("tf32", device) for device in ("h200", "h100", "a100", "l4")]
print("h200, h100, a100, l4:", ", ".join("%.1f ms" % (1e3 * time) for time in times))
sys.exit(wrong or times != sorted(times))
