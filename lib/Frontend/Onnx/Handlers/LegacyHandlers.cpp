//===- LegacyHandlers.cpp - forms from before opset 7 ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handlers of early opsets, in which broadcasting was an attribute: the second
// operand's dimensions are those of the first from `axis` on (without it, the
// last ones). Appending dimensions of size 1 expresses this as numpy's
// broadcasting.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Reshapes operand 1 so that its dimensions match those of operand 0; null
/// after an error.
static Value alignedOperand(NodeImporter &n) {
  Value x = n.in(0), y = n.in(1);
  if (!x || !y)
    return {};
  if (n.attrInt("broadcast", 0) == 0) {
    if (n.shape(x) == n.shape(y))
      return y;
    n.error() << "operands of types " << x.getType() << " and " << y.getType()
              << " need broadcast = 1 before opset 7";
    return {};
  }
  int64_t suffix = n.rank(x) - n.rank(y);
  int64_t axis = n.attrInt("axis", suffix);
  axis += axis < 0 ? n.rank(x) : 0;
  if (suffix < 0 || axis < 0 || axis > suffix) {
    n.error() << "axis " << axis << " does not fit operands of types "
              << x.getType() << " and " << y.getType();
    return {};
  }
  Shape shape(n.shape(y));
  shape.append(size_t(suffix - axis), 1);
  return n.reshape(y, shape);
}

template <typename Op> static LogicalResult legacyBinary(NodeImporter &n) {
  n.set(0, n.broadcast<Op>({n.in(0), alignedOperand(n)}));
  return success();
}

template <ComparePredicate predicate>
static LogicalResult legacyComparison(NodeImporter &n) {
  n.set(0, n.compare(predicate, n.in(0), alignedOperand(n)));
  return success();
}

/// A slope of one dimension has an entry for each channel.
static LogicalResult legacyPrelu(NodeImporter &n) {
  Value x = n.in(0), slope = n.in(1);
  if (!x || !slope)
    return failure();
  if (n.rank(slope) == 1 && n.rank(x) > 1 && n.shape(slope)[0] != 1) {
    Shape wide(size_t(n.rank(x) - 1), 1);
    wide[0] = n.shape(slope)[0];
    slope = n.reshape(slope, wide);
  }
  Value positive = n.compare(ComparePredicate::GT, x, n.scalar(0, x));
  n.set(0, n.select(positive, x, n.mul(x, slope)));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::legacyHandlers() {
  using P = ComparePredicate;
  static const HandlerEntry entries[] = {
      {"Add", 1, legacyBinary<AddOp>},
      {"And", 1, legacyBinary<AndOp>},
      {"Div", 1, legacyBinary<DivOp>},
      {"Equal", 1, legacyComparison<P::EQ>},
      {"Greater", 1, legacyComparison<P::GT>},
      {"Less", 1, legacyComparison<P::LT>},
      {"Mul", 1, legacyBinary<MulOp>},
      {"Or", 1, legacyBinary<OrOp>},
      {"PRelu", 1, legacyPrelu},
      {"Pow", 1, legacyBinary<PowOp>},
      {"Sub", 1, legacyBinary<SubOp>},
      {"Xor", 1, legacyBinary<XorOp>},
  };
  return entries;
}
