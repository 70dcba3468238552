//===- LoweredPlan.cpp - plans that are true about what runs --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a plan counts by rules; what runs is made by bufferization, which
// may need more (it copies what a loop carries), or less (it overwrites
// arguments). Method: the function is lowered on trial as it stands and changed
// to its plan. A plan takes the larger of both counts; if that exceeds the
// budget, another one is looked for within less. The function stays as it is if
// it fits without recomputation, or if no plan needs less. Guarantee: what is
// applied needs no more than the function did, by the rules and as lowered; a
// bound that the lowering goes below is not called proven. Complexity: two
// lowerings, and at most maxSearches searches and lowerings more.
//
//===----------------------------------------------------------------------===//
#include "Described.h"
#include "Lowering.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Planner/Simulator.h"

#include <numeric>

using namespace mlir;
using namespace ckopt;

using Kind = MemoryBudget::Kind;

/// How many searches within less than the budget are made at most.
static constexpr int maxSearches = 3;

namespace {

class TruePlan {
public:
  using Replan = llvm::function_ref<FailureOr<RematPlan>(const RematOptions &)>;
  TruePlan(FunctionOpInterface function, const RematOptions &options,
           Replan replan, RematPlan &plan)
      : function(function), options(options), replan(replan), plan(plan),
        budget(plan.budgetBytes),
        asks(options.plan || hasPolicy(function, options)) {}
  LogicalResult run(std::optional<int64_t> before);

private:
  bool lower(RematPlan &candidate);
  FailureOr<bool> tryBudget(MemoryBudget other);
  LogicalResult searchWithin();
  LogicalResult searchLeast();
  bool isWorse() const;
  LogicalResult count();
  void stay();
  void finish();
  /// Returns the steps of the function as it stands.
  std::vector<planner::NodeId> ownSteps() const {
    std::vector<planner::NodeId> steps(plan.problem.graph.nodes.size());
    std::iota(steps.begin(), steps.end(), 0);
    return steps;
  }
  int64_t reserved() const {
    return plan.fixedBytes - plan.problem.argumentBytes;
  }

  FunctionOpInterface function;
  const RematOptions &options;
  Replan replan;
  RematPlan &plan;
  int64_t budget;
  bool asks;             ///< the user says what is computed again
  int64_t untouched = 0; ///< bytes of the function as it stands, if known
  int64_t least = 0;     ///< fewest bytes that a budget may have, as found
  int64_t lowest = 0;    ///< fewest bytes that a lowering was seen to need
};

} // namespace

/// Sets what the lowering makes of a plan; returns whether there is a plan that
/// can be lowered.
bool TruePlan::lower(RematPlan &candidate) {
  if (!candidate.result.hasPlan())
    return false;
  std::optional<int64_t> bytes = loweredBytes(function, &candidate, options);
  if (!bytes)
    return false;
  candidate.lowered = candidate.fixedBytes + *bytes;
  candidate.arena = std::max(candidate.arena, candidate.lowered);
  least = std::min(least, candidate.arena);
  lowest = std::min(lowest, candidate.lowered);
  return true;
}

/// Plans for another budget; returns whether the lowering keeps that plan
/// within the budget asked for.
FailureOr<bool> TruePlan::tryBudget(MemoryBudget other) {
  RematOptions request = options;
  request.budget = other;
  FailureOr<RematPlan> next = replan(request);
  if (failed(next))
    return failure();
  if (!lower(*next))
    return false;
  plan = std::move(*next);
  return plan.arena <= budget;
}

/// Looks for a plan that the lowering keeps within the budget.
LogicalResult TruePlan::searchWithin() {
  RematPlan asked = plan;
  bool lowers = lower(plan);
  FailureOr<bool> fits = lowers && plan.arena <= budget;
  MemoryBudget less;
  less.kind = Kind::Bytes;
  less.bytes = budget;
  for (int attempt = 0; lowers && !asks && !*fits && attempt < maxSearches;
       ++attempt) {
    less.bytes -= plan.arena - budget;
    if (attempt + 1 == maxSearches || less.bytes <= plan.fixedBytes)
      less.kind = Kind::Minimum;
    if (failed(fits = tryBudget(less)))
      return failure();
    if (less.kind == Kind::Minimum)
      break;
  }
  if (*fits) {
    plan.budgetBytes = budget;
    if (less.bytes != budget)
      planner::takeProofs(plan.result, asked.result);
    return success();
  }
  // The smallest budget that is reported is one that the lowering keeps.
  if (!lowers && !asks && asked.result.plan.minimumBudget > 0) {
    less.bytes = asked.result.plan.minimumBudget + reserved();
    if (failed(tryBudget(less)))
      return failure();
  }
  plan = std::move(asked);
  if (untouched <= budget) {
    stay();
    return success();
  }
  // None was found; that there is none is not proven.
  planner::Plan &found = plan.result.plan;
  if (plan.result.hasPlan()) {
    found.status = planner::Status::Unknown;
    found.steps.clear();
  }
  found.minimumBudget = least - reserved();
  return success();
}

