"""Prints the most bytes that the buffers of a straight-line function take at once."""

import math
import re
import sys

SIZES = {"f32": 4, "i32": 4, "f64": 8, "i64": 8, "i8": 1, "i1": 1}

live = {}
peak = 0
for line in sys.stdin:
    made = re.match(r"\s*(%\S+) = memref\.alloc\(\).* : memref<([^>,]*)>", line)
    if made:
        *shape, element = made.group(2).split("x")
        live[made.group(1)] = math.prod(map(int, shape)) * SIZES[element]
        peak = max(peak, sum(live.values()))
    freed = re.match(r"\s*memref\.dealloc (%\w+)", line)
    if freed:
        del live[freed.group(1)]
print("peak", peak)
