"""sharded_mlp.py FILE: a network of odd sizes for digits: a first weight [64, 130], others of 130
rows, a head of 10 that four ranks share flat, biases, and one factor for all activations. Makes
sharded_mlp.onnx."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(1)
nodes, weights = [helper.make_node("Reshape", ["x", "shape"], ["h0"])], []


def weight(name, *shape):
    value = random.standard_normal(shape) / np.sqrt(shape[0] if shape else 1)
    weights.append(numpy_helper.from_array(value.astype(np.float32), name))
    return name


weights.append(numpy_helper.from_array(np.array([-1, 64], dtype=np.int64), "shape"))
sizes = [64, 130, 130, 130]
for i in range(3):
    nodes += [
        helper.make_node("MatMul", ["h%d" % i, weight("w%d" % i, sizes[i], sizes[i + 1])], ["m%d" % i]),
        helper.make_node("Add", ["m%d" % i, weight("b%d" % i, 130)], ["a%d" % i]),
        helper.make_node("Tanh", ["a%d" % i], ["t%d" % i]),
        helper.make_node("Mul", ["t%d" % i, "scale"], ["h%d" % (i + 1)]),
    ]
weights.append(numpy_helper.from_array(np.array(1.5, dtype=np.float32), "scale"))
nodes.append(helper.make_node("Gemm", ["h3", weight("head", 10, 130)], ["y"], transB=1))
graph = helper.make_graph(
    nodes,
    "mlp",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 8, 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
    weights,
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
