# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exposed_plans.py CHOSEN.json BLOCKING.json CURVE.json PLANS.json: of two reports of one step
within one budget, the first takes less time than the plan that was chosen as if collectives
blocked; all that is told of time adds up."""
import json
import sys

chosen, blocking, curve = (json.load(open(path)) for path in sys.argv[1:4])


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def check(figures, prefix="_seconds", total="seconds", bound="lower_bound_seconds"):
    kernels, messages, exposed = (
        figures[name + prefix] for name in ("kernel", "communication", "exposed"))
    assert near(figures[total], kernels + exposed), figures
    assert 0 <= exposed <= messages * (1 + 1e-9), figures
    assert 0 < figures[bound] <= figures[total] * (1 + 1e-9), figures


for report in (chosen, blocking):
    check(report["plan"])
assert chosen["plan"]["budget_bytes"] == blocking["plan"]["budget_bytes"]
assert chosen["plan"]["seconds"] < 0.99 * blocking["plan"]["seconds"], (
    chosen["plan"]["seconds"], blocking["plan"]["seconds"])

# What is told before the pass `overlap` is what it tells.
for function in json.load(open(sys.argv[4]))["functions"]:
    check(function)
    if function["name"] == "step":
        for name in ("seconds", "kernel_seconds", "communication_seconds", "exposed_seconds",
                     "base_seconds", "lower_bound_seconds", "status"):
            assert function[name] == chosen["plan"][name], name

last = None
for point in curve["points"]:
    check(point, "_cost", "cost", "lower_bound")
    assert last is None or point["cost"] <= last, (point["cost"], last)
    last = point["cost"]
