//===- PolicyPlanning.cpp - a plan that obeys a policy --------------------===//
//
// Problem: hold policy and budget together, and say what the policy costs.
// Method: plan without the policy first (it fixes what relative budgets mean);
// then plan the larger graph whose every plan obeys the policy, and read its
// steps back as steps of the function. Where the planner recomputes beyond the
// policy, a plan may take other bytes once it is read back: then the budget of
// the search is tightened by the difference.
// Guarantee: the plan was verified on the function's own graph and fits the
// budget. Complexity: that of planning two or three times.
//
//===----------------------------------------------------------------------===//
#include "Planning.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"

#include <limits>

using namespace mlir;
using namespace ckopt;

static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
/// Searches with a tighter budget before giving up.
static constexpr int maxAttempts = 4;

bool ckopt::hasPolicy(func::FuncOp function, const RematOptions &options) {
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
  PolicyPlanner(func::FuncOp function, const RematOptions &options,
                RematPlan plain, planner::PolicyGraph searched)
      : function(function), options(options), plan(std::move(plain)),
        searched(std::move(searched)), solver(this->searched.graph) {}
  FailureOr<RematPlan> run();

private:
  void search();
  void takeOver(planner::Result found);
  int64_t total() const {
    return plan.fixedBytes + lastByte(plan.problem.graph, plan.result.plan);
  }
  LogicalResult check();

  func::FuncOp function;
  const RematOptions &options;
  RematPlan plan;
  planner::PolicyGraph searched;
  planner::BudgetPlanner solver;
};

} // namespace

/// Reads a result of the larger graph as one of the function's.
void PolicyPlanner::takeOver(planner::Result found) {
  for (planner::PeakEntry &entry : found.aliveAtPeak)
    if (entry.value >= 0)
      entry.value = searched.valueOrigin[size_t(entry.value)];
  if (found.hasPlan())
    found.plan = planner::restorePlan(plan.problem.graph, searched, found.plan,
                                      /*holdsAll=*/false);
  plan.result = std::move(found);
}

void PolicyPlanner::search() {
  planner::Options request = plannerOptions(options);
  if (options.budget.kind == MemoryBudget::Kind::Minimum) {
    takeOver(solver.minimize(request));
    plan.budgetBytes = plan.result.hasPlan() ? total() : 0;
    return;
  }
  if (plan.budgetBytes == unlimited) {
    takeOver(solver.solve(request));
    return;
  }
  int64_t reserved = plan.fixedBytes - plan.problem.argumentBytes;
  int64_t bytes = std::max<int64_t>(plan.budgetBytes - reserved, 1);
  request.budget = planner::alignTo(bytes, kArenaAlignment);
  for (int attempt = 0; attempt < maxAttempts; ++attempt) {
    takeOver(solver.solve(request));
    if (!plan.result.hasPlan() || total() <= plan.budgetBytes)
      return;
    request.budget =
        std::min(bytes, request.budget) - (total() - plan.budgetBytes);
    if (request.budget <= 0)
      break;
  }
  plan.result.status = planner::Status::Unknown;
  plan.result.plan.steps.clear();
}

LogicalResult PolicyPlanner::check() {
  if (failed(checkResult(function, plan.result)))
    return failure();
  if (!plan.result.hasPlan())
    return success();
  if (plan.result.cut)
    emitWarning(function.getLoc())
        << "plan of @" << function.getSymName() << ": " << plan.result.message;
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
  return success();
}

FailureOr<RematPlan> PolicyPlanner::run() {
  plan.policy.compared = true;
  plan.policy.autoFits = plan.result.hasPlan();
  plan.policy.autoCost = plan.result.plan.cost;
  plan.policy.autoArena = plan.arena;
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

/// Warns of wishes that cannot be granted.
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

FailureOr<RematPlan> ckopt::planUnderPolicy(func::FuncOp function,
                                            const RematOptions &options,
                                            CostModel &costs) {
  // Mistakes in the policy are told before anything long is done.
  FailureOr<PlanningProblem> problem = buildProblem(function, costs);
  if (failed(problem))
    return failure();
  PolicyOutcome outcome;
  FailureOr<std::optional<planner::Policy>> policy =
      resolvePolicy(function, *problem, options.policy, outcome);
  if (failed(policy))
    return failure();
  RematOptions plainOptions = options;
  plainOptions.ignorePolicy = true;
  FailureOr<RematPlan> plain = planRemat(function, plainOptions, costs);
  if (failed(plain) || !*policy)
    return plain;
  planner::PolicyGraph searched =
      planner::applyPolicy(plain->problem.graph, **policy);
  warnUnable(plain->problem, **policy, searched);
  plain->policy = std::move(outcome);
  FailureOr<RematPlan> plan =
      PolicyPlanner(function, options, std::move(*plain), std::move(searched))
          .run();
  if (failed(plan) || !plan->result.hasPlan())
    return plan;
  // With a budget in bytes both had the same; where the policy takes more than
  // all that recomputation could save, there is nothing to plan.
  bool least = options.budget.kind == MemoryBudget::Kind::Minimum;
  if (!least && (options.budget.kind != MemoryBudget::Kind::Unlimited ||
                 plan->arena >= plan->policy.autoArena))
    return plan;
  // What the planner would have done with the bytes that the policy takes: it
  // starts from the policy's plan, so it is never worse.
  int64_t reserved = plan->fixedBytes - plan->problem.argumentBytes;
  planner::Options request = plannerOptions(options);
  request.budget = planner::alignTo(plan->arena - reserved, kArenaAlignment);
  request.hint = &plan->result.plan;
  planner::Result same = planner::solve(plan->problem.graph, request);
  if (same.hasPlan())
    plan->policy.sameBytesCost = same.plan.cost;
  return plan;
}
