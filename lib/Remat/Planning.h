//===- Planning.h - shared by ways to plan a function -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_REMAT_PLANNING_H
#define CKOPT_LIB_REMAT_PLANNING_H

#include "ckopt/Remat/Remat.h"

#include <limits>

namespace ckopt {

/// A plan's budgetBytes where none was given.
inline constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// Whether a budget is given that must hold for everything.
inline bool needsAllCounted(const RematOptions &options) {
  return options.budget.kind != MemoryBudget::Kind::Unlimited &&
         !options.allowUncounted;
}

/// What buildProblem() is told beside the function.
inline PlanningContext planningContext(const RematOptions &options) {
  return {options.hooks, options.mayReadCallees};
}

/// The planner's options without a budget.
planner::Options plannerOptions(const RematOptions &options);

/// A defect of the planner or an option that it does not know: an error was
/// emitted.
mlir::LogicalResult checkResult(mlir::FunctionOpInterface function,
                                const planner::Result &result);

/// Warns where a limit cut the search for the plan off.
void warnIfCut(mlir::FunctionOpInterface function, const RematPlan &plan);

/// Whether it is proven that no plan fits the budget.
bool isProvenInfeasible(const RematPlan &plan);

/// The last byte of a packed plan that something lies in, plus one: the arena
/// without the padding behind its topmost buffer.
int64_t lastByte(const planner::Graph &graph, const planner::Plan &found);

/// Makes the proven bounds hold for the arena, which ends with its last used
/// byte, where the planner counts whole units of alignment.
void boundArena(RematPlan &plan);

/// Whether the options or attributes of the function ask to keep or compute
/// again what the planner would decide otherwise.
bool hasPolicy(mlir::FunctionOpInterface function, const RematOptions &options);

/// The function without recomputation and without a budget: what relative
/// budgets are relative to, and a plan to start from.
mlir::FailureOr<RematPlan> planBaseline(mlir::FunctionOpInterface function,
                                        const RematOptions &options,
                                        CostModel &costs);

/// Plans a function that planBaseline() has read for a budget, searching as
/// `request` says. Failure: a defect, or options that make no sense.
mlir::LogicalResult planWithin(mlir::FunctionOpInterface function,
                               const MemoryBudget &budget,
                               planner::Options request, RematPlan &plan);

/// The plan of `options.hint`, if it is one for this function, else null.
/// Failure: it is for another state of the function (an error was emitted).
mlir::FailureOr<const planner::Plan *>
findHint(mlir::FunctionOpInterface function, const RematPlan &plan,
         const RematOptions &options);

/// planRemat() under a policy; with `options.compare`, the same budget is
/// planned without it, too, to tell what the policy costs. PolicyPlanning.cpp.
mlir::FailureOr<RematPlan> planUnderPolicy(mlir::FunctionOpInterface function,
                                           const RematOptions &options,
                                           CostModel &costs);

/// planRemat() for the plan that `options.plan` holds: its steps are verified,
/// everything else is worked out anew. PlanFile.cpp.
mlir::FailureOr<RematPlan> planFromFile(mlir::FunctionOpInterface function,
                                        const RematOptions &options,
                                        CostModel &costs);

bool isPlanFor(mlir::FunctionOpInterface function, const StoredPlan &plan);

/// Emits an error for a stored plan that is for none of the functions, or that
/// contradicts other options.
mlir::LogicalResult
checkStoredPlan(llvm::ArrayRef<mlir::FunctionOpInterface> functions,
                const RematOptions &options);

} // namespace ckopt

#endif // CKOPT_LIB_REMAT_PLANNING_H
