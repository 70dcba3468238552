//===- Strategy.cpp - the table of strategies -----------------------------===//
#include "Strategy.h"
#include "Classic.h"
#include "Windows.h"

using namespace ckopt::planner;

namespace {
/// Orders alone, no recomputation.
void runNone(StrategyContext &context) {
  for (const std::vector<NodeId> &order : context.orders)
    context.report(order);
}
} // namespace

const std::vector<Strategy> &ckopt::planner::strategies() {
  static const std::vector<Strategy> table = {
      {"none", runNone, Tier::Construct},
      {"exact", runExact, Tier::Exact},
      {"exact-order", runExactOrder, Tier::Exact},
      {"blocks", runBlocks, Tier::Construct},
      {"dtr", runGreedy, Tier::Construct},
      {"segments", runSegments, Tier::Construct},
      {"prices", runPrices, Tier::Construct},
      {"rotor", runRotor, Tier::Construct},
      {"local-search", runLocalSearch, Tier::Improve},
      {"windows", runWindows, Tier::Improve, mostWindowsNodes},
      {"all", runAll, Tier::Named},
      {"greedy", runByBytes, Tier::Named},
      {"sqrt", runSqrt, Tier::Named},
      {"revolve", runRevolve, Tier::Named},
      {"mincut", runMinCut, Tier::Named},
      {"lowerset", runLowerSet, Tier::Named},
  };
  return table;
}

std::vector<std::string> ckopt::planner::strategyNames() {
  std::vector<std::string> names{"auto"};
  for (const Strategy &strategy : strategies())
    names.push_back(strategy.name);
  return names;
}
