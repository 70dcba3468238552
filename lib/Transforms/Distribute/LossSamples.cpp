//===- LossSamples.cpp - whether a loss's samples are apart ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: with several ranks, a network that mixes samples (a mean over the
// batch, a shuffled copy, attention from sample to sample) mixes those of a
// rank alone, and trains another function than one process does. Method: what
// an attached loss reads must be made of each sample alone, which is followed
// from the data on. Guarantee: what is not known to be so is an error that
// names the first op that mixes. O(ops).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Distribution.h"

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"

using namespace mlir;
using namespace ckopt;

/// Returns the type of the node that the op was imported from; else the op's
/// name.
static StringRef operatorOf(Operation *op) {
  if (auto node = dyn_cast<NameLoc>(op->getLoc()))
    if (auto type = dyn_cast<NameLoc>(node.getChildLoc()))
      return type.getName();
  return op->getName().getStringRef();
}

InFlightDiagnostic ckopt::emitAt(Operation *op) {
  return emitError(op->getLoc()) << operatorOf(op) << " ";
}

LogicalResult ckopt::checkSamplesApart(Value value, StringRef name,
                                       const SampleAxes &axes, int64_t ranks) {
  SampleAxis samples = axes.of(value);
  if (samples == SampleAxis::part(0))
    return success();
  if (Operation *op = axes.firstMixing(value)) {
    bool isRandom = isa<RandomOp>(op);
    return emitAt(op) << (isRandom
                              ? "draws random numbers of which it is not known "
                                "whether each sample has its own"
                          : isa<SampleAxisOpInterface>(op)
                              ? "is not known to keep samples apart"
                              : "has no rule that says whether it keeps "
                                "samples apart (SampleAxisOpInterface)")
                      << ", and the loss reads '" << name
                      << "', which is made of them: each of " << ranks
                      << " ranks has its part of the batch alone, and would "
                         "compute something else than one process does; train "
                         "in one process, or "
                      << (isRandom ? "give each sample its own numbers"
                                   : "combine values of the same sample alone");
  }
  auto type = cast<RankedTensorType>(value.getType());
  if (samples.isPart())
    return emitError(value.getLoc())
           << "the loss reads '" << name << "' " << type << ", whose samples "
           << "do not lie along dimension 0 alone: of which targets each of "
           << ranks << " ranks has its part is not known; put the samples "
           << "first (Transpose)";
  int64_t rows = type.getRank() ? type.getDimSize(0) : 0;
  if (axes.samples() && rows && rows % axes.samples() == 0 &&
      axes.isUniform(value, 0))
    return success();
  return emitError(value.getLoc())
         << "the loss reads '" << name << "' " << type << ", which is made of "
         << "no sample: of which targets each of " << ranks
         << " ranks has its part is not known";
}
