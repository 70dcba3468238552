//===- Verifier.cpp - checks a plan against its graph ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last gate before a plan is used. It replays the steps from the rules of
// the interchange format alone, with its own data structures, so that a mistake
// in a solver, in the simulator or in packing cannot hide: a plan that passes
// runs every node with the values program order gives it, within the budget,
// and no two copies that are resident at once share bytes unless they may.
// O(s log s) for s steps and copies.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Verifier.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace ckopt::planner;

namespace {

struct Resident {
  ValueId value;
  int32_t born;     ///< step; -1: at the start
  int32_t lastNeed; ///< -1: never needed
  int32_t viewOf = -1;
  int32_t takes = -1;  ///< the copy whose bytes it takes over
  int32_t changes = 0; ///< how often its bytes were overwritten (not for views)
};

class Checker {
public:
  Checker(const Graph &graph, const Plan &plan, int64_t budget)
      : graph(graph), plan(plan), budget(budget),
        end(int32_t(plan.steps.size())) {}

  std::string run() {
    bool ok = replaySteps();
    if (ok) {
      findTakenOver();
      ok = checkFigures() && checkArena();
    }
    return ok ? std::string() : error;
  }
  std::string runSteps() { return replaySteps() ? std::string() : error; }

private:
  bool replaySteps() {
    return checkCounts() && checkScope() && replay() && checkEnd();
  }
  bool fail(const std::string &message) {
    error = message;
    return false;
  }
  /// Returns the id that the file has.
  std::string idOf(NodeId n) const {
    return std::to_string(graph.nodeFileId(n));
  }
  std::string valueOf(ValueId v) const {
    return std::to_string(graph.valueFileId(v));
  }
  std::string at(int32_t t) const {
    return "step " + std::to_string(t) + " (node " + idOf(plan.steps[t]) + " " +
           graph.nodes[plan.steps[t]].name + ")";
  }
  ValueId storage(ValueId v) const {
    while (graph.values[v].aliasOf >= 0)
      v = graph.values[v].aliasOf;
    return v;
  }
  int64_t bytes(int32_t c) const {
    return copies[c].viewOf >= 0 ? 0 : graph.values[copies[c].value].bytes;
  }
  bool has(const std::vector<ValueId> &list, ValueId v) const {
    return std::find(list.begin(), list.end(), v) != list.end();
  }
  void need(int32_t c, int32_t t) {
    while (c >= 0) {
      copies[c].lastNeed = std::max(copies[c].lastNeed, t);
      c = copies[c].viewOf;
    }
  }
  bool checkCounts();
  bool checkScope();
  bool replay();
  bool checkOverwrites(int32_t t);
  bool seesChanges(int32_t c, const std::string &where);
  bool overwrite(int32_t t);
  bool checkEnd();
  void findTakenOver();
  bool viewInTheWay(int32_t source, int32_t t) const;
  bool checkFigures();
  bool checkArena();
  bool placeInitial();
  bool placeSteps();
  bool sweep();
  bool checkPacking();

  const Graph &graph;
  const Plan &plan;
  int64_t budget;
  int32_t end;
  std::string error;
  std::vector<Resident> copies;
  std::map<ValueId, int32_t> latest;
  std::set<NodeId> done;
  std::map<ValueId, std::vector<NodeId>> writers;
  /// storage -> nodes that overwrote it so far.
  std::map<ValueId, int32_t> changes;
  std::map<int32_t, std::vector<int32_t>> madeAt, offeredAt;
  /// copy -> its views.
  std::map<int32_t, std::vector<int32_t>> viewsOf;

