//===- FusePass.cpp - ops become kernels ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: turn a step of single ops into the kernels that the backend will
// emit, so that all later planning sees real costs and sizes.
// Method: decide, merge, order updates (Grouping.h), then outline. The IR is
// changed only after all decisions of a function are made; where sums of
// products grow (AddProducts.cpp), these are made again.
// Guarantee: see Grouping.cpp; refused input is left as it was.
// Complexity: near linear in the number of ops.
//
//===----------------------------------------------------------------------===//
#include "Grouping.h"
#include "OpKinds.h"
#include "ckopt/Fuse/Passes.h"

using namespace mlir;
using namespace ckopt;

namespace ckopt {
#define GEN_PASS_DEF_FUSEPASS
#include "ckopt/Fuse/Passes.h.inc"
} // namespace ckopt

namespace {
struct FusePass : ckopt::impl::FusePassBase<FusePass> {
  using FusePassBase::FusePassBase;

  bool isWanted(func::FuncOp function) {
    if (function.isDeclaration() || function->hasAttr(attrs::kKernel))
      return false;
    return functions.empty() ||
           llvm::is_contained(functions, function.getSymName().str());
  }

  /// Names every op that is no ckopt op.
  LogicalResult check(func::FuncOp function) {
    if (!function.getBody().hasOneBlock())
      return emitError(function.getLoc(), "fuse needs a function of one block");
    LogicalResult result = success();
    for (Operation &op : function.front().without_terminator()) {
      if (isa<KernelCallOp>(op)) {
        result = op.emitError("is a kernel call already; fuse runs once");
      } else if (!isa<KernelOpInterface>(op)) {
        result =
            op.emitError("has no kernel kind; fuse works on ckopt ops only");
      } else if (fuse::kindOf(&op) == KernelKind::Reduction &&
                 !isa<ReduceOp, MomentsOp>(op)) {
        result = op.emitOpError("is of kind Reduction, whose kernels are made "
                                "of reduce and moments alone; an op that goes "
                                "over rows by itself is of kind RowWise");
      } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
        if (!isRowMajor(reshape.getType()) ||
            !isRowMajor(cast<RankedTensorType>(reshape.getInput().getType())))
          result = op.emitError("reshape needs row-major operand and result; "
                                "run layout before fuse");
      }
    }
    return result;
  }

  fuse::Grouping decide(func::FuncOp function) {
    fuse::Grouping grouping(function, {group, maxOps, maxPointers});
    grouping.decide();
    if (group)
      grouping.merge();
    return grouping;
  }

  void runOnOperation() override {
    fuse::Outliner outliner(getOperation());
    SmallVector<func::FuncOp> wanted;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (isWanted(function))
        wanted.push_back(function);
    for (func::FuncOp function : wanted) {
      if (failed(check(function)))
        return signalPassFailure();
      fuse::Grouping grouping = decide(function);
      if (addsProducts && fuse::addProducts(function, grouping, rounds))
        grouping = decide(function);
      if (failed(grouping.orderUpdates()))
        return signalPassFailure();
      outliner.run(function, grouping);
    }
  }
};
} // namespace
