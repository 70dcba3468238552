//===- VerifyFlights.cpp - checks collectives in flight -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: between a collective's start and its wait another thread reads and
// writes its bytes, which the SSA form does not say by itself. Method: what is
// in flight must be read by the wait, so that it is alive until then, and by
// nothing else. Together with the check of places (VerifyArena.cpp) no kernel
// touches these bytes meanwhile. Shares no code with what splits collectives.
// O(calls and operands).
//
//===----------------------------------------------------------------------===//
#include "VerifyFlights.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;

/// Returns the op of the kernel that is called, if it is of this kind.
template <typename Op> static Op calledOp(Operation *op) {
  auto call = dyn_cast<KernelCallOp>(op);
  if (!call)
    return {};
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!callee || callee.isDeclaration() || callee.front().empty())
    return {};
  return dyn_cast<Op>(callee.front().front());
}

/// Checks that nothing reads a value, or a view of it, but `call`.
static LogicalResult checkAlone(KernelCallOp call, Value value) {
  SmallVector<Value> left{getViewBase(value)};
  while (!left.empty()) {
    Value next = left.pop_back_val();
    for (Operation *user : next.getUsers()) {
      if (user == call)
        continue;
      llvm::append_range(left, getAliases(user, next));
      if (!isView(user) && !user->isBeforeInBlock(call))
        return user->emitError() << "touches " << getValueName(value)
                                 << ", which a collective in flight overwrites";
    }
  }
  return success();
}

static LogicalResult checkStart(KernelCallOp start) {
  Operation *wait = nullptr;
  for (auto [i, result] : llvm::enumerate(start.getOuts())) {
    if (!result.hasOneUse())
      return start.emitError()
             << "result " << i << " is in flight, and is for one wait alone";
    Operation *user = *result.user_begin();
    if (!calledOp<CollectiveWaitOp>(user))
      return user->emitError() << "reads a result of a collective that is in "
                                  "flight; wait for it first";
    if (wait && wait != user)
      return start.emitError("is waited for twice");
    wait = user;
  }
  auto call = cast<KernelCallOp>(wait);
  if (call.getArgs().size() < start.getOuts().size() ||
      !llvm::equal(start.getOuts(),
                   call.getArgs().take_front(start.getOuts().size())))
    return call.emitError("does not wait for all of a collective, in its "
                          "order");
  for (auto [i, operand] : llvm::enumerate(start.getArgs())) {
    bool overwrites =
        i + 1 < start.getOuts().size() && isAlias(start.getResult(unsigned(i)));
    if (overwrites) {
      if (isa<BlockArgument>(getViewBase(operand)))
        return start.emitError("overwrites an argument");
      if (failed(checkAlone(start, operand)))
        return failure();
    } else if (!llvm::is_contained(call.getArgs(), operand)) {
      return call.emitError() << "lets operand " << i
                              << " of the collective go, which is in flight";
    }
  }
  return success();
}

LogicalResult ckopt::verifyFlights(func::FuncOp function) {
  for (KernelCallOp call : function.getOps<KernelCallOp>()) {
    if (calledOp<CollectiveStartOp>(call)) {
      if (failed(checkStart(call)))
        return failure();
    } else if (auto wait = calledOp<CollectiveWaitOp>(call)) {
      for (unsigned r = 0; r < call.getNumResults(); ++r)
        if (!isAlias(call.getResult(r)))
          return call.emitError()
                 << "result " << r << " is not what it waits for";
      if (!calledOp<CollectiveStartOp>(
              call.getArgs().front().getDefiningOp()
                  ? call.getArgs().front().getDefiningOp()
                  : call.getOperation()))
        return call.emitError("waits for what nothing started");
    } else if (!call.getAliases().empty()) {
      return call.emitError("has results in its operands' bytes, which only "
                            "collectives in flight have");
    }
  }
  return success();
}
