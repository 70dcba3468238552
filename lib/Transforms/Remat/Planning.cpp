//===- Planning.cpp - from a budget to a plan -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: translate the user's budget for the planner, and the planner's
// answer for the user. Method: the arguments lie outside of what is packed
// (plan-memory puts them at the arena's start) and count in full; a relative
// budget is resolved against the arena of the plan without a budget. Guarantee:
// a plan that is returned was verified and fits the budget.
//
//===----------------------------------------------------------------------===//
#include "Planning.h"
#include "Reporting.h"
#include "ckopt/Analysis/Arguments.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/Utils/ExitDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Planner/Bounds.h"
#include "ckopt/Planner/Verifier.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Remat/RankClock.h"
#include "ckopt/Support/Debug.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/Format.h"

#include <limits>

using namespace mlir;
using namespace ckopt;

/// The most tensors that an error names.
static constexpr size_t maxNamed = 8;

planner::Options ckopt::plannerOptions(const RematOptions &options) {
  planner::Options result = options.search;
  result.budget = 0;
  result.hint = nullptr;
  result.pack = true;
  result.arenaHoldsAll = false;
  return result;
}

LogicalResult ckopt::checkResult(FunctionOpInterface function,
                                 const planner::Result &result) {
  if (result.status() != planner::Status::Error)
    return success();
  return emitError(function.getLoc())
         << (result.internalError ? "internal error: " : "")
         << "planning failed: " << result.message;
}

int64_t ckopt::lastByte(const planner::Graph &graph,
                        const planner::Plan &found) {
  int64_t end = 0;
  for (size_t step = 0; step < found.offsets.size(); ++step) {
    const planner::Node &node = graph.nodes[size_t(found.steps[step])];
    ArrayRef<int64_t> offsets = found.offsets[step];
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const planner::Value &value = graph.values[size_t(node.outputs[i])];
      if (value.aliasOf < 0)
        end = std::max(end, offsets[i] + value.bytes);
    }
    if (node.workspace)
      end = std::max(end, offsets.back() + node.workspace);
  }
  return found.offsets.empty() ? found.arena : end;
}

void ckopt::boundArena(RematPlan &plan) {
  const planner::Graph &graph = plan.problem.graph;
  auto padding = [&](int64_t bytes) {
    return planner::alignTo(bytes, graph.alignment) - bytes;
  };
  // The topmost buffer may be any of them, so the largest padding bounds the
  // difference.
  int64_t most = 0;
  for (const planner::Value &value : graph.values)
    if (value.kind != planner::ValueKind::Persistent && value.aliasOf < 0)
      most = std::max(most, padding(value.bytes));
  for (const planner::Node &node : graph.nodes)
    most = std::max(most, padding(node.workspace));
  auto lower = [&](int64_t &bound, int64_t fixed) {
    // Loads are whole units, so round the bound up to one.
    int64_t units = planner::alignTo(bound, graph.alignment);
    bound = std::max(std::min(units, fixed), units - most);
  };
  lower(plan.memoryBound, plan.fixedBytes);
  planner::Plan &found = plan.result.plan;
  lower(found.provenMinimum, plan.problem.argumentBytes);
  int64_t reserved = plan.fixedBytes - plan.problem.argumentBytes;
  if (found.status == planner::Status::Infeasible &&
      found.provenMinimum + reserved <= plan.budgetBytes)
    found.status = planner::Status::Unknown;
}

FailureOr<RematPlan> ckopt::planAsAsked(FunctionOpInterface function,
                                        const RematOptions &options,
                                        CostModel &costs) {
  if (options.plan && isPlanFor(function, *options.plan))
    return planFromFile(function, options, costs);
  if (hasPolicy(function, options))
    return planUnderPolicy(function, options, costs);
  FailureOr<RematPlan> baseline = planBaseline(function, options, costs);
  if (failed(baseline))
    return failure();
  RematPlan plan = std::move(*baseline);
  planner::Options request = plannerOptions(options);
  FailureOr<const planner::Plan *> hint = findHint(function, plan, options);
  if (failed(hint))
    return failure();
  request.hint = *hint;
  if (failed(planWithin(function, options.budget, request, plan)))
    return failure();
  warnIfCut(function, plan);
  return plan;
}

