#!/usr/bin/env python3
"""Writes the reduced ResNet-50 and GPT-2 small beside this file.

Both have the structure and operators of the networks as PyTorch exports them in
training form (opset 17), weights as inputs and no values, but fewer equal
blocks and small extents:

  resnet50_odd, gpt2_odd     nothing is a multiple of a vector, a tile, a slice
                             of k or a block's threads
  resnet50_even, gpt2_even   everything is, and the head of GPT-2 has enough
                             tiles of 128 to fill a GPU
  gpt2_dropout               gpt2_odd with the dropout of the paper

Masks and images are as large as makes the fusion find the kernels of the full
networks: a causal mask above the limit of constant folding, heads and pixels of
the last stage more than it computes again rather than keep (8).

Needs the Python package `onnx`; the files are deterministic.
"""

import os

import numpy
from onnx import TensorProto, checker, helper, numpy_helper, save


class Graph:
    """Nodes and inputs of a graph that is being written."""

    def __init__(self, name):
        self.name, self.nodes, self.inputs, self.count = name, [], [], 0

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def node(self, op, inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"{op}_{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(
            helper.make_node(op, inputs, names, name=f"{op}_{self.count}", **attributes)
        )
        return names[0] if outputs == 1 else names

    def constant(self, value):
        value = numpy_helper.from_array(numpy.asarray(value))
        return self.node("Constant", [], value=value)

    def save(self, output, shape):
        self.nodes.append(helper.make_node("Identity", [output], ["logits"]))
        result = helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [result])
        opset = [helper.make_operatorsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8)
        checker.check_model(model, full_check=True)
        save(model, os.path.join(os.path.dirname(__file__), self.name + ".onnx"))


