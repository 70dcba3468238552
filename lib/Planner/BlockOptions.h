//===- BlockOptions.h - the ways to run one block ---------------*- C++ -*-===//
//
// Private to lib/Planner: a block's Pareto set of what to keep from its forward
// to its backward part.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BLOCKOPTIONS_H
#define CKOPT_LIB_PLANNER_BLOCKOPTIONS_H

#include "BlockChain.h"
#include "Strategy.h"

namespace ckopt::planner {

/// One way to run a block whose input is there. Bytes are above what was there
/// when the part in question began.
struct BlockOption {
  int64_t kept;       ///< stays from the forward to the backward part
  int64_t forwardTop; ///< most while the forward part runs
  int64_t backTop;    ///< most from the backward part on, `kept` included
  double extra;       ///< cost of what the backward part makes again
  /// What it costs to run the forward part again just to have what is kept,
  /// with what it hands on to the next block and without.
  double again, againPart;
  /// Bytes in `kept` that later blocks read, and what it costs to make those
  /// again from the block's input and the rest of what is kept.
  int64_t handed;
  double remake;
  std::vector<ValueId> keep; ///< storages of the kind
};

/// Options of a kind, none of which is beaten in both bytes kept and extra
/// cost, by rising bytes. With few values to choose from all subsets are tried
/// (at most `subsets`); else the corners of the convex hull, which are minimum
/// cuts, and their neighbours.
std::vector<BlockOption> blockOptions(const BlockKind &kind, int64_t subsets,
                                      Deadline &deadline);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BLOCKOPTIONS_H
