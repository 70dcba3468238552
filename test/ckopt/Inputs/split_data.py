"""split_data.py DIGITS.npz FOLDER: the same samples as a folder of .npy files
(arrays/), as three files of 599 samples (part-*.npz: stored, deflated, stored),
the last of them with a wrong label (wrong-*.npz), and a text of numbers
(tokens.bin, uint16)."""

import pathlib
import struct
import sys
import zipfile


def header(descr, shape):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape})
    text += " " * (117 - len(text)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.encode()


source, folder = sys.argv[1], pathlib.Path(sys.argv[2])
(folder / "arrays").mkdir(parents=True)
arrays = {}
with zipfile.ZipFile(source) as archive:
    for name, descr, shape in [("images", "|u1", (1, 8, 8)), ("labels", "<i8", ())]:
        member = archive.read(name + ".npy")
        (folder / "arrays" / (name + ".npy")).write_bytes(member)
        (length,) = struct.unpack("<H", member[8:10])
        arrays[name] = (descr, shape, member[10 + length :])
for kind in ["part", "wrong"]:
    for part in range(3):
        method = zipfile.ZIP_DEFLATED if part == 1 else zipfile.ZIP_STORED
        with zipfile.ZipFile(folder / f"{kind}-{part}.npz", "w", method) as out:
            for name, (descr, shape, data) in arrays.items():
                size = len(data) // 1797
                piece = bytearray(data[part * 599 * size : (part + 1) * 599 * size])
                if kind == "wrong" and part == 2 and name == "labels":
                    piece[8 * 7 : 8 * 8] = struct.pack("<q", 99)
                out.writestr(name + ".npy", header(descr, (599,) + shape) + bytes(piece))
state, tokens = 12345, []
for _ in range(1001):
    state = (state * 1103515245 + 12345) % 2**31
    tokens.append((state >> 8) % 200)
(folder / "tokens.bin").write_bytes(struct.pack("<1001H", *tokens))
