//===- GapKnapsack.cpp - prices of bytes without linear programs ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In place of GapLp.cpp (-DCKOPT_CLP=OFF). Method: prices at the position alone
// that needs most, where the program is a fractional knapsack: arcs save by
// their cost a byte, and the price is that of the last one. Guarantee: as any
// prices, these give a valid bound, a weaker one. Complexity: sorting the arcs.
//
//===----------------------------------------------------------------------===//
#include "Bounds/GapLp.h"

#include <algorithm>
#include <utility>

using namespace ckopt::planner;

std::vector<double> ckopt::planner::bestPrices(const SavingProblem &problem,
                                               std::vector<double> *saved) {
  if (saved)
    saved->assign(problem.arcs.size(), 0);
  auto most = std::max_element(problem.need.begin(), problem.need.end());
  if (most == problem.need.end() || *most <= 0)
    return {};
  auto position = int32_t(most - problem.need.begin());
  std::vector<size_t> over;
  for (size_t a = 0; a < problem.arcs.size(); ++a)
    if (problem.arcs[a].first <= position && problem.arcs[a].last >= position &&
        problem.arcs[a].bytes > 0)
      over.push_back(a);
  auto price = [&](size_t a) {
    return problem.arcs[a].cost / problem.arcs[a].bytes;
  };
  std::sort(over.begin(), over.end(), [&](size_t a, size_t b) {
    return std::pair(price(a), a) < std::pair(price(b), b);
  });
  std::vector<double> prices(problem.need.size(), 0);
  double missing = double(*most);
  for (size_t a : over) {
    if (missing <= 0)
      break;
    double bytes = std::min(missing, problem.arcs[a].bytes);
    missing -= bytes;
    prices[size_t(position)] = price(a);
    if (saved)
      (*saved)[a] = bytes;
  }
  return prices;
}
