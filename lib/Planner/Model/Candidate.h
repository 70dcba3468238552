//===- Candidate.h - a sequence of steps and what it costs ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MODEL_CANDIDATE_H
#define CKOPT_LIB_PLANNER_MODEL_CANDIDATE_H

#include "ckopt/Planner/Graph.h"

namespace ckopt::planner {

/// Steps that were simulated with aligned sizes.
struct Candidate {
  std::vector<NodeId> steps;
  double cost = 0;
  int64_t peak = 0;
  std::string strategy; ///< the strategy that found them
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MODEL_CANDIDATE_H
