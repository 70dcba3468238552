//===- ExactSets.h - what nodes read and make, as sets ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Shared by the exact searches: the width of their sets
// for a graph, and its nodes as such sets.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_EXACT_EXACTSETS_H
#define CKOPT_LIB_PLANNER_EXACT_EXACTSETS_H

#include "Exact/ExactBits.h"
#include "Exact/ExactModel.h"

#include <algorithm>
#include <type_traits>

namespace ckopt::planner {

/// Returns the result of `search` for the number of 64-bit words (a constant:
/// 1, 2 or 6) that holds the nodes and items of the model; a
/// default-constructed result, without a search, for models of more than 384 of
/// either.
template <typename Search>
auto withWords(const ExactModel &model, Search search) {
  size_t size = std::max(model.nodes.size(), model.items.size());
  if (size <= 64)
    return search(std::integral_constant<int, 1>());
  if (size <= 128)
    return search(std::integral_constant<int, 2>());
  if (size <= 384)
    return search(std::integral_constant<int, 6>());
  return decltype(search(std::integral_constant<int, 6>()))();
}

/// The nodes of a model that fits into `Words`, by number.
template <int Words> struct NodeSets {
  using Set = Bits<Words>;

  explicit NodeSets(const ExactModel &model)
      : reads(model.nodes.size()), makes(reads), blockers(reads) {
    for (size_t n = 0; n < model.nodes.size(); ++n) {
      const ExactNode &node = model.nodes[n];
      for (int32_t i : node.reads)
        reads[n].add(i);
      for (int32_t i : node.makes)
        makes[n].add(i);
      for (NodeId p : node.blockers)
        blockers[n].add(p);
    }
    for (size_t i = 0; i < model.items.size(); ++i)
      if (model.items[i].endLive)
        atEnd.add(int32_t(i));
  }

  std::vector<Set> reads, makes; ///< items
  std::vector<Set> blockers;     ///< nodes after which it cannot run any more
  Set atEnd;                     ///< items that must be resident at the end
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_EXACT_EXACTSETS_H
