//===- PackSkyline.cpp - packings built from the bottom -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: what the searches for packings share. Method: a partial packing
// whose floors form a skyline over the sections of time, how it grows, and when
// it can no longer be completed. Packings are left-justified ("canonical",
// Moffitt, ASPLOS 2023), and branching is in one section: in a valley (a run of
// equal floors between higher ones) the next box upwards either starts at the
// floor, and then lies within the valley, or all of them start at the next
// offset that anything could support. The section with the fewest such
// branches, then the least slack, is taken.
//   Pruning: Jackson's bound in each section (what cannot start below h fits
// between h and the capacity). What it leaves of the capacity is the section's
// room. Guarantee: every packing within the capacity has a canonical form that
// some sequence of the branches reaches. Gives up: never, searches do.
// Complexity: O(boxes + sum of their lengths in sections) a branch.
//
//===----------------------------------------------------------------------===//
#include "Packing/PackSkyline.h"

#include <algorithm>
#include <cmath>

using namespace ckopt::planner;

Skyline::Skyline(const std::vector<SearchShape> &shapes, int32_t capacity,
                 uint64_t seed)
    : shapes(shapes), capacity(capacity), random{seed * 7919 + 12345} {
  survey();
}

void Skyline::survey() {
  for (const SearchShape &shape : shapes)
    numSections = std::max(numSections, shape.back().last + 1);
  scratch.assign(numSections, 0);
  runEnd.assign(numSections, 0);
  for (int32_t s = 0; s < numSections; ++s)
    group.push_back(uint64_t(1) << (int64_t(s) * 64 / numSections));
  std::vector<int32_t> load(numSections, 0);
  int64_t covered = 0;
  for (const SearchShape &shape : shapes) {
    Box box{shape.front().first, shape.back().last, shape.front().size};
    for (const SearchPiece &piece : shape) {
      box.leastSize = std::min(box.leastSize, piece.size);
      box.area += double(piece.size) * (piece.last - piece.first + 1);
      for (int32_t s = piece.first; s <= piece.last; ++s) {
        load[s] += piece.size;
        box.mask |= group[s];
      }
    }
    covered += box.last - box.first + 1;
    box.hash = uint64_t(random.next()) << 33 ^ uint64_t(random.next()) << 12 ^
               random.next();
    boxes.push_back(box);
  }
  int32_t peak = 1;
  for (int32_t s = 0; s < numSections; ++s)
    peak = std::max(peak, load[s]);
  for (Box &box : boxes)
    for (int32_t s = box.first; s <= box.last; ++s)
      box.tension = std::max(box.tension, double(load[s]) / peak);
  // Measured: about 12 ns a box and 1 ns a covered section.
  nodeWork = 1 + (12 * int64_t(boxes.size()) + covered) / 50;
}

Skyline::State Skyline::rootState() const {
  State root;
  root.floor.assign(numSections, 0);
  root.rest.assign(numSections, 0);
  root.count.assign(numSections, 0);
  root.room.assign(numSections, capacity);
  root.least.assign(boxes.size(), 0);
  root.why.resize(boxes.size());
  root.to = numSections - 1;
  for (size_t i = 0; i < boxes.size(); ++i) {
    root.left.push_back(int32_t(i));
    root.why[i] = boxes[i].first;
    for (const SearchPiece &piece : shapes[i])
      for (int32_t s = piece.first; s <= piece.last; ++s) {
        root.rest[s] += piece.size;
        ++root.count[s];
      }
  }
  for (int32_t s = 0; s < numSections; ++s)
    if (root.count[s] == 0)
      root.floor[s] = never;
  return root;
}

/// Returns the sections that caused a failed bound of a section: those that
/// hold up the boxes down to `upTo` in the order of `left`.
void Skyline::explain(const State &state, int32_t section, int32_t upTo) {
  conflict = group[section];
  for (int32_t id : state.left) {
    if (boxes[id].first <= section && section <= boxes[id].last)
      conflict |= group[state.why[id]];
    if (id == upTo)
      return;
  }
}

