"""masked_attention.py FORM TOKENS FILE [--data=NPZ]: one attention, masked as exporters write it at that length.

FORM: where (Transformers: ranges, compare, and, where, add), window (the same with a bound from
below), packed (the same, with each sample's padding), triangle (a table of bool), bias (a table of
0 and -inf), low (a table of 0 and the least f32), trilu (Trilu of ones), is_causal (the
operator Attention)."""

import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

form, tokens, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
width = 8
nodes, constants, inputs = [], [], [h.make_tensor_value_info("x", T.FLOAT, [1, 2, tokens, width])]


def add(op, operands, result, **options):
    nodes.append(h.make_node(op, operands, [result], **options))


def constant(name, value, kind):
    constants.append(nh.from_array(np.asarray(value, dtype=kind), name))


for x in "qkv":
    constant("w" + x, np.linspace(0.5, 1.5, width), "f")
    add("Mul", ["x", "w" + x], x)
constant("zero", 0, "f")
constant("low", -np.inf, "f")
scores = "scores"
if form == "is_causal":
    add("Attention", ["q", "k", "v"], "o", is_causal=1)
else:
    add("Transpose", ["k"], "kt", perm=[0, 1, 3, 2])
    add("MatMul", ["q", "kt"], "scores")
    lower = np.tril(np.ones((tokens, tokens), dtype=bool))
    if form in ("where", "window", "packed"):
        constant("row", np.arange(tokens).reshape(1, 1, -1, 1), "i8")
        constant("column", np.arange(tokens).reshape(1, 1, 1, -1), "i8")
        constant("one", np.ones((1, 1, 1, 1)), bool)
        add("LessOrEqual", ["column", "row"], "le")
        add("And", ["one", "le"], "open0")
        last = "open0"
        if form == "window":
            constant("from", np.arange(tokens).reshape(1, 1, -1, 1) - tokens // 4, "i8")
            add("Greater", ["column", "from"], "gt")
            add("And", ["open0", "gt"], "open1")
            last = "open1"
        elif form == "packed":
            inputs.append(h.make_tensor_value_info("keep", T.BOOL, [1, 1, 1, tokens]))
            add("And", ["open0", "keep"], "open1")
            last = "open1"
        add("Where", [last, "zero", "low"], "mask")
        add("Add", ["scores", "mask"], "masked")
    elif form == "triangle":
        constant("lower", lower, bool)
        add("Where", ["lower", "scores", "low"], "masked")
    elif form == "bias":
        constant("upper", np.where(lower, 0, -np.inf).reshape(1, 1, tokens, tokens), "f")
        add("Add", ["scores", "upper"], "masked")
    elif form == "low":
        constant("upper", np.where(lower, 0, -3.4028234663852886e38), "f")
        add("Add", ["scores", "upper"], "masked")
    elif form == "trilu":
        constant("ones", np.ones(()), "f")
        constant("shape", [tokens, tokens], "i8")
        add("Expand", ["ones", "shape"], "all")
        add("Trilu", ["all"], "lower", upper=0)
        add("Equal", ["lower", "zero"], "closed")
        add("Where", ["closed", "low", "scores"], "masked")
    add("Softmax", ["masked"], "p", axis=-1)
    add("MatMul", ["p", "v"], "o")
add("ReduceSum", ["o"], "loss", keepdims=0)
graph = h.make_graph(nodes, "attention", inputs, [h.make_tensor_value_info("loss", T.FLOAT, [])], constants)
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 23)], ir_version=10), path)
if len(sys.argv) > 4:
    data = {"x": np.random.default_rng(1).standard_normal((1, 2, tokens, width)).astype("f")}
    np.savez(sys.argv[4].removeprefix("--data="), **data)
