"""same_tensors.py A B REGEX: of two safetensors files, exactly the tensors whose
whole name matches have equal bytes; names the first one that is otherwise."""
import re
import sys

from tensor_file import read as read_bytes


def read(path):
    return {k: body for k, (_, body) in read_bytes(path).items()}


a, b, regex = read(sys.argv[1]), read(sys.argv[2]), re.compile(sys.argv[3])
for name in sorted(set(a) | set(b)):
    same = a.get(name) == b.get(name)
    if same != bool(regex.fullmatch(name)):
        sys.exit("%s is %s" % (name, "the same" if same else "not the same"))
