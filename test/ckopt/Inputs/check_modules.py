"""check_modules.py REPORT DEPTH [--recomputed]: the sums of modules add up."""
import json
import sys

with open(sys.argv[1]) as file:
    report = json.load(file)
rows = report["modules"]
depth = int(sys.argv[2])
assert rows[0]["depth"] == 0 and rows[0]["module"] == "", rows[0]
assert max(row["depth"] for row in rows) == depth, rows
top = [row for row in rows if row["depth"] == 1]
assert len(top) > 1, top
# Every call, weight and byte belongs to one outermost module.
for key in ("calls", "weight_bytes", "result_bytes", "peak_bytes"):
    assert rows[0][key] == sum(row[key] for row in top) > 0, key
for key in ("seconds", "backward_seconds", "recomputed_seconds"):
    assert abs(rows[0][key] - sum(row[key] for row in top)) < 1e-9 + 1e-6 * rows[0][key], key
assert rows[0]["calls"] == report["plan"]["calls"]
assert rows[0]["weight_bytes"] == report["plan"]["parameter_bytes"]
assert 0 < rows[0]["backward_seconds"] < rows[0]["seconds"]
assert (rows[0]["recomputed_seconds"] > 0) == ("--recomputed" in sys.argv)
assert rows[0]["peak_bytes"] < report["plan"]["planned_peak_bytes"]
for before, row in zip(rows, rows[1:]):  # parents stand before children
    assert row["depth"] <= before["depth"] + 1, row
for at, row in enumerate(rows):  # the rows in a module add up to it
    inside = []
    for after in rows[at + 1:]:
        if after["depth"] <= row["depth"]:
            break
        if after["depth"] == row["depth"] + 1:
            inside.append(after)
    for key in ("calls", "weight_bytes", "result_bytes", "peak_bytes") if inside else ():
        assert row[key] == sum(one[key] for one in inside), (row, key)
if depth > 2:
    assert any(row["module"].endswith("/(itself)") and row["calls"] for row in rows), rows
