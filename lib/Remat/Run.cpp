//===- Run.cpp - all functions under one budget ---------------------------===//
//
// Problem: the functions of a module share one arena, hence one budget. What
// does a relative one mean?
// Method: a ratio is one of the largest arena that a function takes without
// recomputation. The minimum is the least that all functions fit: each that
// does not fit what the ones before it need is asked for its own minimum; then
// those that had to do with less are planned again with what there is.
// Guarantee: every plan that is applied fits the budget; nothing is applied
// where one function fails. Complexity: planning each function up to twice, and
// once more without a budget for ratios.
//
//===----------------------------------------------------------------------===//
#include "Planning.h"
#include "ckopt/Remat/Figures.h"
#include "ckopt/Support/Error.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ckopt;

using Kind = MemoryBudget::Kind;

namespace {

class SharedBudget {
public:
  SharedBudget(ArrayRef<func::FuncOp> functions, const RematOptions &options,
               std::vector<RematPlan> &plans)
      : functions(functions), options(options), costs(options.costs),
        plans(plans) {}
  /// Plans all functions, `first` first.
  ExitCode run(size_t first);

private:
  LogicalResult plan(size_t i, MemoryBudget budget, bool ignorePolicy = false);
  LogicalResult resolveRatio();
  ExitCode findMinimum(ArrayRef<size_t> order);
  ExitCode planAll(ArrayRef<size_t> order);
  ExitCode fail(size_t i);

  ArrayRef<func::FuncOp> functions;
  RematOptions options;
  CostModel costs;
  std::vector<RematPlan> &plans;
};

} // namespace

static MemoryBudget ofBytes(int64_t bytes) {
  MemoryBudget budget;
  budget.kind = Kind::Bytes;
  budget.bytes = bytes;
  return budget;
}

LogicalResult SharedBudget::plan(size_t i, MemoryBudget budget,
                                 bool ignorePolicy) {
  FailureOr<int64_t> reserved = getReservedBytes(functions[i], functions);
  if (failed(reserved))
    return failure();
  RematOptions request = options;
  request.budget = budget;
  request.reservedBytes = *reserved;
  request.ignorePolicy |= ignorePolicy;
  if (ignorePolicy) {
    request.planFile.clear();
    request.planHint.clear();
  }
  FailureOr<RematPlan> plan = planRemat(functions[i], request, costs);
  if (failed(plan))
    return failure();
  plans[i] = std::move(*plan);
  return success();
}

/// Bytes for a ratio: one of the function with the largest arena.
LogicalResult SharedBudget::resolveRatio() {
  size_t largest = 0;
  for (size_t i = 0; i < functions.size(); ++i) {
    if (failed(plan(i, MemoryBudget(), /*ignorePolicy=*/true)))
      return failure();
    if (plans[i].fullArena > plans[largest].fullArena)
      largest = i;
  }
  options.budget = ofBytes(options.budget.resolve(plans[largest].fullArena,
                                                  plans[largest].fixedBytes));
  return success();
}

ExitCode SharedBudget::findMinimum(ArrayRef<size_t> order) {
  int64_t bytes = 0;
  for (size_t i : order) {
    if (bytes > 0) {
      if (failed(plan(i, ofBytes(bytes))))
        return ExitInputError;
      if (plans[i].result.hasPlan())
        continue;
    }
    if (failed(plan(i, options.budget)))
      return ExitInputError;
    if (!plans[i].result.hasPlan())
      return fail(i);
    bytes = std::max(bytes, plans[i].arena);
  }
  // Others may use what one of them needs.
  for (size_t i : order) {
    if (plans[i].budgetBytes >= bytes)
      continue;
    RematPlan least = std::move(plans[i]);
    if (failed(plan(i, ofBytes(bytes))))
      return ExitInputError;
    if (!plans[i].result.hasPlan()) {
      plans[i] = std::move(least);
      plans[i].budgetBytes = bytes;
    }
  }
  return ExitOk;
}

ExitCode SharedBudget::planAll(ArrayRef<size_t> order) {
  for (size_t i : order) {
    if (failed(plan(i, options.budget)))
      return ExitInputError;
    if (!plans[i].result.hasPlan())
      return fail(i);
  }
  return ExitOk;
}

