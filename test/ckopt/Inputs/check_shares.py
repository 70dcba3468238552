"""check_shares.py ONE CHECKPOINT...: checkpoints of ranks have the tensors of one process's file
ONE, each element in one share, and shares of about the same size.
check_shares.py --damage FILE: changes the last byte. check_shares.py --inputs NPZ FOLDER: the
first 48 images and labels as x.npy and t.npy."""
import ast
import json
import os
import re
import struct
import sys
import zipfile


def header(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), len(data) - 8 - length


def npy(data):
    length = struct.unpack("<H", data[8:10])[0]
    return ast.literal_eval(data[10 : 10 + length].decode()), data[10 + length :]


if sys.argv[1] == "--damage":
    with open(sys.argv[2], "r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)[0]
        file.seek(-1, 2)
        file.write(bytes([last ^ 1]))
    sys.exit()
if sys.argv[1] == "--inputs":
    for array, name in (("images", "x"), ("labels", "t")):
        info, values = npy(zipfile.ZipFile(sys.argv[2]).read(array + ".npy"))
        shape = (48,) + tuple(info["shape"][1:])
        count = int(re.sub(r"\D", "", info["descr"]))
        for size in shape:
            count *= size
        text = str({"descr": info["descr"], "fortran_order": False, "shape": shape})
        text += " " * (63 - (len(text) + 10) % 64) + "\n"
        with open(f"{sys.argv[3]}/{name}.npy", "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode())
            file.write(values[:count])
    sys.exit()
one, total = header(sys.argv[1])
for path in sys.argv[2:]:
    index, _ = header(path)
    assert list(index) == ["__metadata__"], "the index has tensors"
    shares, sizes = int(index["__metadata__"]["ckopt.shards"]), []
    pieces = {}
    for number in range(shares):
        name = index["__metadata__"][f"ckopt.shard.{number}"].split()[0]
        share, size = header(f"{path}.shards/{name}")
        sizes.append(size)
        about = share.pop("__metadata__")
        for tensor, entry in share.items():
            begin, _, *shape = about["part." + tensor].split()
            assert list(map(int, shape)) == one[tensor]["shape"], tensor
            first, last = entry["data_offsets"]
            pieces.setdefault(tensor, []).append((int(begin) * 4, last - first))
    assert sum(sizes) == total, (sum(sizes), total)
    for tensor, entry in one.items():
        at = 0
        for begin, size in sorted(pieces.pop(tensor)) if tensor != "__metadata__" else []:
            assert begin == at, tensor
            at += size
    assert not pieces, pieces
    print("%s: %d shares, each byte once, the largest %.1f of a fourth" % (
        os.path.basename(path), shares, max(sizes) / total * 4))