/// Checks Jackson's bound in every section of a window.
bool Skyline::boundHolds(State &state, int32_t from, int32_t to) {
  int32_t *sums = scratch.data();
  std::fill(sums + from, sums + to + 1, 0);
  std::fill(state.room.begin() + from, state.room.begin() + to + 1, capacity);
  for (int32_t id : state.left) {
    int32_t limit = capacity - state.least[id], bad = 0;
    for (const SearchPiece &piece : shapes[id]) {
      int32_t first = std::max(piece.first, from);
      int32_t last = std::min(piece.last, to), size = piece.size;
      for (int32_t s = first; s <= last; ++s) {
        sums[s] += size;
        int32_t room = limit - sums[s];
        state.room[s] = std::min(state.room[s], room);
        bad |= room;
      }
    }
    if (bad >= 0)
      continue;
    for (int32_t s = std::max(boxes[id].first, from);; ++s)
      if (sums[s] > limit) {
        explain(state, s, id);
        return false;
      }
  }
  return true;
}

/// Updates `least` where the floors of [from, to] rose, and checks the bound.
/// Returns false if there is no packing.
bool Skyline::settle(State &state, int32_t from, int32_t to) {
  int32_t low = from, high = to;
  bool moved = false;
  for (int32_t id : state.left) {
    const Box &box = boxes[id];
    if (box.first > to || box.last < from)
      continue;
    int32_t least = state.least[id];
    int32_t first = std::max(box.first, from), last = std::min(box.last, to);
    for (int32_t s = first; s <= last; ++s)
      least = std::max(least, state.floor[s]);
    if (least == state.least[id])
      continue;
    state.why[id] = int32_t(std::find(state.floor.begin() + first,
                                      state.floor.begin() + last, least) -
                            state.floor.begin());
    state.least[id] = least;
    moved = true;
    low = std::min(low, box.first);
    high = std::max(high, box.last);
  }
  if (moved) { // insertion sort, since few are out of place
    std::vector<int32_t> &left = state.left;
    for (size_t i = 1; i < left.size(); ++i) {
      int32_t id = left[i], least = state.least[id];
      size_t k = i;
      for (; k > 0 && state.least[left[k - 1]] < least; --k)
        left[k] = left[k - 1];
      left[k] = id;
    }
  }
  return boundHolds(state, low, high);
}

bool Skyline::place(State &state, int32_t id) {
  int32_t low = state.least[id];
  state.left.erase(std::find(state.left.begin(), state.left.end(), id));
  for (const SearchPiece &piece : shapes[id])
    for (int32_t s = piece.first; s <= piece.last; ++s) {
      state.floor[s] = low + piece.size;
      state.rest[s] -= piece.size;
      if (--state.count[s] == 0)
        state.floor[s] = never;
    }
  return settle(state, boxes[id].first, boxes[id].last);
}

bool Skyline::raise(State &state, int32_t section, int32_t floor) {
  state.floor[section] = floor;
  return settle(state, section, section);
}

/// Returns the next offset at which a box may start in section t of a valley if
/// none starts at its floor; `meets` has the boxes that reach into it.
int32_t Skyline::nextFloor(const State &state, int32_t t) const {
  int32_t ground = state.floor[t], starts = never, supports = never;
  bool inside = false;
  for (int32_t id : meets) {
    const Box &box = boxes[id];
    bool here = box.first <= t && t <= box.last;
    if (state.least[id] > ground) {
      if (here)
        starts = std::min(starts, state.least[id]);
      supports = std::min(supports, state.least[id] + box.leastSize);
    } else if (here) {
      inside = true;
    } else {
      supports = std::min(supports, ground + box.leastSize);
    }
  }
  return inside ? std::min(starts, supports) : starts;
}

void Skyline::findMeets(const State &state, int32_t from, int32_t to) {
  meets.clear();
  for (int32_t id : state.left)
    if (boxes[id].first <= to && boxes[id].last >= from)
      meets.push_back(id);
}

