//===- SearchFlags.h - how to search, as flags of tools ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_SEARCHFLAGS_H
#define CKOPT_PLANNER_SEARCHFLAGS_H

#include "ckopt/Planner/Solve.h"
#include "ckopt/Support/FlagTable.h"

namespace ckopt::planner {

/// Adds a flag for each row of the options' table (SearchOptions.h) that has
/// one. Commands in `planning` take all of them, those in `packing` only those
/// that also apply to packing alone.
void addSearchFlags(FlagTable &table, Options &options, unsigned planning,
                    unsigned packing = 0);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_SEARCHFLAGS_H
