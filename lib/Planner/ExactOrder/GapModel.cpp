//===- GapModel.cpp - the program over retention gaps ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the mixed integer program whose optimum bounds every plan of a
// given order. Method: x_g = 1 says that gap g is dropped and its storage made
// again inside it. At each
// position the bytes of dropped gaps must make up for the load over the budget.
// A run of g's maker needs the maker's inputs. An input whose last access by a
// first run is at or before the start of g is not accounted for by any gap: it
// is kept beyond that access (k: costs bytes up to the start of g) or made
// again after it (z: costs a run, which needs inputs in turn). Inputs with
// later accesses cost nothing beyond their own gaps, except where rows for a
// run were added. Guarantee: every plan of the order satisfies all rows (with
// x, k and z read off it). O(gaps * inputs) columns.
//
//===----------------------------------------------------------------------===//
#include "ExactOrder/GapModel.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

GapModel::GapModel(const GapProblem &gaps, int64_t budget)
    : gaps(gaps), problem(gaps.problem), budget(budget),
      need(gaps.need(budget)), splits(gaps.gaps.size()),
      gapsOf(gaps.problem.numValues) {
  for (size_t g = 0; g < gaps.gaps.size(); ++g)
    gapsOf[gaps.gaps[g].storage].push_back(g);
}

std::vector<char> GapModel::dropped(const std::vector<char> &x) const {
  std::vector<char> result;
  for (int32_t column : gapColumn)
    result.push_back(x[column]);
  return result;
}

int32_t GapModel::stay(ValueId storage, int32_t until) {
  auto [it, fresh] = stays.insert({{storage, until}, 0});
  if (fresh)
    it->second = milp.addColumn(0);
  return it->second;
}

/// Returns the column that makes the storage again after its last access and
/// before `to`.
int32_t GapModel::again(ValueId storage, int32_t to) {
  NodeId node = problem.producer[storage];
  if (node < 0 || !problem.recompute[node])
    return -1;
  auto [it, fresh] = agains.insert({{storage, to}, 0});
  if (fresh) {
    // A single run may serve all of them.
    auto [once, first] = agains.insert({{storage, -1}, 0});
    if (first)
      once->second = milp.addColumn(problem.cost[node] * gaps.share[storage]);
    it->second = milp.addColumn(0);
    milp.rows.push_back({{{once->second, 1}, {it->second, -1}}, 0});
    open.push_back({storage, to, it->second});
  }
  return it->second;
}

/// If the column is 1, the node runs again in a gap, or (gap < 0) between two
/// positions. Requires inputs whose last access is before that.
void GapModel::requireTails(int32_t column, NodeId node, int32_t from,
                            int32_t to, int64_t gap) {
  std::vector<ValueId> seen;
  for (ValueId v : problem.reads[node]) {
    ValueId input = problem.root[v];
    int32_t last = gaps.lastAccess[input];
    if (problem.bytes[input] == 0 || last >= to || last < 0 ||
        std::find(seen.begin(), seen.end(), input) != seen.end())
      continue;
    seen.push_back(input);
    // The storage is resident at its last access, so a run right then needs
    // nothing.
    if (last >= from && gap < 0)
      continue;
    int32_t make = again(input, to);
    Milp::Row row{{{column, -1}}, 0};
    if (make >= 0)
      row.terms.push_back({make, 1});
    if (last < from) {
      addRow(row, {stay(input, from)});
    }
    if (gap < 0)
      continue;
    conflicts.push_back({size_t(gap), -1, input, -1, make});
    for (int32_t q : splits[gap]) {
      if (q <= last)
        continue;
      addRow(row, {stay(input, q), part({size_t(gap), true, q}), twice(gap)});
    }
  }
}

int32_t GapModel::part(Part key) {
  auto [it, fresh] = parts.insert({key, 0});
  if (fresh) {
    it->second = milp.addColumn(0);
    milp.rows.push_back({{{gapColumn[key.gap], 1}, {it->second, -1}}, 0});
  }
  return it->second;
}

