"""close_narrow.py A B: weights, states in few bits and scales of two checkpoints agree,
but for roundings of few numbers to a neighbor; says how many tensors there are."""
import sys

from tensor_file import numbers as numbers_of, read as read_bytes


def read(path):
    tensors = read_bytes(path)
    kinds = ("F32", "BF16", "U8")
    return {k: (kind, numbers_of(kind, body)) for k, (kind, body) in tensors.items() if kind in kinds}


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
