//===- Run.cpp - all functions under one budget ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: plan all functions of a module, which share one arena and hence one
// budget. Method: a ratio refers to the largest arena that any function needs
// without recomputation. The minimum is the least budget under which all
// functions fit: each function that does not fit into the minimum of the ones
// before it is planned for its own minimum; then the functions that were
// planned for less are planned again with the final budget. Callees are planned
// before their callers: a call needs the bytes that the callee's plan uses
// beside arguments and results. If a caller does not fit, its callees are
// planned for their minima. Optional functions take what the others leave: one
// that does not fit is erased. Guarantee: every plan that is applied fits the
// budget; nothing is applied if one function fails. Complexity: planning each
// function up to twice, and once more without a budget for ratios.
//
//===----------------------------------------------------------------------===//
#include "Described.h"
#include "Lowering.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Interfaces/Compat.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/PlannedRates.h"
#include "mlir/Interfaces/CallInterfaces.h"

using namespace mlir;
using namespace ckopt;

using Kind = MemoryBudget::Kind;

namespace {

class SharedBudget {
public:
  SharedBudget(ArrayRef<FunctionOpInterface> functions,
               const RematOptions &options, std::vector<RematPlan> &plans)
      : functions(functions), options(options),
        costs(options.costs, ratesOf(functions.front())), plans(plans) {}
  /// Plans all functions: `first` comes first, after its callees.
  LogicalResult run(size_t first);

private:
  void findCalls();
  void visit(size_t i, SmallVectorImpl<size_t> &order);
  LogicalResult plan(size_t i, MemoryBudget budget, bool ignorePolicy = false);
  LogicalResult resolveRatio();
  LogicalResult findMinimum();
  LogicalResult planAll();
  LogicalResult shrinkCallees(size_t i);
  int64_t returnedBytes(size_t i) const;
  int64_t resultBytes(size_t i) const;
  LogicalResult checkReturnedViews(size_t i) const;
  LogicalResult fail(size_t i);
  bool isOptional(size_t i) const {
    return isCalled[i] == 0 &&
           llvm::is_contained(options.optional,
                              FunctionOpInterface(functions[i]).getName());
  }
  void leaveOut(size_t i);

  ArrayRef<FunctionOpInterface> functions;
  RematOptions options;
  CostModel costs;
  std::vector<RematPlan> &plans;
  DenseMap<Operation *, size_t> index;       ///< of functions
  std::vector<SmallVector<size_t, 2>> calls; ///< by function: its callees
  std::vector<char> isCalled;
  std::vector<char> isLeast; ///< set if planned for its minimum
  SmallVector<size_t> order; ///< callees before callers
  /// Bytes that calls of planned functions need beside operands and results.
  DenseMap<Operation *, int64_t> callBytes;
};

} // namespace

static MemoryBudget ofBytes(int64_t bytes) {
  MemoryBudget budget;
  budget.kind = Kind::Bytes;
  budget.bytes = bytes;
  return budget;
}

/// Finds the calls between the functions.
void SharedBudget::findCalls() {
  for (auto [i, function] : llvm::enumerate(functions))
    index[function] = i;
  calls.resize(functions.size());
  isCalled.assign(functions.size(), 0);
  isLeast.assign(functions.size(), 0);
  if (functions.size() < 2)
    return;
  SymbolTableCollection symbols;
  for (auto [i, function] : llvm::enumerate(functions))
    FunctionOpInterface(function)->walk([&, i = i](CallOpInterface call) {
      auto callee = index.find(compat::resolveCallable(call, symbols));
      if (callee == index.end() || callee->second == i)
        return;
      isCalled[callee->second] = 1;
      if (!llvm::is_contained(calls[i], callee->second))
        calls[i].push_back(callee->second);
    });
}

void SharedBudget::visit(size_t i, SmallVectorImpl<size_t> &done) {
  SmallVector<std::pair<size_t, size_t>> path{{i, 0}};
  llvm::SmallDenseSet<size_t> seen(done.begin(), done.end());
  if (!seen.insert(i).second)
    return;
  while (!path.empty()) {
    auto &[function, next] = path.back();
    if (next == calls[function].size()) {
      done.push_back(function);
      path.pop_back();
      continue;
    }
    size_t callee = calls[function][next++];
    if (seen.insert(callee).second)
      path.push_back({callee, 0});
  }
}