Skyline::Choice Skyline::choose(const State &state) {
  std::vector<int32_t> &candidates = scratch;
  std::fill(candidates.begin() + state.from, candidates.begin() + state.to + 1,
            0);
  runEnd[state.to] = state.to;
  for (int32_t s = state.to - 1; s >= state.from; --s)
    runEnd[s] = state.floor[s] == state.floor[s + 1] ? runEnd[s + 1] : s;
  for (int32_t id : state.left)
    if (state.least[id] == state.floor[boxes[id].first] &&
        runEnd[boxes[id].first] >= boxes[id].last)
      for (int32_t s = boxes[id].first; s <= boxes[id].last; ++s)
        ++candidates[s];
  Choice best;
  std::pair<int32_t, int32_t> bestScore{never, never};
  int32_t meetsOf = -1;
  for (int32_t from = state.from, to; from <= state.to; from = to + 1) {
    int32_t ground = state.floor[from];
    to = runEnd[from];
    if (ground == never ||
        (from > state.from && state.floor[from - 1] < ground) ||
        (to < state.to && state.floor[to + 1] < ground))
      continue;
    for (int32_t t = from; t <= to; ++t) {
      int32_t slack = capacity - ground - state.rest[t];
      int32_t branches = candidates[t], up = never;
      if (branches > bestScore.first)
        continue;
      if (slack > 0 || branches == 0) {
        if (meetsOf != from)
          findMeets(state, meetsOf = from, to);
        up = nextFloor(state, t);
        if (up - ground > slack)
          up = never;
        else
          ++branches;
      }
      std::pair<int32_t, int32_t> score{branches, slack};
      if (score >= bestScore)
        continue;
      bestScore = score;
      best = {t, from, to, up, branches};
      if (branches <= 1)
        return best;
    }
  }
  return best;
}

bool Skyline::equal(int32_t a, int32_t b) const {
  return std::equal(
      shapes[a].begin(), shapes[a].end(), shapes[b].begin(), shapes[b].end(),
      [](const SearchPiece &x, const SearchPiece &y) {
        return x.first == y.first && x.last == y.last && x.size == y.size;
      });
}

/// Returns the boxes that may start at the valley's floor, by number; of
/// identical boxes only one (symmetry breaking).
std::vector<int32_t> Skyline::values(const State &state,
                                     const Choice &choice) const {
  std::vector<int32_t> kept;
  int32_t t = choice.section;
  for (int32_t id : state.left)
    if (boxes[id].first <= t && t <= boxes[id].last &&
        state.least[id] == state.floor[t])
      kept.push_back(id);
  std::sort(kept.begin(), kept.end());
  size_t count = 0;
  for (int32_t id : kept)
    if (std::none_of(kept.begin(), kept.begin() + int64_t(count),
                     [&](int32_t other) { return equal(id, other); }))
      kept[count++] = id;
  kept.resize(count);
  return kept;
}

/// Returns the sections because of which a node has these branches and no
/// others.
uint64_t Skyline::reason(const State &state, const Choice &choice) const {
  int32_t t = choice.section, ground = state.floor[t];
  uint64_t result = group[t];
  // That the floor cannot rise depends on the whole valley, unless there is no
  // slack at all.
  bool wide = choice.raise == never && capacity - ground - state.rest[t] > 0;
  if (wide)
    for (int32_t s = choice.from; s <= choice.to; ++s)
      result |= group[s];
  int32_t from = wide ? choice.from : t, to = wide ? choice.to : t;
  for (int32_t id : state.left)
    if (state.least[id] > ground && boxes[id].first <= to &&
        boxes[id].last >= from)
      result |= group[state.why[id]];
  return result;
}

uint64_t Skyline::hashOf(const State &state) const {
  uint64_t hash = 0;
  for (int32_t s = state.from; s <= state.to; ++s) {
    hash = (hash ^ uint64_t(uint32_t(state.floor[s]))) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  for (int32_t id : state.left)
    hash ^= boxes[id].hash;
  return hash;
}
