//===- Options.cpp - the pass's options as those of the library -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Converts RematOptions from text and back; no other code does. An empty option
// counts as not given, because MLIR prints pipelines with all options in them.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Interfaces/Compat.h"
#include "ckopt/Planner/SearchOptions.h"
#include "ckopt/Remat/Passes.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ckopt;

/// Parses `budget` as bytes, or `min`.
static llvm::Expected<MemoryBudget> parseBytes(StringRef budget) {
  MemoryBudget result;
  result.kind = MemoryBudget::Kind::Minimum;
  if (budget.trim() == "min")
    return result;
  llvm::Expected<int64_t> bytes = parseByteSize(budget);
  if (!bytes)
    return usageError("budget: " + takeErrorText(bytes.takeError()).message +
                      ", '0.6x' for a share of the peak without "
                      "recomputation, or 'min' for the smallest possible");
  if (*bytes == 0)
    return usageError("budget: 0 bytes hold nothing; 'min' asks for the "
                      "smallest possible");
  result.kind = MemoryBudget::Kind::Bytes;
  result.bytes = *bytes;
  return result;
}

/// Returns the budget that the options ask for.
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

/// Parses rules that are separated by `;`; a `;` within a rule is written
/// `\\;`.
static llvm::Error addRules(StringRef option, StringRef rules,
                            std::vector<std::string> &texts) {
  size_t before = texts.size();
  std::string rule;
  auto finish = [&] {
    if (!rule.empty())
      texts.push_back(std::move(rule));
    rule.clear();
  };
  for (size_t i = 0; i < rules.size(); ++i) {
    if (rules[i] == ';')
      finish();
    else if (rules[i] == '\\' && i + 1 < rules.size() && rules[i + 1] == ';')
      rule += rules[++i];
    else
      rule += rules[i];
  }
  finish();
  if (texts.size() == before && !rules.empty())
    return usageError(option + ": there is no rule in '" + rules + "'");
  return llvm::Error::success();
}

static std::string joinRules(ArrayRef<std::string> rules) {
  std::string text;
  for (const std::string &rule : rules) {
    text += text.empty() ? "" : ";";
    for (char c : rule)
      text += c == ';' ? std::string("\\;") : std::string(1, c);
  }
  return text;
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

static constexpr std::pair<StringRef, Comparison> comparisons[] = {
    {"quick", Comparison::Quick},
    {"on", Comparison::On},
    {"off", Comparison::Off},
};

llvm::Expected<Comparison> ckopt::parseComparison(StringRef text,
                                                  const MessageText &name) {
  for (auto [how, value] : comparisons)
    if (how == text)
      return value;
  return usageError(name + ": '" + text + "' is not one of quick, on, off");
}

static llvm::Error readPlan(const std::string &path,
                            std::optional<StoredPlan> &plan) {
  if (path.empty())
    return llvm::Error::success();
  llvm::Expected<StoredPlan> read = StoredPlan::read(path);
  if (!read)
    return read.takeError();
  plan = std::move(*read);
  return llvm::Error::success();
}

static llvm::Error readTables(ArrayRef<std::string> paths, OpTables &tables) {
  for (const std::string &path : paths) {
    if (path.empty())
      continue;
    llvm::Expected<OpTable> table = OpTable::read(path);
    if (!table)
      return table.takeError();
    tables.push_back(std::make_shared<const OpTable>(std::move(*table)));
  }
  return llvm::Error::success();
}

static llvm::Error parseApart(StringRef text, std::string &result) {
  if (text.empty())
    return llvm::Error::success();
  if (text != "barrier" && text != "attribute" && !text.contains('.'))
    return usageError("apart: '" + text +
                      "' is not one of barrier, attribute, or the name of an "
                      "op (dialect.op)");
  result = text.str();
  return llvm::Error::success();
}

llvm::Expected<RematOptions>
ckopt::parseRematOptions(const RematPassOptions &options,
                         const planner::Options &search) {
  RematOptions result;
  if (llvm::Error error = parsePolicy(options, result.policy))
    return error;
  llvm::Expected<MemoryBudget> budget = parseBudget(options);
  if (!budget)
    return budget.takeError();
  result.budget = *budget;
  if (llvm::Error error =
          planner::checkSearch(search, planner::OptionStyle::Pass))
    return error;
  result.search = search;
  llvm::Expected<Comparison> compare =
      parseComparison(options.compare, "compare");
  if (!compare)
    return compare.takeError();
  result.compare = *compare;
  llvm::Expected<CostOptions> costs = parseCostModel(options.costModel);
  if (!costs)
    return costs.takeError();
  result.costs = std::move(*costs);
  result.allowUncounted = options.allowUncounted;
  result.overlap = options.overlap;
  result.remarks = options.remarks;
  result.optional.assign(options.optional.begin(), options.optional.end());
  if (llvm::Error error = parseApart(options.apart, result.apart))
    return error;
  if (llvm::Error error = readTables(options.rematOps, result.ops))
    return error;
  if (llvm::Error error = readPlan(options.planFile, result.plan))
    return error;
  if (llvm::Error error = readPlan(options.planHint, result.hint))
    return error;
  return result;
}

static void printBudget(const MemoryBudget &budget, RematPassOptions &texts) {
  auto share = [&] {
    std::string text;
    llvm::raw_string_ostream(text) << Real(budget.ratio);
    return text;
  };
  switch (budget.kind) {
  case MemoryBudget::Kind::Unlimited:
    return;
  case MemoryBudget::Kind::Bytes:
    texts.budget = std::to_string(budget.bytes);
    return;
  case MemoryBudget::Kind::Ratio:
    texts.budgetRatio = share();
    return;
  case MemoryBudget::Kind::ActivationRatio:
    texts.activationRatio = share();
    return;
  case MemoryBudget::Kind::Minimum:
    texts.budget = "min";
    return;
  }
}

RematPassOptions ckopt::printedOptions(const RematOptions &options) {
  RematPassOptions texts;
  printBudget(options.budget, texts);
  texts.costModel = options.costs.source;
  const RematPolicy &policy = options.policy;
  texts.policy = printRematMode(policy);
  texts.save = joinRules(policy.save);
  texts.recompute = joinRules(policy.recompute);
  texts.automatic = joinRules(policy.automatic);
  texts.checkpoint = joinRules(policy.checkpoint);
  if (options.plan)
    texts.planFile = options.plan->source;
  if (options.hint)
    texts.planHint = options.hint->source;
  for (auto [name, value] : comparisons)
    if (value == options.compare)
      texts.compare = name.str();
  texts.apart = options.apart;
  std::vector<std::string> tables;
  for (const auto &table : options.ops)
    tables.push_back(table->source().str());
  compat::addTo(texts.rematOps, tables);
  compat::addTo(texts.optional, options.optional);
  texts.remarks = options.remarks;
  texts.allowUncounted = options.allowUncounted;
  texts.overlap = options.overlap;
  return texts;
}
