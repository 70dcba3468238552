//===- Archive.cpp - every plan that was found ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: keep every sequence that no other one beats in cost and load, and
// every packed plan that none beats in cost and size, so that answers are
// monotone in the budget. Method: linear scans over a few hundred sequences,
// cheap beside finding one. Never gives up: nothing is lost for lack of room.
// Complexity: O(sequences) a report, beside its simulation.
//
//===----------------------------------------------------------------------===//
#include "Portfolio/Archive.h"
#include "Model/Order.h"
#include "ckopt/Planner/Packing.h"
#include "ckopt/Support/Debug.h"
#include "llvm/Support/Format.h"

#include <algorithm>

using namespace ckopt;
using namespace ckopt::planner;

Archive::Archive(const Problem &problem, Mode mode, const Tuning &tuning,
                 bool programOrderOnly)
    : problem(problem), mode(mode), tuning(tuning) {
  if (mode.fixedOrder || programOrderOnly)
    orders = {programOrder(problem)};
  else
    orders = candidateOrders(problem);
  for (const std::vector<NodeId> &order : orders)
    report(order, 0, "none");
  packOrders(std::numeric_limits<int64_t>::max(), tuning.sketchEffort);
}

void Archive::packOrders(int64_t budget, double packEffort) {
  size_t packed = std::min(orders.size(), tuning.packedOrders);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < packed; ++i) {
    Simulation simulation = simulate(problem, orders[i], true);
    if (simulation.peak > budget || simulation.peak >= least)
      continue;
    least = std::min(
        least, realize({orders[i], simulation.cost, simulation.peak, "none"},
                       packEffort));
  }
}

Archive::Archive(const Problem &problem, const Archive &other)
    : problem(problem), mode(other.mode), tuning(other.tuning),
      orders(other.orders) {
  merge(other);
}

bool Archive::report(std::vector<NodeId> steps, int64_t budget,
                     const std::string &strategy) {
  debug::count(debug::Counter::Sequences);
  Simulation simulation = simulate(problem, steps, true);
  Candidate candidate{std::move(steps), simulation.cost, simulation.peak,
                      strategy};
  bool fits = candidate.peak <= budget;
  for (const Candidate &other : candidates)
    if (other.cost <= candidate.cost && other.peak <= candidate.peak)
      return fits;
  std::erase_if(candidates, [&](const Candidate &other) {
    return other.cost >= candidate.cost && other.peak >= candidate.peak;
  });
  candidates.push_back(std::move(candidate));
  return fits;
}

void Archive::measure(Entry &entry, double packEffort) const {
  const Graph &graph = problem.graph;
  Simulation simulation = simulate(problem, entry.plan.steps, false);
  entry.plan.cost = simulation.cost;
  entry.plan.peak = simulation.peak;
  entry.packEffort = packEffort;
  entry.size = entry.load;
  if (!mode.pack)
    return;
  packPlan(graph, entry.plan, mode.holdsAll, packEffort);
  entry.size = sizeOf(entry.plan, entry.load);
  debug::log(debug::Part::Planner, [&](llvm::raw_ostream &os) {
    os << "packed a load of " << entry.load << " into " << entry.size
       << " at effort " << llvm::format("%g", packEffort);
  });
}

int64_t Archive::sizeOf(const Plan &plan, int64_t load) const {
  if (!mode.pack)
    return load;
  int64_t size = plan.arena;
  std::vector<char> inside(problem.numValues, 0);
  for (auto [value, offset] : plan.initial)
    inside[value] = 1;
  for (const Copy &copy : simulate(problem, plan.steps, false).copies)
    if (copy.made < 0 && copy.last >= 0 && !inside[copy.value])
      size += problem.graph.values[copy.value].bytes;
  return size;
}

void Archive::add(const Plan &plan, const std::string &strategy) {
  report(plan.steps, 0, strategy);
  Entry entry;
  entry.plan = plan;
  entry.strategy = strategy;
  Simulation simulation = simulate(problem, plan.steps, false);
  entry.plan.cost = simulation.cost;
  entry.plan.peak = simulation.peak;
  entry.load = simulate(problem, plan.steps, true).peak;
  if (!mode.pack) {
    entry.plan.arena = 0;
    entry.plan.offsets.clear();
    entry.plan.initial.clear();
    entry.plan.packing = {};
  } else if (plan.offsets.empty()) {
    measure(entry, 1);
  } else if (plan.packing.lowerBound == 0) {
    entry.plan.packing =
        pack(packingOf(problem.graph, plan), {.search = false}).facts;
  }
  entry.size = sizeOf(entry.plan, entry.load);
  entries.push_back(std::move(entry));
}

