"""other_models.py MODEL SAME GRAPH WEIGHTS FILE OTHER: copies sharded_mlp.onnx as it is, with another
op in a node, and with another bit in a weight; and a file of weights with another bit."""
import json
import sys

model, same, graph, weights, given, other = sys.argv[1:]


def read(path):
    with open(path, "rb") as file:
        return bytearray(file.read())


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


data = read(model)
write(same, data)
assert b'"\x04Tanh' in data  # the type of a node's op
write(graph, data.replace(b'"\x04Tanh', b'"\x04Relu', 1))
data[len(data) // 2] ^= 1  # in the middle of the weights
write(weights, data)
data = read(given)
data[-4] ^= 1  # the last number's least bit
end = 8 + int.from_bytes(data[:8], "little")
header = json.loads(data[8:end])
header.pop("__metadata__", None)  # checksums, which would tell
text = json.dumps(header).encode()
write(other, len(text).to_bytes(8, "little") + text + data[end:])
