//===- PackEject.cpp - packing by ejection --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: do boxes with given lifetimes fit an arena of a given capacity,
// where there are too many for a search over whole packings? Method: guided
// ejection (as for vehicle routes: Nagata and Braysy, 2009). A box goes to the
// tightest gap that holds it. Where there is none, it goes to where what has to
// make way costs least, and that goes back to the queue. A box costs more the
// larger it is and the more often it found no room itself, so the hard ones
// settle and the search does not go round in circles. Best fit decides once;
// here what was decided for one part of time gives way when another needs it.
//   Guarantee: what is placed does not overlap and lies within the capacity. No
// proofs. Gives up: with its share of the limits. Complexity: a placement of n
// boxes, k of which meet the box, costs O(n + k log k).
//
//===----------------------------------------------------------------------===//
#include "Packing/PackEject.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

PackEject::PackEject(const PackModel &model, std::vector<int32_t> ids,
                     uint64_t seed)
    : model(model), ids(std::move(ids)), random{seed * 7919 + 4711} {
  for (int i = 0; i < 4; ++i)
    random.next();
}

void PackEject::insert(int32_t box, int64_t low) {
  const PackUnit &unit = model.units[ids[box]];
  auto spot = std::upper_bound(
      placed.begin(), placed.end(), low,
      [](int64_t value, const Spot &other) { return value < other.low; });
  placed.insert(spot, {low, low + unit.bytes, unit.first, unit.last, box});
  at[box] = low;
}

double PackEject::area(int32_t box) const {
  const PackUnit &unit = model.units[ids[box]];
  return double(unit.bytes) * (double(unit.last) - unit.first + 1);
}

/// Collects the placed boxes whose lifetimes overlap the box's.
void PackEject::meet(int32_t box) {
  const PackUnit &unit = model.units[ids[box]];
  meets.clear();
  for (const Spot &spot : placed)
    if (spot.first <= unit.last && spot.last >= unit.first)
      meets.push_back(spot);
}

/// Returns the tightest gap that holds the box, -1 if there is none.
int64_t PackEject::gapFor(int32_t box) const {
  int64_t size = bytes(box), top = 0, found = -1, least = 0;
  auto offer = [&](int64_t gap) {
    if (gap >= size && (found < 0 || gap < least)) {
      found = top;
      least = gap;
    }
  };
  for (const Spot &spot : meets) {
    offer(spot.low - top);
    top = std::max(top, spot.high);
  }
  offer(capacity - top);
  return found;
}

/// Returns the position at which removing others costs least. Candidates are
/// positions at which one of them ends below the box, or begins above it, and
/// the two ends of the arena. The cost is the sum over boxes that begin below
/// the box's top, less the sum over those that end below it.
int64_t PackEject::cheapest(int32_t box) {
  const int64_t size = bytes(box);
  const size_t k = meets.size();
  costBefore.assign(k + 1, 0);
  costEnded.assign(k + 1, 0);
  ends.clear();
  for (size_t i = 0; i < k; ++i) {
    double share = double(meets[i].high - meets[i].low) / double(size);
    double cost = penalty[meets[i].box] * (std::sqrt(share) + 0.1);
    costBefore[i + 1] = costBefore[i] + cost;
    ends.push_back({meets[i].high, cost});
  }
  std::sort(ends.begin(), ends.end());
  for (size_t i = 0; i < k; ++i)
    costEnded[i + 1] = costEnded[i] + ends[i].second;
  double least = 0;
  int64_t found = -1;
  uint32_t ties = 0;
  size_t begun = 0, ended = 0;
  auto offer = [&](int64_t low) { // by rising offset
    if (low < 0 || low > capacity - size)
      return;
    while (begun < k && meets[begun].low < low + size)
      ++begun;
    while (ended < k && ends[ended].first <= low)
      ++ended;
    double cost = costBefore[begun] - costEnded[ended];
    double tiny = 1e-9 * (1 + costBefore[k]);
    if (found < 0 || cost < least - tiny) {
      least = cost;
      found = low;
      ties = 1;
    } else if (cost <= least + tiny && random.next() % ++ties == 0) {
      found = low;
    }
  };
  auto restart = [&] { begun = ended = 0; };
  offer(0);
  for (const auto &[end, cost] : ends)
    offer(end);
  restart();
  for (const Spot &spot : meets)
    offer(spot.low - size);
  offer(capacity - size);
  return found;
}

/// Moves boxes that overlap the box at `low` back to the queue, the largest
/// last.
void PackEject::makeWay(int32_t box, int64_t low) {
  int64_t high = low + bytes(box);
  size_t from = queue.size();
  for (const Spot &spot : meets)
    if (spot.low < high && spot.high > low) {
      queue.push_back(spot.box);
      at[spot.box] = -1;
    }
  std::erase_if(placed, [&](const Spot &spot) { return at[spot.box] < 0; });
  std::sort(queue.begin() + int64_t(from), queue.end(),
            [&](int32_t a, int32_t b) {
              return area(a) != area(b) ? area(a) < area(b) : a < b;
            });
}

void PackEject::keepBest() {
  double left = 0;
  for (int32_t box : queue)
    left += area(box);
  if (!bestAt.empty() && left >= bestLeft)
    return;
  bestLeft = left;
  bestAt = at;
}

void PackEject::begin(const std::vector<int64_t> &start, Deadline &deadline) {
  placed.clear();
  queue.clear();
  bestAt.clear();
  at.assign(ids.size(), -1);
  penalty.assign(ids.size(), 1);
  for (int32_t box = 0; box < int32_t(ids.size()); ++box)
    if (!start.empty() && start[ids[box]] + bytes(box) <= capacity)
      insert(box, start[ids[box]]);
    else
      queue.push_back(box);
  std::sort(queue.begin(), queue.end(), [&](int32_t a, int32_t b) {
    return area(a) != area(b) ? area(a) < area(b) : a < b;
  });
  deadline.spend(int64_t(ids.size()) * 4);
}

bool PackEject::run(int64_t room, const std::vector<int64_t> &start,
                    bool newestFirst, Deadline &deadline) {
  capacity = room;
  begin(start, deadline);
  keepBest();
  for (int32_t box : queue)
    if (bytes(box) > capacity)
      return false;
  while (!queue.empty()) {
    if (!newestFirst)
      std::swap(queue[random.next() % queue.size()], queue.back());
    int32_t box = queue.back();
    queue.pop_back();
    meet(box);
    int64_t low = gapFor(box);
    int64_t work = int64_t(placed.size()) + 4 * int64_t(meets.size());
    if (low < 0) {
      ++penalty[box];
      low = cheapest(box);
      makeWay(box, low);
      work += 24 * int64_t(meets.size()) + 2 * int64_t(placed.size());
    }
    insert(box, low);
    if (queue.size() < 32)
      keepBest();
    if (!deadline.spend(1 + work / 32))
      break;
  }
  keepBest();
  return queue.empty();
}

std::vector<int32_t> PackEject::placedIds() const {
  std::vector<int32_t> list;
  for (size_t box = 0; box < ids.size(); ++box)
    if (bestAt[box] >= 0)
      list.push_back(ids[box]);
  return list;
}

std::vector<int64_t> PackEject::placedAt() const {
  std::vector<int64_t> list;
  for (int64_t low : bestAt)
    if (low >= 0)
      list.push_back(low);
  return list;
}
