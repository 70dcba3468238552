//===- SearchFlags.cpp - how to search, as flags of tools -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/SearchFlags.h"

#include <cmath>

using namespace ckopt;
using namespace ckopt::planner;

/// Returns the function that stores a flag's value in the row's member.
static Flag::Store storeOf(const SearchOption &row, Options &options) {
  return std::visit(
      [&](auto member) -> Flag::Store {
        auto &slot = options.*member;
        using T = std::decay_t<decltype(slot)>;
        if constexpr (std::is_same_v<T, bool>)
          return flag::turnOn(slot);
        else if constexpr (std::is_same_v<T, std::string>)
          return flag::oneOf(row.flag, slot, strategyNames(options.more));
        else
          return flag::number<T>(row.flag, slot, T(row.low),
                                 std::isinf(row.high)
                                     ? std::numeric_limits<T>::max()
                                     : T(row.high));
      },
      row.member);
}

void planner::addSearchFlags(Options &options, AddSearchFlag add) {
  for (const SearchOption &row : searchOptions()) {
    if (row.flag.empty())
      continue;
    Flag::Store store = storeOf(row, options);
    if (row.limits) // A user who sets a limit wants the best plan within it.
      store = [&options, store](llvm::StringRef text) -> llvm::Error {
        options.searchToLimit = true;
        return store(text);
      };
    add(row, std::move(store));
  }
}
