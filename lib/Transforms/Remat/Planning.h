//===- Planning.h - shared by ways to plan a function -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_REMAT_PLANNING_H
#define CKOPT_LIB_TRANSFORMS_REMAT_PLANNING_H

#include "ckopt/Remat/Remat.h"

#include <limits>

namespace ckopt {

/// The value of a plan's budgetBytes if no budget was given.
inline constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

/// Returns whether memory that cannot be counted is an error: a budget is
/// given, and the options do not allow it.
inline bool needsAllCounted(const RematOptions &options) {
  return options.budget.kind != MemoryBudget::Kind::Unlimited &&
         !options.allowUncounted;
}

/// Returns the options of buildProblem().
inline PlanningContext planningContext(const RematOptions &options) {
  return {options.hooks, options.mayReadCallees};
}

/// The planner's options without a budget.
planner::Options plannerOptions(const RematOptions &options);

/// Moves the function's ops to the order of a plan, and clones those that run
/// again; notes offsets where the plan has them.
void applySteps(mlir::FunctionOpInterface function,
                const PlanningProblem &problem, const planner::Plan &found,
                llvm::StringRef apart);

/// Returns whether the op is one that `apart` names, put before a clone.
bool isClientsBarrier(mlir::Operation *op);

/// Emits an error if the result shows a defect of the planner or an unknown
/// option.
mlir::LogicalResult checkResult(mlir::FunctionOpInterface function,
                                const planner::Result &result);

/// Warns if a limit ended the search for the plan early.
void warnIfCut(mlir::FunctionOpInterface function, const RematPlan &plan);

/// Returns the plan's budget as its clock counts it; 0: none.
inline int64_t clockBudget(const RematPlan &plan) {
  return plan.budgetBytes == unlimited
             ? 0
             : plan.budgetBytes -
                   (plan.fixedBytes - plan.problem.argumentBytes);
}

/// Asks the plan's clock, if it has one, what the plan takes.
void timePlan(RematPlan &plan);

/// Returns the end of the last byte in use: the arena without the padding after
/// its topmost buffer.
int64_t lastByte(const planner::Graph &graph, const planner::Plan &found);

/// Returns the clock of the dialect's RankClockInterface; null: messages take
/// what their costs say.
std::shared_ptr<planner::MessageClock>
makeRankClock(mlir::FunctionOpInterface function,
              const PlanningProblem &problem, const RematOptions &options);

/// Adjusts the proven bounds to the arena: it ends with its last used byte,
/// while the planner counts whole units of alignment. What these no longer
/// prove infeasible is unknown.
void boundArena(RematPlan &plan);

/// Returns whether the options, or attributes of the function, ask to keep or
/// recompute values.
bool hasPolicy(mlir::FunctionOpInterface function, const RematOptions &options);

/// Rounds the sizes of arguments up, since they lie at aligned offsets.
void countAlignedArguments(planner::Graph &graph);

/// Plans the function without recomputation and without a budget. Relative
/// budgets refer to this plan, and searches start from it.
mlir::FailureOr<RematPlan> planBaseline(mlir::FunctionOpInterface function,
                                        const RematOptions &options,
                                        CostModel &costs);

/// Plans a function that planBaseline() has read for a budget, searching as
/// `request` says. Fails on a defect, or on invalid options.
mlir::LogicalResult planWithin(mlir::FunctionOpInterface function,
                               const MemoryBudget &budget,
                               planner::Options request, RematPlan &plan);

/// Plans a function in the way that the options and its attributes ask for, by
/// the plan's own count.
mlir::FailureOr<RematPlan> planAsAsked(mlir::FunctionOpInterface function,
                                       const RematOptions &options,
                                       CostModel &costs);

/// Returns the plan of `options.hint` if it is for this function, else null.
/// Fails with an error if the function has changed since.
mlir::FailureOr<const planner::Plan *>
findHint(mlir::FunctionOpInterface function, const RematPlan &plan,
         const RematOptions &options);

/// planRemat() under a policy; with `options.compare`, the same budget is
/// planned without it, too, to tell what the policy costs. Defined in
/// PolicyPlanning.cpp.
mlir::FailureOr<RematPlan> planUnderPolicy(mlir::FunctionOpInterface function,
                                           const RematOptions &options,
                                           CostModel &costs);

/// Returns the plan that `options.plan` holds: its steps are verified,
/// everything else is computed anew. Defined in PlanFile.cpp.
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

#endif // CKOPT_LIB_TRANSFORMS_REMAT_PLANNING_H
