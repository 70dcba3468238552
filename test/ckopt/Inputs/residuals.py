"""residuals.py FOLDER: residuals.onnx, two layers of a residual stream `x` [3, 12] without biases, for
the data of the golden GPT: three products read each normalized stream, and one is added to it. And
own_product.onnx, for the data of the golden MLP: a stream is added to its own product. And
biased.onnx and biased_narrow.onnx, for the golden GPT: three layers of 13 columns with biases, one of
which a norm adds, too; the stream begins with f32, or with a product."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HIDDEN, CLASSES = 16, 24, 50
random = np.random.default_rng(1)
nodes, weights = [], []


def weight(name, *shape):
    values = random.standard_normal(shape) / shape[0] ** 0.5 if len(shape) > 1 else np.ones(shape)
    weights.append(numpy_helper.from_array(values.astype(np.float32), name + ".weight"))
    return name + ".weight"


def node(op, name, *operands, **attributes):
    nodes.append(helper.make_node(op, operands, [name], name, **attributes))
    return name


x = node("Gather", "embedded", weight("embed", CLASSES, WIDTH), "x")
for layer in ("first", "second"):
    norm = node("LayerNormalization", layer + "_norm", x, weight(layer + "_scale", WIDTH))
    a, b, c = (node("MatMul", f"{layer}_{name}", norm, weight(f"{layer}_{name}", WIDTH, HIDDEN)) for name in "abc")
    gated = node("Mul", layer + "_gated", node("Mul", layer + "_product", node("Sigmoid", layer + "_gate", a), b), c)
    down = node("MatMul", layer + "_down", gated, weight(layer + "_down", HIDDEN, WIDTH))
    x = node("Add", layer + "_sum", x, down)
norm = node("LayerNormalization", "norm", x, weight("scale", WIDTH))
node("MatMul", "logits", norm, weight("head", WIDTH, CLASSES))


def save(name, x, y):
    graph = helper.make_graph(nodes, name, [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8),
              f"{sys.argv[1]}/{name}.onnx")
    nodes.clear()
    weights.clear()


save("residuals", helper.make_tensor_value_info("x", TensorProto.INT64, [3, 12]),
     helper.make_tensor_value_info("logits", TensorProto.FLOAT, [3, 12, CLASSES]))

h = node("MatMul", "h", "x", weight("a", 10, 10))
s = node("Add", "s", node("MatMul", "p", h, weight("b", 10, 10)), h)
node("MatMul", "z", s, weight("c", 10, 10))
save("own_product", *(helper.make_tensor_value_info(name, TensorProto.FLOAT, [6, 10]) for name in "xz"))


def bias(name):
    values = np.linspace(-2, 2, WIDTH - 3, dtype=np.float32)[random.permutation(WIDTH - 3)]
    weights.append(numpy_helper.from_array(values, name + ".weight"))
    return name + ".weight"


for model in ("biased", "biased_narrow"):
    odd = WIDTH - 3
    x = node("Gather", "embedded", weight("embed", CLASSES, odd), "x")
    if model == "biased_narrow":
        x = node("MatMul", "begun", x, weight("begin", odd, odd))
    for layer in ("first", "second", "third"):
        norm = node("LayerNormalization", layer + "_norm", x, weight(layer + "_scale", odd),
                    "second_bias.weight" if layer == "third" else weight(layer + "_shift", odd))
        up = node("Sigmoid", layer + "_up", node("MatMul", layer + "_wide", norm, weight(layer + "_wide", odd, HIDDEN)))
        down = node("MatMul", layer + "_down", up, weight(layer + "_down", HIDDEN, odd))
        biased = node("Add", layer + "_biased", bias(layer + "_bias"), down)
        x = node("Add", layer + "_sum", x, biased)
    node("MatMul", "logits", x, weight("head", odd, CLASSES))
    save(model, helper.make_tensor_value_info("x", TensorProto.INT64, [3, 12]),
         helper.make_tensor_value_info("logits", TensorProto.FLOAT, [3, 12, CLASSES]))