void ckopt::warnIfCut(FunctionOpInterface function, const RematPlan &plan) {
  if (plan.result.hasPlan() && plan.result.cut)
    emitWarning(function.getLoc())
        << "plan of @" << function.getName() << ": " << plan.result.message;
}

void ckopt::countAlignedArguments(planner::Graph &graph) {
  for (planner::Value &value : graph.values)
    if (value.kind == planner::ValueKind::Persistent)
      value.bytes = planner::alignTo(value.bytes, graph.alignment);
}

FailureOr<RematPlan> ckopt::planBaseline(FunctionOpInterface function,
                                         const RematOptions &options,
                                         CostModel &costs) {
  FailureOr<PlanningProblem> problem =
      buildProblem(function, costs, planningContext(options));
  if (failed(problem))
    return failure();
  if (needsAllCounted(options) &&
      failed(checkCounted(function, problem->uncounted)))
    return failure();
  RematPlan plan;
  plan.problem = std::move(*problem);
  planner::Graph &graph = plan.problem.graph;
  countAlignedArguments(graph);
  plan.fixedBytes = plan.problem.argumentBytes + options.reservedBytes;
  plan.baseCost = planner::baseCost(graph);
  plan.memoryBound = planner::memoryBound(graph) + options.reservedBytes;

  planner::Options request = plannerOptions(options);
  // The baseline plan is cheap to find, so it does not use up the time and work
  // limits.
  request.searchToLimit = false;
  plan.result = planner::BudgetPlanner(graph).solve(request);
  if (failed(checkResult(function, plan.result)))
    return failure();
  plan.fullArena = plan.fixedBytes + lastByte(graph, plan.result.plan);
  plan.budgetBytes = unlimited;
  plan.arena = plan.fullArena;
  plan.load = plan.result.plan.peak + options.reservedBytes;
  plan.clock = makeRankClock(function, plan.problem, options);
  plan.hidesMessages = plan.clock && plan.clock->mayHide();
  if (plan.hidesMessages)
    plan.baseCost =
        plan.clock->follow(plan.result.plan, /*budget=*/0).seconds();
  debug::log(debug::Part::Remat, [&](llvm::raw_ostream &os) {
    os << "@" << graph.name << ": " << graph.nodes.size()
       << " ops; without recomputation an arena of " << plan.fullArena
       << " bytes, " << plan.fixedBytes << " of them fixed; no plan below "
       << plan.memoryBound << "; cost " << llvm::format("%g", plan.baseCost)
       << (plan.clock ? "; messages are timed" : "");
  });
  return plan;
}

std::shared_ptr<planner::MessageClock>
ckopt::makeRankClock(FunctionOpInterface function,
                     const PlanningProblem &problem,
                     const RematOptions &options) {
  auto *dialect = function->getContext()->getLoadedDialect<CkoptDialect>();
  auto *clocks =
      dialect ? dialect->getRegisteredInterface<RankClockInterface>() : nullptr;
  return clocks ? clocks->makeClock(function, problem, options) : nullptr;
}

/// Work of a search that only has to find some budget for which a plan exists:
/// a fraction of a second.
static constexpr int64_t kShortSearch = 5000000;

void ckopt::timePlan(RematPlan &plan) {
  if (!plan.clock || !plan.result.hasPlan())
    return;
  int64_t budget = clockBudget(plan);
  plan.time = plan.clock->follow(plan.result.plan, budget);
  if (plan.kernelBound <= 0)
    plan.kernelBound =
        planner::MessagePlanner(plan.problem.graph, *plan.clock).bound(budget);
}

/// Lets the clock choose among plans, and times the one that stays.
static void weighMessages(const planner::Options &request, RematPlan &plan) {
  if (!plan.clock)
    return;
  planner::MessagePlanner search(plan.problem.graph, *plan.clock);
  planner::Options own = request;
  own.budget = clockBudget(plan);
  planner::TimedPlan found = search.improve(std::move(plan.result), own);
  plan.result = std::move(found.result);
  plan.time = found.time;
  plan.kernelBound = search.bound(own.budget);
}

/// Returns whether a bound proves, without a search, that no plan fits.
static bool isBelowBound(const RematPlan &plan) {
  return plan.budgetBytes < plan.memoryBound;
}

