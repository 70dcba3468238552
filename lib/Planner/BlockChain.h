//===- BlockChain.h - a training step as a chain of blocks ------*- C++ -*-===//
//
// Private to lib/Planner. The forward part of an order is cut into blocks, each
// with the stretch of the backward part that first needs what it saved. Blocks
// that are copies of each other, costs included, are one kind, which is solved
// once (BlockOptions.h); options of kinds are put together by dynamic
// programming (BlockCombine.h).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BLOCKCHAIN_H
#define CKOPT_LIB_PLANNER_BLOCKCHAIN_H

#include "StorageSpan.h"

namespace ckopt::planner {

/// A block cut out of its graph: its forward nodes, then a node that stands for
/// everything between its forward and its backward part (it costs nothing,
/// reads what later blocks read and makes the gradients that they hand back),
/// then its backward nodes. What others made before is there and has no bytes.
struct BlockKind {
  Graph graph;
  int32_t turn = 0; ///< the node in the middle
  /// By value: read by later blocks' forward parts, so it stays until they are
  /// done; needed by a backward part of an earlier block.
  std::vector<char> leaves, stays;
  int64_t incoming = 0; ///< bytes that the node in the middle makes
  int32_t members = 0;
};

struct ChainBlock {
  int32_t first, end;  ///< positions of the forward part: [first, end)
  int32_t start, stop; ///< of the backward part: [start, stop)
  int32_t kind = -1;   ///< index into BlockChain::kinds
  /// By value of the kind: the value that it stands for, -1: the kind's own.
  std::vector<ValueId> values;
};

struct BlockChain {
  /// `turn`: the last position of the forward part; `cuts`: positions in (0,
  /// turn] at which blocks begin, ascending. O(graph log graph).
  BlockChain(const Problem &problem, const std::vector<NodeId> &order,
             int32_t turn, const std::vector<int32_t> &cuts);

  const Problem &problem;
  const std::vector<NodeId> &order;
  int32_t turn;
  std::vector<int32_t> place;     ///< by node: its position
  std::vector<StorageSpan> spans; ///< by storage
  std::vector<ChainBlock> blocks; ///< in forward order
  std::vector<BlockKind> kinds;
  /// By block: bytes that are there when the backward part is at it and that
  /// belong to no block: inputs, and what backward parts made long before.
  std::vector<int64_t> beside;

  /// The block whose forward (backward) part has the position.
  int32_t blockAt(int32_t position) const;

private:
  void findStarts();
  void classify();
  void weighRest();
};

/// Where blocks should begin: where repeated ones do (Blocks.h), and, where
/// nothing repeats, at narrow places that part the saved bytes into about
/// `parts` equal shares.
std::vector<int32_t> chainCuts(const Problem &problem,
                               const std::vector<NodeId> &order, int32_t turn,
                               int32_t parts);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BLOCKCHAIN_H