LogicalResult SharedBudget::plan(size_t i, MemoryBudget budget,
                                 bool ignorePolicy) {
  // The arguments of private functions with callers are their callers'
  // operands.
  auto isCallersOwn = [&](size_t f) {
    return isCalled[f] && FunctionOpInterface(functions[f]).isPrivate();
  };
  SmallVector<FunctionOpInterface> sharing{functions[i]};
  if (!isCallersOwn(i))
    for (size_t f = 0; f < functions.size(); ++f)
      if (f != i && !isCallersOwn(f))
        sharing.push_back(functions[f]);
  FailureOr<int64_t> reserved =
      getReservedBytes(functions[i], sharing, options.hooks);
  if (failed(reserved))
    return failure();
  RematOptions request = options;
  request.budget = budget;
  request.reservedBytes = *reserved;
  request.ignorePolicy |= ignorePolicy;
  request.hooks.callee =
      [&](FunctionOpInterface callee) -> std::optional<int64_t> {
    if (options.hooks.callee)
      if (std::optional<int64_t> bytes = options.hooks.callee(callee))
        return bytes;
    auto found = callBytes.find(callee);
    return found == callBytes.end() ? std::nullopt
                                    : std::optional(found->second);
  };
  request.calleePlan = [&](FunctionOpInterface callee) -> const RematPlan * {
    auto found = index.find(callee);
    return found == index.end() || !plans[found->second].wasPlanned()
               ? nullptr
               : &plans[found->second];
  };
  if (ignorePolicy) {
    request.plan.reset();
    request.hint.reset();
  }
  FailureOr<RematPlan> plan = planRemat(functions[i], request, costs);
  if (failed(plan))
    return failure();
  plans[i] = std::move(*plan);
  if (!calls[i].empty())
    plans[i].result.plan.scope.add(planner::Restriction::CalleePlans);
  isLeast[i] = budget.kind == Kind::Minimum;
  if (!plans[i].result.hasPlan())
    return success();
  callBytes[functions[i]] = std::max<int64_t>(
      plans[i].arena - plans[i].fixedBytes - resultBytes(i), 0);
  return success();
}

/// Returns the bytes of the buffers that the function returns, or returns views
/// of.
int64_t SharedBudget::returnedBytes(size_t i) const {
  int64_t sum = 0;
  for (const planner::Value &value : plans[i].problem.graph.values)
    if (value.kind == planner::ValueKind::Output)
      sum += planner::alignTo(value.bytes, plans[i].problem.graph.alignment);
  return sum;
}

/// Returns the bytes of results that callers count: those that the results
/// show, which may be less than the buffers that they are views of.
int64_t SharedBudget::resultBytes(size_t i) const {
  FunctionOpInterface function = functions[i];
  TypeSizes sizes(function, options.hooks);
  int64_t sum = 0;
  llvm::SmallDenseSet<Value> seen;
  for (Value result :
       function.getFunctionBody().front().getTerminator()->getOperands())
    if (!isa<BlockArgument>(result) && seen.insert(result).second)
      sum += planner::alignTo(sizes.bytes(result.getType()),
                              plans[i].problem.graph.alignment);
  return std::min(sum, returnedBytes(i));
}

/// If the function returns a view of a part of a buffer, the rest of the buffer
/// stays alive, too, and callers do not count it: refuse that.
LogicalResult SharedBudget::checkReturnedViews(size_t i) const {
  if (!isCalled[i] || !plans[i].result.hasPlan())
    return success();
  int64_t rest = returnedBytes(i) - resultBytes(i);
  if (rest <= 0)
    return success();
  FunctionOpInterface function = functions[i];
  bool refused = needsAllCounted(options);
  InFlightDiagnostic message =
      refused ? emitError(function.getLoc()) : emitRemark(function.getLoc());
  message << "@" << function.getName() << " returns views of buffers with "
          << rest
          << " bytes more, which its callers do not count after the call";
  if (refused)
    message << "; return copies, or give " << PassOption{"allow-uncounted"};
  return failure(refused);
}

