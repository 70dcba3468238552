"""empty_products.py FOLDER: x.npy, y.npy and references in expect/ for the model of
the same name. With w = (1, 2, 3) and nothing else that has elements, y = x w:
14 and 32 for targets of 4 and 12."""

import pathlib
import struct
import sys

folder = pathlib.Path(sys.argv[1])


def floats(*values):
    return struct.pack("<%df" % len(values), *values)


def npy(name, shape, *values):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + floats(*values)
    (folder / name).write_bytes(data)


npy("x.npy", (2, 3), 1, 2, 3, 4, 5, 6)
npy("y.npy", (2, 1), 4, 12)
# dL/dy = (10, 20); a parameter that meets nothing has zeros, or no elements.
(folder / "expect").mkdir()
npy("expect/loss.npy", (), 250)
npy("expect/grad_w.npy", (3, 1), 90, 120, 150)
npy("expect/grad_w_m.npy", (3, 1), 0, 0, 0)
npy("expect/grad_w_c.npy", (1, 1, 3), 0, 0, 0)
npy("expect/grad_w_k.npy", (0, 1))
npy("expect/grad_w_n.npy", (3, 0))
