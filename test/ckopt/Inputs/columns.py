"""columns.py FOLDER: columns.onnx, whose columns of `x` [4, 3] pick rows of tables. Column 2 picks of
`small`, column 0 of `large`, both by x[:, [2, 0]]; of column 1 the first two samples pick of `large`,
the others of `small`."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def integers(name, numbers):
    return numpy_helper.from_array(np.array(numbers, dtype=np.int64), name)


def table(name, rows):
    return numpy_helper.from_array(np.linspace(-1, 1, rows * 2, dtype=np.float32).reshape(rows, 2), name)


graph = helper.make_graph([
    node("Gather", ["x", "two_zero"], ["picked"], axis=1),
    node("Gather", ["picked", "zero"], ["c2"], axis=1),
    node("Gather", ["picked", "last"], ["c0"], axis=1),
    node("Gather", ["small", "c2"], ["a"]),
    node("Gather", ["large", "c0"], ["b"]),
    node("Gather", ["x", "one"], ["c1"], axis=1),
    node("Split", ["c1"], ["head", "tail"], axis=0, num_outputs=2),
    node("Gather", ["large", "head"], ["h"]),
    node("Gather", ["small", "tail"], ["t"]),
    node("Concat", ["h", "t"], ["c"], axis=0),
    node("Sum", ["a", "b", "c"], ["y"]),
], "columns", [helper.make_tensor_value_info("x", TensorProto.INT64, [4, 3])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 2])],
    [integers("two_zero", [2, 0]), integers("zero", 0), integers("last", -1), integers("one", 1),
     table("small", 3), table("large", 9)])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8),
          sys.argv[1] + "/columns.onnx")