/// Turns a ratio into bytes, based on the function with the largest arena.
LogicalResult SharedBudget::resolveRatio() {
  size_t largest = order.front();
  for (size_t i : order) {
    if (isOptional(i))
      continue;
    if (failed(plan(i, MemoryBudget(), /*ignorePolicy=*/true)))
      return failure();
    if (plans[i].fullArena > plans[largest].fullArena)
      largest = i;
  }
  options.budget = ofBytes(options.budget.resolve(plans[largest].fullArena,
                                                  plans[largest].fixedBytes));
  return success();
}

LogicalResult SharedBudget::findMinimum() {
  int64_t bytes = 0;
  for (size_t i : order) {
    // Callees stay as small as possible, because their callers need the room.
    if (bytes > 0 && !isCalled[i]) {
      if (failed(plan(i, ofBytes(bytes))))
        return failure();
      if (plans[i].result.hasPlan())
        continue;
    }
    if (bytes > 0 && isOptional(i)) {
      leaveOut(i);
      continue;
    }
    if (failed(plan(i, options.budget)) || failed(checkReturnedViews(i)))
      return failure();
    if (!plans[i].result.hasPlan())
      return fail(i);
    bytes = std::max(bytes, plans[i].arena);
  }
  // One function's minimum is a budget that all others may use.
  for (size_t i : order) {
    if (!plans[i].wasPlanned() || plans[i].budgetBytes >= bytes || isCalled[i])
      continue;
    RematPlan least = std::move(plans[i]);
    if (failed(plan(i, ofBytes(bytes))))
      return failure();
    if (!plans[i].result.hasPlan()) {
      plans[i] = std::move(least);
      plans[i].budgetBytes = bytes;
    }
  }
  return success();
}

/// Plans all callees, direct and indirect, for as few bytes as possible.
LogicalResult SharedBudget::shrinkCallees(size_t i) {
  SmallVector<size_t> below;
  visit(i, below);
  for (size_t callee : below) {
    if (callee == i || isLeast[callee])
      continue;
    MemoryBudget least;
    least.kind = Kind::Minimum;
    RematPlan before = plans[callee];
    if (failed(plan(callee, least)))
      return failure();
    if (!plans[callee].result.hasPlan())
      plans[callee] = std::move(before);
    else
      plans[callee].budgetBytes = before.budgetBytes;
  }
  return success();
}

LogicalResult SharedBudget::planAll() {
  for (size_t i : order) {
    if (failed(plan(i, options.budget)) || failed(checkReturnedViews(i)))
      return failure();
    if (!plans[i].result.hasPlan() && !calls[i].empty() &&
        (failed(shrinkCallees(i)) || failed(plan(i, options.budget))))
      return failure();
    if (!plans[i].result.hasPlan() && options.advise)
      plans[i].advice = options.advise(plans[i]);
    if (!plans[i].result.hasPlan() && !isOptional(i))
      return fail(i);
    if (!plans[i].result.hasPlan())
      leaveOut(i);
  }
  return success();
}

/// Says why a function is left out, and forgets its plan.
void SharedBudget::leaveOut(size_t i) {
  FunctionOpInterface function = functions[i];
  emitRemark(function.getLoc())
      << "@" << function.getName()
      << " is left out: " << describeNoPlan(function.getName(), plans[i])
      << plans[i].advice;
  plans[i] = RematPlan();
}

/// Reports that nothing fits, and records the figures on the function.
LogicalResult SharedBudget::fail(size_t i) {
  FunctionOpInterface function = functions[i];
  function->setAttr(kPlanAttr,
                    toAttribute(getFigures(plans[i]), function.getContext()));
  emitOnceRemark(function, plans[i], /*always=*/false);
  emitNoPlan(function, plans[i]);
  return failure();
}

