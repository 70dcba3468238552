//===- Structure.h - what repeats, and where storages live ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the repeated blocks of a network and the lifetime of each storage
// before and after the turn (the last position of the forward part).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_STRUCTURE_STRUCTURE_H
#define CKOPT_LIB_PLANNER_STRUCTURE_STRUCTURE_H

#include "Model/Problem.h"

namespace ckopt::planner {

/// Groups of blocks that are copies of each other, in the order in which they
/// run; a block is a list of nodes of the forward pass in the order given, as
/// many in every block of a group and with equal labels one by one.
using BlockGroups = std::vector<std::vector<std::vector<NodeId>>>;

/// Numbers nodes so that equal numbers mean equal structure: sizes and kinds of
/// operands and results, and likewise of the nodes that make the operands, for
/// the given number of rounds. Costs and workspaces may differ, since they are
/// often measured. Numbers are dense, by first occurrence. O(graph log graph).
std::vector<int32_t> structuralLabels(const Problem &problem, int rounds = 1);

/// Finds repeated blocks. `order`: all nodes in a valid order of first runs;
/// `turn`: the last position of the forward pass. Where nodes have groups
/// (Node::group), a group is a block; else blocks are found by structure, and
/// begin where few bytes live across. Groups are disjoint and ordered by their
/// first node.
BlockGroups findRepeatedBlocks(const Problem &problem,
                               const std::vector<NodeId> &order, int32_t turn);

/// Positions in the order at which first runs make and use a storage.
struct StorageSpan {
  int32_t made = -1; ///< -1 if no node makes it
  /// Last use in the forward part, or the position where it is made there.
  int32_t lastBefore = -1;
  int32_t firstAfter = -1; ///< first use beyond; -1: none
};

/// Returns spans by value, set for storages only; `order` holds every node
/// once, `turn` is the last position of its forward part. O(graph).
std::vector<StorageSpan> storageSpans(const Problem &problem,
                                      const std::vector<NodeId> &order,
                                      int32_t turn);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_STRUCTURE_STRUCTURE_H