/// Of the plan with the least bytes, the one that computes nothing again, and
/// the function as it stands, takes the one that the lowering needs least for.
LogicalResult TruePlan::searchLeast() {
  bool lowers = lower(plan);
  if (!lowers || plan.arena >= untouched) {
    RematOptions request = options;
    request.budget = MemoryBudget();
    FailureOr<RematPlan> plain = replan(request);
    if (failed(plain))
      return failure();
    if (lower(*plain) && (!lowers || plain->arena <= plan.arena))
      plan = std::move(*plain);
  }
  plan.budgetBytes = plan.arena;
  plan.result.plan.minimumBudget = plan.arena - reserved();
  return success();
}

/// Returns whether the plan needs more than the function as it stands; if it is
/// to be the least, also whether it needs as much at a higher cost.
bool TruePlan::isWorse() const {
  if (untouched > 0 && plan.lowered == 0)
    return true; // it cannot be lowered any more
  const planner::Graph &graph = plan.problem.graph;
  bool least = untouched > 0 && options.budget.kind == Kind::Minimum && !asks;
  return plan.lowered > untouched || (least && plan.arena > untouched) ||
         (least && plan.arena == untouched && plan.recomputedSteps() > 0) ||
         plan.result.plan.peak > planner::simulate(graph, ownSteps()).peak;
}

/// Leaves the function as it stands.
void TruePlan::stay() {
  const planner::Graph &graph = plan.problem.graph;
  planner::Plan &found = plan.result.plan;
  int64_t proven = found.provenMinimum;
  planner::Plan own;
  own.steps = ownSteps();
  // It need not obey a policy: only what holds for all plans holds for it.
  bool ruled = found.scope.has(planner::Restriction::Policy);
  if (ruled)
    proven = planner::memoryBound(graph);
  else
    own.scope = found.scope;
  own.status = planner::Status::Optimal;
  own.cost = own.lowerBound = own.orderLowerBound = planner::baseCost(graph);
  own.peak = planner::simulate(graph, own.steps).peak;
  own.provenMinimum = proven;
  planner::packPlan(graph, own, /*holdsAll=*/false);
  int64_t bytes =
      untouched > 0 ? untouched : plan.fixedBytes + lastByte(graph, own);
  own.minimumBudget = bytes - reserved();
  plan.result = planner::Result();
  plan.result.plan = std::move(own);
  plan.result.strategy = "unchanged";
  if (ruled) {
    plan.memoryBound = proven + reserved();
    boundArena(plan);
  }
  plan.unchanged = true;
  plan.lowered = untouched;
  plan.arena = plan.load = bytes;
  if (options.budget.kind == Kind::Minimum)
    plan.budgetBytes = bytes;
}

/// A bound of the rules is none on what runs if something that runs goes below.
void TruePlan::finish() {
  planner::Plan &found = plan.result.plan;
  if (plan.result.hasPlan() && plan.recomputedSteps() == 0)
    plan.fullArena = std::max(plan.fullArena, plan.arena);
  if (lowest >= std::max(found.provenMinimum + reserved(), plan.memoryBound))
    return;
  found.provenMinimum =
      std::min(found.provenMinimum, plan.problem.argumentBytes);
  plan.memoryBound = std::min(plan.memoryBound, plan.fixedBytes);
  if (found.status == planner::Status::Infeasible &&
      found.provenMinimum + reserved() <= budget)
    found.status = planner::Status::Unknown;
}

/// Plans anew where the lowering of the plan does not keep the budget.
LogicalResult TruePlan::count() {
  bool limited = options.budget.kind != Kind::Unlimited;
  if (options.budget.kind == Kind::Minimum && !asks && plan.result.hasPlan())
    return searchLeast();
  if (limited && !asks && untouched <= budget &&
      (!plan.result.hasPlan() || plan.recomputedSteps() > 0))
    stay();
  else if (limited && options.budget.kind != Kind::Minimum)
    return searchWithin();
  else
    lower(plan);
  return success();
}

