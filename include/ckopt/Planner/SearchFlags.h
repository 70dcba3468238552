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

/// Adds --strategy, --fixed-order, --order-only, --time-limit, --work-limit,
/// --effort, --search-seed and --search-threads. Commands in `planning` take
/// all of them, those in `packing` only flags that also apply to packing alone.
/// A limit also asks to search until it is reached.
void addSearchFlags(FlagTable &table, Options &options, unsigned planning,
                    unsigned packing = 0);

/// Returns a usage error if the options leave nothing to search.
llvm::Error checkSearch(const Options &options);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_SEARCHFLAGS_H
