"""close_narrow.py A B: weights, states in few bits and scales of two checkpoints agree,
but for roundings of few numbers to a neighbor; says how many tensors there are."""
import json
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
        kind = about["dtype"]
        if kind == "BF16":
            body = b"".join(b"\0\0" + body[i : i + 2] for i in range(0, len(body), 2))
        form = {"F32": "f", "BF16": "f", "U8": "B"}.get(kind)
        if form:
            numbers = struct.unpack("<%d%s" % (len(body) // struct.calcsize(form), form), body)
            tensors[name] = kind, numbers
    return tensors


a, b = read(sys.argv[1]), read(sys.argv[2])
kinds = {kind for kind, _ in a.values()}
if set(a) != set(b) or not {"F32", "BF16"} <= kinds:
    sys.exit("other tensors: %s, of %s" % (sorted(set(a) ^ set(b)), sorted(kinds)))
for name in sorted(a):
    kind, numbers = a[name]
    others = b[name][1]
    size = max(map(abs, others), default=0)
    step = {"F32": 1e-3 * size, "BF16": size / 64, "U8": 1}[kind]
    far = sum(abs(x - y) > step for x, y in zip(numbers, others))
    apart = sum(x != y for x, y in zip(numbers, others))
    if len(numbers) != len(others) or far or (kind != "F32" and 50 * apart > len(numbers)):
        sys.exit("%s: %d of %d differ, %d by much" % (name, apart, len(numbers), far))
print("%d tensors agree" % len(a))
