"""stream_samples.py FOLDER N: writes images.npy and labels.npy of a folder to
standard output as a stream of .npy arrays, N samples a record."""

import pathlib
import re
import struct
import sys

folder, size = pathlib.Path(sys.argv[1]), int(sys.argv[2])
arrays = []
for name in ["images", "labels"]:
    data = (folder / (name + ".npy")).read_bytes()
    (length,) = struct.unpack("<H", data[8:10])
    arrays.append((data[10 : 10 + length].decode(), data[10 + length :]))
for first in range(0, 1797, size):
    count = min(size, 1797 - first)
    for header, data in arrays:
        each = len(data) // 1797
        text = re.sub(r"\(1797,", "(%d," % count, header).rstrip()
        text += " " * (117 - len(text)) + "\n"
        sys.stdout.buffer.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.encode())
        sys.stdout.buffer.write(data[first * each : (first + count) * each])