LogicalResult ckopt::planWithin(FunctionOpInterface function,
                                const MemoryBudget &budget,
                                planner::Options request, RematPlan &plan) {
  const planner::Graph &graph = plan.problem.graph;
  int64_t reserved = plan.fixedBytes - plan.problem.argumentBytes;
  auto total = [&](const planner::Plan &found) {
    return plan.fixedBytes + lastByte(graph, found);
  };
  planner::BudgetPlanner solver(graph);
  using Kind = MemoryBudget::Kind;
  if (budget.kind == Kind::Minimum) {
    plan.result = solver.minimize(request);
    plan.budgetBytes = plan.result.plan.minimumBudget + reserved;
  } else if (budget.kind != Kind::Unlimited) {
    plan.budgetBytes = budget.resolve(plan.fullArena, plan.fixedBytes);
    // If the plan without recomputation fits, no plan is cheaper.
    if (plan.budgetBytes < plan.fullArena) {
      // It is known that nothing fits; only look for a budget that works, to
      // report it.
      if (isBelowBound(plan)) {
        request.searchToLimit = false;
        request.workLimit = request.workLimit > 0
                                ? std::min(request.workLimit, kShortSearch)
                                : kShortSearch;
      }
      // The planner counts whole units of alignment, but the arena ends with
      // its last used byte: first include the unit that the budget ends in.
      int64_t bytes = std::max<int64_t>(plan.budgetBytes - reserved, 1);
      request.budget = planner::alignTo(bytes, graph.alignment);
      plan.result = solver.solve(request);
      if (plan.result.hasPlan() && total(plan.result.plan) > plan.budgetBytes) {
        request.budget = bytes;
        plan.result = solver.solve(request);
      }
    }
  } else if (request.hint || request.searchToLimit) {
    plan.result = solver.solve(request);
  }
  // The shared arguments of other functions may exceed the budget alone,
  // whatever this plan does.
  if (plan.result.hasPlan() && plan.budgetBytes <= reserved &&
      total(plan.result.plan) > plan.budgetBytes) {
    planner::Plan &found = plan.result.plan;
    found.status = planner::Status::Infeasible;
    found.proof = planner::Proof::Derived;
    found.minimumBudget = total(found) - reserved;
    found.provenMinimum =
        std::max(found.provenMinimum, plan.problem.argumentBytes);
    found.steps.clear();
    boundArena(plan);
    return success();
  }
  if (failed(checkResult(function, plan.result)))
    return failure();
  boundArena(plan);
  if (!plan.result.hasPlan()) {
    // Convert the smallest budget, too, into bytes of the arena.
    int64_t &least = plan.result.plan.minimumBudget;
    request.budget = least;
    if (least > 0)
      if (planner::Result smallest = solver.solve(request); smallest.hasPlan())
        least = std::min(least, plan.problem.argumentBytes +
                                    lastByte(graph, smallest.plan));
    return success();
  }
  if (plan.budgetBytes != unlimited && budget.kind == Kind::Minimum)
    plan.budgetBytes = total(plan.result.plan); // what this very plan needs
  weighMessages(request, plan);
  const planner::Plan &found = plan.result.plan;
  if (std::string wrong = planner::verify(graph, found, request.budget);
      wrong.empty() && plan.budgetBytes != unlimited &&
      total(found) > plan.budgetBytes) {
    emitError(function.getLoc())
        << "internal error: the plan takes " << total(found) << " bytes, "
        << plan.budgetBytes << " are allowed";
    return failure();
  } else if (!wrong.empty()) {
    emitError(function.getLoc())
        << "internal error: the plan is not valid: " << wrong;
    return failure();
  }
  plan.arena = total(found);
  plan.load = found.peak + reserved;
  debug::log(debug::Part::Remat, [&](llvm::raw_ostream &os) {
    os << "@" << graph.name << ": " << planner::statusName(found.status);
    if (plan.budgetBytes != unlimited)
      os << " within " << plan.budgetBytes << " bytes";
    os << ": arena " << plan.arena << ", " << plan.recomputedSteps()
       << " ops again, cost " << llvm::format("%g", found.cost) << ", by "
       << plan.result.strategy;
  });
  return success();
}