int64_t Archive::realize(const Candidate &candidate, double packEffort) {
  Entry entry;
  entry.plan.steps = candidate.steps;
  entry.load = candidate.peak;
  for (Entry &known : entries)
    if (known.plan.steps == candidate.steps) {
      if (!mode.pack || known.packEffort >= packEffort ||
          known.size <= known.load)
        return known.size;
      entry.strategy = known.strategy;
      measure(entry, packEffort);
      known.packEffort = packEffort;
      if (entry.size < known.size)
        known = std::move(entry);
      else if (entry.plan.packing.lowerBound > known.plan.packing.lowerBound)
        known.plan.packing = entry.plan.packing;
      return known.size;
    }
  entry.strategy = candidate.strategy;
  measure(entry, packEffort);
  entries.push_back(std::move(entry));
  return entries.back().size;
}

void Archive::merge(const Archive &other) {
  for (const Candidate &candidate : other.candidates)
    report(candidate.steps, 0, candidate.strategy);
  for (Entry entry : other.entries) {
    entry.plan.cost = 0;
    for (NodeId n : entry.plan.steps)
      entry.plan.cost += problem.cost[n];
    bool known = false;
    for (Entry &mine : entries)
      if (mine.plan.steps == entry.plan.steps) {
        known = true;
        if (entry.size < mine.size)
          mine = entry;
      }
    if (!known)
      entries.push_back(std::move(entry));
  }
}

const Entry *Archive::bestWithin(int64_t budget) const {
  const Entry *best = nullptr;
  for (const Entry &entry : entries)
    if ((budget == 0 || entry.size <= budget) &&
        (!best || entry.plan.cost < best->plan.cost ||
         (entry.plan.cost == best->plan.cost && entry.size < best->size)))
      best = &entry;
  return best;
}

const Entry *Archive::smallest() const {
  const Entry *best = nullptr;
  for (const Entry &entry : entries)
    if (!best || entry.size < best->size ||
        (entry.size == best->size && entry.plan.cost < best->plan.cost))
      best = &entry;
  return best;
}

const Candidate &Archive::leastLoad() const {
  return *std::min_element(
      candidates.begin(), candidates.end(),
      [](const Candidate &a, const Candidate &b) { return a.peak < b.peak; });
}

std::vector<Candidate> Archive::byLoad(int64_t below) const {
  std::vector<Candidate> list;
  for (const Candidate &candidate : candidates)
    if (candidate.peak < below)
      list.push_back(candidate);
  std::sort(list.begin(), list.end(),
            [](const Candidate &a, const Candidate &b) {
              return a.peak != b.peak ? a.peak < b.peak : a.cost < b.cost;
            });
  return list;
}

std::vector<Candidate> Archive::byCost(int64_t budget) const {
  std::vector<Candidate> list;
  for (const Candidate &candidate : candidates)
    if (candidate.peak <= budget)
      list.push_back(candidate);
  std::sort(list.begin(), list.end(),
            [](const Candidate &a, const Candidate &b) {
              return a.cost != b.cost ? a.cost < b.cost : a.peak < b.peak;
            });
  return list;
}

/// Lowers the load target step by step until the packed plan fits, as if
/// planning without offsets; then bisects upward.
int64_t LoadBracket::next(int64_t budget, int64_t width) const {
  if (tooMuch == 0)
    return budget;
  if (settled(width))
    return fits;
  return fits == 0 ? tooMuch - step : fits + (tooMuch - fits) / 2;
}

bool LoadBracket::settled(int64_t width) const {
  return fits > 0 && (tooMuch == 0 || (tooMuch - fits) / 2 <= width);
}

void LoadBracket::take(int64_t load, int64_t peak, int64_t missing,
                       int64_t most) {
  if (missing <= 0) {
    fits = std::max(fits, load);
    return;
  }
  tooMuch = std::min(load, peak);
  if (fits >= tooMuch)
    fits = 0;
  step = std::min(missing, most);
  ++tries;
}
