# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX files that `pack` makes itself, in training form: Llamas in two forms of
mask, and single layers of attention. Weights are inputs of the graph, which a
seed fills, so that a file of 1.2 G parameters has kilobytes. The format is
protocol buffers, of which this needs three kinds of fields and no package."""

import array
import math
import struct

FLOAT, INT64, BOOL = 1, 7, 9


def varint(number):
    """Seven bits a byte, the lowest first; negative numbers have 64 bits."""
    number, out = number & (1 << 64) - 1, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def message(*fields):
    """The bytes of (number, value) pairs; a list is a repeated field."""
    out = bytearray()
    for number, value in fields:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int):
                out += varint(number << 3) + varint(item)
            elif isinstance(item, float):
                out += varint(number << 3 | 5) + struct.pack("<f", item)
            else:
                item = item.encode() if isinstance(item, str) else item
                out += varint(number << 3 | 2) + varint(len(item)) + item
    return bytes(out)


def attribute(name, value):
    field, kind = {float: (2, 1), int: (3, 2), bytes: (5, 4), list: (8, 7)}[type(value)]
    return message((1, name), (field, value), (20, kind))


def value_info(name, kind, shape):
    dims = [message((1, size)) for size in shape]
    return message((1, name), (2, message((1, message((1, kind), (2, message((1, dims))))))))


class Graph:
    """A graph with one data input, x."""

    def __init__(self, kind, *shape):
        self.inputs, self.nodes = [value_info("x", kind, shape)], []

    def op(self, kind, *operands, **attributes):
        name = "%s_%d" % (kind, len(self.nodes))
        made = [attribute(*pair) for pair in sorted(attributes.items())]
        self.nodes.append(message((1, list(operands)), (2, name), (3, name), (4, kind), (5, made)))
        return name

    def weight(self, name, *shape):
        self.inputs.append(value_info(name, FLOAT, shape))
        return name

    def constant(self, values, *shape, kind=INT64):
        """A node: with initializers, inputs of the graph would be data, not weights."""
        raw = array.array("f" if kind == FLOAT else "q", values).tobytes()
        return self.op("Constant", value=message((1, list(shape)), (2, kind), (9, raw)))

    def model(self, result, *shape):
        self.nodes.append(message((1, result), (2, "y"), (3, "y"), (4, "Identity")))
        graph = message((1, self.nodes), (2, "graph"), (11, self.inputs), (12, value_info("y", FLOAT, shape)))
        return message((1, 10), (7, graph), (8, message((1, ""), (2, 23))))

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.constant(shape, len(shape)))

    def linear(self, x, name, inputs, outputs):
        return self.op("MatMul", x, self.weight(name + ".weight", inputs, outputs))


def attention(batch, tokens, heads, kv_heads, size, causal):
    """Queries, keys and values of x, and one attention, so that a step has its
    forward pass and the gradients of all three."""
    width = heads * size
    graph = Graph(FLOAT, batch, tokens, width)
    operands = [graph.linear("x", name, width, count * size) for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads))]
    y = graph.op("Attention", *operands, q_num_heads=heads, kv_num_heads=kv_heads, is_causal=int(causal))
    return graph.model(y, batch, tokens, width)


def written_out(graph, q, k, v, triangle, batch, tokens, heads, kv_heads, size):
    """Grouped attention by matmuls, a select of the scores and a softmax."""

    def split(x, count):
        return graph.op("Transpose", graph.reshape(x, batch, tokens, count, size), perm=[0, 2, 1, 3])

    def repeated(x):
        shape = graph.constant([batch, kv_heads, heads // kv_heads, tokens, size], 5)
        x = graph.op("Expand", graph.reshape(split(x, kv_heads), batch, kv_heads, 1, tokens, size), shape)
        return graph.reshape(x, batch, heads, tokens, size)

    scores = graph.op("MatMul", split(q, heads), graph.op("Transpose", repeated(k), perm=[0, 1, 3, 2]))
    scores = graph.op("Mul", scores, graph.constant([size**-0.5], kind=FLOAT))
    scores = graph.op("Where", triangle, scores, graph.constant([-math.inf], kind=FLOAT))
    y = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), repeated(v))
    return graph.reshape(graph.op("Transpose", y, perm=[0, 2, 1, 3]), batch, tokens, heads * size)


def llama(batch, tokens, mask, layers, width, heads, kv_heads, hidden, words):
    """`mask` is "causal", the operator Attention with is_causal, or "trilu", a
    triangle by which scores are selected, as exporters write attention out."""
    graph, size = Graph(INT64, batch, tokens), width // heads
    angles = [position * 500000.0 ** (-2 * pair / size) for position in range(tokens) for pair in range(size // 2)]
    tables = [graph.constant(map(function, angles), 1, tokens, size // 2, kind=FLOAT) for function in (math.cos, math.sin)]
    if mask == "trilu":
        ones = graph.op("Expand", graph.constant([1], 1, 1), graph.constant([tokens, tokens], 2))
        triangle = graph.op("Cast", graph.op("Trilu", ones, upper=0), to=BOOL)

    def norm(x, name):
        return graph.op("RMSNormalization", x, graph.weight(name + ".weight", width), epsilon=1e-5)

    def turned(x, count):
        return graph.op("RotaryEmbedding", x, *tables, num_heads=count)

    embedding = graph.weight("embedding.weight", words, width)
    x = graph.op("Gather", embedding, "x")
    for layer in ["layers.%d." % index for index in range(layers)]:
        y = norm(x, layer + "n1")
        q = turned(graph.linear(y, layer + "q", width, width), heads)
        k = turned(graph.linear(y, layer + "k", width, kv_heads * size), kv_heads)
        v = graph.linear(y, layer + "v", width, kv_heads * size)
        if mask == "trilu":
            y = written_out(graph, q, k, v, triangle, batch, tokens, heads, kv_heads, size)
        else:
            y = graph.op("Attention", q, k, v, q_num_heads=heads, kv_num_heads=kv_heads, is_causal=1)
        x = graph.op("Add", x, graph.linear(y, layer + "o", width, width))
        y = norm(x, layer + "n2")
        gate = graph.linear(y, layer + "gate", width, hidden)
        gate = graph.op("Mul", gate, graph.op("Sigmoid", gate))
        y = graph.op("Mul", gate, graph.linear(y, layer + "up", width, hidden))
        x = graph.op("Add", x, graph.linear(y, layer + "down", hidden, width))
    logits = graph.op("MatMul", norm(x, "n"), graph.op("Transpose", embedding, perm=[1, 0]))
    return graph.model(logits, batch, tokens, words)
