//===- SearchFlags.h - flags of the search, for tools -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_SEARCHFLAGS_H
#define CKOPT_PLANNER_SEARCHFLAGS_H

#include "ckopt/Planner/SearchOptions.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Support/FlagTable.h"

namespace ckopt::planner {

/// Adds the flag of a row; `store` stores its value.
using AddSearchFlag =
    llvm::function_ref<void(const SearchOption &row, Flag::Store store)>;

/// Calls `add` for each row of the options' table that has a flag.
void addSearchFlags(Options &options, AddSearchFlag add);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_SEARCHFLAGS_H