  struct Placed {
    int32_t from, to;
    int64_t low, high;
    std::string what;
  };
  std::map<int32_t, int64_t> where;
  std::vector<Placed> placed;
};

bool Checker::checkCounts() {
  std::vector<int> runs(graph.nodes.size(), 0);
  for (NodeId n : plan.steps) {
    if (n < 0 || n >= int32_t(graph.nodes.size()))
      return fail("the plan runs unknown node " + std::to_string(n));
    ++runs[n];
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = graph.nodes[n];
    if (runs[n] == 0)
      return fail("node " + idOf(NodeId(n)) + " " + node.name + " never runs");
    if (runs[n] > 1 && (!node.recompute || !node.mutates.empty()))
      return fail("node " + idOf(NodeId(n)) + " " + node.name +
                  " may run only once");
    for (ValueId v : node.mutates)
      writers[storage(v)].push_back(NodeId(n));
  }
  return true;
}

/// Checks that the plan is one of those that its statements speak of. Rules
/// cannot be checked on a graph without them, and with them other things are
/// recomputed than the rest of the scope means.
bool Checker::checkScope() {
  if (plan.scope.has(Restriction::Policy) && !graph.obeysPolicy)
    return true;
  std::vector<char> ran(graph.nodes.size(), 0);
  NodeId last = -1;
  for (NodeId n : plan.steps) {
    if (ran[n] && plan.scope.has(Restriction::OrderOnly))
      return fail("restricted to order_only, and yet node " + idOf(n) + " " +
                  graph.nodes[n].name + " runs twice");
    if (!ran[n] && n < last && plan.scope.has(Restriction::FixedOrder))
      return fail("restricted to fixed_order, and yet node " + idOf(n) + " " +
                  graph.nodes[n].name + " runs first after node " + idOf(last));
    if (!ran[n])
      last = n;
    ran[n] = 1;
  }
  return true;
}

bool Checker::checkOverwrites(int32_t t) {
  NodeId n = plan.steps[t];
  std::set<ValueId> touched;
  for (ValueId v : graph.nodes[n].inputs)
    touched.insert(storage(v));
  for (ValueId v : graph.nodes[n].mutates)
    touched.insert(storage(v));
  for (ValueId v : touched) {
    auto it = writers.find(v);
    if (it == writers.end())
      continue;
    for (NodeId w : it->second) {
      if (w < n && !done.count(w))
        return fail(at(t) + " reads value " + valueOf(ValueId(v)) +
                    " before node " + idOf(w) + " overwrites it");
      if (w >= n && done.count(w))
        return fail(at(t) + " reads value " + valueOf(ValueId(v)) +
                    " after node " + idOf(w) + " overwrites it");
    }
  }
  return true;
}

/// Checks that a copy in use is the one that all changes so far were made to (a
/// value without bytes cannot change).
bool Checker::seesChanges(int32_t c, const std::string &where) {
  ValueId value = copies[c].value;
  while (copies[c].viewOf >= 0)
    c = copies[c].viewOf;
  auto it = changes.find(copies[c].value);
  if (it == changes.end() || copies[c].changes == it->second || bytes(c) == 0)
    return true;
  return fail(where + " value " + valueOf(value) +
              " of a copy that is not the one that node " +
              idOf(writers[copies[c].value][it->second - 1]) +
              " overwrites: the change would be lost");
}

/// Applies the changes of a step.
bool Checker::overwrite(int32_t t) {
  std::map<ValueId, int32_t> targets; // storage -> copy
  for (ValueId v : graph.nodes[plan.steps[t]].mutates) {
    int32_t c = latest.at(v);
    if (!seesChanges(c, at(t) + " overwrites"))
      return false;
    while (copies[c].viewOf >= 0)
      c = copies[c].viewOf;
    auto [it, fresh] = targets.insert({storage(v), c});
    if (!fresh && it->second != c && bytes(c) > 0)
      return fail(at(t) + " overwrites two copies of value " +
                  valueOf(storage(v)) + ", one of which others would miss");
  }
  for (auto [value, c] : targets)
    copies[c].changes = ++changes[value];
  return true;
}

bool Checker::replay() {
  for (size_t v = 0; v < graph.values.size(); ++v) {
    ValueKind kind = graph.values[v].kind;
    if (kind != ValueKind::Input && kind != ValueKind::Persistent)
      continue;
    latest[ValueId(v)] = int32_t(copies.size());
    copies.push_back({ValueId(v), -1, -1});
  }
  for (int32_t t = 0; t < end; ++t) {
    const Node &node = graph.nodes[plan.steps[t]];
    for (NodeId p : node.after)
      if (!done.count(p))
        return fail(at(t) + " runs before node " + idOf(p));
    for (ValueId v : node.inputs) {
      auto it = latest.find(v);
      if (it == latest.end())
        return fail(at(t) + " reads value " + valueOf(ValueId(v)) +
                    " that was never made");
      need(it->second, t);
      if (!seesChanges(it->second, at(t) + " reads"))
        return false;
    }
    if (!checkOverwrites(t) || !overwrite(t))
      return false;
    for (auto [i, o] : node.reuse) {
      auto it = latest.find(i);
      offeredAt[t].push_back(it == latest.end() ? -1 : it->second);
    }
    for (ValueId v : node.outputs) {
      Resident copy{v, t, t};
      ValueId base = graph.values[v].aliasOf;
      if (base >= 0) {
        auto it = latest.find(base);
        if (it == latest.end())
          return fail(at(t) + " makes a view of value " + valueOf(base) +
                      " that was never made");
        copy.viewOf = it->second;
        viewsOf[it->second].push_back(int32_t(copies.size()));
        need(it->second, t);
      }
      latest[v] = int32_t(copies.size());
      madeAt[t].push_back(int32_t(copies.size()));
      copies.push_back(copy);
    }
    done.insert(plan.steps[t]);
  }
  return true;
}

bool Checker::checkEnd() {
  for (size_t v = 0; v < graph.values.size(); ++v) {
    ValueKind kind = graph.values[v].kind;
    if (kind != ValueKind::Output && kind != ValueKind::Persistent)
      continue;
    auto it = latest.find(ValueId(v));
    if (it == latest.end())
      return fail("output " + valueOf(ValueId(v)) + " is never made");
    if (!seesChanges(it->second, "the end finds"))
      return false;
    need(it->second, end);
  }
  return true;
}

bool Checker::viewInTheWay(int32_t source, int32_t t) const {
  auto it = viewsOf.find(source);
  if (it == viewsOf.end())
    return false;
  for (int32_t view : it->second) {
    const Resident &r = copies[view];
    if (r.lastNeed > t)
      return true;
    if (r.lastNeed == t &&
        (r.born == t || has(graph.nodes[plan.steps[t]].inputs, r.value)))
      return true;
  }
  return false;
}

void Checker::findTakenOver() {
  for (auto &[t, sources] : offeredAt) {
    const Node &node = graph.nodes[plan.steps[t]];
    for (size_t k = 0; k < sources.size(); ++k) {
      auto [i, o] = node.reuse[k];
      int32_t source = sources[k], target = -1;
      bool sourceTaken = false;
      for (int32_t c : madeAt[t]) {
        if (copies[c].value == o)
          target = c;
        sourceTaken |= copies[c].takes == source;
      }
      if (source < 0 || target < 0 || !has(node.inputs, i))
        continue;
      const Resident &from = copies[source];
      if (from.lastNeed != t || from.born < 0 || from.viewOf >= 0 ||
          copies[target].viewOf >= 0 || copies[target].takes >= 0 ||
          sourceTaken || bytes(target) > bytes(source) ||
          viewInTheWay(source, t))
        continue;
      copies[target].takes = source;
    }
  }
}

bool Checker::checkFigures() {
  std::vector<int64_t> change(end + 2, 0);
  for (size_t c = 0; c < copies.size(); ++c) {
    const Resident &r = copies[c];
    change[r.takes >= 0 ? r.born + 1 : std::max(r.born, 0)] += bytes(c);
    change[r.lastNeed + 1] -= bytes(c);
  }
  int64_t load = 0, peak = 0;
  double cost = 0;
  for (int32_t t = 0; t <= end; ++t) {
    load += change[t];
    int64_t scratch = t < end ? graph.nodes[plan.steps[t]].workspace : 0;
    peak = std::max(peak, load + scratch);
    if (t < end)
      cost += graph.nodes[plan.steps[t]].cost;
  }
  if (std::abs(cost - plan.cost) > 1e-6 * std::abs(cost))
    return fail("the plan says cost " + std::to_string(plan.cost) + ", it is " +
                std::to_string(cost));
  if (peak != plan.peak)
    return fail("the plan says peak " + std::to_string(plan.peak) + ", it is " +
                std::to_string(peak));
  if (budget > 0 && peak > budget)
    return fail("peak " + std::to_string(peak) + " over budget " +
                std::to_string(budget));
  if (plan.lowerBound > cost * (1 + 1e-9))
    return fail("lower bound " + std::to_string(plan.lowerBound) +
                " above the cost " + std::to_string(cost));
  if (plan.status == Status::Optimal && plan.lowerBound < cost * (1 - 1e-6))
    return fail("called optimal, but no bound says so");
  return true;
}

bool Checker::placeInitial() {
  for (auto [v, offset] : plan.initial) {
    if (v < 0 || v >= int32_t(graph.values.size()))
      return fail("initial: places unknown value " + std::to_string(v));
    int32_t copy = -1;
    for (size_t c = 0; c < copies.size() && copies[c].born < 0; ++c)
      if (copies[c].value == v)
        copy = int32_t(c);
    if (copy < 0)
      return fail("initial: places value " + valueOf(ValueId(v)) +
                  ", which is not there at the start");
    if (offset < 0 || offset > plan.arena)
      return fail("initial: value " + valueOf(v) + " lies outside the arena");
    if (offset % graph.alignment)
      return fail("initial: the offset of value " + valueOf(v) +
                  " is not aligned");
    if (!where.insert({copy, offset}).second)
      return fail("initial: places value " + valueOf(ValueId(v)) + " twice");
    if (bytes(copy) > 0 && copies[copy].lastNeed >= 0)
      placed.push_back({0, copies[copy].lastNeed, offset, offset + bytes(copy),
                        "value " + valueOf(ValueId(v))});
  }
  return true;
}

bool Checker::placeSteps() {
  if (int32_t(plan.offsets.size()) != end)
    return fail("offsets: not one list a step");
  for (int32_t t = 0; t < end; ++t) {
    const Node &node = graph.nodes[plan.steps[t]];
    const std::vector<int64_t> &given = plan.offsets[t];
    if (given.size() != node.outputs.size() + (node.workspace > 0 ? 1 : 0))
      return fail("offsets of " + at(t) + ": " + std::to_string(given.size()) +
                  " given");
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      int32_t c = madeAt[t][k];
      const Resident &r = copies[c];
      if (given[k] < 0 || given[k] % graph.alignment)
        return fail("offset of value " + valueOf(r.value) + " at " + at(t) +
                    " is negative or not aligned");
      if (bytes(c) == 0)
        continue;
      if (given[k] > plan.arena)
        return fail("value " + valueOf(r.value) + " of " + at(t) +
                    " lies outside the arena");
      where[c] = given[k];
      auto source = where.find(r.takes);
      bool inPlace =
          r.takes >= 0 && source != where.end() && source->second == given[k];
      int32_t from = inPlace ? t + 1 : t;
      if (from <= r.lastNeed)
        placed.push_back({from, r.lastNeed, given[k], given[k] + bytes(c),
                          "value " + valueOf(r.value) + " of " + at(t)});
    }
    if (node.workspace > 0 && (given.back() < 0 || given.back() > plan.arena))
      return fail("workspace of " + at(t) + " lies outside the arena");
    if (node.workspace > 0 && given.back() % graph.alignment)
      return fail("offset of the workspace of " + at(t) + " is not aligned");
    if (node.workspace > 0)
      placed.push_back({t, t, given.back(), given.back() + node.workspace,
                        "workspace of " + at(t)});
  }
  return true;
}

