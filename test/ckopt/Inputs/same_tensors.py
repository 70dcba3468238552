"""same_tensors.py A B REGEX: of two safetensors files, exactly the tensors whose
whole name matches have equal bytes; names the first one that is otherwise."""
import json
import re
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + length])
    head.pop("__metadata__", None)
    return {k: data[8 + length :][slice(*v["data_offsets"])] for k, v in head.items()}


a, b, regex = read(sys.argv[1]), read(sys.argv[2]), re.compile(sys.argv[3])
for name in sorted(set(a) | set(b)):
    same = a.get(name) == b.get(name)
    if same != bool(regex.fullmatch(name)):
        sys.exit("%s is %s" % (name, "the same" if same else "not the same"))
