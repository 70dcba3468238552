# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exposed.py OVERLAPPED.json BLOCKING.json: of two reports of one step, the first hides
communication under kernels, and its bound counts none."""
import json
import sys

overlapped, blocking = (json.load(open(path))["plan"] for path in sys.argv[1:])
assert 0 <= overlapped["exposed_seconds"] < overlapped["communication_seconds"], overlapped
assert overlapped["seconds"] < blocking["seconds"], (overlapped["seconds"], blocking["seconds"])
assert overlapped["lower_bound_seconds"] < blocking["lower_bound_seconds"]
assert overlapped["lower_bound_seconds"] <= overlapped["seconds"]
