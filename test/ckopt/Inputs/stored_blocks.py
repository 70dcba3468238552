"""stored_blocks.py DIR: integers from -1 to 1 for stored_blocks.mlir and stored_bias.mlir, so that all
sums are exact."""
import json
import struct
import sys


def numbers(count, period, kind):
    some = [(i * i * 7 + i // 3) % 3 - 1 for i in range(period)]
    return (struct.pack("<%d%s" % (period, kind), *some) * (count // period + 1))[: count * struct.calcsize(kind)]


def npy(name, rows, columns, period):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": (rows, columns)}).ljust(117) + "\n"
    with open("%s/%s.npy" % (sys.argv[1], name), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode())
        file.write(numbers(rows * columns, period, "f"))


npy("x", 4, 1280, 1009)
npy("y", 4, 8192, 2003)
npy("r", 4, 8192, 1999)
weights = [
    ("a", "F32", [1280], struct.pack("<1280f", *[1] * 1280)),
    ("w", "I8", [8192, 1280], numbers(8192 * 1280, 3001, "b")),
    ("b", "F32", [8192], numbers(8192, 4093, "f")),
]
for path, count in ("w", 2), ("wb", 3):
    tensors, body = {}, b""
    for name, dtype, shape, data in weights[:count]:
        tensors[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(tensors).encode()
    with open("%s/%s.safetensors" % (sys.argv[1], path), "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + body)
