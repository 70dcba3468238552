//===- Milp.h - programs with binary decisions ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner: integer programs over binaries. Limits are counts, so
// answers do not depend on the machine; every bound is evaluated from dual
// prices by this code, not taken from the linear programming library.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MATH_MILP_H
#define CKOPT_LIB_PLANNER_MATH_MILP_H

#include "Math/LinearProgram.h"
#include "Model/Deadline.h"

namespace ckopt::planner {

/// Minimize cost * x (costs not negative) with x in {0, 1} and, for each row,
/// the sum of its terms >= least.
struct Milp {
  using Row = LinearProgram::Row;
  std::vector<double> cost;
  std::vector<Row> rows;

  int32_t addColumn(double columnCost) {
    cost.push_back(columnCost);
    return int32_t(cost.size()) - 1;
  }
};

struct MilpResult {
  enum Kind : uint8_t {
    Optimal,    ///< `x` is optimal
    Infeasible, ///< no x satisfies the rows
    CutOff,     ///< no x costs less than the cutoff
    Limited,    ///< a limit was reached; `x` is the best found, or empty
  };
  Kind kind = Limited;
  std::vector<char> x;
  double value = 0; ///< cost of x
  /// Proven lower bound of the cost of all x (at most the cutoff).
  double bound = 0;
  int32_t treeNodes = 0;
};

struct MilpOptions {
  int32_t treeNodes = 2000;
  /// Only x of lower cost are searched for.
  double cutoff = 1e300;
  /// Smaller improvements do not matter.
  double step = 0;
  /// Nor do improvements below this share of the value.
  double gap = 0;
  /// A known solution; may be empty.
  std::vector<char> start;
};

/// Solves the program. A unit of work is about one factor that a simplex pivot
/// touches.
MilpResult solveMilp(const Milp &milp, const MilpOptions &options,
                     Deadline &deadline);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MATH_MILP_H
