# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one_head.onnx and one_head.npz: three layers of attention whose keys have one head.

Usage: one_head.py FOLDER

Two query heads read one key head (operator of opset 23), two read one that the
products broadcast, and one head alone has a causal mask.
"""

import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

TOKENS, WIDTH, DEPTH = 12, 8, 4
rng = np.random.default_rng(0)
nodes, values = [], []


def constant(name, value):
    values.append(numpy_helper.from_array(np.asarray(value), name))
    return name


def weight(name, *shape):
    return constant(name, (rng.standard_normal(shape) * 0.3).astype(np.float32))


def op(kind, inputs, name, **attributes):
    nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
    return name


def project(layer, x, columns):
    return [
        op("MatMul", [x, weight(f"{layer}.{part}", WIDTH, n)], f"{layer}/{part}")
        for part, n in zip("qkv", columns)
    ]


def heads(layer, part, x, number):
    shape = constant(f"{layer}.{part}.shape", np.array([0, TOKENS, number, DEPTH]))
    split = op("Reshape", [x, shape], f"{layer}/{part}/split")
    return op("Transpose", [split], f"{layer}/{part}/heads", perm=[0, 2, 1, 3])


q, k, v = project("operator", "x", (WIDTH, DEPTH, DEPTH))
x = op("Attention", [q, k, v], "operator/a", q_num_heads=2, kv_num_heads=1, is_causal=1)

parts = zip("qkv", project("broadcast", x, (WIDTH, DEPTH, DEPTH)), (2, 1, 1))
q, k, v = [heads("broadcast", part, value, number) for part, value, number in parts]
scores = op("MatMul", [q, op("Transpose", [k], "broadcast/kt", perm=[0, 1, 3, 2])], "broadcast/s")
scores = op("Mul", [scores, constant("factor", np.float32(0.5))], "broadcast/scaled")
a = op("MatMul", [op("Softmax", [scores], "broadcast/p"), v], "broadcast/a")
a = op("Transpose", [a], "broadcast/back", perm=[0, 2, 1, 3])
x = op("Reshape", [a, constant("whole", np.array([0, TOKENS, WIDTH]))], "broadcast/whole")

q, k, v = project("single", x, (WIDTH, WIDTH, WIDTH))
scores = op("MatMul", [q, op("Transpose", [k], "single/kt", perm=[0, 2, 1])], "single/s")
mask = np.triu(np.full((TOKENS, TOKENS), -np.inf, np.float32), 1)
scores = op("Add", [scores, constant("mask", mask)], "single/masked")
y = op("MatMul", [op("Softmax", [scores], "single/p"), v], "y")

shape = ["N", TOKENS, WIDTH]
ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
graph = helper.make_graph(nodes, "one_head", ends[:1], ends[1:], values)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
save(model, sys.argv[1] + "/one_head.onnx")
data = {n: rng.standard_normal((2, TOKENS, WIDTH)).astype(np.float32) for n in ("x", "target")}
np.savez(sys.argv[1] + "/one_head.npz", **data)