def convolution(g, name, x, channels, size, kernel, stride):
    weight = g.input(name + ".weight", [size, channels, kernel, kernel])
    return g.node(
        "Conv",
        [x, weight],
        dilations=[1, 1],
        group=1,
        kernel_shape=[kernel] * 2,
        pads=[kernel // 2] * 4,
        strides=[stride] * 2,
    )


def batch_norm(g, name, x, channels):
    parts = ["weight", "bias", "running_mean", "running_var"]
    inputs = [g.input(f"{name}.{part}", [channels]) for part in parts]
    return g.node(
        "BatchNormalization",
        [x] + inputs,
        outputs=3,
        epsilon=1e-5,
        momentum=0.9,
        training_mode=1,
    )[0]


def bottleneck(g, name, x, channels, width, stride):
    out = 4 * width
    steps = [(channels, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
    y = x
    for i, (before, after, kernel, by) in enumerate(steps, 1):
        y = convolution(g, f"{name}.conv{i}", y, before, after, kernel, by)
        y = batch_norm(g, f"{name}.bn{i}", y, after)
        if i < 3:
            y = g.node("Relu", [y])
    if channels != out or stride != 1:
        x = convolution(g, name + ".downsample.0", x, channels, out, 1, stride)
        x = batch_norm(g, name + ".downsample.1", x, out)
    return g.node("Relu", [g.node("Add", [y, x])])


def resnet(name, batch, image, stem, widths, classes):
    """Each stage: a block that projects (strided but in the first stage), and
    one that does not."""
    g = Graph(name)
    x = g.input("x", [batch, 3, *image])
    x = convolution(g, "conv1", x, 3, stem, 7, 2)
    x = g.node("Relu", [batch_norm(g, "bn1", x, stem)])
    x = g.node("MaxPool", [x], kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    channels = stem
    for stage, width in enumerate(widths, 1):
        for block in range(2):
            stride = 2 if stage > 1 and block == 0 else 1
            place = f"layer{stage}.{block}"
            x = bottleneck(g, place, x, channels, width, stride)
            channels = 4 * width
    x = g.node("Flatten", [g.node("GlobalAveragePool", [x])], axis=1)
    weight = g.input("fc.weight", [classes, channels])
    bias = g.input("fc.bias", [classes])
    x = g.node("Gemm", [x, weight, bias], alpha=1.0, beta=1.0, transB=1)
    g.save(x, [batch, classes])


def linear(g, name, x, size, out):
    weight = g.input(name + ".weight", [out, size])
    bias = g.input(name + ".bias", [out])
    weight = g.node("Transpose", [weight], perm=[1, 0])
    return g.node("Add", [bias, g.node("MatMul", [x, weight])])


def layer_norm(g, name, x, size):
    weight = g.input(name + ".weight", [size])
    bias = g.input(name + ".bias", [size])
    return g.node("LayerNormalization", [x, weight, bias], axis=-1, epsilon=1e-5)


def dropout(g, x, ratio):
    if not ratio:
        return x
    inputs = [x, g.constant(numpy.float32(ratio)), g.constant(True)]
    return g.node("Dropout", inputs, outputs=2)[0]


def attention(g, name, x, shape, heads, ratio):
    batch, length, size = shape
    x = linear(g, name + ".qkv", x, size, 3 * size)
    x = g.node("Split", [x, g.constant([size] * 3)], outputs=3, axis=2)
    split = g.constant([batch, length, heads, size // heads])
    q, k, v = [g.node("Reshape", [part, split]) for part in x]
    q = g.node("Transpose", [q], perm=[0, 2, 1, 3])
    v = g.node("Transpose", [v], perm=[0, 2, 1, 3])
    k = g.node("Transpose", [k], perm=[0, 2, 3, 1])
    scale = g.constant(numpy.float32((size // heads) ** 0.5))
    x = g.node("Div", [g.node("MatMul", [q, k]), scale])
    ones = g.constant(numpy.ones([length, length], numpy.float32))
    lower = g.node("Trilu", [ones, g.constant(numpy.int64(0))], upper=0)
    later = g.node("Equal", [lower, g.constant(numpy.float32(0))])
    later = g.node("Cast", [later], to=TensorProto.BOOL)
    x = g.node("Where", [later, g.constant(numpy.float32(-numpy.inf)), x])
    x = dropout(g, g.node("Softmax", [x], axis=-1), ratio)
    x = g.node("Transpose", [g.node("MatMul", [x, v])], perm=[0, 2, 1, 3])
    x = g.node("Reshape", [x, g.constant([batch, length, size])])
    return dropout(g, linear(g, name + ".o", x, size, size), ratio)


def gelu(g, x):
    y = g.node("Erf", [g.node("Div", [x, g.constant(numpy.float32(2**0.5))])])
    y = g.node("Add", [y, g.constant(numpy.float32(1))])
    return g.node("Mul", [g.node("Mul", [x, y]), g.constant(numpy.float32(0.5))])


def gpt2(name, batch, length, size, heads, words, ratio=0.0):
    g = Graph(name)
    tokens = g.input("x", [batch, length], TensorProto.INT64)
    table = g.input("t.weight", [words, size])
    places = g.input("p.weight", [length, size])
    x = g.node("Gather", [table, tokens])
    x = g.node("Add", [x, g.node("Gather", [places, g.constant(range(length))])])
    x = dropout(g, x, ratio)
    for block in range(2):
        b = f"b.{block}"
        y = layer_norm(g, b + ".n1", x, size)
        y = attention(g, b + ".a", y, [batch, length, size], heads, ratio)
        x = g.node("Add", [x, y])
        y = layer_norm(g, b + ".n2", x, size)
        y = gelu(g, linear(g, b + ".m.0", y, size, 4 * size))
        y = dropout(g, linear(g, b + ".m.2", y, 4 * size, size), ratio)
        x = g.node("Add", [x, y])
    x = layer_norm(g, "n", x, size)
    x = g.node("MatMul", [x, g.node("Transpose", [table], perm=[1, 0])])
    g.save(x, [batch, length, words])


if __name__ == "__main__":
    resnet("resnet50_odd", 3, [65, 67], 10, [5, 7, 9, 11], 13)
    resnet("resnet50_even", 4, [32, 32], 16, [8, 16, 32, 64], 64)
    gpt2("gpt2_odd", 3, 35, 21, 3, 211)
    gpt2("gpt2_even", 4, 64, 16, 4, 8448)
    gpt2("gpt2_dropout", 3, 35, 21, 3, 211, 0.1)
