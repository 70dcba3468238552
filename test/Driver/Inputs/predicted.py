# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""predicted.py MODEL BATCH PRECISION=TODAY[,READ]...: what ckopt plan predicts
for a step on an H100 is near these milliseconds, for today's kernels and for
those with square tiles, and devices come in the order of their rates. PRECISION
is that of products of f32, or stored-bf16."""

import json
import subprocess
import sys
import tempfile

model, batch = sys.argv[1:3]
SQUARES = [["--attention=off", "--cuda-contractions=tile=%d" % tile] for tile in (64, 128)]


def precision_flag(precision):
    return "--precision=bf16" if precision == "stored-bf16" else "--matmul-precision=" + precision


def predicted(precision, device, kernels=()):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run(["ckopt", "plan", model, "--loss=cross_entropy", "--optimizer=sgd", "--momentum=0.9", "--init=auto",
                        "--batch=" + batch, "--target=cuda", "--sm=90", precision_flag(precision), "--device-rates=" + device,
                        "--quiet", "--report=" + report.name, *kernels], check=True, stdout=subprocess.DEVNULL)
        return 1e3 * json.load(open(report.name))["plan"]["seconds"]


wrong = False


def check(what, found, wanted, share):
    global wrong
    print("%s %s: %.1f ms, expected %g within %g %%" % (model, what, found, wanted, 100 * share))
    wrong |= abs(found / wanted - 1) > share


for precision, wanted in (argument.split("=") for argument in sys.argv[3:]):
    today, *read = map(float, wanted.split(","))
    check(precision, predicted(precision, "h100"), today, 0.15)
    for wanted_then in read:
        squares = [predicted(precision, "h100", kernels) for kernels in SQUARES]
        check(precision + " squares", sum(squares) / len(squares), wanted_then, 0.35)
times = [predicted("tf32", device) for device in ("h200", "h100", "a100", "l4")]
print("h200, h100, a100, l4:", ", ".join("%.1f" % time for time in times))
sys.exit(wrong or times != sorted(times))