LogicalResult SharedBudget::run(size_t first) {
  plans.clear();
  plans.resize(functions.size());
  findCalls();
  visit(first, order);
  for (size_t i = 0; i < functions.size(); ++i)
    visit(i, order);
  for (size_t i : order)
    annotateCosts(functions[i], costs);
  if (functions.size() > 1) {
    if (options.budget.kind == Kind::Minimum)
      return findMinimum();
    if (options.budget.kind != Kind::Unlimited &&
        options.budget.kind != Kind::Bytes && failed(resolveRatio()))
      return failure();
  }
  return planAll();
}

/// Reports everything that cannot be planned or counted, in all functions.
static LogicalResult checkSupported(ArrayRef<FunctionOpInterface> functions,
                                    const RematOptions &options) {
  LogicalResult status = success();
  for (FunctionOpInterface function : functions) {
    Location where = function.getLoc();
    if (std::string what = findUnsupported(function, &where, options.hooks);
        !what.empty()) {
      status = emitError(where) << what;
      continue;
    }
    std::vector<Uncounted> uncounted =
        findUncounted(function, planningContext(options));
    if (needsAllCounted(options) && failed(checkCounted(function, uncounted)))
      status = failure();
    else
      emitUncountedRemarks(function, uncounted);
  }
  return status;
}

/// Warns if a profile matches no op: it may be for another program, or have a
/// typing error.
static void checkProfile(ArrayRef<FunctionOpInterface> functions,
                         const RematOptions &options,
                         ArrayRef<RematPlan> plans) {
  if (!options.costs.profile || !options.costs.profile->hasEntries() ||
      llvm::any_of(plans, [](const RematPlan &plan) {
        return plan.problem.costs.profile > 0;
      }))
    return;
  FunctionOpInterface first = functions.front();
  emitWarning(first.getLoc())
      << "no entry of the profile agrees with any op of @" << first.getName()
      << (functions.size() > 1 ? " or the others" : "")
      << "; costs are estimates";
}

const RematPlan *RematResult::mainPlan() const {
  if (plans.empty())
    return nullptr;
  auto step = llvm::find_if(plans, [](const RematPlan &plan) {
    StringRef name = plan.problem.graph.name;
    return name == "step" || name.ends_with("::step");
  });
  const RematPlan &main = step == plans.end() ? plans.front() : *step;
  return main.wasPlanned() ? &main : nullptr;
}

LogicalResult ckopt::runRemat(ArrayRef<FunctionOpInterface> functions,
                              const RematOptions &given, RematResult &result) {
  if (functions.empty())
    return success();
  RematOptions options = given;
  Described described(FunctionOpInterface(functions.front()), options);
  if (failed(described.status()))
    return failure();
  if (failed(checkSupported(functions, options)) ||
      failed(checkPolicyMatches(functions, options.policy)) ||
      failed(checkStoredPlan(functions, options)))
    return failure();
  size_t first = 0;
  for (auto [i, function] : llvm::enumerate(functions))
    if (FunctionOpInterface(function).getName() == "step")
      first = i;
  std::vector<RematPlan> &plans = result.plans;
  if (failed(SharedBudget(functions, options, plans).run(first)))
    return failure();
  // The budget that the plans end with is the one that windows have.
  for (RematPlan &plan : plans) {
    if (!plan.wasPlanned())
      continue;
    timePlan(plan);
    plan.clock.reset();
  }
  checkProfile(functions, options, plans);
  for (auto [function, plan] : llvm::zip(functions, plans)) {
    if (!plan.wasPlanned()) { // optional
      FunctionOpInterface(function).erase();
      continue;
    }
    emitOnceRemark(function, plan, options.remarks);
    FunctionOpInterface own = function;
    if (plan.ownCountAlone && isLarge(own))
      emitRemark(own.getLoc())
          << "@" << own.getName()
          << " is too large to be lowered on trial: bytes are those that the "
             "plan counts, and what runs may take more";
    if (plan.unchanged)
      emitRemark(own.getLoc())
          << "@" << own.getName() << " stays as it is"
          << (plan.policy.given ? ", whatever its policy asks for" : "")
          << ": it takes " << formatBytesExact(plan.arena)
          << (plan.lowered > 0 ? " once bufferized" : "")
          << ", and no plan that was found takes less without more work";
    emitPlanRemarks(function, plan, options.remarks);
    applyRemat(function, plan);
  }
  return success();
}
