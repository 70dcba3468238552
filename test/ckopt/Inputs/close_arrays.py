"""close_arrays.py A.npz B.npz TOLERANCE: the arrays of A that B has, too, agree within
the tolerance, as shares of the largest entry; says how many there are. Floats alone."""
import re
import struct
import sys
import zipfile


def read(path):
    arrays = {}
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            data = file.read(name)
            (length,) = struct.unpack("<H", data[8:10])
            kind = re.search(rb"'descr': '<(f[48])'", data[: 10 + length])
            if kind:
                code = "f" if kind.group(1) == b"f4" else "d"
                body = data[10 + length :]
                arrays[name] = struct.unpack("<%d%s" % (len(body) // int(kind.group(1)[1:]), code), body)
    return arrays


a, b, tolerance = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
for name in sorted(set(a) & set(b)):
    size = max([abs(x) for x in b[name]] + [1e-30])
    worst = max(abs(x - y) for x, y in zip(a[name], b[name])) / size
    if len(a[name]) != len(b[name]) or not worst <= tolerance:
        sys.exit("%s differs by %g" % (name, worst))
print("%d arrays agree" % len(set(a) & set(b)))
