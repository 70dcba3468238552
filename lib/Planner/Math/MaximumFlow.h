//===- MaximumFlow.h - flows and cuts ---------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner: maximum flow (Dinic, 1970) on a graph that is built
// arc by arc, and the smallest cut behind it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_MATH_MAXIMUMFLOW_H
#define CKOPT_LIB_PLANNER_MATH_MAXIMUMFLOW_H

#include <cstdint>
#include <limits>
#include <vector>

namespace ckopt::planner {

class MaximumFlow {
public:
  /// The capacity of an arc that no cut may contain.
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max() / 4;

  explicit MaximumFlow(int32_t vertices) : first(vertices, -1) {}
  void connect(int32_t from, int32_t to, int64_t capacity) {
    arcs.push_back({to, first[from], capacity});
    first[from] = int32_t(arcs.size()) - 1;
    arcs.push_back({from, first[to], 0});
    first[to] = int32_t(arcs.size()) - 1;
  }
  /// Computes the maximum flow; counts touched arcs in `work`.
  int64_t run(int32_t source, int32_t sink, int64_t &work);
  /// After run(): returns whether the vertex is on the source's side of the
  /// smallest cut nearest to the source.
  bool reached(int32_t vertex) const { return level[vertex] >= 0; }

private:
  struct Arc {
    int32_t to, next;
    int64_t rest;
  };
  bool layer(int32_t source, int32_t sink);
  int64_t augment(int32_t source, int32_t sink, int64_t &work);

  std::vector<int32_t> first, level, current;
  std::vector<Arc> arcs;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_MATH_MAXIMUMFLOW_H