int32_t GapModel::twice(size_t gap) {
  auto [it, fresh] = twices.insert({gap, 0});
  if (fresh) {
    it->second = milp.addColumn(gaps.gaps[gap].cost);
    milp.rows.push_back({{{gapColumn[gap], 1}, {it->second, -1}}, 0});
  }
  return it->second;
}

/// Requires inputs whose own gap extends beyond the run.
void GapModel::requireShared(int32_t column, NodeId node, int32_t from,
                             int32_t to, int64_t gap) {
  for (ValueId v : problem.reads[node])
    for (ValueId root = problem.root[v]; size_t h : gapsOf[root]) {
      const Gap &outer = gaps.gaps[h];
      if (outer.to <= to || outer.from >= to - 1 ||
          (gap < 0 && outer.from >= from))
        continue;
      Milp::Row row{{{column, -1},
                     {gapColumn[h], -1},
                     {part({h, true, to}), 1},
                     {twice(h), 1}},
                    -1};
      if (outer.from < from) {
        addRow(row, {part({h, false, from})});
      }
      if (gap < 0)
        continue;
      conflicts.push_back({size_t(gap), int64_t(h), root, row.terms[2].first,
                           row.terms[3].first});
      for (int32_t q : splits[gap]) {
        if (q <= outer.from)
          continue;
        addRow(row,
               {part({h, false, q}), part({size_t(gap), true, q}), twice(gap)});
      }
    }
}

/// A storage that is resident up to a later position is so up to an earlier
/// one; from an earlier one on, also from a later one on.
void GapModel::chainParts() {
  for (auto it = parts.begin(); it != parts.end(); ++it) {
    auto next = std::next(it);
    if (next == parts.end() || next->first.gap != it->first.gap ||
        next->first.suffix != it->first.suffix)
      continue;
    if (it->first.suffix)
      milp.rows.push_back({{{next->second, 1}, {it->second, -1}}, 0});
    else
      milp.rows.push_back({{{it->second, 1}, {next->second, -1}}, 0});
  }
}

/// A storage that stays up to a later position also stays up to earlier ones.
void GapModel::chainStays() {
  for (auto it = stays.begin(); it != stays.end(); ++it) {
    auto next = std::next(it);
    if (next != stays.end() && next->first.first == it->first.first)
      milp.rows.push_back({{{it->second, 1}, {next->second, -1}}, 0});
  }
}

void GapModel::addLoadRows() {
  int32_t n = gaps.numPositions;
  std::vector<std::vector<std::pair<int32_t, double>>> terms(n);
  for (size_t g = 0; g < gaps.gaps.size(); ++g)
    for (int32_t p = gaps.gaps[g].first; p <= gaps.gaps[g].last; ++p)
      terms[p].push_back({gapColumn[g], double(gaps.gaps[g].bytes)});
  ValueId storage = -1;
  int32_t from = 0;
  for (auto [key, column] : stays) {
    if (key.first != storage)
      from = gaps.lastAccess[storage = key.first];
    for (int32_t p = from + 1; p <= std::min(key.second, n - 1); ++p)
      terms[p].push_back({column, -double(problem.bytes[storage])});
    from = key.second;
  }
  for (auto it = parts.begin(); it != parts.end(); ++it) {
    const Gap &gap = gaps.gaps[it->first.gap];
    auto same = [&](auto other) {
      return other->first.gap == it->first.gap &&
             other->first.suffix == it->first.suffix;
    };
    int32_t first = gap.first, last = it->first.position;
    if (it->first.suffix) {
      first = it->first.position;
      auto next = std::next(it);
      last = next != parts.end() && same(next) ? next->first.position - 1
                                               : gap.last;
    } else if (it != parts.begin() && same(std::prev(it))) {
      first = std::prev(it)->first.position + 1;
    }
    for (int32_t p = first; p <= last; ++p)
      terms[p].push_back({it->second, -double(gap.bytes)});
  }
  for (int32_t p = 0; p < n; ++p) {
    double most = double(need[p]);
    for (auto [column, bytes] : terms[p])
      most += std::max(0.0, -bytes);
    if (most <= 0)
      continue;
    // Scale by the largest size, which keeps the solver's numbers small.
    double unit = 1;
    for (auto [column, bytes] : terms[p])
      unit = std::max(unit, std::abs(bytes));
    Milp::Row row{std::move(terms[p]), double(need[p]) / unit};
    for (auto &[column, bytes] : row.terms)
      bytes /= unit;
    milp.rows.push_back(std::move(row));
  }
}

