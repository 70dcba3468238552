//===- ExportQuantized.cpp - weights that a file has in few bits ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a file that was quantized after its export still says which weights
// its calls have, and holds none of them in a form that can be trained. Nothing
// is lost by that: they are frozen, as who quantized them wanted. Method: one
// pass over the nodes marks values that follow from initializers alone, some of
// them integers of at most 8 bits, or of any width where they are unpacked bit
// by bit. Complexity: O(nodes + operands).
//
//===----------------------------------------------------------------------===//
#include "ExportAnalysis.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;

static bool unpacksBits(llvm::StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"BitShift", "BitwiseAnd", "BitwiseOr", "DequantizeLinear"}, true)
      .Default(false);
}

llvm::StringSet<> onnx_frontend::findQuantized(const Graph &graph) {
  llvm::StringSet<> fixed, quantized;
  for (const Tensor &tensor : graph.initializers) {
    fixed.insert(tensor.name);
    DType type = tensor.value.dtype();
    if (tensor.nibbles || (isInteger(type) && dtypeSize(type) == 1))
      quantized.insert(tensor.name);
  }
  for (const Node &node : graph.nodes) {
    bool follows = true, narrow = false;
    for (const std::string &input : node.inputs) {
      follows &= input.empty() || fixed.contains(input);
      narrow |= quantized.contains(input);
    }
    if (!follows)
      continue;
    narrow |= !node.inputs.empty() && unpacksBits(node.op);
    for (const std::string &output : node.outputs) {
      fixed.insert(output);
      if (narrow)
        quantized.insert(output);
    }
  }
  return quantized;
}
