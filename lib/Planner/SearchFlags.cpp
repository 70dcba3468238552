//===- SearchFlags.cpp - how to search, as flags of tools -----------------===//
#include "ckopt/Planner/SearchFlags.h"

using namespace ckopt;
using namespace ckopt::planner;
using llvm::StringRef;

void planner::addSearchFlags(FlagTable &table, Options &o, unsigned planning,
                             unsigned packing, StringRef prefix) {
  // Who sets a limit wants the best that there is time for.
  auto limit = [&o](Flag::Store store) -> Flag::Store {
    return [&o, store](StringRef text) -> llvm::Error {
      o.searchToLimit = true;
      return store(text);
    };
  };
  std::string seed = (prefix + "seed").str();
  std::string threads = (prefix + "threads").str();
  table.add("strategy", "NAME", planning,
            "how to search (default auto: what fits the graph); an unknown "
            "one lists all",
            flag::oneOf("strategy", o.strategy, strategyNames()));
  table.add("fixed-order", "", planning, "first runs keep the program order",
            flag::turnOn(o.fixedOrder));
  table.add("order-only", "", planning,
            "recompute nothing: search the order alone",
            flag::turnOn(o.orderOnly));
  table.add(
      "time-limit", "S", planning | packing,
      "search for S seconds, unless nothing better can exist (without "
      "it: as long as seems worth while, at most 60 s; 0: no limit)",
      limit(flag::number<double>("time-limit", o.timeLimitSeconds, 0, 1e7)));
  table.add("work-limit", "N", planning | packing,
            "the same in units of work (about 50 ns): the same plan anywhere",
            limit(flag::number<int64_t>("work-limit", o.workLimit, 1)));
  table.add("effort", "X", planning, "work factor of the search (default 1)",
            flag::number<double>("effort", o.effort, 0, 1e6));
  table.add(seed, "N", planning | packing, "seed of the search (default 1)",
            flag::number<uint64_t>(seed, o.seed));
  table.add(threads, "N", planning | packing,
            "threads of the search; the answer does not depend on it "
            "(default: all cores)",
            flag::number<int>(threads, o.threads, 1, 256));
}

llvm::Error planner::checkSearch(const Options &options) {
  if (options.orderOnly && options.fixedOrder)
    return usageError("--order-only and --fixed-order leave nothing to search");
  return llvm::Error::success();
}
