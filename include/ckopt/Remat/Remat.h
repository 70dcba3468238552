//===- Remat.h - order and recomputation under a budget ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function plans a step, another applies the plan; `ckopt plan` stops
// between them. All decisions are the planner's.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REMAT_REMAT_H
#define CKOPT_REMAT_REMAT_H

#include "ckopt/Analysis/OpTable.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Base/MessageText.h"
#include "ckopt/Planner/MessagePlanner.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Remat/Policy.h"
#include "ckopt/Remat/RematOptions.h"
#include "llvm/Support/JSON.h"

#include <functional>

namespace ckopt {

struct RematPlan;

/// The same, with a client's description of its ops.
struct RematOptions : RematSettings {
  RematOptions() = default;
  RematOptions(const RematSettings &settings) : RematSettings(settings) {}

  /// The client's callbacks about its ops and types.
  PlanningHooks hooks;
  /// Tables that describe ops and types, as the attributes `ckopt.ops` of the
  /// modules around the function do, which count first.
  OpTables ops;
  /// The ops have the attributes of all tables already.
  bool described = false;
  /// What keeps clones from being merged with their originals: "barrier"
  /// (`ckopt.barrier`), "attribute" (`ckopt.clone` alone), or the name of an op
  /// that returns its one operand.
  std::string apart = "barrier";
  /// Returns the plan that a callee has, or null; may be null.
  std::function<const RematPlan *(mlir::FunctionOpInterface)> calleePlan;
  /// Says which settings lower the memory of a function without a plan; may be
  /// null.
  std::function<MessageText(const RematPlan &)> advise;
};

/// The plan of one function, with the problem and the figures around it. All
/// byte counts are of the whole arena: arguments, reserved bytes, results and
/// workspaces.
struct RematPlan {
  PlanningProblem problem;
  planner::Result result;
  /// Arena without recomputation and without a budget.
  int64_t fullArena = 0;
  /// Part of it that no plan can reduce: arguments and reserved bytes.
  int64_t fixedBytes = 0;
  /// The budget in bytes; INT64_MAX: none.
  int64_t budgetBytes = 0;
  /// Seconds of the function without recomputation.
  double baseCost = 0;
  /// A proven bound: no plan in any order needs fewer bytes.
  int64_t memoryBound = 0;
  /// With collectives: a lower bound, for the budget, on the seconds of the
  /// nodes that are no messages; else 0.
  double kernelBound = 0;
  /// With collectives: computes the times of plans during the search.
  std::shared_ptr<planner::MessageClock> clock;
  /// With collectives: the times of the plan. Its cost counts them in full.
  std::optional<planner::StepTime> time;
  bool hidesMessages = false; ///< as RematOptions::overlap
  /// Arena and load of the plan.
  int64_t arena = 0, load = 0;
  /// Bytes of arguments and buffers when the function is lowered as
  /// docs/remat-pass.md says; part of the arena. 0: not known.
  int64_t lowered = 0;
  /// The function stays as it is, since no plan that was found needs less.
  bool unchanged = false;
  /// The lowering was not simulated: bytes and bounds hold by the plan's count.
  bool ownCountAlone = false;
  /// Without a plan: what RematOptions::advise says.
  MessageText advice;
  /// The effect of the policy.
  PolicyOutcome policy;
  /// What applyRemat() has to describe the function's ops by; null: they are
  /// described.
  std::shared_ptr<const OpTables> ops;
  /// As in RematOptions.
  std::string apart = "barrier";

  /// Tells whether planning got to the function.
  bool wasPlanned() const { return !problem.graph.name.empty(); }
  /// Returns the number of steps that recompute.
  int64_t recomputedSteps() const {
    return int64_t(result.plan.steps.size()) -
           int64_t(problem.graph.nodes.size());
  }
  /// Returns the seconds that the plan is expected to take.
  double seconds() const { return time ? time->seconds() : result.plan.cost; }
  /// Returns the expected time over the time without recomputation, less one.
  double overhead() const {
    return baseCost > 0 ? seconds() / baseCost - 1 : 0;
  }
};

/// Plans a function; the IR stays as it is. Failure: the function cannot be
/// planned at all, needs uncounted bytes although there is a budget, or the
/// planner has a defect (errors were emitted). A budget that is too small is no
/// failure: `result.hasPlan()` is false then.
mlir::FailureOr<RematPlan> planRemat(mlir::FunctionOpInterface function,
                                     const RematOptions &options,
                                     CostModel &costs);

/// The planner's view of a function, before reordering and recomputation;
/// arguments count with their aligned sizes.
struct RematGraph {
  planner::Graph graph;
  /// With a policy: the larger graph whose every plan obeys it.
  std::optional<planner::PolicyGraph> constrained;
  /// With collectives: computes the times of plans of `graph`; else null.
  std::shared_ptr<planner::MessageClock> clock;

