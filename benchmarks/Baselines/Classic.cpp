//===- Classic.cpp - forward parts, stages and replays --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: what the classical strategies share, the forward part and its
// stages (see Classic.h), and steps from a policy or a set of saved values.
// Method: dropping a copy needs no record, since a copy is resident up to its
// last use before it is made again. Guarantee: every sequence from here is
// valid, and only its load decides whether a plan is any good. Nothing is
// searched, so there is nothing to give up. O(steps and their operands).
//
//===----------------------------------------------------------------------===//
#include "Baselines/Classic.h"
#include "Model/Order.h"

#include <algorithm>

using namespace ckopt::planner;

ForwardPart::ForwardPart(const Problem &problem,
                         const std::vector<NodeId> &order, int32_t mostStages)
    : problem(problem), order(order), made(problem.numValues, -1),
      lastBefore(problem.numValues, -1), lastUse(problem.numValues, -1),
      begin{0}, stageOf(problem.numValues, -1) {
  if (problem.numNodes == 0)
    return;
  turn =
      std::min(simulate(problem, order, true).peakStep, problem.numNodes - 1);
  for (int32_t p = 0; p < problem.numNodes; ++p) {
    for (ValueId v : problem.outputs[order[p]])
      if (problem.root[v] == v && p <= turn)
        made[v] = lastUse[v] = lastBefore[v] = p;
    for (ValueId v : problem.reads[order[p]]) {
      ValueId r = problem.root[v];
      lastUse[r] = p;
      if (p <= turn)
        lastBefore[r] = p;
    }
  }
  cut(mostStages);
  for (int32_t i = 0; i < stages(); ++i)
    for (int32_t p = begin[i]; p < begin[i + 1]; ++p)
      for (ValueId v : problem.outputs[order[p]])
        stageOf[v] = i;
}

/// Every node is a stage if there are few nodes; otherwise stages make about
/// equal bytes for the backward part, and each ends where the fewest bytes are
/// live in its second half.
void ForwardPart::cut(int32_t mostStages) {
  std::vector<int64_t> live(size_t(turn) + 2, 0), kept(size_t(turn) + 2, 0);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    if (made[v] < 0)
      continue;
    live[made[v]] += problem.bytes[v];
    live[lastBefore[v]] -= problem.bytes[v];
    if (wanted(v))
      kept[made[v]] += problem.bytes[v];
  }
  for (int32_t p = 1; p <= turn; ++p) {
    live[p] += live[p - 1];
    kept[p] += kept[p - 1];
  }
  int64_t share = turn < mostStages ? 0 : kept[turn] / mostStages + 1, base = 0;
  int32_t narrowest = -1;
  for (int32_t p = 0; p < turn && share > 0; ++p) {
    if (kept[p] - base < share / 2)
      continue;
    if (narrowest < 0 || live[p] <= live[narrowest])
      narrowest = p;
    if (kept[p] - base < share)
      continue;
    begin.push_back(narrowest + 1);
    base = kept[narrowest];
    p = narrowest;
    narrowest = -1;
  }
  for (int32_t p = 0; p < turn && share == 0; ++p)
    begin.push_back(p + 1);
  begin.push_back(turn + 1);
}

std::vector<double> ForwardPart::stageCost() const {
  std::vector<double> result(stages(), 0);
  for (int32_t i = 0; i < stages(); ++i)
    for (int32_t p = begin[i]; p < begin[i + 1]; ++p)
      result[i] += problem.cost[order[p]];
  return result;
}

std::vector<int64_t> ForwardPart::crossingBytes() const {
  std::vector<int64_t> result(size_t(stages()) + 1, 0);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    if (made[v] < 0 || stageOf[v] < 0)
      continue;
    auto last = std::upper_bound(begin.begin(), begin.end() - 1, lastBefore[v]);
    result[stageOf[v] + 1] += problem.bytes[v];
    result[size_t(last - begin.begin())] -= problem.bytes[v];
  }
  for (size_t i = 1; i < result.size(); ++i)
    result[i] += result[i - 1];
  result.resize(stages());
  return result;
}

std::vector<int64_t> ForwardPart::wantedBytes() const {
  std::vector<int64_t> result(stages(), 0);
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (made[v] >= 0 && wanted(v))
      result[stageOf[v]] += problem.bytes[v];
  return result;
}

namespace {

class Runner {
public:
  explicit Runner(const ForwardPart &forward)
      : forward(forward), problem(forward.problem), ran(problem.numNodes, 0),
        there(problem.numValues, 0) {}

  std::vector<NodeId> byPolicy(const StagePolicy &policy);
  std::vector<NodeId> bySet(const std::vector<char> &saved);

private:
  struct Pending {
    int32_t from, to, level;
  };
  void emit(NodeId node) {
    steps.push_back(node);
    ran[node] = 1;
  }
  bool mayReplay(NodeId node) const {
    return problem.recompute[node] &&
           std::none_of(problem.blockers[node].begin(),
                        problem.blockers[node].end(),
                        [&](NodeId other) { return ran[other]; });
  }
  void open(Pending part, const StagePolicy &policy);
  void runStage(int32_t stage, bool keep, bool further);
  void replay(ValueId value);

