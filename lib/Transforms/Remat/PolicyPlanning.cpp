//===- PolicyPlanning.cpp - a plan that obeys a policy --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: obey both policy and budget, and measure the cost of the policy.
// Method: plan without policy and budget first, since relative budgets refer to
// that plan. Then plan a larger graph whose every plan obeys the policy, and
// map its steps back to steps of the function. If the planner recomputes more
// than the policy asks for, a mapped plan may need more bytes than the search
// counted: then the budget of the search is lowered by the difference. Last,
// plan the same budget without the policy, starting from the policy's plan,
// with at most a quarter of the work unless the user asks for more. Guarantee:
// the plan was verified on the function's own graph and fits the budget; a plan
// without the policy that is reported was found. Complexity: that of planning
// once, and a quarter.
//
//===----------------------------------------------------------------------===//
#include "Described.h"
#include "Planning.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"

#include <limits>

using namespace mlir;
using namespace ckopt;

/// The most searches with a lower budget before giving up.
static constexpr int maxAttempts = 4;

bool ckopt::hasPolicy(FunctionOpInterface function,
                      const RematOptions &options) {
  if (options.ignorePolicy)
    return false;
  return !options.policy.empty() ||
         llvm::any_of(function.front().without_terminator(), [](Operation &op) {
           return op.hasAttr(attrs::kRemat) || op.hasAttr(attrs::kCheckpoint);
         });
}

namespace {

class PolicyPlanner {
public:
  PolicyPlanner(FunctionOpInterface function, const RematOptions &options,
                RematPlan plain, planner::PolicyGraph searched)
      : function(function), options(options), plan(std::move(plain)),
        searched(std::move(searched)), solver(this->searched.graph) {}
  FailureOr<RematPlan> run();

private:
  void search();
  void searchLeast(const planner::Options &request);
  void takeOver(planner::Result found);
  int64_t total() const {
    return plan.fixedBytes + lastByte(plan.problem.graph, plan.result.plan);
  }
  LogicalResult check();

  FunctionOpInterface function;
  const RematOptions &options;
  RematPlan plan;
  planner::PolicyGraph searched;
  planner::BudgetPlanner solver;
};

} // namespace

/// Maps a result for the larger graph to one for the function.
void PolicyPlanner::takeOver(planner::Result found) {
  found.work += plan.result.work;
  for (planner::PeakEntry &entry : found.aliveAtPeak)
    if (entry.value >= 0)
      entry.value = searched.valueOrigin[size_t(entry.value)];
  if (found.hasPlan())
    found.plan = planner::restorePlan(plan.problem.graph, searched, found.plan,
                                      /*holdsAll=*/false);
  plan.result = std::move(found);
}

/// Plans for the smallest budget. A plan that is mapped back may need more, for
/// which only the sum of all costs is certain.
void PolicyPlanner::searchLeast(const planner::Options &request) {
  takeOver(solver.minimize(request));
  plan.budgetBytes = plan.result.hasPlan() ? total() : 0;
  planner::Plan &found = plan.result.plan;
  int64_t needed =
      plan.budgetBytes - (plan.fixedBytes - plan.problem.argumentBytes);
  if (needed <= found.minimumBudget)
    return;
  found.minimumBudget = needed;
  found.lowerBound = found.orderLowerBound = planner::baseCost(searched.graph);
  if (found.cost > found.lowerBound * (1 + 1e-9))
    found.status = planner::Status::Feasible;
}