bool Checker::sweep() {
  // Scan in time; live ranges are disjoint, so only adjacent ones can collide.
  std::sort(placed.begin(), placed.end(), [](const Placed &a, const Placed &b) {
    return a.from != b.from ? a.from < b.from : a.low < b.low;
  });
  std::map<int64_t, size_t> live; // low -> box
  std::multimap<int32_t, size_t> ends;
  for (size_t i = 0; i < placed.size(); ++i) {
    const Placed &box = placed[i];
    if (box.low < 0 || box.high > plan.arena)
      return fail(box.what + " lies outside the arena");
    while (!ends.empty() && ends.begin()->first < box.from) {
      live.erase(placed[ends.begin()->second].low);
      ends.erase(ends.begin());
    }
    auto next = live.lower_bound(box.low);
    if (next != live.end() && placed[next->second].low < box.high)
      return fail(box.what + " and " + placed[next->second].what + " overlap");
    if (next != live.begin() && placed[std::prev(next)->second].high > box.low)
      return fail(box.what + " and " + placed[std::prev(next)->second].what +
                  " overlap");
    live[box.low] = i;
    ends.insert({box.to, i});
  }
  return true;
}

/// Checks the plan's bounds on other packings of its steps. A bound that a
/// search proved cannot be derived here, only compared with the arena.
bool Checker::checkPacking() {
  const PackingFacts &stated = plan.packing;
  if (stated.lowerBound == 0)
    return true;
  std::vector<int64_t> change(end + 2, 0);
  for (int32_t c = 0; c < int32_t(copies.size()); ++c) {
    const Resident &r = copies[c];
    if (r.lastNeed < 0 || (r.born < 0 && !where.count(c)))
      continue;
    int64_t size = alignTo(bytes(c), graph.alignment);
    change[r.takes >= 0 ? r.born + 1 : std::max(r.born, 0)] += size;
    change[r.lastNeed + 1] -= size;
  }
  int64_t sum = 0, load = 0;
  for (int32_t t = 0; t <= end; ++t) {
    sum += change[t];
    int64_t scratch = t < end ? graph.nodes[plan.steps[t]].workspace : 0;
    load = std::max(load, sum + alignTo(scratch, graph.alignment));
  }
  if (stated.load != load)
    return fail("packing: the plan says load " + std::to_string(stated.load) +
                ", it is " + std::to_string(load));
  if (!stated.searched && stated.lowerBound > load)
    return fail("packing: lower bound " + std::to_string(stated.lowerBound) +
                " above the load " + std::to_string(load));
  if (stated.lowerBound > plan.arena)
    return fail("packing: lower bound " + std::to_string(stated.lowerBound) +
                " above the arena " + std::to_string(plan.arena));
  return true;
}

