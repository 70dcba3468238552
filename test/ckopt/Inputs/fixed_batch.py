"""fixed_batch.py FILE: a network for batches of 12 alone, since a weight has a row for each sample."""

import sys

import onnx
from onnx import TensorProto, helper

F32 = TensorProto.FLOAT
weight = helper.make_tensor("w", F32, [12, 4], [0.1] * 48)
graph = helper.make_graph(
    [
        helper.make_node("Transpose", ["x"], ["t"], "turned", perm=[1, 0]),
        helper.make_node("MatMul", ["t", "w"], ["y"], "of_all"),
    ],
    "fixed",
    [helper.make_tensor_value_info("x", F32, [12, 64])],
    [helper.make_tensor_value_info("y", F32, [64, 4])],
    [weight],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, sys.argv[1])
