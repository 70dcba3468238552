"""empty_products.py FOLDER: x.npy, y.npy and expect.safetensors for the model of
the same name. With w = (1, 2, 3) and nothing else that has elements, y = x w:
14 and 32 for targets of 4 and 12."""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "gpu-check"))
import arrays

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
expected = [
    ("loss", [], [250]),
    ("grad/w", [3, 1], [90, 120, 150]),
    ("grad/w_m", [3, 1], [0, 0, 0]),
    ("grad/w_c", [1, 1, 3], [0, 0, 0]),
    ("grad/w_k", [0, 1], []),
    ("grad/w_n", [3, 0], []),
]
(folder / "expect.safetensors").write_bytes(
    arrays.safetensors([(name, "F32", shape, floats(*values)) for name, shape, values in expected]))
