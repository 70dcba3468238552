//===- BudgetFlags.cpp - the flags of budget, policy and search ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/SearchFlags.h"
#include "ckopt/Planner/SearchOptions.h"
#include "ckopt/Settings/Flags.h"
#include "ckopt/Support/ByteSize.h"

using namespace ckopt;
using llvm::StringRef;

using namespace ckopt::takers;

llvm::Error DriverFlags::setBudget(const MessageText &flag,
                                   const MemoryBudget &budget) {
  if (!budgetFlag.empty() && budgetFlag != flag)
    return usageError("give one of " + budgetFlag + " and " + flag);
  budgetFlag = flag;
  o.compile.step.remat.budget = budget;
  return llvm::Error::success();
}

void DriverFlags::addBudgetFlags() {
  table.beginSection("Memory and the plan");
  readBy("remat");
  StepOptions &step = o.compile.step;
  unsigned one = Stepping & ~Compare;
  add("memory-budget", "BYTES", one,
      "real peak: 512MiB, 2GB, plain bytes, 0.6x (" + Setting("budget-ratio") +
          "), min, or device (what is free on " + Setting("device") + ")",
      [this](StringRef text) -> llvm::Error {
        budgetOfDevice = text == "device";
        if (budgetOfDevice)
          return setBudget(Setting("memory-budget"), {});
        auto budget = parseMemoryBudget(text);
        if (!budget)
          return budget.takeError();
        if (budget->kind == MemoryBudget::Kind::Bytes && budget->bytes == 0)
          return usageError(
              Setting("memory-budget") +
              ": 0 bytes hold nothing; 'min' asks for the smallest possible");
        return setBudget(Setting("memory-budget"), *budget);
      });
  auto ratio = [this](const MessageText &flag, MemoryBudget::Kind kind) {
    return [this, flag, kind](StringRef text) -> llvm::Error {
      auto budget = parseBudgetRatio(text, kind, flag);
      if (!budget)
        return budget.takeError();
      return setBudget(flag, *budget);
    };
  };
  add("budget-ratio", "R", one, "R times the arena without recomputation",
      ratio(Setting("budget-ratio"), MemoryBudget::Kind::Ratio));
  add("activation-ratio", "R", one,
      "R applied to the part that recomputation can reduce",
      ratio(Setting("activation-ratio"), MemoryBudget::Kind::ActivationRatio));
  add("minimum", "", one, "the smallest budget that can be found",
      [this](StringRef) {
        MemoryBudget budget;
        budget.kind = MemoryBudget::Kind::Minimum;
        return setBudget(Setting("minimum"), budget);
      });
  add("budgets", "LIST", Compare,
      "budgets, ratios (0.6) or min, separated by commas (default "
      "none,0.6,min)",
      [this](StringRef text) -> llvm::Error {
        llvm::SmallVector<StringRef> parts;
        text.split(parts, ',');
        for (StringRef part : parts) {
          double ratioValue;
          if (part == "none") {
            o.budgets.push_back({});
          } else if (part.contains('.') && !part.getAsDouble(ratioValue)) {
            auto budget = parseBudgetRatio(part, MemoryBudget::Kind::Ratio,
                                           Setting("budgets"));
            if (!budget)
              return budget.takeError();
            o.budgets.push_back(*budget);
          } else {
            auto budget = parseMemoryBudget(part, Setting("budgets"));
            if (!budget)
              return budget.takeError();
            o.budgets.push_back(*budget);
          }
        }
        return llvm::Error::success();
      });
  addPolicyFlags();
  readBy("");
  add("pareto", "[=N]", Plan,
      "plan N budgets (default 11) from the smallest to no recomputation; -o "
      "writes the curve (ckopt-pareto/1)",
      [this](StringRef text) -> llvm::Error {
        o.paretoPoints = 11;
        return text.empty()
                   ? llvm::Error::success()
                   : flag::number<int>("pareto", o.paretoPoints, 2, 1000)(text);
      });
  add("graph-out", "FILE", Plan,
      "write the planning graph (ckopt-graph/1) for ckopt-plan",
      flag::outputFile("graph-out", o.graphOut));
  table.beginSection("The search for the plan");
  readBy("remat");
  // The search flags have the same names as in ckopt-plan.
  planner::addSearchFlags(
      step.remat.search,
      [&](const planner::SearchOption &row, Flag::Store store) {
        add(row.flag, row.value, Stepping, row.help, std::move(store));
      });
  add("cost-model", "MODEL", Stepping,
      "times of kernels: analytic (default) or profile=FILE, as bench " +
          Setting("profile-out") + " writes it",
      flag::reads(flag::text("cost-model", o.costModel), o.costModel,
                  "profile="));
  readBy("");
}

void DriverFlags::addPolicyFlags() {
  table.beginSection("What is kept and what is computed again");
  readBy("remat");
  StepOptions &step = o.compile.step;
  unsigned one = Stepping & ~Compare;
  auto rules = [](std::vector<std::string> &list) {
    return [&list](StringRef text) -> llvm::Error {
      list.push_back(text.str());
      return llvm::Error::success();
    };
  };
  add("remat", "POLICY", Stepping,
      "auto (default), per-block, sequential:K, nothing_saveable, "
      "dots_saveable, ... (docs/checkpointing.md)",
      [&step](StringRef text) {
        return parseRematMode(text, step.remat.policy);
      });
  add("save", "RULE", Stepping,
      "values that stay: a regular expression on node names, or op:, scope:, "
      "class: and one (repeatable)",
      rules(step.remat.policy.save));
  add("recompute", "RULE", Stepping,
      "values to compute again for the backward pass (repeatable)",
      rules(step.remat.policy.recompute));
  add("auto", "RULE", Stepping,
      "values that the planner decides about (repeatable)",
      rules(step.remat.policy.automatic));
  add("checkpoint-region", "RULE", Stepping,
      "modules, by name or class, that keep only their inputs (repeatable)",
      rules(step.remat.policy.checkpoint));
  add("plan", "FILE", one,
      "take the plan from a file of " + Setting("plan-out"),
      flag::inputFile("plan", o.plan));
  add("plan-hint", "FILE", one,
      "start from a plan of " + Setting("plan-out") +
          "; the answer is never worse",
      flag::inputFile("plan-hint", o.planHint));
  add("remat-compare", "HOW", Stepping,
      "what a policy costs against a plan without it: quick (default: with at "
      "most a quarter more work), on (as long as for the policy), off",
      [&step](StringRef text) -> llvm::Error {
        auto how = parseComparison(text, Setting("remat-compare"));
        if (!how)
          return how.takeError();
        step.remat.compare = *how;
        return llvm::Error::success();
      });
  readBy("");
  unsigned command = one & ~Program;
  add("plan-out", "FILE", command, "write the plan; it may be edited",
      flag::outputFile("plan-out", o.planOut, Setting("plan-hint")));
  add("plan-report", "FILE", command,
      "each value that is kept or computed again, and why (JSON)",
      flag::outputFile("plan-report", o.planReport));
}
