# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""predicted.py MODEL BATCH SHARE PRECISION=MS...: the time that ckopt plan
predicts for a step on an H100 is within this share of the milliseconds, and
other devices come in the order of their rates. PRECISION is that of products of
f32, or stored-bf16."""

import json
import subprocess
import sys
import tempfile

model, batch, share = sys.argv[1], sys.argv[2], float(sys.argv[3])


def precision_flag(precision):
    return "--precision=bf16" if precision == "stored-bf16" else "--matmul-precision=" + precision


def predicted(precision, device):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run(["ckopt", "plan", model, "--loss=cross_entropy", "--optimizer=sgd", "--momentum=0.9", "--init=auto",
                        "--batch=" + batch, "--target=cuda", "--sm=90", precision_flag(precision), "--device-rates=" + device,
                        "--quiet", "--report=" + report.name], check=True, stdout=subprocess.DEVNULL)
        return 1e3 * json.load(open(report.name))["plan"]["seconds"]


wrong = False
for precision, wanted in (argument.split("=") for argument in sys.argv[4:]):
    found = predicted(precision, "h100")
    print("%s %s: %.1f ms, expected %s" % (model, precision, found, wanted))
    wrong |= abs(found / float(wanted) - 1) > share
times = [predicted("tf32", device) for device in ("h200", "h100", "a100", "l4")]
print("h200, h100, a100, l4:", ", ".join("%.1f" % time for time in times))
sys.exit(wrong or times != sorted(times))
