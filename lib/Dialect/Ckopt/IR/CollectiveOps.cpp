//===- CollectiveOps.cpp - types of ops of several processes --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"

using namespace mlir;
using namespace ckopt;

CKOPT_INFER(AllReduceOp) {
  AllReduceOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (operands.empty())
    return emitOptionalError(loc, "all_reduce needs a tensor");
  if (int64_t(adaptor.getRanks()) < 1)
    return emitOptionalError(loc, "all_reduce needs 1 rank or more, got ",
                             int64_t(adaptor.getRanks()));
  Type element = tensorType(operands.front()).getElementType();
  for (Value operand : operands) {
    if (tensorType(operand).getElementType() != element)
      return emitOptionalError(loc, "operands must have one element type, got ",
                               operands.front().getType(), " and ",
                               operand.getType());
    results.push_back(operand.getType());
  }
  return success();
}

/// Ranks add elements as they lie in memory, so an operand and its result lie
/// alike.
LogicalResult AllReduceOp::verify() {
  for (auto [input, output] : llvm::zip_equal(getInputs(), getOutputs()))
    if (input.getType() != output.getType())
      return emitOpError("sums of ")
             << input.getType() << " have its type, got " << output.getType();
  return success();
}

LogicalResult RankOp::verify() {
  if (int64_t(getRanks()) >= 1)
    return success();
  return emitOpError("needs 1 rank or more, got ") << int64_t(getRanks());
}

/// Each rank adds its share of the elements of all ranks.
double AllReduceOp::getFlops() {
  double elements = 0;
  for (Value input : getInputs())
    elements += double(tensorType(input).getNumElements());
  return elements;
}

/// Elements are packed before the sums of the same elements are written.
SmallVector<std::pair<unsigned, unsigned>> AllReduceOp::getReusePairs() {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  for (unsigned i = 0; i < getNumOperands(); ++i)
    if (llvm::count(getOperands(), getOperand(i)) == 1)
      pairs.emplace_back(i, i);
  return pairs;
}
