//===- ExactModel.h - a graph as bits for the state search ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. The part of a graph that search states must remember:
// one item for each value that a node needs after the step that makes it.
// Values that are always needed together (same maker, same readers) are one
// item; persistent values are not items, because they are always resident.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_EXACTMODEL_H
#define CKOPT_LIB_PLANNER_EXACT_EXACTMODEL_H

#include "Model/Problem.h"

namespace ckopt::planner {

struct ExactItem {
  int64_t bytes = 0; ///< 0 for a view, or if dropping it frees nothing
  /// The item whose bytes it shares (itself if it has some); -1 if it stays for
  /// good once made.
  int32_t root = -1;
  /// The item that it is a view of; -1 if none is remembered.
  int32_t base = -1;
  NodeId producer = -1; ///< -1: resident at the start
  bool endLive = false;
  std::vector<NodeId> readers;
  /// Nodes that overwrite its bytes, after which making it again would give old
  /// contents; empty if its storage is made by another node, or is not
  /// distinguished (root < 0).
  std::vector<NodeId> spoilers;
};

struct ExactNode {
  double cost = 0;
  bool rerun = false;
  int64_t bytes = 0;                 ///< workspace, and all its results
  std::vector<int32_t> reads, makes; ///< items; makes in output order
  std::vector<int32_t> writes;       ///< items that it overwrites
  std::vector<NodeId> preds, blockers;
  struct Pair {
    int32_t input;  ///< item
    ValueId output; ///< value, which identifies the output
    int64_t bytes;  ///< of the output
    /// Items that the node reads and that are direct views of the input: they
    /// prevent the reuse if they show the same copy.
    std::vector<int32_t> views;
  };
  /// Reuse pairs in listed order, without impossible ones.
  std::vector<Pair> pairs;

  /// Returns the inputs of `pairs`, each once, in listed order.
  std::vector<int32_t> pairInputs() const;
};

struct ExactModel {
  explicit ExactModel(const Problem &problem);

  std::vector<ExactItem> items;
  std::vector<ExactNode> nodes;
  int64_t always = 0; ///< persistent bytes
  /// Every load is a multiple of this number of bytes.
  int64_t granule = 1;
  /// By value; -1 if nothing needs it, or if it is always resident.
  std::vector<int32_t> itemOf;

private:
  void buildItems(const Problem &problem);
  void linkViews(const Problem &problem);
  void buildNode(const Problem &problem, NodeId n);
  void findGranule(const Problem &problem);
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_EXACTMODEL_H
