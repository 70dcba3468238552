# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes batch_numbers.onnx (needs onnx and numpy): a loss that the model computes, which uses
the size of its batch four times, as PyTorch exports x.shape[0], numel() and torch.arange; and
sample_numbers.onnx, in which the number of a sample is a feature."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)


def constant(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


weights = [constant("w", rng.standard_normal((64, 10)).astype(np.float32) / 8),
           constant("b", np.zeros(10, np.float32))]
numbers = [constant("zero", np.int64(0)), constant("one", np.int64(1)),
           constant("two", np.float32(2)), constant("flat", np.array([-1, 64], np.int64)),
           constant("columns", np.int64(10)), constant("rows", np.array([-1], np.int64))]
node = helper.make_node
nodes = [
    node("Reshape", ["x", "flat"], ["h"]),
    # The number of samples, and its square root, which scales the network.
    node("Shape", ["x"], ["shape"]),
    node("Gather", ["shape", "zero"], ["samples"], axis=0),
    node("Cast", ["samples"], ["count"], to=TensorProto.FLOAT),
    node("Sqrt", ["count"], ["root"]),
    node("MatMul", ["h", "w"], ["product"]),
    node("Add", ["product", "b"], ["sum"]),
    node("Div", ["sum", "root"], ["scaled"]),
    node("LogSoftmax", ["scaled"], ["logs"], axis=1),
    # Each sample's own class, at places in the batch: the part's numbers.
    node("Range", ["zero", "samples", "one"], ["places"]),
    node("Mul", ["places", "columns"], ["starts"]),
    node("Add", ["starts", "labels"], ["own"]),
    node("Reshape", ["logs", "rows"], ["all"]),
    node("Gather", ["all", "own"], ["picked"], axis=0),
    node("ReduceSum", ["picked"], ["total"], keepdims=0),
    node("Neg", ["total"], ["negative"]),
    # A mean by hand, and a penalty through the number of elements.
    node("Div", ["negative", "count"], ["mean"]),
    node("Size", ["scaled"], ["size"]),
    node("Cast", ["size"], ["elements"], to=TensorProto.FLOAT),
    node("Mul", ["w", "w"], ["squares"]),
    node("ReduceSum", ["squares"], ["norm"], keepdims=0),
    node("Div", ["norm", "elements"], ["penalty"]),
    node("Add", ["mean", "penalty"], ["loss"]),
]


def save(name, nodes, inputs, output, constants):
    graph = helper.make_graph(nodes, name, inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, name + ".onnx")


info = helper.make_tensor_value_info
images = info("x", TensorProto.FLOAT, ["batch", 1, 8, 8])
save("batch_numbers", nodes, [images, info("labels", TensorProto.INT64, ["batch"])],
     info("loss", TensorProto.FLOAT, []), weights + numbers)

features = nodes[:3] + [
    node("Range", ["zero", "samples", "one"], ["places"]),
    node("Cast", ["places"], ["feature"], to=TensorProto.FLOAT, name="feature"),
    node("Reshape", ["feature", "column"], ["values"]),
    node("MatMul", ["h", "w"], ["product"]),
    node("Add", ["product", "values"], ["y"]),
]
save("sample_numbers", features, [images], info("y", TensorProto.FLOAT, ["batch", 10]),
     weights[:1] + numbers + [constant("column", np.array([-1, 1], np.int64))])
