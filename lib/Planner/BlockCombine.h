//===- BlockCombine.h - options of blocks put together ----------*- C++ -*-===//
//
// Private to lib/Planner: chooses an option for each block of a chain, and
// which stretches of blocks run their forward part again.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BLOCKCOMBINE_H
#define CKOPT_LIB_PLANNER_BLOCKCOMBINE_H

#include "BlockOptions.h"

#include <optional>

namespace ckopt::planner {

struct ChainPlan {
  /// A block's option, and the position from which what it keeps stays: 0, or
  /// where the backward part comes to a stretch that runs forwards again.
  struct Choice {
    int32_t option;
    int32_t from;
    int32_t handedFrom; ///< likewise for what it hands on to later blocks
  };
  /// A stretch of blocks [first, end) that runs forwards again, in full or for
  /// what its blocks hand on to each other: what it hands on to later blocks
  /// stays from the position on.
  struct Again {
    int32_t first, end;
    int32_t from;
  };
  std::vector<Choice> choices; ///< by block
  std::vector<Again> again;
  double extra = 0; ///< as far as blocks tell
  int64_t top = 0;  ///< bytes, likewise
};

/// The cheapest plan of load within `budget` (bytes), of which `base` are taken
/// by what belongs to no block. `options` is by kind. Nothing if none fits.
std::optional<ChainPlan>
combineBlocks(const BlockChain &chain,
              const std::vector<std::vector<BlockOption>> &options,
              int64_t base, int64_t budget, Deadline &deadline);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BLOCKCOMBINE_H