void PolicyPlanner::search() {
  planner::Options request = plannerOptions(options);
  if (options.budget.kind == MemoryBudget::Kind::Minimum)
    return searchLeast(request);
  if (plan.budgetBytes == unlimited) {
    takeOver(solver.solve(request));
    return;
  }
  int64_t reserved = plan.fixedBytes - plan.problem.argumentBytes;
  int64_t bytes = std::max<int64_t>(plan.budgetBytes - reserved, 1);
  request.budget = planner::alignTo(bytes, plan.problem.graph.alignment);
  // What is proven for a lower budget says nothing about the one asked for.
  std::optional<planner::Result> first;
  for (int attempt = 0; attempt < maxAttempts && request.budget > 0;
       ++attempt) {
    takeOver(solver.solve(request));
    bool fits = plan.result.hasPlan() && total() <= plan.budgetBytes;
    if (first && fits)
      planner::takeProofs(plan.result, *first);
    if (fits || (!first && !plan.result.hasPlan()))
      return;
    if (!first)
      first = plan.result;
    if (!plan.result.hasPlan())
      break;
    request.budget =
        std::min(bytes, request.budget) - (total() - plan.budgetBytes);
  }
  static_cast<planner::Answer &>(plan.result.plan) = first->plan;
  plan.result.plan.status = planner::Status::Unknown;
  plan.result.plan.steps.clear();
}

LogicalResult PolicyPlanner::check() {
  if (failed(checkResult(function, plan.result)))
    return failure();
  if (!plan.result.hasPlan())
    return success();
  warnIfCut(function, plan);
  std::string wrong =
      planner::verify(plan.problem.graph, plan.result.plan, /*budget=*/0);
  if (wrong.empty() && plan.budgetBytes != unlimited &&
      total() > plan.budgetBytes)
    wrong = "it takes " + std::to_string(total()) + " bytes, " +
            std::to_string(plan.budgetBytes) + " are allowed";
  if (!wrong.empty())
    return emitError(function.getLoc())
           << "internal error: the plan is not valid: " << wrong;
  plan.arena = total();
  plan.load =
      plan.result.plan.peak + plan.fixedBytes - plan.problem.argumentBytes;
  timePlan(plan);
  return success();
}

FailureOr<RematPlan> PolicyPlanner::run() {
  plan.policy.given = true;
  plan.policy.recomputed = int64_t(searched.recomputed.size());
  plan.policy.unable = int64_t(searched.unable.size());
  plan.memoryBound = planner::memoryBound(searched.graph) + plan.fixedBytes -
                     plan.problem.argumentBytes;
  search();
  if (failed(check()))
    return failure();
  boundArena(plan);
  return std::move(plan);
}

//===----------------------------------------------------------------------===//
// Cost of the policy
//===----------------------------------------------------------------------===//

/// Work units that a comparison may always use: a fifth of a second.
static constexpr int64_t cheapWork = 4000000;
/// Each of two comparisons may use the policy's own work divided by this.
static constexpr int64_t quickShares = 8;

namespace {

class PolicyComparison {
public:
  /// `baseline` is the plan of the same function without policy and budget.
  PolicyComparison(FunctionOpInterface function, const RematOptions &options,
                   RematPlan baseline, RematPlan &plan)
      : function(function), options(options), baseline(std::move(baseline)),
        plan(plan), request(plannerOptions(options)) {}
  LogicalResult run();

private:
  LogicalResult compareBudget();
  LogicalResult compareBytes();

  FunctionOpInterface function;
  const RematOptions &options;
  RematPlan baseline, &plan;
  planner::Options request;
};

} // namespace

/// Plans the same budget without the policy.
LogicalResult PolicyComparison::compareBudget() {
  PolicyOutcome &policy = plan.policy;
  RematPlan plain = baseline;
  if (options.budget.kind != MemoryBudget::Kind::Unlimited &&
      failed(planWithin(function, options.budget, request, plain)))
    return failure();
  // A quick search that found nothing proves nothing, so it is not reported.
  policy.compared = options.compare == Comparison::On ||
                    plain.result.hasPlan() ||
                    plain.result.status() == planner::Status::Infeasible;
  policy.autoFits = plain.result.hasPlan();
  policy.autoCost = plain.seconds();
  policy.autoArena = plain.arena;
  return success();
}

/// Plans for the bytes that the policy's plan needs, but without the policy.
/// The search starts from the policy's plan, so it is never worse.
LogicalResult PolicyComparison::compareBytes() {
  RematPlan plain = baseline;
  MemoryBudget budget;
  budget.kind = MemoryBudget::Kind::Bytes;
  budget.bytes = plan.arena;
  if (failed(planWithin(function, budget, request, plain)))
    return failure();
  if (plain.result.hasPlan())
    plan.policy.sameBytesCost = plain.seconds();
  return success();
}

