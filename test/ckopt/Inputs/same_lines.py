"""same_lines.py [TOLERANCE] A B: fails unless both files hold the same "loss"
lines; with a tolerance, the same steps and losses that differ by no more."""

import sys

*tolerance, a, b = sys.argv[1:]


def losses(path):
    lines = [line.split() for line in open(path) if " loss " in line]
    assert lines, path + " holds no losses"
    return lines


for x, y in zip(losses(a), losses(b), strict=True):
    same = x == y if not tolerance else abs(float(x[3]) - float(y[3])) <= float(tolerance[0])
    assert x[:2] == y[:2] and same, (x, y)
