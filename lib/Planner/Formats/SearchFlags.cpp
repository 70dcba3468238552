//===- SearchFlags.cpp - how to search, as flags of tools -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/SearchFlags.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ckopt;
using namespace ckopt::planner;
using llvm::StringRef;

void planner::addSearchFlags(FlagTable &table, Options &o, unsigned planning,
                             unsigned packing) {
  // A user who sets a limit wants the best plan within it.
  auto limit = [&o](Flag::Store store) -> Flag::Store {
    return [&o, store](StringRef text) -> llvm::Error {
      o.searchToLimit = true;
      return store(text);
    };
  };
  auto add = [&](StringRef name, StringRef value, unsigned groups,
                 StringRef help, auto make) {
    table.add(name, value, groups, help, make(name));
  };
  add("strategy", "NAME", planning,
      "how to search (default auto: what fits the graph); an unknown one lists "
      "all",
      [&](StringRef name) {
        return flag::oneOf(name, o.strategy, strategyNames(o.more));
      });
  add("fixed-order", "", planning, "first runs keep the program order",
      [&](StringRef) { return flag::turnOn(o.fixedOrder); });
  add("order-only", "", planning, "recompute nothing: search the order alone",
      [&](StringRef) { return flag::turnOn(o.orderOnly); });
  add("time-limit", "S", planning | packing,
      "search for S seconds, unless nothing better can exist (without it: as "
      "long as seems worth while, at most 60 s; 0: no limit)",
      [&](StringRef name) {
        return limit(flag::number<double>(name, o.timeLimitSeconds, 0, 1e7));
      });
  add("work-limit", "N", planning | packing,
      "the same in units of work (about 50 ns): the same plan anywhere",
      [&](StringRef name) {
        return limit(flag::number<int64_t>(name, o.workLimit, 1));
      });
  add("effort", "X", planning, "work factor of the search (default 1)",
      [&](StringRef name) {
        return flag::number<double>(name, o.effort, 0, 1e6);
      });
  add("search-seed", "N", planning | packing, "seed of the search (default 1)",
      [&](StringRef name) { return flag::number<uint64_t>(name, o.seed); });
  add("search-threads", "N", planning | packing,
      "threads of the search; the answer does not depend on it (default: all "
      "cores)",
      [&](StringRef name) {
        return flag::number<int>(name, o.threads, 1, 256);
      });
}

llvm::Error planner::checkSearch(const Options &options) {
  std::vector<std::string> strategies = strategyNames(options.more);
  if (!llvm::is_contained(strategies, options.strategy))
    return usageError("--strategy: '" + options.strategy + "' is not one of " +
                      llvm::join(strategies, ", "));
  if (options.orderOnly && options.fixedOrder)
    return usageError("--order-only and --fixed-order leave nothing to search");
  if (options.orderOnly && options.strategy != "auto")
    return usageError("--order-only has one search: leave out --strategy=" +
                      options.strategy);
  if (!(options.effort >= 0 && options.effort <= 1e6))
    return usageError("--effort is a number from 0 to 1e6");
  if (!(options.timeLimitSeconds >= 0 && options.timeLimitSeconds <= 1e7) ||
      options.workLimit < 0)
    return usageError("limits of time (up to 1e7 seconds) and of work are not "
                      "negative");
  if (options.threads < 0 || options.threads > 256)
    return usageError("a search has up to 256 threads");
  return llvm::Error::success();
}
