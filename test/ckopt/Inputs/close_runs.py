"""close_runs.py F32.json LOW.json TYPE SHARE: step reports of the same training in
two precisions. Fails unless the second one reaches the first one's loss and accuracy
within noise, in less memory, with this share of products (at least) computed from TYPE."""

import json
import sys

f32, low = (json.load(open(path)) for path in sys.argv[1:3])
products = sys.argv[3] + "_products"
a, b = f32["training"], low["training"]
assert abs(a["final_loss"] - b["final_loss"]) < 0.05 + 0.15 * a["final_loss"], (a, b)
assert abs(a["evaluation_loss"] - b["evaluation_loss"]) < 0.05 + 0.15 * a["evaluation_loss"], (a, b)
assert b["accuracy"] > a["accuracy"] - 0.02, (a["accuracy"], b["accuracy"])
assert a["losses"] != b["losses"], "both ran in one precision"
assert low["plan"]["planned_peak_bytes"] < f32["plan"]["planned_peak_bytes"]
assert low["plan"][products] >= float(sys.argv[4]), low["plan"][products]
assert products not in f32["plan"]
