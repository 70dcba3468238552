"""Fails unless all reports of `ckopt train` list the same losses, and those
after the first one computed values again.

usage: same_losses.py REFERENCE.json OTHER.json ...
"""

import json
import sys

reports = [json.load(open(path)) for path in sys.argv[1:]]
expected = reports[0]["training"]["losses"]
assert len(expected) >= 2 and expected[0] != expected[-1], expected
for path, report in zip(sys.argv[2:], reports[1:]):
    losses = report["training"]["losses"]
    assert losses == expected, f"{path}: {losses} instead of {expected}"
    assert report["plan"]["recomputed_steps"] > 0, f"{path}: nothing runs again"