LogicalResult TruePlan::run(std::optional<int64_t> before) {
  if (before) {
    untouched = least = lowest = plan.fixedBytes + *before;
    if (failed(count()))
      return failure();
  }
  if (plan.result.hasPlan() && !plan.unchanged && isWorse())
    stay();
  plan.ownCountAlone = !before;
  if (before)
    finish();
  return success();
}

bool ckopt::mayLower(FunctionOpInterface function) {
  // What becomes kernels is laid out by plan-memory as planned.
  return llvm::any_of(function.front(), [](Operation &op) {
    return !isa_and_nonnull<CkoptDialect>(op.getDialect()) && !isView(&op) &&
           !isFree(&op) && !op.hasTrait<OpTrait::IsTerminator>();
  });
}

/// Plans a function as asked, and true about what its lowering makes of it,
/// which needs `before` for the function as it stands.
static FailureOr<RematPlan> planTruly(FunctionOpInterface function,
                                      const RematOptions &options,
                                      std::optional<int64_t> before,
                                      CostModel &costs) {
  auto ask = [&](const RematOptions &request) {
    return planAsAsked(function, request, costs);
  };
  FailureOr<RematPlan> plan = ask(options);
  if (failed(plan) ||
      (mayLower(function) &&
       failed(TruePlan(function, options, ask, *plan).run(before))))
    return failure();
  return plan;
}

/// Returns whether the budget is a share of what the function takes.
static bool isRelative(const MemoryBudget &budget) {
  using Kind = MemoryBudget::Kind;
  return budget.kind != Kind::Unlimited && budget.kind != Kind::Minimum &&
         budget.kind != Kind::Bytes;
}

static FailureOr<RematPlan> planDescribed(FunctionOpInterface function,
                                          const RematOptions &options,
                                          CostModel &costs) {
  RematOptions request = options;
  std::optional<int64_t> before;
  if (mayLower(function))
    before = loweredBytes(function, nullptr, options);
  int64_t full = 0;
  if (isRelative(options.budget) && before) {
    RematOptions unlimited = options;
    unlimited.budget = MemoryBudget();
    unlimited.ignorePolicy = true;
    unlimited.hint.reset();
    unlimited.plan.reset();
    FailureOr<RematPlan> plain = planTruly(function, unlimited, before, costs);
    if (failed(plain))
      return failure();
    full = plain->fullArena;
    request.budget.kind = MemoryBudget::Kind::Bytes;
    request.budget.bytes = options.budget.resolve(full, plain->fixedBytes);
  }
  FailureOr<RematPlan> plan = planTruly(function, request, before, costs);
  if (failed(plan))
    return failure();
  plan->fullArena = std::max(plan->fullArena, full);
  if (!plan->problem.uncounted.empty())
    plan->result.plan.scope.add(planner::Restriction::CountedBytes);
  return plan;
}

/// Where no op may run again, orders are all that was searched: no statement
/// holds for plans that recompute.
static void restrictToOrders(RematPlan &plan) {
  const std::vector<std::string> &once = plan.problem.once;
  if (once.empty() || llvm::is_contained(once, ""))
    return;
  planner::Plan &found = plan.result.plan;
  found.scope.add(planner::Restriction::OrderOnly);
  if (planner::isPlan(found.status))
    found.status = planner::Status::Feasible;
}

/// Finds out whether the op that keeps clones apart can be made.
static LogicalResult checkApart(FunctionOpInterface function, StringRef apart) {
  MLIRContext *context = function.getContext();
  if (apart == "barrier" || apart == "attribute" ||
      context->allowsUnregisteredDialects() ||
      RegisteredOperationName::lookup(apart, context))
    return success();
  return emitError(function.getLoc())
         << "remat: apart: there is no op '" << apart << "' here";
}

FailureOr<RematPlan> ckopt::planRemat(FunctionOpInterface function,
                                      const RematOptions &options,
                                      CostModel &costs) {
  // The pass declares the dialect of barriers; a program may not know it.
  function->getContext()->getOrLoadDialect<CkoptDialect>();
  RematOptions request = options;
  Described described(function, request);
  if (failed(described.status()) || failed(checkApart(function, options.apart)))
    return failure();
  FailureOr<RematPlan> plan = planDescribed(function, request, costs);
  if (failed(plan))
    return failure();
  restrictToOrders(*plan);
  plan->apart = options.apart;
  if (!options.described)
    plan->ops = std::make_shared<const OpTables>(request.ops);
  return plan;
}
