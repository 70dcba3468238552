//===- Packing.cpp - offsets in one arena ---------------------------------===//
//
// Problem: dynamic storage allocation, offline: boxes with given lifetimes and
// free offsets in an arena as small as possible (NP-hard). Method: greedy best
// fit over boxes in several orders (by size as in Pisarchyk and Lee, 2020, by
// area, by lifetime, by time), in-place chains of about equal size placed as
// one box; then, while the arena is above the load, hill climbing on the order:
// a box at the top, or one that it meets, goes to an earlier place, and what
// comes after that place is placed again. Guarantee: no overlap but
// for in-place pairs that start at one offset. Each placement of n boxes is a
// scan of those placed, O(n^2) simple steps in all; the number of tries falls
// with n so that 30,000 boxes take about two seconds.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Packing.h"
#include "Problem.h"

#include <algorithm>
#include <numeric>

using namespace ckopt::planner;

namespace {

constexpr int64_t nowhere = -1;

/// A maximal chain of in-place boxes of about equal size, or a single box.
struct Unit {
  int32_t first = 0, last = 0;
  int64_t bytes = 0;
  int32_t before = -1; ///< unit that its first box may take over from
};

class Packer {
public:
  Packer(const std::vector<Box> &boxes, int64_t alignment);
  int64_t run(std::vector<int64_t> &offsets, double effort);
  int64_t load = 0;

private:
  void makeUnits(const std::vector<Box> &boxes, int64_t alignment);
  void computeLoad(const std::vector<Box> &boxes, int64_t alignment);
  bool place(const std::vector<int32_t> &order, size_t from, bool lowest);
  int64_t choose(const Unit &unit, int32_t id, bool lowest) const;
  bool fits(int64_t offset, int32_t id, int32_t except) const;
  void insert(int32_t id, int64_t offset);
  std::vector<int32_t> sorted(int rule) const;
  void improve(int64_t limit);

  std::vector<Unit> units;
  std::vector<int32_t> unitOf; ///< by box
  std::vector<std::vector<int32_t>> followers;

  // What is placed, by offset; columns for speed.
  std::vector<int32_t> placedFirst, placedLast, placedId;
  std::vector<int64_t> placedLow, placedHigh;
  std::vector<int64_t> offset; ///< by unit

  int64_t best = -1;
  std::vector<int64_t> bestOffset;
  std::vector<int32_t> bestOrder, bestByOffset;
  int64_t work = 0; ///< simple steps spent
  bool bestLowest = false;
};

Packer::Packer(const std::vector<Box> &boxes, int64_t alignment) {
  makeUnits(boxes, alignment);
  computeLoad(boxes, alignment);
}

void Packer::makeUnits(const std::vector<Box> &boxes, int64_t alignment) {
  unitOf.assign(boxes.size(), -1);
  // A box is chained to one follower only; boxes come in order of time.
  std::vector<char> followed(boxes.size(), 0);
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box &box = boxes[i];
    int64_t bytes = alignTo(box.bytes, alignment);
    int32_t from = box.inPlaceOf;
    if (from >= 0 && !followed[from]) {
      followed[from] = 1;
      Unit &unit = units[unitOf[from]];
      if (unit.last == box.first && bytes <= unit.bytes &&
          bytes >= unit.bytes / 8 * 7) {
        unit.last = box.last;
        unitOf[i] = unitOf[from];
        continue;
      }
    } else {
      from = -1;
    }
    unitOf[i] = int32_t(units.size());
    units.push_back({box.first, box.last, bytes, -1});
    if (from >= 0 && units[unitOf[from]].last == box.first)
      units.back().before = unitOf[from];
  }
  // A chain that grew past the hand-over no longer ends there.
  followers.resize(units.size());
  for (size_t u = 0; u < units.size(); ++u) {
    int32_t before = units[u].before;
    if (before >= 0 && units[before].last != units[u].first)
      units[u].before = -1;
    else if (before >= 0)
      followers[before].push_back(int32_t(u));
  }
}

void Packer::computeLoad(const std::vector<Box> &boxes, int64_t alignment) {
  int32_t end = 0;
  for (const Unit &unit : units)
    end = std::max(end, unit.last);
  std::vector<int64_t> delta(end + 2, 0);
  for (const Unit &unit : units) {
    delta[unit.first + (unit.before >= 0 ? 1 : 0)] += unit.bytes;
    delta[unit.last + 1] -= unit.bytes;
  }
  int64_t sum = 0;
  for (int64_t d : delta)
    load = std::max(load, sum += d);
}

bool Packer::fits(int64_t low, int32_t id, int32_t except) const {
  const Unit &unit = units[id];
  int64_t high = low + unit.bytes;
  for (size_t k = 0; k < placedLow.size() && placedLow[k] < high; ++k)
    if (placedHigh[k] > low && placedFirst[k] <= unit.last &&
        placedLast[k] >= unit.first && placedId[k] != except)
      return false;
  return true;
}

