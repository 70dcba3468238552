"""Writes edges.onnx and edges.npz: a step over one graph. `x` [8,3] is of nodes, `ends` [5]
names some of them by their places; the loss compares those rows of x*w with `t`."""
import numpy
import onnx
from onnx import TensorProto, helper

F, I = TensorProto.FLOAT, TensorProto.INT64
graph = helper.make_graph(
    [helper.make_node("Mul", ["x", "w"], ["h"]),
     helper.make_node("Gather", ["h", "ends"], ["a"]),
     helper.make_node("Sub", ["a", "t"], ["d"]),
     helper.make_node("Mul", ["d", "d"], ["s"]),
     helper.make_node("ReduceMean", ["s"], ["loss"], keepdims=0)],
    "edges",
    [helper.make_tensor_value_info("x", F, [8, 3]), helper.make_tensor_value_info("ends", I, [5]),
     helper.make_tensor_value_info("t", F, [5, 3])],
    [helper.make_tensor_value_info("loss", F, [])],
    [helper.make_tensor("w", F, [3], [0.5, -1.0, 2.0])])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
          "edges.onnx")
r = numpy.random.default_rng(0)
numpy.savez("edges.npz", x=r.normal(size=(8, 3)).astype("f4"), ends=numpy.array([0, 3, 3, 6, 1]),
            t=r.normal(size=(5, 3)).astype("f4"))
