"""close_runs.py F32.json BF16.json: step reports of the same training in two
precisions. Fails unless the second one reaches the first one's loss and accuracy
within noise, in less memory, with nearly all products computed from bf16."""

import json
import sys

f32, bf16 = (json.load(open(path)) for path in sys.argv[1:])
a, b = f32["training"], bf16["training"]
assert abs(a["final_loss"] - b["final_loss"]) < 0.05 + 0.15 * a["final_loss"], (a, b)
assert abs(a["evaluation_loss"] - b["evaluation_loss"]) < 0.05 + 0.15 * a["evaluation_loss"], (a, b)
assert b["accuracy"] > a["accuracy"] - 0.02, (a["accuracy"], b["accuracy"])
assert a["losses"] != b["losses"], "both ran in one precision"
assert bf16["plan"]["planned_peak_bytes"] < f32["plan"]["planned_peak_bytes"]
assert bf16["plan"]["bf16_products"] > 0.95, bf16["plan"]["bf16_products"]
assert "bf16_products" not in f32["plan"]
