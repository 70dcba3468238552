//===- Alternatives.h - choosing among equal ways ---------------*- C++ -*-===//
#ifndef CKOPT_LIB_PLANNER_ALTERNATIVES_H
#define CKOPT_LIB_PLANNER_ALTERNATIVES_H

#include "GraphPlanner.h"

#include <memory>

namespace ckopt::planner {

/// (node, index), as in Plan::choices.
using Choices = std::vector<std::pair<NodeId, int32_t>>;

/// The graph with these alternatives and no others. Unnamed nodes take their
/// first one; in-place pairs whose input is no longer read are dropped.
Graph choose(const Graph &graph, const Choices &choices);

/// A graph that is at most as hard as any choice: nodes read what all their
/// alternatives read, at the least cost. Bounds for it hold for every choice.
Graph relaxAlternatives(const Graph &graph);

/// Plans a graph with alternatives: all choices where they are few, else the
/// most promising by price and then by trial.
class AlternativesPlanner {
public:
  explicit AlternativesPlanner(const Graph &graph);
  Result solve(const Options &options, Deadline &deadline);
  Result minimize(const Options &options, Deadline &deadline);
  Result recall(const Options &options);

private:
  struct Chosen {
    Choices choices;
    std::unique_ptr<Graph> graph;
    std::unique_ptr<GraphPlanner> planner;
  };
  Chosen &chosen(const Choices &choices);
  std::vector<Choices> all() const;
  Choices byPrice(const Choices &from, int64_t budget);
  std::vector<Choices> promising(int64_t budget);
  Result search(const std::vector<Choices> &list, bool complete,
                const Options &options, Deadline &deadline, bool least);
  Result best(std::vector<Result> results, bool complete, int64_t budget);
  Result improve(Result start, const Options &options, Deadline &deadline,
                 bool least);
  Options withHint(const Options &options, const Choices &choices) const;

  const Graph &graph;
  Graph relaxed;
  std::vector<NodeId> nodes; ///< those with alternatives
  double combinations = 1;
  std::map<Choices, Chosen> planners;
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_ALTERNATIVES_H
