//===- Baselines.cpp - the table of published strategies ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: one name for each strategy of the literature that ckopt is
// compared with. Method: a table of functions that others look names up in; no
// search.
//
//===----------------------------------------------------------------------===//
#include "Baselines/Baselines.h"
#include "Baselines/Classic.h"

const std::vector<ckopt::planner::Strategy> &ckopt::planner::baselines() {
  static const std::vector<Strategy> table = {
      {"rotor", runRotor, Tier::Named},
      {"all", runAll, Tier::Named},
      {"greedy", runByBytes, Tier::Named},
      {"sqrt", runSqrt, Tier::Named},
      {"revolve", runRevolve, Tier::Named},
      {"mincut", runMinCut, Tier::Named},
      {"lowerset", runLowerSet, Tier::Named},
  };
  return table;
}
