"""product_classes.py F32.json MEDIUM.json: step reports of the same training by two classes of
products. Fails unless the report says which class each kernel ran in, and the losses are near."""

import json
import sys

f32, medium = (json.load(open(path)) for path in sys.argv[1:])
assert "products" not in f32["plan"]
kernels = medium["plan"]["products"]
assert all(kernel["calls"] > 0 for kernel in kernels)
assert "bf16" in {kernel["class"] for kernel in kernels}, kernels

distances = [abs(a - b) for a, b in zip(medium["training"]["losses"], f32["training"]["losses"])]
assert distances[0] < 0.1, distances[0]
assert 0 < max(distances[:50]) < 0.5, distances
