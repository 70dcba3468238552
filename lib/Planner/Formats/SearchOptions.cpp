//===- SearchOptions.cpp - the table of the search's options --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A new option is a member of planner::Options and a row here
// (docs/tutorials/add-a-search-option.md).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/SearchOptions.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ckopt;
using namespace ckopt::planner;
using llvm::StringRef;

static constexpr double noLimit = std::numeric_limits<double>::infinity();

static const SearchOption table[] = {
    {&Options::strategy, "strategy", "strategy", "NAME",
     "how to search (default auto: what fits the graph); an unknown one lists "
     "all",
     "Planner strategy; an unknown one lists all"},
    {&Options::fixedOrder, "fixed-order", "fixed-order", "",
     "first runs keep the program order",
     "Keep the program's order; only add recomputation"},
    {&Options::orderOnly, "order-only", "order-only", "",
     "recompute nothing: search the order alone",
     "Recompute nothing: search the order alone"},
    {&Options::timeLimitSeconds, "time-limit", "time-limit", "S",
     "search for S seconds, unless nothing better can exist (without it: as "
     "long as it pays; 0: no limit)",
     "Seconds for one function (a safety net); 0: none", 0, 1e7,
     /*packs=*/true, /*limits=*/true},
    {&Options::workLimit, "work-limit", "work-limit", "N",
     "the same in units of work (about 50 ns): the same plan anywhere",
     "Work units (about 50 ns each) for one function, which make the same plan "
     "on every machine; 0: scaled from the function's size",
     1, noLimit, /*packs=*/true, /*limits=*/true},
    {&Options::searchToLimit, "search-to-limit", "", "", "",
     "Search until a limit strikes or nothing better can exist, instead of as "
     "long as seems worth while"},
    {&Options::effort, "effort", "effort", "X",
     "work factor of the search (default 1)",
     "Work factor of the local search; 0: none", 0, 1e6},
    {&Options::seed, "seed", "search-seed", "N",
     "seed of the search (default 1)", "Seed of the local search", 0, noLimit,
     /*packs=*/true},
    {&Options::threads, "threads", "search-threads", "N",
     "threads of the search; the answer does not depend on it (default: all "
     "cores)",
     "Threads of the search; 0: all cores. The plan does not depend on it", 1,
     256, /*packs=*/true},
};

llvm::ArrayRef<SearchOption> planner::searchOptions() { return table; }

static MessageText written(const SearchOption &row, OptionStyle style) {
  if (style == OptionStyle::Flag && !row.flag.empty())
    return Setting::ofFlag(row.flag);
  return row.name;
}

static std::string rangeText(const SearchOption &row, bool integer) {
  std::string text = integer ? "an integer" : "a number";
  std::string low = flag::limitText(row.low);
  return row.high == noLimit
             ? text + " of at least " + low
             : text + " from " + low + " to " + flag::limitText(row.high);
}

/// Returns what is wrong with one option, or an empty string.
static std::string misuse(const SearchOption &row, const Options &options) {
  static const Options defaults;
  return std::visit(
      [&](auto member) -> std::string {
        const auto &value = options.*member;
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
          // Written so that it refuses what is no number, too.
          if (value != defaults.*member &&
              !(double(value) >= row.low && double(value) <= row.high))
            return "is " + rangeText(row, std::is_integral_v<T>);
        return "";
      },
      row.member);
}

llvm::Error planner::checkSearch(const Options &options, OptionStyle style) {
  for (const SearchOption &row : searchOptions())
    if (std::string wrong = misuse(row, options); !wrong.empty())
      return usageError(written(row, style) + " " + wrong);
  auto named = [style](const Setting &setting) -> MessageText {
    const std::string value = setting.value ? "=" + *setting.value : "";
    return style == OptionStyle::Flag ? MessageText(setting)
                                      : setting.name + value;
  };
  std::vector<std::string> strategies = strategyNames(options.more);
  if (!llvm::is_contained(strategies, options.strategy))
    return usageError(named(Setting("strategy")) + ": '" + options.strategy +
                      "' is not one of " + llvm::join(strategies, ", "));
  if (options.orderOnly && options.fixedOrder)
    return usageError(named(Setting("order-only")) + " and " +
                      named(Setting("fixed-order")) +
                      " leave nothing to search");
  if (options.orderOnly && !options.isAuto())
    return usageError(named(Setting("order-only")) +
                      " has one search: leave out " +
                      named(Setting("strategy", options.strategy)));
  return llvm::Error::success();
}
