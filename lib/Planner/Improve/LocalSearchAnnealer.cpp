//===- LocalSearchAnnealer.cpp - one chain of simulated annealing ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the sequence of least energy, the cost plus a price for bytes over
// the budget. Method: Metropolis' rule with the draw made before the proposal:
// the energy that the new sequence may reach is known beforehand, so most
// proposals are turned down by their cost or by one range maximum before
// anything is edited; what remains is edited, measured exactly, and undone if
// it is too bad. Gives up: after its moves or with the deadline. Complexity:
// O(log n) for each operand of a move that is edited, O(1) for most others.
//
//===----------------------------------------------------------------------===//
#include "Improve/LocalSearchAnnealer.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

AnnealingTables::AnnealingTables(const Problem &problem) {
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.producer[v] >= 0 && problem.recompute[problem.producer[v]] &&
        !problem.readers[v].empty())
      byRatio.push_back(v);
  auto ratio = [&](ValueId v) {
    return problem.cost[problem.producer[v]] /
           double(std::max<int64_t>(1, problem.bytes[v]));
  };
  std::sort(byRatio.begin(), byRatio.end(), [&](ValueId a, ValueId b) {
    double x = ratio(a), y = ratio(b);
    return x != y ? x < y : a < b;
  });
  std::vector<std::vector<int32_t>> preds(problem.numNodes),
      succs(problem.numNodes);
  for (NodeId n = 0; n < problem.numNodes; ++n)
    for (NodeId p : problem.preds[n]) {
      bool data = false;
      for (ValueId v : problem.reads[n])
        data |= problem.producer[v] == p;
      if (data)
        continue;
      preds[n].push_back(p);
      succs[p].push_back(n);
    }
  extraPreds = Csr::from(preds);
  extraSuccs = Csr::from(succs);
  draws.resize(4096);
  for (int i = 0; i < 4096; ++i)
    draws[i] = -std::log((i + 0.5) / 4096);
}

Annealer::Annealer(const Problem &problem, const AnnealingTables &tables,
                   AnnealingGoal goal, const std::vector<NodeId> &start,
                   uint64_t seed)
    : problem(problem), tables(tables), goal(goal), sequence(problem, start),
      random(seed), multiIndex(problem.numNodes, -1), bestSteps(start) {
  for (NodeId n = 0; n < problem.numNodes; ++n)
    updateMulti(n);
  bestCostSeen = sequence.cost();
  bestPeakSeen = sequence.peak();
  bestEnergy = energy();
}

void Annealer::updateMulti(NodeId n) {
  bool in = sequence.runs(n).size() > 1;
  int32_t &index = multiIndex[n];
  if (in && index < 0) {
    index = int32_t(multi.size());
    multi.push_back(n);
  } else if (!in && index >= 0) {
    multi[index] = multi.back();
    multiIndex[multi.back()] = index;
    multi.pop_back();
    index = -1;
  }
}

void Annealer::insert(NodeId n, int32_t slot) {
  sequence.insert(n, slot);
  log.push_back({Edit::Insert, n, slot, -1});
  updateMulti(n);
}

void Annealer::remove(int32_t slot) {
  NodeId n = sequence.at(slot);
  sequence.remove(slot);
  log.push_back({Edit::Remove, n, slot, -1});
  updateMulti(n);
}

void Annealer::move(int32_t from, int32_t to) {
  NodeId n = sequence.at(from);
  sequence.move(from, to);
  log.push_back({Edit::Move, n, to, from});
}

void Annealer::undo() {
  work += 8 * int64_t(log.size());
  while (!log.empty()) {
    Edit edit = log.back();
    log.pop_back();
    switch (edit.kind) {
    case Edit::Insert:
      sequence.remove(edit.slot);
      break;
    case Edit::Remove:
      sequence.insert(edit.node, edit.slot);
      break;
    case Edit::Move:
      sequence.move(edit.slot, edit.from);
      continue;
    }
    updateMulti(edit.node);
  }
}

void Annealer::keepBest() {
  int64_t peak = sequence.peak();
  bool fits = peak <= goal.budget, bestFits = bestPeakSeen <= goal.budget;
  double now = energy();
  if (fits != bestFits ? bestFits : now >= bestEnergy * (1 - 1e-12))
    return;
  bestEnergy = now;
  bestCostSeen = sequence.cost();
  bestPeakSeen = peak;
  bestSteps = sequence.steps();
  work += sequence.numSlots() / 16;
}

bool Annealer::propose() {
  if (goal.orderOnly)
    return proposeMove();
  int kind = random.below(100);
  if (kind < 15)
    return proposeRemove();
  if (kind < 25)
    return proposeExchange();
  if (kind < 50)
    return proposeInsert();
  if (kind < 65 || goal.fixedOrder)
    return proposeShift();
  return proposeMove();
}

bool Annealer::run(int64_t moves, double hot, double cold, Deadline &deadline) {
  const int64_t block = 256;
  double temperature = hot;
  double cooling = std::pow(cold / hot, double(block) / double(moves));
  int64_t snapshot = std::max<int64_t>(problem.numNodes / 2, 64), since = 0;
  double current = energy();
  int64_t quiet = 0; // moves since the last respread
  bool more = true;
  for (int64_t m = 0; m < moves; ++m) {
    if (m % block == 0) {
      temperature *= cooling;
      more = deadline.spend(work + block);
      work = 0;
      if (!more)
        break;
    }
    log.clear();
    limit = current + temperature * tables.draws[random.next() & 4095];
    bool proposed = propose();
    ++quiet;
    if (!log.empty()) {
      work += 8 * int64_t(log.size());
      double next = proposed ? energy() : 0;
      if (proposed && next <= limit)
        current = next;
      else
        undo();
    }
    if (crowded && quiet > problem.numNodes) {
      sequence.respread();
      work += sequence.numSlots() / 2;
      quiet = 0;
    }
    crowded = false;
    if (++since >= snapshot) {
      current = energy(); // so that rounding errors do not add up
      keepBest();
      since = 0;
    }
  }
  deadline.spend(work);
  work = 0;
  keepBest();
  return more;
}
