#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes heads_of_D.onnx beside this file: two attentions of two heads with D columns, one of whole
tiles, one that is causal, has a mask and tiles that are not full. Needs onnx and numpy."""

import os

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh


def tensor(values, kind, name):
    return nh.from_array(np.asarray(values, dtype=kind), name)


def make(columns, heads=2):
    width, nodes, inputs, losses = heads * columns, [], [], []
    constants = [tensor([0, 0, heads, columns], "i8", "shape"), tensor(columns**-0.5, "f", "scale"),
                 tensor(-np.inf, "f", "nothing"), tensor(np.tril(np.ones((70, 70))), bool, "triangle")]
    constants += [tensor(np.linspace(0.5, 1.5, width), "f", "w" + x) for x in "qkv"]
    add = lambda op, operands, result, **options: nodes.append(h.make_node(op, operands, [result], **options))
    for name, tokens in (("whole", 128), ("causal", 70)):
        inputs.append(h.make_tensor_value_info(name, T.FLOAT, [1, tokens, width]))
        for x in "qkv":
            add("Mul", [name, "w" + x], name + x + "0")
            add("Reshape", [name + x + "0", "shape"], name + x + "1")
            add("Transpose", [name + x + "1"], name + x, perm=[0, 2, 1, 3])
        add("Transpose", [name + "k"], name + "kt", perm=[0, 1, 3, 2])
        add("MatMul", [name + "q", name + "kt"], name + "0")
        add("Mul", [name + "0", "scale"], name + "1")
        scores = name + "1"
        if name == "causal":
            inputs.append(h.make_tensor_value_info("mask", T.BOOL, [1, 1, 1, tokens]))
            add("Where", ["triangle", scores, "nothing"], name + "2")
            add("Where", ["mask", name + "2", "nothing"], name + "3")
            scores = name + "3"
        add("Softmax", [scores], name + "p", axis=-1)
        add("MatMul", [name + "p", name + "v"], name + "o")
        add("ReduceSum", [name + "o"], name + "l", keepdims=0)
        losses.append(name + "l")
    add("Add", losses, "loss")
    graph = h.make_graph(nodes, "attention", inputs, [h.make_tensor_value_info("loss", T.FLOAT, [])], constants)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, os.path.join(os.path.dirname(os.path.abspath(__file__)), "heads_of_%d.onnx" % columns))


for columns in (32, 64, 80, 96, 128):
    make(columns)
