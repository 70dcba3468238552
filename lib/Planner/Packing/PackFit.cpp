//===- PackFit.cpp - best fit and hill climbing ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: an arena as small as can be had fast. Method: greedy placement,
// units one by one, each into the tightest gap (or the lowest one) that what
// was placed before leaves it. Orders: by lifetime, by size (Pisarchyk and Lee,
// 2020), by area, by time, and within classes of tension, the largest load that
// a unit meets: what crosses the peak goes first, since only there no byte can
// be lost. Lifetime within such classes, by best fit, came within 0.3 % of the
// load on 28,000 boxes where size alone was 2.5 % off. Then hill climbing: a
// unit at the top, or one that it meets, goes to an earlier place of the order,
// and what comes after that place is placed again. Gives up: climbing ends with
// its share of the limits. Complexity: a placement of n units is a scan of
// those placed, O(n^2) simple steps.
//
//===----------------------------------------------------------------------===//
#include "Packing/PackFit.h"
#include "Packing/PackSweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

using namespace ckopt::planner;

namespace {
constexpr int64_t nowhere = -1;
constexpr int numRules = 10;
/// With this many units, one placement in a given order takes a second or more.
constexpr size_t manyUnits = 20000;
/// Simple steps (comparisons with a box) in a work unit.
constexpr int64_t stepsPerUnit = 32;
} // namespace

PackFit::PackFit(const PackModel &model, uint64_t seed)
    : model(model), units(model.units), state(seed * 7919 + 12345) {}

double PackFit::random() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return double(state >> 33) / double(1u << 31);
}

void PackFit::clear() {
  placedLow.clear();
  placedHigh.clear();
  placedFirst.clear();
  placedLast.clear();
  placedId.clear();
  offset.assign(units.size(), nowhere);
}

bool PackFit::fits(int64_t low, int32_t id, int32_t except) const {
  const PackUnit &unit = units[id];
  int64_t high = low + unit.bytes;
  for (size_t k = 0; k < placedLow.size() && placedLow[k] < high; ++k)
    if (placedHigh[k] > low && placedFirst[k] <= unit.last &&
        placedLast[k] >= unit.first && placedId[k] != except)
      return false;
  return true;
}

