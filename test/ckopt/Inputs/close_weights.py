"""close_weights.py A B TOLERANCE: the tensors of two safetensors files agree, each
within the tolerance as a share of its norm; says how many there are. Floats alone."""
import json
import math
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + length])
    head.pop("__metadata__", None)
    tensors = {}
    for name, about in head.items():
        body = data[8 + length :][slice(*about["data_offsets"])]
        kind = {"F32": "f", "F64": "d"}.get(about["dtype"])
        if kind:
            tensors[name] = struct.unpack("<%d%s" % (len(body) // struct.calcsize(kind), kind), body)
    return tensors


a, b, tolerance = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
if set(a) != set(b) or not a:
    sys.exit("other tensors: %s" % sorted(set(a) ^ set(b)))
for name in sorted(a):
    apart = math.sqrt(sum((x - y) ** 2 for x, y in zip(a[name], b[name])))
    size = math.sqrt(sum(x * x for x in b[name])) or 1
    if len(a[name]) != len(b[name]) or not apart <= tolerance * size:
        sys.exit("%s differs by %g" % (name, apart / size))
print("%d tensors agree" % len(a))