/// Says that nothing fits, and leaves what is known on the function.
ExitCode SharedBudget::fail(size_t i) {
  func::FuncOp function = functions[i];
  function->setAttr(kPlanAttr,
                    toAttribute(getFigures(plans[i]), function.getContext()));
  return emitNoPlan(function, plans[i]);
}

ExitCode SharedBudget::run(size_t first) {
  SmallVector<size_t> order{first};
  for (size_t i = 0; i < functions.size(); ++i)
    if (i != first)
      order.push_back(i);
  plans.clear();
  plans.resize(functions.size());
  for (size_t i : order)
    annotateCosts(functions[i], costs);
  if (functions.size() > 1) {
    if (options.budget.kind == Kind::Minimum)
      return findMinimum(order);
    if (options.budget.kind != Kind::Unlimited &&
        options.budget.kind != Kind::Bytes && failed(resolveRatio()))
      return ExitInputError;
  }
  return planAll(order);
}

/// Tells of everything that cannot be planned, in all functions.
static LogicalResult checkSupported(ArrayRef<func::FuncOp> functions) {
  LogicalResult status = success();
  for (func::FuncOp function : functions) {
    Location where = function.getLoc();
    if (std::string what = findUnsupported(function, &where); !what.empty())
      status = emitError(where) << what;
  }
  return status;
}

/// Memory that the function allocates itself is no part of any plan.
static void remarkAllocations(func::FuncOp function) {
  Operation *first = nullptr;
  int64_t count = 0;
  function.walk([&](Operation *op) {
    if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<BaseMemRefType>) ||
        !hasEffect<MemoryEffects::Allocate>(op))
      return;
    first = first ? first : op;
    ++count;
  });
  if (first)
    first->emitRemark() << "the plan of @" << function.getSymName()
                        << " does not count the bytes of what is allocated "
                           "here"
                        << (count > 1 ? " and by " + std::to_string(count - 1) +
                                            " more ops"
                                      : "");
}

/// A profile of other ops, or with a typing error, would be without effect.
static void checkProfile(ArrayRef<func::FuncOp> functions,
                         const RematOptions &options,
                         ArrayRef<RematPlan> plans) {
  if (!options.costs.profile || !options.costs.profile->hasEntries() ||
      llvm::any_of(plans, [](const RematPlan &plan) {
        return plan.problem.costs.profile > 0;
      }))
    return;
  func::FuncOp first = functions.front();
  emitWarning(first.getLoc())
      << "no entry of the profile agrees with any op of @" << first.getSymName()
      << (functions.size() > 1 ? " or the others" : "")
      << "; costs are estimates";
}

ExitCode ckopt::runRemat(ArrayRef<func::FuncOp> functions,
                         const RematOptions &options, bool remarks,
                         std::vector<RematPlan> &plans) {
  if (functions.empty())
    return ExitOk;
  if (failed(checkSupported(functions)) ||
      failed(checkPolicyMatches(functions, options.policy)) ||
      failed(checkPlanFile(functions, options)))
    return ExitInputError;
  size_t first = 0;
  for (auto [i, function] : llvm::enumerate(functions))
    if (func::FuncOp(function).getSymName() == "step")
      first = i;
  ExitCode code = SharedBudget(functions, options, plans).run(first);
  // A file of the function that nothing fits says what is known.
  bool planned = code == ExitOk ||
                 (plans[first].wasPlanned() && !plans[first].result.hasPlan());
  if (!options.planOut.empty() && planned)
    if (llvm::Error error = writePlanFile(options.planOut, plans[first])) {
      ErrorText text = takeErrorText(std::move(error));
      emitError(func::FuncOp(functions[first]).getLoc()) << text.text;
      return code == ExitOk ? text.code : code;
    }
  if (code != ExitOk)
    return code;
  checkProfile(functions, options, plans);
  for (auto [function, plan] : llvm::zip(functions, plans)) {
    remarkAllocations(function);
    emitPlanRemarks(function, plan, remarks);
    applyRemat(function, plan);
  }
  return ExitOk;
}