int64_t Packer::choose(const Unit &unit, int32_t id, bool lowest) const {
  if (unit.before >= 0 && offset[unit.before] != nowhere &&
      fits(offset[unit.before], id, unit.before))
    return offset[unit.before];
  for (int32_t follower : followers[id])
    if (offset[follower] != nowhere && fits(offset[follower], id, follower))
      return offset[follower];
  int64_t top = 0, bestAt = nowhere, bestGap = 0;
  const int32_t first = unit.first, last = unit.last;
  for (size_t k = 0; k < placedLow.size(); ++k) {
    if (placedFirst[k] > last || placedLast[k] < first)
      continue;
    int64_t gap = placedLow[k] - top;
    if (gap >= unit.bytes && (bestAt == nowhere || gap < bestGap)) {
      bestAt = top;
      bestGap = gap;
      if (lowest)
        break;
    }
    top = std::max(top, placedHigh[k]);
  }
  return bestAt == nowhere ? top : bestAt;
}

void Packer::insert(int32_t id, int64_t low) {
  size_t at = std::upper_bound(placedLow.begin(), placedLow.end(), low) -
              placedLow.begin();
  placedLow.insert(placedLow.begin() + at, low);
  placedHigh.insert(placedHigh.begin() + at, low + units[id].bytes);
  placedFirst.insert(placedFirst.begin() + at, units[id].first);
  placedLast.insert(placedLast.begin() + at, units[id].last);
  placedId.insert(placedId.begin() + at, id);
  offset[id] = low;
}

/// Places the units of an order; those before `from` stand as in the best
/// placement so far, whose order they share. True if it is no worse than that.
bool Packer::place(const std::vector<int32_t> &order, size_t from,
                   bool lowest) {
  placedLow.clear();
  placedHigh.clear();
  placedFirst.clear();
  placedLast.clear();
  placedId.clear();
  offset.assign(units.size(), nowhere);
  int64_t arena = 0;
  if (from > 0) {
    for (size_t i = 0; i < from; ++i)
      offset[order[i]] = bestOffset[order[i]];
    for (int32_t id : bestByOffset) {
      if (offset[id] == nowhere || units[id].bytes == 0)
        continue;
      placedLow.push_back(offset[id]);
      placedHigh.push_back(offset[id] + units[id].bytes);
      placedFirst.push_back(units[id].first);
      placedLast.push_back(units[id].last);
      placedId.push_back(id);
      arena = std::max(arena, placedHigh.back());
    }
  }
  for (size_t i = from; i < order.size(); ++i) {
    int32_t id = order[i];
    if (units[id].bytes == 0) {
      offset[id] = 0;
      continue;
    }
    work += int64_t(placedLow.size());
    int64_t low = choose(units[id], id, lowest);
    insert(id, low);
    arena = std::max(arena, low + units[id].bytes);
    if (best >= 0 && arena > best)
      return false;
  }
  best = arena;
  bestOffset = offset;
  bestOrder = order;
  bestLowest = lowest;
  bestByOffset = placedId;
  return true;
}

std::vector<int32_t> Packer::sorted(int rule) const {
  int32_t end = 0;
  for (const Unit &unit : units)
    end = std::max(end, unit.last);
  auto key = [&](int32_t id) -> std::pair<double, double> {
    const Unit &u = units[id];
    double life = double(u.last) - u.first + 1, size = double(u.bytes);
    if (life > end)
      return {-1e300, -size}; // There all the time: at the bottom.
    switch (rule) {
    case 0:
      return {-size, -life};
    case 1:
      return {-size * life, u.first};
    case 2:
      return {-life, -size};
    case 3:
      return {u.first, -life};
    case 4:
      return {-double(u.last), -life};
    default:
      return {-size * std::max(life, 16.0), -life};
    }
  };
  std::vector<std::pair<std::pair<double, double>, int32_t>> keyed;
  for (int32_t id = 0; id < int32_t(units.size()); ++id)
    keyed.push_back({key(id), id});
  std::sort(keyed.begin(), keyed.end());
  std::vector<int32_t> order;
  for (auto &entry : keyed)
    order.push_back(entry.second);
  return order;
}

