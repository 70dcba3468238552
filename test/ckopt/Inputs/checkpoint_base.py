"""checkpoint_base.py CHECKPOINT...: prints what each has of a run: numbers of tensors, their bytes,
and the frozen weights that it names. --earlier CHECKPOINT WEIGHTS OUT: writes the checkpoint as an
earlier ckopt did, with the frozen weights of the file WEIGHTS. --change FILE NAME OUT: another
number at the end of a tensor."""
import json
import os
import struct
import sys

from tensor_file import read

KINDS = {"f32": "F32", "f16": "F16", "bf16": "BF16", "u8": "U8", "i8": "I8"}


def header(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def write(path, head, body):
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)


def without_checksums(head):
    about = head.get("__metadata__", {})
    for key in [key for key in about if key.startswith("ckopt.checksum")]:
        del about[key]


if sys.argv[1] == "--earlier":
    head, body = header(sys.argv[2])
    without_checksums(head)
    about, values = head["__metadata__"], read(sys.argv[3])
    about["ckopt.format"] = "checkpoint-1"
    for key in [key for key in about if key.startswith("ckopt.frozen.")]:
        kind, _, *shape = about.pop(key).split()
        stored, added = values[key[len("ckopt.frozen.") :]]
        assert stored == KINDS[kind], (stored, kind)
        head[key[len("ckopt.frozen.") :]] = {
            "dtype": stored, "shape": list(map(int, shape)),
            "data_offsets": [len(body), len(body) + len(added)]}
        body += added
    write(sys.argv[4], head, body)
elif sys.argv[1] == "--change":
    head, body = header(sys.argv[2])
    without_checksums(head)
    end = head[sys.argv[3]]["data_offsets"][1]
    write(sys.argv[4], head, body[: end - 4] + struct.pack("<f", 0.25) + body[end:])
else:
    for path in sys.argv[1:]:
        head, body = header(path)
        about = head.pop("__metadata__")
        if os.path.isdir(path + ".shards"):
            shares = [header(f"{path}.shards/{name}") for name in os.listdir(path + ".shards")]
            names = {name for share, _ in shares for name in share} - {"__metadata__"}
            size = sum(len(data) for _, data in shares)
        else:
            names, size = set(head), len(body)
        frozen = ["%s %s" % (key[len("ckopt.frozen.") :], value) for key, value in sorted(about.items())
                  if key.startswith("ckopt.frozen.")]
        print("%d tensors, %d bytes, frozen: %s" % (len(names), size, ", ".join(frozen) or "none"))
