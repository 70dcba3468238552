"""sample_places.py FOLDER: two networks for digits. mixed_samples.onnx takes the mean over the batch
from its scores; time_steps.onnx drops numbers where samples lie inside of time steps, and reads one
step of each sample by its number."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(1)
node = helper.make_node


def integers(name, *numbers):
    return numpy_helper.from_array(np.array(numbers, dtype=np.int64), name)


def weight(name, *shape):
    return numpy_helper.from_array((random.standard_normal(shape) / 4).astype(np.float32), name)


def write(name, nodes, weights):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(nodes, name, [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, "%s/%s.onnx" % (sys.argv[1], name))


write("mixed_samples", [
    node("Reshape", ["x", "rows"], ["h"], name="flatten"),
    node("MatMul", ["h", "w"], ["s"], name="scores"),
    node("ReduceMean", ["s"], ["m"], name="batch_mean", axes=[0], keepdims=1),
    node("Sub", ["s", "m"], ["y"], name="centered"),
], [integers("rows", -1, 64), weight("w", 64, 10)])

write("time_steps", [
    node("Reshape", ["x", "rows"], ["h"]),
    node("Transpose", ["h"], ["t"], perm=[1, 0, 2]),
    node("Reshape", ["t", "flat"], ["f"]),
    node("Dropout", ["f", "ratio", "yes"], ["d"]),
    node("MatMul", ["d", "w"], ["s"]),
    node("Reshape", ["s", "steps"], ["u"]),
    node("Transpose", ["u"], ["v"], perm=[1, 0, 2]),
    # v[arange(N), argmax(h[:, :, 3])]
    node("Gather", ["h", "three"], ["k"], axis=2),
    node("ArgMax", ["k"], ["best"], axis=1, keepdims=0),
    node("Shape", ["x"], ["n"], end=1),
    node("Squeeze", ["n"], ["count"]),
    node("Range", ["zero", "count", "one"], ["numbers"]),
    node("Unsqueeze", ["numbers", "last"], ["i"]),
    node("Unsqueeze", ["best", "last"], ["j"]),
    node("Concat", ["i", "j"], ["at"], axis=1),
    node("GatherND", ["v", "at"], ["y"]),
], [integers("rows", -1, 8, 8), integers("flat", -1, 8), integers("steps", 8, -1, 10), weight("w", 8, 10),
    integers("last", -1), numpy_helper.from_array(np.array(3), "three"), numpy_helper.from_array(np.array(0), "zero"),
    numpy_helper.from_array(np.array(1), "one"), numpy_helper.from_array(np.array(True), "yes"),
    numpy_helper.from_array(np.array(0.3, dtype=np.float32), "ratio")])
