"""The tensors of a safetensors file, for scripts beside this one."""
import json
import struct


def read(path):
    """Returns type and bytes of each tensor by name."""
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + length])
    head.pop("__metadata__", None)
    return {k: (v["dtype"], data[8 + length :][slice(*v["data_offsets"])]) for k, v in head.items()}


def numbers(kind, body):
    """Returns the numbers of F32, F64, BF16 or U8; None of other types."""
    if kind == "BF16":
        body = b"".join(b"\0\0" + body[i : i + 2] for i in range(0, len(body), 2))
    form = {"F32": "f", "F64": "d", "BF16": "f", "U8": "B"}.get(kind)
    return form and struct.unpack("<%d%s" % (len(body) // struct.calcsize(form), form), body)