int64_t PackFit::choose(const PackUnit &unit, int32_t id, bool lowest) const {
  if (unit.before >= 0 && offset[unit.before] != nowhere &&
      fits(offset[unit.before], id, unit.before))
    return offset[unit.before];
  for (int32_t follower : model.followers[id])
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

void PackFit::insert(int32_t id, int64_t low) {
  size_t at = std::upper_bound(placedLow.begin(), placedLow.end(), low) -
              placedLow.begin();
  placedLow.insert(placedLow.begin() + at, low);
  placedHigh.insert(placedHigh.begin() + at, low + units[id].bytes);
  placedFirst.insert(placedFirst.begin() + at, units[id].first);
  placedLast.insert(placedLast.begin() + at, units[id].last);
  placedId.insert(placedId.begin() + at, id);
  offset[id] = low;
}

/// Places the units of an order; those before `from` keep their offsets of the
/// best placement so far, whose order they share. Returns whether the result is
/// no worse than that.
bool PackFit::place(const std::vector<int32_t> &order, size_t from, bool lowest,
                    Deadline &deadline) {
  clear();
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
    // Large placements take seconds, so check the deadline.
    if (best >= 0 && (i & 1023) == 0) {
      deadline.spend(work / stepsPerUnit);
      work %= stepsPerUnit;
      if (deadline.passed())
        return false;
    }
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

std::vector<int32_t> PackFit::sorted(int rule) const {
  int32_t end = 0;
  for (const PackUnit &unit : units)
    end = std::max(end, unit.last);
  double peak = std::max<double>(1, double(model.load));
  using Key = std::array<double, 3>;
  auto key = [&](int32_t id) -> Key {
    const PackUnit &u = units[id];
    double life = double(u.last) - u.first + 1, size = double(u.bytes);
    if (life > end)
      // It lives for all steps, so it goes to the bottom.
      return {-1e300, -size, 0};
    double tension = double(model.tension[id]) / peak;
    switch (rule) {
    case 0:
      return {-std::floor(tension / 0.03), -life, -size};
    case 1:
      return {-life, -size, 0};
    case 2:
      return {-size, -life, 0};
    case 3:
      return {-std::floor(tension / 0.01), -size * life, double(u.first)};
    case 4:
      return {-std::floor(tension / 0.1), -size, -life};
    case 5:
      return {-size * life, double(u.first), 0};
    case 6:
      return {double(u.first), -life, 0};
    case 7:
      return {-double(u.last), -life, 0};
    case 8:
      return {-size * std::max(life, 16.0), -life, 0};
    default:
      return {-std::floor(tension / 0.25), -life, -size};
    }
  };
  std::vector<std::pair<Key, int32_t>> keyed;
  for (int32_t id = 0; id < int32_t(units.size()); ++id)
    keyed.push_back({key(id), id});
  std::sort(keyed.begin(), keyed.end());
  std::vector<int32_t> order;
  for (auto &entry : keyed)
    order.push_back(entry.second);
  return order;
}

/// Sorts by tension, in classes of a random width, then by lifetime, with
/// noise.
std::vector<int32_t> PackFit::sampled() {
  double peak = std::max<double>(1, double(model.load));
  double width = 0.004 * std::pow(80.0, random()), phase = random();
  double jitter = random() < 0.3 ? 0 : 0.5 * random();
  double power = random() < 0.5 ? 0 : 0.4 * random();
  std::vector<std::pair<std::array<double, 3>, int32_t>> keyed;
  for (int32_t id = 0; id < int32_t(units.size()); ++id) {
    const PackUnit &u = units[id];
    double life = double(u.last) - u.first + 1, size = double(u.bytes);
    keyed.push_back(
        {{-std::floor(double(model.tension[id]) / peak / width + phase),
          -life * std::pow(size, power) * (1 + jitter * (random() - 0.5)),
          -size},
         id});
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<int32_t> order;
  for (auto &entry : keyed)
    order.push_back(entry.second);
  return order;
}

void PackFit::sample(int64_t target, Deadline &deadline) {
  while (best > target && !deadline.passed()) {
    std::vector<int32_t> order = sampled();
    work = 16 * int64_t(units.size());
    place(order, 0, random() < 0.25, deadline);
    deadline.spend(1 + work / stepsPerUnit);
  }
}

void PackFit::tryOrders(int64_t target, Deadline &deadline) {
  if (units.size() > manyUnits) { // find a first placement quickly
    for (bool backwards : {false, true})
      offer(sweepUnits(model, backwards));
    deadline.spend(int64_t(units.size()) * 40);
  }
  for (int rule = 0; rule < numRules; ++rule) {
    std::vector<int32_t> order = sorted(rule);
    for (bool lowest : {false, true}) {
      if (best >= 0 && (best <= target || deadline.passed()))
        return;
      work = 0;
      place(order, 0, lowest, deadline);
      deadline.spend(1 + work / stepsPerUnit);
    }
  }
}

/// Improves by hill climbing that accepts equal results: a unit that reaches
/// the top, or one whose lifetime overlaps it, moves to an earlier place of the
/// order.
void PackFit::improve(int64_t target, Deadline &deadline) {
  auto below = [&](size_t n) { return size_t(random() * double(n)); };
  size_t n = units.size();
  std::vector<size_t> index(n);
  std::vector<int32_t> top, meets;
  while (best > target && !deadline.passed()) {
    work = int64_t(n);
    top.clear();
    for (size_t i = 0; i < n; ++i)
      index[bestOrder[i]] = i;
    for (size_t u = 0; u < n; ++u)
      if (bestOffset[u] + units[u].bytes == best && units[u].bytes > 0)
        top.push_back(int32_t(u));
    int32_t moved = top[below(top.size())];
    // Collect the units placed before it whose lifetimes overlap, or any units.
    meets.clear();
    for (size_t i = 0; i < index[moved]; ++i) {
      const PackUnit &a = units[bestOrder[i]], &b = units[moved];
      if (a.first <= b.last && b.first <= a.last)
        meets.push_back(bestOrder[i]);
    }
    if (meets.empty())
      return; // it alone determines the arena's size
    if (below(3) == 0)
      moved = meets[below(meets.size())];
    size_t from = index[moved], to;
    if (from == 0) {
      deadline.spend(1);
      continue;
    }
    if (below(2))
      to = std::min(from - 1, index[meets[below(meets.size())]]);
    else
      to = from - 1 - below(std::min<size_t>(from, 1 + below(from)));
    std::vector<int32_t> order = bestOrder;
    std::rotate(order.begin() + to, order.begin() + from,
                order.begin() + from + 1);
    bool lowest = below(16) ? bestLowest : !bestLowest;
    place(order, lowest == bestLowest ? to : 0, lowest, deadline);
    deadline.spend(1 + work / stepsPerUnit);
  }
}

void PackFit::complete(const std::vector<int32_t> &fixed,
                       const std::vector<int64_t> &at, Deadline &deadline) {
  for (int rule : {0, 1, 2}) {
    clear();
    std::vector<int32_t> order = sorted(rule), whole = fixed;
    int64_t arena = 0;
    size_t insertions = 0;
    work = 0;
    for (size_t i = 0; i < fixed.size(); ++i) {
      insert(fixed[i], at[i]);
      arena = std::max(arena, at[i] + units[fixed[i]].bytes);
    }
    for (int32_t id : order) {
      if (offset[id] != nowhere)
        continue;
      whole.push_back(id);
      int64_t low = units[id].bytes == 0 ? 0 : choose(units[id], id, false);
      if (units[id].bytes == 0) {
        offset[id] = 0;
        continue;
      }
      work += int64_t(placedLow.size());
      if (best >= 0 && (insertions++ & 1023) == 0) {
        deadline.spend(work / stepsPerUnit);
        work %= stepsPerUnit;
        if (deadline.passed())
          return;
      }
      insert(id, low);
      arena = std::max(arena, low + units[id].bytes);
    }
    deadline.spend(1 + work / stepsPerUnit);
    if (best < 0 || arena < best)
      offer(offset);
  }
}

void PackFit::offer(const std::vector<int64_t> &at) {
  int64_t arena = 0;
  for (size_t u = 0; u < units.size(); ++u)
    arena = std::max(arena, at[u] + units[u].bytes);
  if (best >= 0 && arena >= best)
    return;
  best = arena;
  bestOffset = at;
  // Best fit in the order of offsets gives a placement that is no worse.
  bestOrder.resize(units.size());
  std::iota(bestOrder.begin(), bestOrder.end(), 0);
  std::sort(bestOrder.begin(), bestOrder.end(), [&](int32_t a, int32_t b) {
    return at[a] != at[b] ? at[a] < at[b] : a < b;
  });
  bestByOffset = bestOrder;
  bestLowest = true;
}