  const planner::Graph &searched() const {
    return constrained ? constrained->graph : graph;
  }
};

/// Builds the function's planning graph. Fails as planRemat() does, or if a
/// policy has mistakes (errors were emitted).
mlir::FailureOr<RematGraph> buildRematGraph(mlir::FunctionOpInterface function,
                                            const RematOptions &options,
                                            CostModel &costs);

/// Emits the error for a budget without a plan, with the exit code that fits
/// (infeasible, or no plan found in time).
void emitNoPlan(mlir::FunctionOpInterface function, const RematPlan &plan);

/// Returns that error's text for tools: one paragraph, no trailing line end.
std::string describeNoPlan(llvm::StringRef function, const RematPlan &plan);

/// Rewrites the function to the plan's steps; records it in `ckopt.plan`. Loads
/// ckopt's dialect, which clones of other dialects' ops need.
void applyRemat(mlir::FunctionOpInterface function, const RematPlan &plan);

/// Emits a remark for each value that the plan keeps for a later reader or
/// recomputes: bytes, steps, cost, reason. Remarks go to the context's remark
/// engine if it has one (category `remat`, names `Kept` and `Recomputed`, and
/// `Plan` for the figures of the whole plan); with `asDiagnostics` as remarks
/// of the diagnostic engine, too. Call it before applyRemat.
void emitPlanRemarks(mlir::FunctionOpInterface function, const RematPlan &plan,
                     bool asDiagnostics);

/// Lets one-shot bufferization see through `ckopt.barrier`.
void registerBarrierBufferization(mlir::DialectRegistry &registry);

/// Writes the figures of a plan as members of the current JSON object: those of
/// the whole arena, then, as `plan`, those of the planner (ckopt-report/1).
void writePlanFigures(llvm::json::OStream &json, const RematPlan &plan);

/// Returns the bytes of arguments that other functions of the same arena have
/// and `function`, which is one of them, does not, and of second places.
mlir::FailureOr<int64_t>
getReservedBytes(mlir::FunctionOpInterface function,
                 llvm::ArrayRef<mlir::FunctionOpInterface> functions,
                 const PlanningHooks &hooks = {});

/// Emits a remark on how many ops may run again and why the others run once, if
/// none may or with `always`.
void emitOnceRemark(mlir::FunctionOpInterface function, const RematPlan &plan,
                    bool always);

/// Emits a remark for each kind of bytes that the function's plan does not
/// count.
void emitUncountedRemarks(mlir::FunctionOpInterface function,
                          llvm::ArrayRef<Uncounted> uncounted);
/// Emits an error for each kind of the function's own bytes that is not
/// counted; success if there is none.
mlir::LogicalResult checkCounted(mlir::FunctionOpInterface function,
                                 llvm::ArrayRef<Uncounted> uncounted);

/// The plans of several functions, in the order in which the functions were
/// given. After a failure there may be fewer, or plans that do not fit.
struct RematResult {
  std::vector<RematPlan> plans;

  /// Returns the plan of @step, else of the first function; null if it was not
  /// planned.
  const RematPlan *mainPlan() const;
};

/// Plans and applies all functions under one budget. A ratio is relative to the
/// largest arena without recomputation; `min` is the smallest budget that all
/// fit. Arguments of all functions count for each, except those of private
/// functions that others call, which are their callers' operands. Callees are
/// planned before their callers, so that a call needs the bytes of its callee's
/// plan. Failure: errors were emitted (with an exit code if nothing fits),
/// nothing was applied, and `result` holds the known figures.
mlir::LogicalResult
runRemat(llvm::ArrayRef<mlir::FunctionOpInterface> functions,
         const RematOptions &options, RematResult &result);

/// Writes figures and the fate of each value of all functions that were
/// planned, by name (ckopt-remat-report/1; `-`: standard output).
llvm::Error writeRematReport(llvm::StringRef path,
                             llvm::ArrayRef<RematPlan> plans);
/// Returns the text that writeRematReport() writes.
std::string rematReport(llvm::ArrayRef<RematPlan> plans);

} // namespace ckopt

#endif // CKOPT_REMAT_REMAT_H
