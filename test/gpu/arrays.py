# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays without numpy: .npz to .npy inputs of a golden network, how far its
gradients are from references, and random samples to train on."""

import array
import ast
import functools
import math
import operator
import random
import struct
import zipfile

TYPES = {"<f8": "d", "<f4": "f", "<i8": "q", "<i4": "i"}


def npy_members(path):
    """(name, bytes of the .npy file) of each array of an .npz file."""
    with zipfile.ZipFile(path) as archive:
        for member in sorted(archive.namelist()):
            yield member[: -len(".npy")], archive.read(member)


def parse_npy(data):
    """The numbers of a .npy file, and their shape."""
    if data[:6] != b"\x93NUMPY":
        raise ValueError("not a .npy file")
    start = 10 if data[6] == 1 else 12
    size = struct.unpack("<H" if data[6] == 1 else "<I", data[8:start])[0]
    header = ast.literal_eval(data[start : start + size].decode("latin1"))
    if header["fortran_order"] or header["descr"] not in TYPES:
        raise ValueError("unsupported array: %r" % header)
    numbers = array.array(TYPES[header["descr"]])
    numbers.frombytes(data[start + size :])
    return numbers, tuple(header["shape"])


def unpack_golden(npz, folder):
    """Writes x.npy and y.npy, and in expect/ the loss and each gradient in a file
    by the name that `ckopt-run --outputs` gives it."""
    (folder / "expect").mkdir()
    for name, data in npy_members(npz):
        if name in ("x", "y"):
            (folder / (name + ".npy")).write_bytes(data)
        elif name == "loss" or name.startswith("grad/"):
            (folder / "expect" / (name.replace("/", "_") + ".npy")).write_bytes(data)


def norm(values):
    return math.sqrt(math.fsum(value * value for value in values))


def errors(made, expected):
    """(largest error of an array, error of all gradients together) of the files
    in folder `made` against those of `expected`: norm of the difference over
    norm. Where a gradient's norm is zero by construction (a bias before a batch
    norm) a tenth of the average one counts."""
    pairs = []
    for path in sorted(expected.glob("*.npy")):
        wanted, shape = parse_npy(path.read_bytes())
        found, same = parse_npy((made / path.name).read_bytes())
        if same != shape:
            raise ValueError("%s has shape %s, not %s" % (path.name, same, shape))
        difference = norm([a - b for a, b in zip(wanted, found)])
        pairs.append((path.name.startswith("grad"), norm(wanted), difference, len(wanted)))
    gradients = [pair for pair in pairs if pair[0]]
    squares = math.fsum(wanted**2 for _, wanted, _, _ in gradients)
    typical = math.sqrt(squares / (sum(count for _, _, _, count in gradients) or 1))
    largest = 0.0
    for is_gradient, wanted, difference, count in pairs:
        scale = max(wanted, 0.1 * typical * math.sqrt(count) if is_gradient else 0)
        error = difference / scale if scale else math.inf if difference else 0.0
        largest = max(largest, math.inf if math.isnan(error) else error)
    together = math.sqrt(math.fsum(difference**2 for _, _, difference, _ in gradients) / (squares or 1))
    return largest, math.inf if math.isnan(together) else together


def write_images(path, count, shape, classes):
    """An .npz of x [count, *shape], from -1.7 to 1.7, and labels y. Each image has
    the numbers of the one before it, moved by a place: a minute less of drawing."""
    drawn, size = random.Random(0), functools.reduce(operator.mul, shape)
    pixels = array.array("f", (drawn.uniform(-1.7, 1.7) for _ in range(size + count)))
    labels = array.array("q", (drawn.randrange(classes) for _ in range(count)))

    def header(descr, dims):
        text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, tuple(dims))
        text = text.ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()

    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("y.npy", header("<i8", [count]) + labels.tobytes())
        with archive.open(zipfile.ZipInfo("x.npy"), "w", force_zip64=True) as out:
            out.write(header("<f4", [count, *shape]))
            for first in range(count):
                out.write(pixels[first : first + size].tobytes())


def write_tokens(path, count, words):
    """`count` numbers below `words` of 16 bits, without a header."""
    drawn = random.Random(0)
    path.write_bytes(array.array("H", (drawn.randrange(words) for _ in range(count))).tobytes())
