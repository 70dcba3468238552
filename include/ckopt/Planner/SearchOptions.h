//===- SearchOptions.h - the table of the search's options ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One row for each member of planner::Options that a user sets. Flags of the
// tools, settings of C and Python, and options of the pass `remat`, with their
// help, ranges, printed values and errors, are made from these rows only.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_SEARCHOPTIONS_H
#define CKOPT_PLANNER_SEARCHOPTIONS_H

#include "ckopt/Planner/Solve.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <limits>
#include <variant>

namespace ckopt::planner {

struct SearchOption {
  using Member = std::variant<bool Options::*, int Options::*,
                              int64_t Options::*, uint64_t Options::*,
                              double Options::*, std::string Options::*>;
  Member member;
  /// The name of the pass's option, and the name of flags and settings (empty:
  /// there is none).
  llvm::StringLiteral name, flag;
  llvm::StringLiteral value; ///< stands for the flag's value; empty: a switch
  llvm::StringLiteral help;  ///< of the flag: unit, meaning, default
  llvm::StringLiteral passHelp; ///< of the pass, which does not print defaults
  /// The range of numbers. The default, which may lie outside, is valid, too.
  double low = 0, high = std::numeric_limits<double>::infinity();
  bool packs = false;  ///< also applies to a search for offsets only
  bool limits = false; ///< given as a flag, the search runs until this limit
};

llvm::ArrayRef<SearchOption> searchOptions();

/// How a message names options.
enum class OptionStyle : uint8_t { Flag, Pass };

/// Returns a usage error if a value is out of its range, or if the options
/// leave nothing to search.
llvm::Error checkSearch(const Options &options,
                        OptionStyle style = OptionStyle::Flag);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_SEARCHOPTIONS_H
