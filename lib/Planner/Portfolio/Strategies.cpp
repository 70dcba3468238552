//===- Strategies.cpp - the table of strategies ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which strategies there are and when `auto` runs each. What each one aims at,
// how, and when it gives up stands at its own file's head.
//
//===----------------------------------------------------------------------===//
#include "Portfolio/Strategies.h"
#include "Construct/Construct.h"
#include "ExactOrder/ExactOrder.h"
#include "Improve/Improve.h"
#include "ckopt/Planner/Solve.h"

using namespace ckopt::planner;

namespace {
/// Reports orders without recomputation.
void runNone(StrategyContext &context) {
  for (const std::vector<NodeId> &order : context.orders)
    context.report(order);
}
} // namespace

const std::vector<Strategy> &ckopt::planner::strategies() {
  static const std::vector<Strategy> table = {
      {"none", runNone, Tier::Construct},
      {"exact-order", runExactOrder, Tier::Exact},
      {"dtr", runEviction, Tier::Construct},
      {"segments", runSegments, Tier::Construct},
      {"prices", runPrices, Tier::Construct},
      {"local-search", runLocalSearch, Tier::Improve},
  };
  return table;
}

std::vector<std::string>
ckopt::planner::strategyNames(const std::vector<Strategy> *more) {
  std::vector<std::string> names{"auto"};
  for (const Strategy &strategy : strategies())
    names.push_back(strategy.name);
  if (more)
    for (const Strategy &strategy : *more)
      names.push_back(strategy.name);
  return names;
}
