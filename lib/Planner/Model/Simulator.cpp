//===- Simulator.cpp - residency of a sequence of steps -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simulates a plan. One pass over the steps finds each copy's last need (a
// view's need is a need of its base), a second one the bytes that outputs take
// over from inputs that end at the same step, a third the load. Linear in steps
// and operands.
//
//===----------------------------------------------------------------------===//
#include "Model/Problem.h"
#include "ckopt/Planner/Labels.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

class Replay {
public:
  Replay(const Problem &problem, std::span<const NodeId> steps, bool aligned)
      : problem(problem), graph(problem.graph), steps(steps), aligned(aligned),
        current(problem.numValues, -1) {}
  Simulation run();

private:
  int64_t bytesOf(const Copy &copy) const {
    if (copy.base >= 0)
      return 0;
    return aligned ? problem.bytes[copy.value] : graph.values[copy.value].bytes;
  }
  void touch(int32_t copy, int32_t step) {
    for (; copy >= 0; copy = result.copies[copy].base)
      result.copies[copy].last = std::max(result.copies[copy].last, step);
  }
  int32_t newCopy(ValueId value, int32_t step) {
    result.copies.push_back({value, step, step, -1, -1});
    return current[value] = int32_t(result.copies.size()) - 1;
  }
  void liveness();
  void takeOver(int32_t step);
  bool blockedByView(int32_t source, int32_t step) const;

  const Problem &problem;
  const Graph &graph;
  std::span<const NodeId> steps;
  bool aligned;
  Simulation result;
  std::vector<int32_t> current;
  std::vector<int32_t> firstMade; ///< by step: its first copy
  /// By step: copies that its pairs may take over.
  std::vector<std::vector<int32_t>> offer;
  /// By step with pairs: the copies that are shown by views among its inputs.
  std::vector<std::vector<int32_t>> viewed;
};

void Replay::liveness() {
  int32_t end = int32_t(steps.size());
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.initial[v])
      newCopy(v, -1);
  firstMade.resize(end + 1);
  offer.resize(end);
  viewed.resize(end);
  for (int32_t t = 0; t < end; ++t) {
    const Node &node = graph.nodes[steps[t]];
    for (ValueId v : node.inputs)
      touch(current[v], t);
    for (auto [i, o] : node.reuse)
      offer[t].push_back(current[i]);
    for (ValueId v : node.inputs)
      if (!node.reuse.empty() && problem.base[v] >= 0 && current[v] >= 0)
        viewed[t].push_back(result.copies[current[v]].base);
    firstMade[t] = int32_t(result.copies.size());
    for (ValueId v : node.outputs) {
      int32_t base = problem.base[v] >= 0 ? current[problem.base[v]] : -1;
      int32_t copy = newCopy(v, t);
      result.copies[copy].base = base;
      touch(base, t);
    }
  }
  firstMade[end] = int32_t(result.copies.size());
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.endLive[v] && current[v] >= 0)
      touch(current[v], end);
}

bool Replay::blockedByView(int32_t source, int32_t step) const {
  // The source is at its last need, so no view of it lives on, but a view that
  // this step reads or makes prevents the reuse as well.
  for (int32_t c = firstMade[step]; c < firstMade[step + 1]; ++c)
    if (result.copies[c].base == source)
      return true;
  return std::find(viewed[step].begin(), viewed[step].end(), source) !=
         viewed[step].end();
}

void Replay::takeOver(int32_t t) {
  const Node &node = graph.nodes[steps[t]];
  for (size_t k = 0; k < node.reuse.size(); ++k) {
    auto [i, o] = node.reuse[k];
    int32_t source = offer[t][k];
    if (source < 0 || result.copies[source].last != t ||
        result.copies[source].made < 0 || result.copies[source].base >= 0 ||
        std::find(node.inputs.begin(), node.inputs.end(), i) ==
            node.inputs.end())
      continue;
    int32_t target = -1;
    bool taken = false;
    for (int32_t c = firstMade[t]; c < firstMade[t + 1]; ++c) {
      if (result.copies[c].value == o)
        target = c;
      taken |= result.copies[c].taken == source;
    }
    if (target < 0 || taken || result.copies[target].taken >= 0 ||
        result.copies[target].base >= 0 ||
        graph.values[o].bytes > graph.values[i].bytes ||
        blockedByView(source, t))
      continue;
    result.copies[target].taken = source;
  }
}

Simulation Replay::run() {
  liveness();
  int32_t end = int32_t(steps.size());
  for (int32_t t = 0; t < end; ++t)
    if (!graph.nodes[steps[t]].reuse.empty())
      takeOver(t);
  std::vector<int64_t> delta(end + 2, 0);
  for (const Copy &copy : result.copies) {
    int32_t from = copy.taken >= 0 ? copy.made + 1 : std::max(copy.made, 0);
    delta[from] += bytesOf(copy);
    delta[copy.last + 1] -= bytesOf(copy);
  }
  result.usage.resize(end + 1);
  int64_t load = 0;
  result.peakStep = end;
  for (int32_t t = 0; t <= end; ++t) {
    load += delta[t];
    int64_t scratch = 0;
    if (t < end)
      scratch = aligned ? problem.workspace[steps[t]]
                        : graph.nodes[steps[t]].workspace;
    result.usage[t] = load + scratch;
    if (result.usage[t] > result.peak) {
      result.peak = result.usage[t];
      result.peakStep = t;
    }
  }
  for (NodeId n : steps)
    result.cost += problem.cost[n];
  return result;
}

} // namespace

Simulation ckopt::planner::simulate(const Problem &problem,
                                    std::span<const NodeId> steps,
                                    bool aligned) {
  return Replay(problem, steps, aligned).run();
}

Simulation ckopt::planner::simulate(const Graph &graph,
                                    const std::vector<NodeId> &steps,
                                    bool aligned) {
  return simulate(Problem(graph), steps, aligned);
}

std::vector<PeakEntry> ckopt::planner::aliveAt(const Graph &graph,
                                               const std::vector<NodeId> &steps,
                                               const Simulation &simulation,
                                               int32_t step) {
  std::vector<PeakEntry> entries;
  std::vector<NodeId> producer(graph.values.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId v : graph.nodes[n].outputs)
      producer[v] = NodeId(n);
  Labels labels(graph);
  for (const Copy &copy : simulation.copies) {
    int32_t from = copy.taken >= 0 ? copy.made + 1 : std::max(copy.made, 0);
    const Value &value = graph.values[copy.value];
    if (from <= step && copy.last >= step && copy.base < 0 && value.bytes > 0)
      entries.push_back({copy.value, alignTo(value.bytes, graph.alignment),
                         labels.value(copy.value, producer[copy.value])});
  }
  std::sort(entries.begin(), entries.end(),
            [](const PeakEntry &a, const PeakEntry &b) {
              return a.bytes != b.bytes ? a.bytes > b.bytes : a.value < b.value;
            });
  if (step < int32_t(steps.size()) && graph.nodes[steps[step]].workspace > 0) {
    const Node &node = graph.nodes[steps[step]];
    entries.push_back({-1, alignTo(node.workspace, graph.alignment),
                       "workspace of " + labels.node(steps[step]),
                       steps[step]});
  }
  return entries;
}
