"""close_weights.py A B TOLERANCE: the tensors of two safetensors files agree, each
within the tolerance as a share of its norm; says how many there are. Floats alone."""
import math
import sys

from tensor_file import numbers, read as read_bytes


def read(path):
    tensors = read_bytes(path)
    return {k: numbers(*v) for k, v in tensors.items() if v[0] in ("F32", "F64")}


a, b, tolerance = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
if set(a) != set(b) or not a:
    sys.exit("other tensors: %s" % sorted(set(a) ^ set(b)))
for name in sorted(a):
    apart = math.sqrt(sum((x - y) ** 2 for x, y in zip(a[name], b[name])))
    size = math.sqrt(sum(x * x for x in b[name])) or 1
    if len(a[name]) != len(b[name]) or not apart <= tolerance * size:
        sys.exit("%s differs by %g" % (name, apart / size))
print("%d tensors agree" % len(a))
