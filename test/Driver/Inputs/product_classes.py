"""product_classes.py F32.json BF16X3.json BF16X6.json MEDIUM.json: step reports of the same training
by four classes of products. Fails unless the report says which class each kernel ran in, and the
closer a class is to f32, the closer are its losses."""

import json
import sys

f32, three, six, medium = (json.load(open(path)) for path in sys.argv[1:])
assert "products" not in f32["plan"]


def classes(report):
    kernels = report["plan"]["products"]
    assert all(kernel["calls"] > 0 for kernel in kernels)
    return {kernel["class"] for kernel in kernels}


assert classes(three) == {"bf16x3", "f32"}, classes(three)  # convolutions are not split
assert classes(six) == {"bf16x6", "f32"}, classes(six)
assert "bf16" in classes(medium), classes(medium)


def distance(report, steps=1):
    losses = list(zip(report["training"]["losses"], f32["training"]["losses"]))
    return max(abs(a - b) for a, b in losses[:steps])


assert distance(six) < 1e-6, distance(six)
assert distance(three) < 1e-5, distance(three)
assert distance(three) < distance(medium) < 0.1, (distance(three), distance(medium))
for report in (three, six, medium):
    assert 0 < distance(report, 50) < 0.5, distance(report, 50)