std::string ckopt::describeNoPlan(StringRef name, const RematPlan &plan) {
  const planner::Result &result = plan.result;
  std::string text;
  llvm::raw_string_ostream os(text);
  int64_t reserved = plan.fixedBytes - plan.problem.argumentBytes;
  std::string words = result.plan.scope.words();
  bool isProven = result.status() == planner::Status::Infeasible;
  os << "no plan of @" << name << words << " fits the budget of "
     << formatBytesExact(plan.budgetBytes);
  if (!isProven)
    os << " (none was found; it is not proven that there is none"
       << (*planner::boundsNote() ? "; " : "") << planner::boundsNote() << ")";
  if (result.plan.minimumBudget > 0)
    os << "; the smallest budget found feasible is "
       << formatBytesExact(result.plan.minimumBudget + reserved)
       << (isBelowBound(plan) &&
                   result.plan.minimumBudget > result.plan.provenMinimum
               ? " (a short search; the budget 'min' asks for a long one)"
               : "");
  os << "; no plan" << words << " needs less than "
     << formatBytesExact(result.plan.provenMinimum + reserved)
     << (plan.ownCountAlone ? " (proven for what the plan counts; what the "
                              "lowering makes of it was not followed)"
                            : " (proven)");
  os << "; arguments alone take " << formatBytesExact(plan.fixedBytes);
  if (plan.policy.compared && plan.policy.autoFits)
    os << "; it is the policy that does not fit: without it a plan of "
       << formatBytesExact(plan.policy.autoArena) << " was found";
  // Arguments are alive under every plan, so name only values that a plan could
  // move.
  SmallVector<planner::PeakEntry> alive;
  for (const planner::PeakEntry &entry : result.aliveAtPeak)
    if (entry.value < 0 || plan.problem.graph.values[entry.value].kind !=
                               planner::ValueKind::Persistent)
      alive.push_back(entry);
  if (alive.empty())
    return text;
  os << "; alive beside them at the peak:";
  for (auto [i, entry] : llvm::enumerate(alive)) {
    if (i == maxNamed) {
      os << " and " << alive.size() - maxNamed << " more";
      break;
    }
    os << (i ? ", " : " ") << entry.name << " (" << formatBytes(entry.bytes)
       << ")";
  }
  return text;
}

void ckopt::emitNoPlan(FunctionOpInterface function, const RematPlan &plan) {
  InFlightDiagnostic error = emitError(function.getLoc());
  error << describeNoPlan(function.getName(), plan) << plan.advice;
  setExitCode(error, plan.result.status() == planner::Status::Infeasible
                         ? ExitInfeasible
                         : ExitNoPlanFound);
}

void ckopt::writePlanFigures(llvm::json::OStream &json, const RematPlan &plan) {
  writeFigures(json, getFigures(plan));
  json.attributeObject("cost_sources", [&] {
    json.attribute("attribute", plan.problem.costs.attribute);
    json.attribute("profile", plan.problem.costs.profile);
    json.attribute("analytic", plan.problem.costs.analytic);
    json.attribute("callback", plan.problem.costs.callback);
    json.attribute("interface", plan.problem.costs.interface);
    json.attribute("guess", plan.problem.costs.guess);
  });
  writeOnce(json, plan.problem);
  planner::ReportOptions options = reportOptions(plan);
  json.attributeObject("plan", [&] {
    planner::writeReport(json, plan.problem.graph, plan.result,
                         planReport(plan), options);
  });
  if (plan.policy.given && !plan.unchanged)
    json.attributeObject("policy", [&] {
      writePolicyFigures(json, plan.policy, plan.seconds(), plan.arena);
    });
}

FailureOr<int64_t>
ckopt::getReservedBytes(FunctionOpInterface function,
                        ArrayRef<FunctionOpInterface> functions,
                        const PlanningHooks &hooks) {
  TypeSizes sizes(function, hooks);
  FailureOr<ArgumentRegion> all = placeArguments(functions, sizes);
  FailureOr<ArgumentRegion> own = placeArguments(function, sizes);
  if (failed(all) || failed(own))
    return failure();
  return all->bytes - own->once;
}
