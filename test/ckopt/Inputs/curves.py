# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""curves.py PROFILE.json: the times that ranks measured are one curve for each op."""
import json
import sys

with open(sys.argv[1]) as file:
    profile = json.load(file)
assert profile["format"] == "ckopt-profile/1"
curves = {(c["op"], c["ranks"]): c["points"] for c in profile["collectives"]}
assert sorted(op for op, _ in curves) == ["all_gather", "all_reduce", "broadcast", "reduce_scatter"]
for points in curves.values():
    sizes = [size for size, _ in points]
    assert sizes == sorted(set(sizes)) and sizes[0] == 1024, sizes
    assert all(seconds > 0 for _, seconds in points)
