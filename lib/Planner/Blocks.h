//===- Blocks.h - equal blocks of a training graph --------------*- C++ -*-===//
#ifndef CKOPT_LIB_PLANNER_BLOCKS_H
#define CKOPT_LIB_PLANNER_BLOCKS_H

#include "Problem.h"

namespace ckopt::planner {

/// Blocks that are copies of each other, in the order in which they run.
struct BlockGroup {
  struct Block {
    /// Nodes of the forward pass in the order given, as many in every block of
    /// a group and with equal labels one by one.
    std::vector<NodeId> forward;
    /// Nodes of the backward pass that first read what the block saved, and
    /// those that only they lead to, ascending.
    std::vector<NodeId> backward;
  };
  std::vector<Block> blocks; ///< two or more
};

/// Numbers nodes so that equal numbers mean equal structure: sizes and kinds of
/// operands and results, and what the makers of the operands look like, and
/// theirs, for so many rounds. Costs and workspaces may differ, since they are
/// often measured. Dense, by first
/// occurrence. O(graph log graph).
std::vector<int32_t> structuralLabels(const Problem &problem, int rounds = 1);

/// Finds repeated blocks. `order`: all nodes in a valid order of first runs;
/// `turn`: the last position of the forward pass. Where nodes have groups
/// (Node::group), a group is a block; else blocks are found by structure, and
/// begin where few bytes live across. Groups are disjoint and ordered by their
/// first node.
std::vector<BlockGroup> findRepeatedBlocks(const Problem &problem,
                                           const std::vector<NodeId> &order,
                                           int32_t turn);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BLOCKS_H
