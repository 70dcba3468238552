//===- Baselines.h - published strategies, to compare with ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The classical ways to choose checkpoints, as strategies that can be selected
// by name, for benchmarks and tests that compare.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BENCHMARKS_BASELINES_BASELINES_H
#define CKOPT_BENCHMARKS_BASELINES_BASELINES_H

#include "ckopt/Planner/Solve.h"

namespace ckopt::planner {

/// Returns the strategies "rotor", "all", "greedy", "sqrt", "revolve", "mincut"
/// and "lowerset", for Options::more.
const std::vector<Strategy> &baselines();

} // namespace ckopt::planner

#endif // CKOPT_BENCHMARKS_BASELINES_BASELINES_H
