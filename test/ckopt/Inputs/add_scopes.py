"""Writes what PyTorch's exporter puts beside each node into a copy of a model:
the modules that hold it, and their classes.

usage: add_scopes.py IN.onnx OUT.onnx CLASS

The module of a node is the prefix of its weights' names up to the second dot
("f.0.1.bias": "f.0"); nodes without weights belong to that of the node before.
All modules are of class "tests.CLASS". Works on the wire format: the schema of
the distribution does not know the field.
"""

import sys


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(data):
    """(number, wire type, payload, whole field)"""
    at = 0
    while at < len(data):
        start = at
        tag, at = read_varint(data, at)
        payload = b""
        if tag & 7 == 0:
            _, at = read_varint(data, at)
        elif tag & 7 == 2:
            size, at = read_varint(data, at)
            payload = data[at : at + size]
            at += size
        else:
            at += {5: 4, 1: 8}[tag & 7]
        yield tag >> 3, tag & 7, payload, data[start:at]


def block(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def entry(key, items):
    text = "[" + ", ".join(repr(item) for item in items) + "]"
    return block(9, block(1, key.encode()) + block(2, text.encode()))


def main():
    source, target, name = sys.argv[1:]
    module = ""

    def node(data):
        nonlocal module
        for number, _, payload, _ in fields(data):
            read = payload.decode() if number == 1 else ""
            parts = [] if "/" in read else read.split(".")
            if len(parts) >= 3:
                module = ".".join(parts[:2])
            elif len(parts) == 2:
                module = parts[0]
        scopes = ["", module, module + ".op", "node"]
        classes = ["tests.Net", "tests." + name, "torch.nn.Op", "aten.op"]
        if "." not in module:
            scopes, classes = scopes[:1] + ["node"], classes[:1] + ["aten.op"]
        return (
            data
            + entry("pkg.torch.onnx.name_scopes", scopes)
            + entry("pkg.torch.onnx.class_hierarchy", classes)
        )

    def graph(data):
        return b"".join(
            block(1, node(payload)) if number == 1 else whole
            for number, _, payload, whole in fields(data)
        )

    with open(source, "rb") as file:
        model = file.read()
    with open(target, "wb") as file:
        for number, _, payload, whole in fields(model):
            file.write(block(7, graph(payload)) if number == 7 else whole)


main()