/// Hill climbing that walks along plateaus: a unit that reaches the top, or
/// one that it meets in time, goes to an earlier place of the order.
void Packer::improve(int64_t limit) {
  uint64_t state = 12345;
  auto below = [&](size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return size_t((state >> 33) % n);
  };
  size_t n = units.size();
  std::vector<size_t> index(n);
  std::vector<int32_t> top, meets;
  work = 0;
  for (int tries = 0; tries < 30000 && best > load && work < limit; ++tries) {
    work += int64_t(n);
    top.clear();
    for (size_t i = 0; i < n; ++i)
      index[bestOrder[i]] = i;
    for (size_t u = 0; u < n; ++u)
      if (bestOffset[u] + units[u].bytes == best && units[u].bytes > 0)
        top.push_back(int32_t(u));
    int32_t moved = top[below(top.size())];
    // Units placed before it, or anything, that it meets in time.
    meets.clear();
    for (size_t i = 0; i < index[moved]; ++i) {
      const Unit &a = units[bestOrder[i]], &b = units[moved];
      if (a.first <= b.last && b.first <= a.last)
        meets.push_back(bestOrder[i]);
    }
    if (meets.empty())
      return; // It alone is the arena.
    if (below(3) == 0)
      moved = meets[below(meets.size())];
    size_t from = index[moved], to;
    if (from == 0)
      continue;
    if (below(2))
      to = std::min(from - 1, index[meets[below(meets.size())]]);
    else
      to = from - 1 - below(std::min<size_t>(from, 1 + below(from)));
    std::vector<int32_t> order = bestOrder;
    std::rotate(order.begin() + to, order.begin() + from,
                order.begin() + from + 1);
    bool lowest = below(16) ? bestLowest : !bestLowest;
    place(order, lowest == bestLowest ? to : 0, lowest);
  }
}

int64_t Packer::run(std::vector<int64_t> &offsets, double effort) {
  int rules = units.size() > 12000 ? 3 : 6;
  for (int rule = 0; rule < rules && (best < 0 || best > load); ++rule) {
    std::vector<int32_t> order = sorted(rule);
    place(order, 0, true);
    if (best > load && units.size() <= 12000)
      place(order, 0, false);
  }
  if (best > load)
    improve(int64_t(effort * std::min(6e8, 3e5 * double(units.size()))));
  offsets.resize(unitOf.size());
  for (size_t i = 0; i < unitOf.size(); ++i)
    offsets[i] = bestOffset[unitOf[i]];
  return std::max<int64_t>(best, 0);
}

} // namespace

int64_t ckopt::planner::packBoxes(const std::vector<Box> &boxes,
                                  int64_t alignment,
                                  std::vector<int64_t> &offsets, double effort,
                                  PackProof *proof) {
  Packer packer(boxes, alignment);
  int64_t arena = packer.run(offsets, effort);
  if (proof)
    *proof = arena <= packer.load ? PackProof::Load : PackProof::None;
  return arena;
}

PackProof ckopt::planner::packPlan(const Graph &graph, Plan &plan,
                                   bool holdsAll, double effort) {
  Simulation simulation = simulate(graph, plan.steps, true);
  std::vector<Box> boxes;
  std::vector<int32_t> boxOf(simulation.copies.size(), -1);
  for (size_t c = 0; c < simulation.copies.size(); ++c) {
    const Copy &copy = simulation.copies[c];
    if (copy.base >= 0 || copy.last < 0 || (copy.made < 0 && !holdsAll))
      continue;
    boxOf[c] = int32_t(boxes.size());
    Box box{std::max(copy.made, 0), copy.last, graph.values[copy.value].bytes,
            -1};
    if (copy.taken >= 0)
      box.inPlaceOf = boxOf[copy.taken];
    boxes.push_back(box);
  }
  std::vector<int32_t> scratchBox(plan.steps.size(), -1);
  for (size_t t = 0; t < plan.steps.size(); ++t) {
    int64_t bytes = graph.nodes[plan.steps[t]].workspace;
    if (bytes == 0)
      continue;
    scratchBox[t] = int32_t(boxes.size());
    boxes.push_back({int32_t(t), int32_t(t), bytes, -1});
  }
  std::vector<int64_t> offsets;
  PackProof proof = PackProof::None;
  plan.arena = packBoxes(boxes, graph.alignment, offsets, effort, &proof);
  plan.initial.clear();
  plan.offsets.assign(plan.steps.size(), {});
  for (size_t c = 0; c < simulation.copies.size(); ++c) {
    const Copy &copy = simulation.copies[c];
    int32_t owner = int32_t(c);
    while (simulation.copies[owner].base >= 0)
      owner = simulation.copies[owner].base;
    int64_t at = boxOf[owner] >= 0 ? offsets[boxOf[owner]] : 0;
    if (copy.made >= 0)
      plan.offsets[copy.made].push_back(at);
    else if (boxOf[c] >= 0)
      plan.initial.push_back({copy.value, at});
  }
  for (size_t t = 0; t < plan.steps.size(); ++t)
    if (scratchBox[t] >= 0)
      plan.offsets[t].push_back(offsets[scratchBox[t]]);
  return proof;
}
