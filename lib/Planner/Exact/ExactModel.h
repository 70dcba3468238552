//===- ExactModel.h - a graph as bits for the state search ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. What a state must remember of a graph: one item for
// each value that something needs after the step that makes it. Values that are
// always needed together (same maker, same readers) are one item; persistent
// values are none, they are always there.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_EXACTMODEL_H
#define CKOPT_LIB_PLANNER_EXACT_EXACTMODEL_H

#include "Model/Problem.h"

namespace ckopt::planner {

struct ExactItem {
  int64_t bytes = 0;    ///< 0: a view, or nothing that a drop could free
  int32_t root = -1;    ///< item whose bytes it shares (itself if it has some);
                        ///< -1: once made it is there for good
  int32_t base = -1;    ///< item that it is a view of; -1: none is remembered
  NodeId producer = -1; ///< -1: there at the start
  bool endLive = false;
  std::vector<NodeId> readers;
  /// Nodes after which making it again lacks a change; empty where its storage
  /// is made by another node, or is not told apart (root < 0).
  std::vector<NodeId> spoilers;
};

struct ExactNode {
  double cost = 0;
  bool rerun = false;
  int64_t bytes = 0; ///< workspace, and everything that it makes
  std::vector<int32_t> reads, makes; ///< items; makes in output order
  std::vector<int32_t> writes;       ///< items that it overwrites
  std::vector<NodeId> preds, blockers;
  struct Pair {
    int32_t input;  ///< item
    ValueId output; ///< value, to tell outputs apart
    int64_t bytes;  ///< of the output
    /// Items that it reads and that are direct views of the input: in the way
    /// where they hang on the same copy.
    std::vector<int32_t> views;
  };
  std::vector<Pair> pairs; ///< reuse in listed order, where it can ever happen

  /// The inputs of `pairs`, each once, in listed order.
  std::vector<int32_t> pairInputs() const;
};

struct ExactModel {
  explicit ExactModel(const Problem &problem);

  std::vector<ExactItem> items;
  std::vector<ExactNode> nodes;
  int64_t always = 0; ///< persistent bytes
  /// Every load is a multiple of it (bytes).
  int64_t granule = 1;
  /// By value; -1: nothing needs it, or it is always there.
  std::vector<int32_t> itemOf;

private:
  void buildItems(const Problem &problem);
  void linkViews(const Problem &problem);
  void buildNode(const Problem &problem, NodeId n);
  void findGranule(const Problem &problem);
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_EXACTMODEL_H