LogicalResult PolicyComparison::run() {
  if (options.compare == Comparison::Quick) {
    request.workLimit = std::max(plan.result.work / quickShares, cheapWork);
    if (options.search.workLimit > 0)
      request.workLimit = std::min(
          request.workLimit,
          std::max(options.search.workLimit / quickShares, int64_t(1)));
    request.timeLimitSeconds /= double(quickShares);
    request.searchToLimit = false;
  }
  request.hint = plan.result.hasPlan() ? &plan.result.plan : nullptr;
  if (failed(compareBudget()))
    return failure();
  // With a budget in bytes, both plans had the same one. If the policy needs
  // more bytes than a plan without recomputation, there is nothing to compare.
  using Kind = MemoryBudget::Kind;
  bool open = options.budget.kind == Kind::Minimum ||
              (options.budget.kind == Kind::Unlimited &&
               plan.arena < plan.policy.autoArena);
  if (!plan.result.hasPlan() || !open)
    return success();
  return compareBytes();
}

/// Warns of rules that cannot be obeyed.
static void warnUnable(const PlanningProblem &problem,
                       const planner::Policy &policy,
                       const planner::PolicyGraph &searched) {
  for (planner::NodeId node : searched.unable)
    if (policy.recompute[size_t(node)])
      emitWarning(problem.ops[size_t(node)]->getLoc())
          << "'" << problem.graph.nodes[size_t(node)].name
          << "' cannot be computed again as the policy asks: it has side "
             "effects, or reads a state that the forward pass overwrites";
}

FailureOr<RematGraph> ckopt::buildRematGraph(FunctionOpInterface function,
                                             const RematOptions &given,
                                             CostModel &costs) {
  RematOptions options = given;
  Described described(function, options);
  if (failed(described.status()))
    return failure();
  FailureOr<PlanningProblem> problem =
      buildProblem(function, costs, planningContext(options));
  if (failed(problem))
    return failure();
  countAlignedArguments(problem->graph);
  RematGraph result;
  result.clock = makeRankClock(function, *problem, options);
  if (hasPolicy(function, options)) {
    PolicyOutcome outcome;
    FailureOr<std::optional<planner::Policy>> policy =
        resolvePolicy(function, *problem, options.policy, outcome);
    if (failed(policy))
      return failure();
    if (*policy)
      result.constrained = planner::applyPolicy(problem->graph, **policy);
  }
  result.graph = std::move(problem->graph);
  return result;
}

FailureOr<RematPlan> ckopt::planUnderPolicy(FunctionOpInterface function,
                                            const RematOptions &options,
                                            CostModel &costs) {
  // Report mistakes in the policy before the long search.
  FailureOr<PlanningProblem> problem =
      buildProblem(function, costs, planningContext(options));
  if (failed(problem))
    return failure();
  PolicyOutcome outcome;
  FailureOr<std::optional<planner::Policy>> policy =
      resolvePolicy(function, *problem, options.policy, outcome);
  if (failed(policy))
    return failure();
  if (!*policy) {
    RematOptions plain = options;
    plain.ignorePolicy = true;
    return planRemat(function, plain, costs);
  }
  FailureOr<RematPlan> baseline = planBaseline(function, options, costs);
  if (failed(baseline))
    return failure();
  planner::PolicyGraph searched =
      planner::applyPolicy(baseline->problem.graph, **policy);
  warnUnable(baseline->problem, **policy, searched);
  RematPlan start = *baseline;
  start.policy = std::move(outcome);
  start.budgetBytes = options.budget.resolve(start.fullArena, start.fixedBytes);
  FailureOr<RematPlan> plan =
      PolicyPlanner(function, options, std::move(start), std::move(searched))
          .run();
  if (failed(plan) || options.compare == Comparison::Off)
    return plan;
  if (failed(PolicyComparison(function, options, std::move(*baseline), *plan)
                 .run()))
    return failure();
  return plan;
}
