//===- StoredPlan.h - plans in files ----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stored plan is a file of the format ckopt-plan/1 with two more members: a
// hash of the planning problem and the names of the nodes. docs/planner.md
// describes the format.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REMAT_STOREDPLAN_H
#define CKOPT_REMAT_STOREDPLAN_H

#include "ckopt/Planner/Plan.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace ckopt {

struct RematPlan;

/// A plan for one function, which its user has to verify first.
struct StoredPlan {
  std::string source; ///< where it came from, for messages: a path
  planner::Plan plan;
  std::string function; ///< the function's path, "inner::step"
  std::string hash;     ///< hash of the problem it was made for; empty: unknown
  int64_t nodes = -1;   ///< number of nodes of that problem; -1: unknown
  int64_t budget = 0;   ///< the budget that it states, in bytes; 0: none

  /// Parses a file; errors begin with "plan file 'SOURCE': ".
  static llvm::Expected<StoredPlan> parse(llvm::StringRef text,
                                          std::string source);
  static llvm::Expected<StoredPlan> read(const std::string &path);
};

/// Returns the text of the plan's file; if no plan fits, the file has the known
/// figures and no steps.
std::string printStoredPlan(const RematPlan &plan);

} // namespace ckopt

#endif // CKOPT_REMAT_STOREDPLAN_H
