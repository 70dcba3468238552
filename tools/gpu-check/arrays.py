# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of a golden network, without numpy: .npz to .npy inputs and
.safetensors files of references."""

import ast
import json
import struct
import zipfile

TYPES = {"<f8": "F64", "<f4": "F32", "<i8": "I64", "<i4": "I32"}


def npy_members(path):
    """(name, bytes of the .npy file) of each array of an .npz file."""
    with zipfile.ZipFile(path) as archive:
        for member in sorted(archive.namelist()):
            yield member[: -len(".npy")], archive.read(member)


def parse_npy(data):
    """Type (of safetensors), shape and bytes of a .npy file."""
    if data[:6] != b"\x93NUMPY":
        raise ValueError("not a .npy file")
    size = struct.unpack("<H" if data[6] == 1 else "<I", data[8 : 10 if data[6] == 1 else 12])[0]
    start = 10 if data[6] == 1 else 12
    header = ast.literal_eval(data[start : start + size].decode("latin1"))
    if header["fortran_order"] or header["descr"] not in TYPES:
        raise ValueError("unsupported array: %r" % header)
    return TYPES[header["descr"]], list(header["shape"]), data[start + size :]


def safetensors(tensors):
    """The file of [(name, type, shape, bytes)]."""
    header, offset = {}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensor[3] for tensor in tensors)


def unpack_golden(npz, folder):
    """Writes x.npy, y.npy and expect.safetensors (loss and gradients)."""
    expected = []
    for name, data in npy_members(npz):
        if name in ("x", "y"):
            (folder / (name + ".npy")).write_bytes(data)
        elif name == "loss" or name.startswith("grad/"):
            expected.append((name, *parse_npy(data)))
    (folder / "expect.safetensors").write_bytes(safetensors(expected))
