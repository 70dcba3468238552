//===- Options.cpp - the pass's options as those of the library -----------===//
//
// The one way from text to RematOptions, for the pass and for clients that plan
// by planRemat(). An option that is given empty is one that is left out: MLIR
// prints pipelines with all options in them.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Remat/Passes.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ckopt;

/// `budget` as bytes, or `min`.
static llvm::Expected<MemoryBudget> parseBytes(StringRef budget) {
  MemoryBudget result;
  result.kind = MemoryBudget::Kind::Minimum;
  if (budget.trim() == "min")
    return result;
  llvm::Expected<int64_t> bytes = parseByteSize(budget);
  if (!bytes)
    return usageError("budget: " + takeErrorText(bytes.takeError()).text +
                      ", '0.6x' for a share of the peak without "
                      "recomputation, or 'min' for the smallest possible");
  if (*bytes == 0)
    return usageError("budget: 0 bytes hold nothing; 'min' asks for the "
                      "smallest possible");
  result.kind = MemoryBudget::Kind::Bytes;
  result.bytes = *bytes;
  return result;
}

/// The budget that the options ask for.
static llvm::Expected<MemoryBudget>
parseBudget(const RematPassOptions &options) {
  int given = !options.budget.empty() + !options.budgetRatio.empty() +
              !options.activationRatio.empty();
  if (given > 1)
    return usageError("give one of budget, budget-ratio and "
                      "activation-ratio");
  if (StringRef text = options.budget; text.consume_back_insensitive("x"))
    return parseBudgetRatio(text, MemoryBudget::Kind::Ratio, "budget");
  if (!options.budget.empty())
    return parseBytes(options.budget);
  if (!options.budgetRatio.empty())
    return parseBudgetRatio(options.budgetRatio, MemoryBudget::Kind::Ratio,
                            "budget-ratio");
  if (!options.activationRatio.empty())
    return parseBudgetRatio(options.activationRatio,
                            MemoryBudget::Kind::ActivationRatio,
                            "activation-ratio");
  return MemoryBudget();
}

/// Puts rules that are separated by `;` behind those that are there.
static llvm::Error addRules(StringRef option, StringRef rules,
                            std::vector<std::string> &texts) {
  SmallVector<StringRef> parts;
  rules.split(parts, ';', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    texts.push_back(part.str());
  if (parts.empty() && !rules.empty())
    return usageError(option + ": there is no rule in '" + rules + "'");
  return llvm::Error::success();
}

static llvm::Error parsePolicy(const RematPassOptions &options,
                               RematPolicy &policy) {
  if (llvm::Error error = addRules("save", options.save, policy.save))
    return error;
  if (llvm::Error error =
          addRules("recompute", options.recompute, policy.recompute))
    return error;
  if (llvm::Error error = addRules("auto", options.automatic, policy.automatic))
    return error;
  if (llvm::Error error =
          addRules("checkpoint", options.checkpoint, policy.checkpoint))
    return error;
  if (options.policy != "auto" && !options.policy.empty())
    if (llvm::Error error = parseRematMode(options.policy, policy))
      return error;
  return checkPolicyForm(policy);
}

/// How to search, and within which limits.
static llvm::Error parseSearch(const RematPassOptions &options,
                               planner::Options &search) {
  if (!llvm::is_contained(planner::strategyNames(), options.strategy))
    return usageError("unknown strategy '" + options.strategy +
                      "'; known are " +
                      llvm::join(planner::strategyNames(), ", "));
  if (!(options.timeLimit >= 0) || !(options.effort >= 0) ||
      options.workLimit < 0 || options.threads < 0)
    return usageError("time-limit, work-limit, effort and threads must not "
                      "be negative");
  if (options.orderOnly && options.fixedOrder)
    return usageError("order-only and fixed-order leave nothing to search");
  search.strategy = options.strategy;
  search.timeLimitSeconds = options.timeLimit;
  search.workLimit = options.workLimit;
  search.effort = options.effort;
  search.seed = options.seed;
  search.threads = std::min<int>(options.threads, 256);
  search.searchToLimit = options.searchToLimit;
  search.fixedOrder = options.fixedOrder;
  search.orderOnly = options.orderOnly;
  return llvm::Error::success();
}

llvm::Expected<RematOptions>
ckopt::parseRematOptions(const RematPassOptions &options, RematPolicy policy) {
  RematOptions result;
  result.policy = std::move(policy);
  if (llvm::Error error = parsePolicy(options, result.policy))
    return error;
  llvm::Expected<MemoryBudget> budget = parseBudget(options);
  if (!budget)
    return budget.takeError();
  result.budget = *budget;
  if (llvm::Error error = parseSearch(options, result.search))
    return error;
  auto compare = llvm::StringSwitch<std::optional<Comparison>>(options.compare)
                     .Case("quick", Comparison::Quick)
                     .Case("on", Comparison::On)
                     .Case("off", Comparison::Off)
                     .Default(std::nullopt);
  if (!compare)
    return usageError("compare: '" + options.compare +
                      "' is not one of quick, on, off");
  result.compare = *compare;
  llvm::Expected<CostOptions> costs = parseCostModel(options.costModel);
  if (!costs)
    return costs.takeError();
  result.costs = std::move(*costs);
  result.allowUncounted = options.allowUncounted;
  result.planFile = options.planFile;
  result.planHint = options.planHint;
  result.planOut = options.planOut;
  return result;
}
