//===- LinearProgram.h - linear programs over [0, 1] ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Linear programs, solved by Clp (COIN-OR's simplex
// code), which only LinearProgram.cpp includes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MATH_LINEARPROGRAM_H
#define CKOPT_LIB_PLANNER_MATH_LINEARPROGRAM_H

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ckopt::planner {

/// Returns whether there is code that solves them: without it, bounds are 0.
bool haveLinearPrograms();

/// Minimize cost * x, rows: sum of terms >= least, 0 <= x <= 1; columns can be
/// fixed, rows added, and each solve starts from the basis of the one before.
class LinearProgram {
public:
  struct Row {
    std::vector<std::pair<int32_t, double>> terms; ///< column, factor
    double least = 0;
  };

  explicit LinearProgram(std::vector<double> cost);
  ~LinearProgram();

  void addRows(std::vector<Row> rows);
  const std::vector<Row> &rows() const { return allRows; }

  /// Fixes a column to a value, or frees it with -1.
  void fix(int32_t column, int value);

  struct Outcome {
    bool solved = false; ///< x is (nearly) optimal
    /// Proven lower bound of the cost of all x: evaluated from the dual prices,
    /// so it does not depend on the simplex code. Infinite: no x satisfies the
    /// rows.
    double bound = 0;
    int64_t work = 0; ///< units of about 50 ns, reproducible
  };
  Outcome solve(int32_t maxPivots);
  /// Returns the last solution.
  const std::vector<double> &x() const { return solution; }

private:
  double evaluate(const double *price, double sign, bool withCost);

  struct Impl;
  std::unique_ptr<Impl> impl;
  std::vector<Row> allRows;
  std::vector<double> cost, solution, reduced; ///< reduced: scratch
  int64_t factors = 0;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MATH_LINEARPROGRAM_H
