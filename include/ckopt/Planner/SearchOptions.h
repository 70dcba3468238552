//===- SearchOptions.h - the table of the search's options ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One row for each member of planner::Options that a user sets. Flags of the
// tools, settings of C and Python, and options of the pass `remat`, with their
// help, ranges, printed values and errors, are made from these rows alone.
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
  /// As the pass has it, and as flags and settings do (empty: not at all).
  llvm::StringLiteral name, flag;
  llvm::StringLiteral value; ///< stands for the flag's value; empty: a switch
  llvm::StringLiteral help;  ///< of the flag: unit, meaning, default
  llvm::StringLiteral passHelp; ///< of the pass, which does not print defaults
  /// The range of numbers. The default, which may lie outside, is valid, too.
  double low = 0, high = std::numeric_limits<double>::infinity();
  bool packs = false;  ///< also applies where offsets alone are searched for
  bool limits = false; ///< as a flag it asks to search until it strikes
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