  const ForwardPart &forward;
  const Problem &problem;
  std::vector<NodeId> steps;
  std::vector<char> ran;
  /// By value: whether its latest copy is the one to read.
  std::vector<char> there;
  std::vector<char> needed;     ///< scratch: by value
  std::vector<Pending> pending; ///< by rising stages
};

/// Runs a stage. `keep` keeps its results for the backward part; `further` says
/// that the next stage follows.
void Runner::runStage(int32_t stage, bool keep, bool further) {
  int32_t first = forward.begin[stage], end = forward.begin[stage + 1];
  bool again = ran[forward.order[first]];
  needed.resize(problem.numValues);
  auto each = [&](auto body) {
    for (int32_t p = first; p < end; ++p)
      for (ValueId v : problem.outputs[forward.order[p]])
        body(v, problem.root[v]);
  };
  each([&](ValueId v, ValueId r) {
    needed[v] = !there[v] && ((keep && forward.wanted(r)) ||
                              (further && forward.lastBefore[r] >= end));
  });
  std::vector<NodeId> chosen;
  for (int32_t p = end - 1; p >= first; --p) {
    NodeId node = forward.order[p];
    auto makes = [&](ValueId v) { return needed[v]; };
    std::span<const ValueId> outputs = problem.outputs[node];
    if (again && (!mayReplay(node) ||
                  std::none_of(outputs.begin(), outputs.end(), makes)))
      continue;
    chosen.push_back(node);
    for (ValueId v : problem.reads[node])
      if (forward.stageOf[v] == stage && !there[v])
        needed[v] = 1;
  }
  for (size_t k = chosen.size(); k-- > 0;)
    emit(chosen[k]);
  if (keep)
    each([&](ValueId v, ValueId r) { there[v] |= forward.wanted(r); });
}

/// Runs the stages of a part up to its end, following the policy.
void Runner::open(Pending part, const StagePolicy &policy) {
  while (part.from <= part.to) {
    StagePolicy::Decision decision =
        policy.decide(part.from, part.to, part.level);
    part.level = decision.levelAfter;
    if (decision.split <= part.from) {
      runStage(part.from, true, part.from < part.to);
      ++part.from;
      continue;
    }
    for (int32_t i = part.from; i < decision.split; ++i)
      runStage(i, false, true);
    for (ValueId v = 0; v < problem.numValues; ++v)
      if (forward.stageOf[v] >= 0 && forward.stageOf[v] < decision.split &&
          forward.crosses(problem.root[v], decision.split))
        there[v] = 1;
    pending.push_back({part.from, decision.split - 1, decision.levelBefore});
    part.from = decision.split;
  }
}

std::vector<NodeId> Runner::byPolicy(const StagePolicy &policy) {
  open({0, forward.stages() - 1, policy.firstLevel}, policy);
  for (int32_t p = forward.turn + 1; p < problem.numNodes; ++p) {
    NodeId node = forward.order[p];
    for (ValueId v : problem.reads[node]) {
      // Run later parts first, because the backward part needs them first.
      while (forward.stageOf[v] >= 0 && !there[v] && !pending.empty() &&
             pending.back().to >= forward.stageOf[v]) {
        Pending part = pending.back();
        pending.pop_back();
        open(part, policy);
      }
    }
    emit(node);
  }
  return std::move(steps);
}

/// Makes a value again, after the values that it is made from.
void Runner::replay(ValueId value) {
  std::vector<std::pair<ValueId, bool>> stack{{value, false}};
  while (!stack.empty()) {
    auto [v, ready] = stack.back();
    stack.pop_back();
    if (there[v])
      continue;
    NodeId node = problem.producer[v];
    if (ready) {
      emit(node);
      for (ValueId w : problem.outputs[node])
        there[w] = 1;
    } else if (!mayReplay(node)) {
      there[v] = 1; // its first copy stays
    } else {
      stack.push_back({v, true});
      for (ValueId w : problem.reads[node])
        if (!there[w])
          stack.push_back({w, false});
    }
  }
}

std::vector<NodeId> Runner::bySet(const std::vector<char> &saved) {
  for (int32_t p = 0; p <= forward.turn; ++p)
    emit(forward.order[p]);
  for (ValueId v = 0; v < problem.numValues; ++v)
    there[v] = forward.stageOf[v] < 0 || saved[problem.root[v]];
  for (int32_t p = forward.turn + 1; p < problem.numNodes; ++p) {
    NodeId node = forward.order[p];
    for (ValueId v : problem.reads[node])
      if (!there[v])
        replay(v);
    emit(node);
  }
  return std::move(steps);
}

} // namespace

std::vector<NodeId> ckopt::planner::runStages(const ForwardPart &forward,
                                              const StagePolicy &policy) {
  return Runner(forward).byPolicy(policy);
}

std::vector<NodeId> ckopt::planner::runSaved(const ForwardPart &forward,
                                             const std::vector<char> &saved) {
  return Runner(forward).bySet(saved);
}
