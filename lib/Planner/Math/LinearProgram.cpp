//===- LinearProgram.cpp - linear programs over [0, 1] --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: bounds for branch and bound that can be trusted. Method: Clp's dual
// simplex through its C interface; from the prices p >= 0 that it ends with,
//   sum_r p_r least_r + sum_c min over x_c of (cost_c - sum_r p_r a_rc) x_c
// is evaluated here: weak duality makes it a bound for any prices. A program is
// called infeasible only where a ray does the same without the costs.
// Guarantee: bounds hold up to the rounding of one dot product, which is taken
// off. Linear in the factors, beside the simplex.
//
//===----------------------------------------------------------------------===//
#include "Math/LinearProgram.h"
#include "ckopt/Planner/Answer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Weverything"
#include <coin/Clp_C_Interface.h>
#pragma clang diagnostic pop

using namespace ckopt::planner;

bool ckopt::planner::haveLinearPrograms() { return true; }
const char *ckopt::planner::boundsNote() { return ""; }

struct LinearProgram::Impl {
  Clp_Simplex *clp = Clp_newModel();
  std::vector<double> low, high;
  Impl() = default;
  Impl(const Impl &) = delete;
  Impl &operator=(const Impl &) = delete;
  ~Impl() { Clp_deleteModel(clp); }
};

LinearProgram::LinearProgram(std::vector<double> costs)
    : impl(std::make_unique<Impl>()), cost(std::move(costs)) {
  int columns = int(cost.size());
  impl->low.assign(columns, 0);
  impl->high.assign(columns, 1);
  solution.assign(columns, 0);
  reduced.assign(columns, 0);
  Clp_setLogLevel(impl->clp, 0);
  std::vector<CoinBigIndex> start(columns + 1, 0);
  Clp_loadProblem(impl->clp, columns, 0, start.data(), nullptr, nullptr,
                  impl->low.data(), impl->high.data(), cost.data(), nullptr,
                  nullptr);
}

LinearProgram::~LinearProgram() = default;

void LinearProgram::addRows(std::vector<Row> rows) {
  std::vector<double> low, high;
  std::vector<int> start{0}, column;
  std::vector<double> factor;
  for (Row &row : rows) {
    low.push_back(row.least);
    high.push_back(std::numeric_limits<double>::max());
    for (auto [c, a] : row.terms) {
      column.push_back(c);
      factor.push_back(a);
    }
    start.push_back(int(column.size()));
    factors += int64_t(row.terms.size());
    allRows.push_back(std::move(row));
  }
  Clp_addRows(impl->clp, int(low.size()), low.data(), high.data(), start.data(),
              column.data(), factor.data());
}

void LinearProgram::fix(int32_t column, int value) {
  impl->low[column] = value > 0;
  impl->high[column] = value != 0;
}

double LinearProgram::evaluate(const double *price, double sign,
                               bool withCost) {
  double sum = 0, size = 0;
  for (size_t c = 0; c < cost.size(); ++c)
    reduced[c] = withCost ? cost[c] : 0;
  for (size_t r = 0; r < allRows.size(); ++r) {
    double p = std::max(0.0, sign * price[r]);
    if (p == 0)
      continue;
    sum += p * allRows[r].least;
    size += std::abs(p * allRows[r].least);
    for (auto [c, a] : allRows[r].terms) {
      reduced[c] -= p * a;
      size += std::abs(p * a);
    }
  }
  for (size_t c = 0; c < cost.size(); ++c) {
    double least =
        std::min(reduced[c] * impl->low[c], reduced[c] * impl->high[c]);
    sum += least;
    size += std::abs(least);
  }
  // A ray has no scale of its own, so what is left of it must be well above
  // the rounding.
  return sum - size * (withCost ? 1e-12 : 1e-8);
}

auto LinearProgram::solve(int32_t maxPivots) -> Outcome {
  Outcome outcome;
  Clp_Simplex *clp = impl->clp;
  Clp_chgColumnLower(clp, impl->low.data());
  Clp_chgColumnUpper(clp, impl->high.data());
  Clp_setMaximumIterations(clp, maxPivots);
  Clp_dual(clp, 0);
  outcome.work = (int64_t(Clp_numberIterations(clp)) + 2) *
                 int64_t(cost.size() + allRows.size() + 50);
  const double *x = Clp_primalColumnSolution(clp);
  for (size_t c = 0; c < cost.size(); ++c)
    solution[c] = std::clamp(x[c], impl->low[c], impl->high[c]);
  int status = Clp_status(clp);
  outcome.solved = status == 0;
  if (status == 1)
    if (double *ray = Clp_infeasibilityRay(clp)) {
      bool proven = evaluate(ray, 1, false) > 0 || evaluate(ray, -1, false) > 0;
      Clp_freeRay(clp, ray);
      if (proven) {
        outcome.bound = std::numeric_limits<double>::infinity();
        return outcome;
      }
    }
  outcome.bound = evaluate(Clp_dualRowSolution(clp), 1, true);
  return outcome;
}