void GapModel::build() {
  milp = {};
  gapColumn.clear();
  stays.clear();
  agains.clear();
  parts.clear();
  twices.clear();
  conflicts.clear();
  for (const Gap &gap : gaps.gaps)
    gapColumn.push_back(milp.addColumn(gap.cost));
  for (size_t g = 0; g < gaps.gaps.size(); ++g) {
    const Gap &gap = gaps.gaps[g];
    requireTails(gapColumn[g], gap.node, gap.from, gap.to, int64_t(g));
    requireShared(gapColumn[g], gap.node, gap.from, gap.to, int64_t(g));
  }
  if (!deep)
    open.clear();
  while (!open.empty()) {
    Again run = open.back();
    open.pop_back();
    NodeId node = problem.producer[run.storage];
    int32_t from = gaps.lastAccess[run.storage];
    requireTails(run.column, node, from, run.to, -1);
    requireShared(run.column, node, from, run.to, -1);
  }
  chainStays();
  chainParts();
  addLoadRows();
}

/// Finds runs for which the solution leaves no possible position: up to `known`
/// the input is resident, from `made` on the result, and the columns between
/// decide neither. Adds rows where the load is highest. Returns whether
/// anything was added.
bool GapModel::refine(const std::vector<char> &x) {
  std::vector<int64_t> load = gaps.kept;
  for (size_t g = 0; g < gaps.gaps.size(); ++g)
    if (x[gapColumn[g]])
      for (int32_t p = gaps.gaps[g].first; p <= gaps.gaps[g].last; ++p)
        load[p] -= gaps.gaps[g].bytes;
  auto on = [&](int32_t column) { return column >= 0 && x[column]; };
  bool added = false;
  for (const Conflict &conflict : conflicts) {
    const Gap &gap = gaps.gaps[conflict.gap];
    auto again = twices.find(conflict.gap);
    if (!on(gapColumn[conflict.gap]) || on(conflict.early) ||
        on(conflict.again) || (again != twices.end() && on(again->second)) ||
        (conflict.outer >= 0 && !on(gapColumn[conflict.outer])))
      continue;
    int32_t start = conflict.outer >= 0 ? gaps.gaps[conflict.outer].from
                                        : gaps.lastAccess[conflict.input];
    int32_t known = std::max(gap.from, start), made = gap.to;
    auto isThere = [&](const auto &columns, const auto &key) {
      auto it = columns.find(key); // added in this very round
      return it != columns.end() && on(it->second);
    };
    for (int32_t q : splits[conflict.gap]) {
      if (conflict.outer >= 0
              ? isThere(parts, Part{size_t(conflict.outer), false, q})
              : isThere(stays, std::pair(conflict.input, q)))
        known = std::max(known, q);
      if (isThere(parts, Part{conflict.gap, true, q}))
        made = std::min(made, q);
    }
    int32_t worst = -1;
    for (int32_t p = known + 1; p < made; ++p)
      if (load[p] + std::min(gap.bytes, problem.bytes[conflict.input]) >
              budget &&
          (worst < 0 || load[p] > load[worst]))
        worst = p;
    if (worst >= 0)
      added |= splits[conflict.gap].insert(worst).second;
  }
  return added;
}
