//===- Callees.cpp - what calls run ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: programs call small functions (jax.nn.relu) whose calls say nothing
// of what they run. Method: the callee's ops are asked. Guarantee: a callee
// that cannot be read, that calls itself, or that handles memory is not pure.
// Complexity: linear in the callees' ops.
//
//===----------------------------------------------------------------------===//
#include "Callees.h"
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Interfaces/Compat.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ckopt;

std::optional<bool> ckopt::isRematerializable(Operation *op,
                                              const PlanningHooks &hooks) {
  if (std::optional<bool> pure = facts::isPure(op))
    return pure;
  if (hooks.rematerializable)
    if (std::optional<bool> answer = hooks.rematerializable(op))
      return answer;
  if (auto planning = dyn_cast<PlanningOpInterface>(op))
    return planning.isRematerializable();
  return std::nullopt;
}

/// Returns the function that a call runs, if its body may be read.
FunctionOpInterface Callees::calleeOf(Operation *op) {
  auto call = dyn_cast<CallOpInterface>(op);
  if (!call || isa<KernelCallOp>(op) || !context.mayReadCallees)
    return {};
  auto callee = dyn_cast_or_null<FunctionOpInterface>(
      compat::resolveCallable(call, symbols));
  if (!callee || callee.isExternal() || !callee.getFunctionBody().hasOneBlock())
    return {};
  return callee;
}

bool Callees::isPure(Operation *op) {
  auto isValue = [&](Type type) { return sizes.isValue(type); };
  if (!llvm::all_of(op->getOperandTypes(), isValue) ||
      !llvm::all_of(op->getResultTypes(), isValue))
    return false;
  std::optional<bool> stated = isRematerializable(op, context.hooks);
  return stated ? *stated : mlir::isPure(op) || isPureCall(op);
}

bool Callees::isPureCall(Operation *op) {
  FunctionOpInterface callee = calleeOf(op);
  if (!callee)
    return false;
  // A callee that is met again before its own answer is known calls itself.
  if (auto [entry, isNew] = pure.try_emplace(callee, false); !isNew)
    return entry->second;
  bool all = llvm::all_of(callee.front().without_terminator(),
                          [&](Operation &inner) { return isPure(&inner); });
  return pure[callee] = all;
}

double Callees::seconds(Operation *op, CostSource &source) {
  double own = costs.seconds(op, &source);
  FunctionOpInterface callee =
      source == CostSource::Analytic ? calleeOf(op) : FunctionOpInterface();
  if (!callee)
    return own;
  auto [entry, isNew] = known.try_emplace(callee, 0, CostSource::Analytic);
  if (!isNew) {
    source = entry->second.second;
    return entry->second.first;
  }
  double sum = 0;
  for (Operation &inner : callee.front().without_terminator()) {
    if (isView(&inner) || isFree(&inner))
      continue;
    CostSource from;
    sum += seconds(&inner, from);
    if (from == CostSource::Guess)
      source = from;
  }
  known[callee] = {sum, source};
  return sum;
}