bool Checker::checkArena() {
  if (plan.offsets.empty() && plan.arena == 0)
    return true;
  // Far above all sums of sizes, so that no later sum overflows.
  if (plan.arena < 0 || plan.arena > (int64_t(1) << 61))
    return fail("arena out of range");
  if (!placeInitial() || !placeSteps() || !sweep())
    return false;
  int64_t outside = 0;
  for (size_t c = 0; c < copies.size() && copies[c].born < 0; ++c)
    if (copies[c].lastNeed >= 0 && !where.count(int32_t(c)))
      outside += bytes(int32_t(c));
  if (budget > 0 && plan.arena + outside > budget)
    return fail("arena " + std::to_string(plan.arena) +
                " plus what lies outside it, " + std::to_string(outside) +
                ", over budget " + std::to_string(budget));
  return checkPacking();
}

} // namespace

std::string ckopt::planner::verify(const Graph &graph, const Plan &plan,
                                   int64_t budget) {
  std::string error = validate(graph);
  if (!error.empty())
    return "the graph is malformed: " + error;
  return Checker(graph, plan, budget).run();
}

std::string ckopt::planner::verifySteps(const Graph &graph, const Plan &plan) {
  std::string error = validate(graph);
  if (!error.empty())
    return "the graph is malformed: " + error;
  return Checker(graph, plan, 0).runSteps();
}
