"""make_npy.py OUT.npy f4|i8 MODULUS EXTENT...: an array of numbers that look
random and are the same everywhere, without numpy. f4: in [-1, 1]; i8: below
MODULUS. For MODULUS may stand the numbers themselves: 4,1,2."""

import struct
import sys

out, kind, modulus, *extents = sys.argv[1:]
shape = tuple(int(extent) for extent in extents)
count = 1
for extent in shape:
    count *= extent
listed = modulus.split(",")
state, values = 12345, [int(number) for number in listed if len(listed) > 1]
for _ in range(count - len(values)):
    state = (state * 1103515245 + 12345) % 2**31
    values.append((state >> 8) % 2001 / 1000 - 1 if kind == "f4" else (state >> 8) % int(modulus))
header = repr({"descr": "<" + kind, "fortran_order": False, "shape": shape})
header += " " * (117 - len(header)) + "\n"
with open(out, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode())
    file.write(struct.pack("<%d%s" % (count, "f" if kind == "f4" else "q"), *values))
