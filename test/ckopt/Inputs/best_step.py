"""best_step.py OUTPUT LOG.csv REPORT.json: prints the step after which a run was
best, which must be that of the highest validation_accuracy in its log, the first
of equal ones, and that of its report. It must not be the last one either, or
nothing would be shown."""

import csv
import json
import math
import re
import sys

output, log, report = sys.argv[1:]
(said,) = re.findall(r"after step (\d+), in", open(output).read())
with open(log, newline="") as file:
    rows = [row for row in csv.DictReader(file) if row["validation_loss"]]
best = max(rows, key=lambda row: float(row["validation_accuracy"]))
assert best["step"] == said, (best, said)
assert best is not rows[-1], "the last one is the best"
assert json.load(open(report))["training"]["best"]["step"] == int(said)
for row in rows:
    loss, perplexity = float(row["validation_loss"]), float(row["validation_perplexity"])
    assert math.isclose(perplexity, math.exp(loss), rel_tol=1e-12), row
    assert float(row["validation_top3"]) >= float(row["validation_accuracy"]), row
print(said)
