//===- MemoryReads.cpp - tensors whose bytes are still in memory ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: `bufferization.to_tensor %m` gives a tensor but reads nothing: the
// ops that read the tensor read %m when they run, although they look pure. If
// one is moved or cloned past a store to %m, it reads other bytes. Method:
// every tensor that an op makes from a memory reference (or from a value of
// unknown type) counts as that buffer. An op whose results may be the same
// buffer passes it on; only ops that write their results to destinations do
// not, and elementwise ops, which bufferize to such ops. These write in place
// only if the buffer is writable. Guarantee: an op that may read memory counts
// as reading it. Complexity: O(ops and reads).
//
//===----------------------------------------------------------------------===//
#include "MemoryReads.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;
using namespace ckopt;

namespace {
/// How an op's result may relate to the buffer of a tensor that it reads, after
/// bufferization.
enum class Result { Fresh, Overwrites, Same };
} // namespace

static Result resultOf(Operation *op, Value read) {
  if (auto style = dyn_cast<DestinationStyleOpInterface>(op))
    return llvm::is_contained(style.getDpsInits(), read) ? Result::Overwrites
                                                         : Result::Fresh;
  if (op->getNumResults() == 1 && !isa<arith::SelectOp>(op) &&
      OpTrait::hasElementwiseMappableTraits(op))
    return read.getType() == op->getResult(0).getType() ? Result::Overwrites
                                                        : Result::Fresh;
  return Result::Same;
}

bool MemoryReads::isMemory(Value tensor) const {
  return buffers.lookup(getViewBase(tensor)) != Buffer::None;
}

MemoryReads::Access MemoryReads::visit(Operation *op) {
  Access access;
  Buffer made = Buffer::None;
  auto view = dyn_cast<bufferization::ToTensorOp>(op);
  for (Value read : getReads(op)) {
    Buffer buffer = buffers.lookup(getViewBase(read));
    if (!sizes.isValue(read.getType()))
      buffer =
          view && !view.getWritable() ? Buffer::ReadOnly : Buffer::Writable;
    if (buffer == Buffer::None)
      continue;
    access.reads = true;
    Result result = resultOf(op, read);
    bool inPlace = result == Result::Overwrites || op->getNumRegions() > 0;
    if (inPlace && buffer == Buffer::Writable)
      access.writes = true;
    // A destination that must not be written to is copied before the op.
    if (result == Result::Same ||
        (result == Result::Overwrites && buffer == Buffer::Writable))
      made = std::max(made, buffer);
  }
  if (made != Buffer::None)
    for (Value result : op->getResults())
      if (isa<TensorType>(result.getType()))
        buffers[result] = made;
  return access;
}
