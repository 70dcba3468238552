//===- PackSearch.cpp - exact packing of few boxes ------------------------===//
//
// Problem: do boxes with given lifetimes fit an arena of a given capacity?
// Method: depth-first search that builds left-justified ("canonical") packings
// from the bottom, in the spirit of MiniMalloc (Moffitt, ASPLOS 2023), but it
// branches in one section of time: the floors of all sections form a skyline,
// and in a section of a valley (a run of equal floors between higher ones) the
// next box upwards either starts at the floor, and then lies within the valley,
// or all of them start at the next offset that anything could support. The
// section with the fewest such branches, then the least slack, is taken.
//   Pruning: Jackson's bound in each section (what cannot start below h fits
// between h and the capacity); parts that share no time are solved apart;
// conflicts name the sections that a failure rests on, so that decisions
// elsewhere are jumped over (Prosser, 1993); failed states are remembered by
// hash. Restarts with other value orders and growing node limits.
//   Guarantee: Found packs within the capacity; Exhausted is a proof, up to
// collisions of a 64-bit hash. Exponential in the worst case; O(boxes + sum of
// their lengths in sections) a node.
//
//===----------------------------------------------------------------------===//
#include "PackSearch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

using namespace ckopt::planner;

namespace {

constexpr int32_t never = std::numeric_limits<int32_t>::max() / 2;
constexpr size_t mostFailed = 1 << 21;

struct Random {
  uint64_t state;
  uint32_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t(state >> 33);
  }
};

class Search {
public:
  Search(const std::vector<SearchShape> &shapes, int32_t capacity,
         uint64_t seed, Deadline &deadline);
  SearchOutcome run(std::vector<int32_t> &offsets);

private:
  /// What changes from node to node; copied on the way down.
  struct State {
    std::vector<int32_t> floor; ///< by section: nothing more lies below
    std::vector<int32_t> rest;  ///< by section: bytes to place
    std::vector<int32_t> count; ///< by section: boxes to place
    std::vector<int32_t> least; ///< by box: offset that the floors allow
    std::vector<int32_t> why;   ///< by box: section whose floor decides it
    std::vector<int32_t> left;  ///< boxes to place, by falling `least`
    int32_t from = 0, to = 0;   ///< sections that it is about
  };
  struct Choice {
    int32_t section = -1, from = 0, to = 0; ///< in the valley [from, to]
    int32_t raise = never; ///< the floor if no box starts there; never: no way
    int32_t branches = 0;
  };
  enum Verdict { Good, Bad, Stop };
  struct Box {
    int32_t first, last, leastSize;
    uint64_t mask = 0, hash = 0; ///< groups of sections that it covers
    double area = 0, tension = 0;
  };

  void survey();
  State rootState() const;
  void orderValues(int round);
  Verdict dive(int depth);
  Verdict branch(int depth);
  Verdict descend(int depth, const Choice &choice);
  bool settle(State &state, int32_t from, int32_t to);
  bool boundHolds(const State &state, int32_t from, int32_t to);
  void explain(const State &state, int32_t section, int32_t upTo);
  Choice choose(const State &state);
  int32_t nextFloor(const State &state, int32_t t, int32_t from, int32_t to);
  std::vector<int32_t> values(const State &state, const Choice &choice) const;
  bool equal(int32_t a, int32_t b) const;
  uint64_t reason(const State &state, const Choice &choice) const;
  uint64_t hashOf(const State &state) const;
  bool place(State &state, int32_t box);
  bool raise(State &state, int32_t section, int32_t floor);

  const std::vector<SearchShape> &shapes;
  const int32_t capacity;
  Deadline &deadline;
  Random random;
  std::vector<Box> boxes;
  int32_t numSections = 0;
  std::vector<uint64_t> group; ///< by section: its bit in conflicts
  std::vector<double> key;     ///< by box: tried first where it is large
  std::vector<State> states;   ///< by depth
  std::vector<int32_t> offset, scratch, runEnd;
  std::unordered_map<uint64_t, uint64_t> failed; ///< to their conflicts
  uint64_t conflict = 0; ///< groups that the last failure rests on
  int64_t nodes = 0, nodeLimit = 0, nodeWork = 1;
};

Search::Search(const std::vector<SearchShape> &shapes, int32_t capacity,
               uint64_t seed, Deadline &deadline)
    : shapes(shapes), capacity(capacity), deadline(deadline),
      random{seed * 7919 + 12345} {
  survey();
}

void Search::survey() {
  for (const SearchShape &shape : shapes)
    numSections = std::max(numSections, shape.back().last + 1);
  offset.assign(shapes.size(), 0);
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
  // About 12 ns a box and 1 ns a covered section.
  nodeWork = 1 + (12 * int64_t(boxes.size()) + covered) / 50;
}

Search::State Search::rootState() const {
  State root;
  root.floor.assign(numSections, 0);
  root.rest.assign(numSections, 0);
  root.count.assign(numSections, 0);
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

/// The sections that a failed bound of a section rests on: those that hold up
/// the boxes down to `upTo` in the order of `left`.
void Search::explain(const State &state, int32_t section, int32_t upTo) {
  conflict = group[section];
  for (int32_t id : state.left) {
    if (boxes[id].first <= section && section <= boxes[id].last)
      conflict |= group[state.why[id]];
    if (id == upTo)
      return;
  }
}

/// Jackson's bound in every section of a window.
bool Search::boundHolds(const State &state, int32_t from, int32_t to) {
  int32_t *sums = scratch.data();
  std::fill(sums + from, sums + to + 1, 0);
  for (int32_t id : state.left) {
    int32_t limit = capacity - state.least[id], bad = 0;
    for (const SearchPiece &piece : shapes[id]) {
      int32_t first = std::max(piece.first, from);
      int32_t last = std::min(piece.last, to), size = piece.size;
      for (int32_t s = first; s <= last; ++s) {
        sums[s] += size;
        bad |= limit - sums[s];
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

/// Brings `least` up to date where the floors of [from, to] rose, and checks
/// the bound. False: no packing.
bool Search::settle(State &state, int32_t from, int32_t to) {
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
  if (moved) { // Insertion sort: few are out of place.
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

bool Search::place(State &state, int32_t id) {
  offset[id] = state.least[id];
  state.left.erase(std::find(state.left.begin(), state.left.end(), id));
  for (const SearchPiece &piece : shapes[id])
    for (int32_t s = piece.first; s <= piece.last; ++s) {
      state.floor[s] = offset[id] + piece.size;
      state.rest[s] -= piece.size;
      if (--state.count[s] == 0)
        state.floor[s] = never;
    }
  return settle(state, boxes[id].first, boxes[id].last);
}

bool Search::raise(State &state, int32_t section, int32_t floor) {
  state.floor[section] = floor;
  return settle(state, section, section);
}

/// The next offset at which something may start in section t of a valley
/// [from, to] if nothing starts at its floor.
int32_t Search::nextFloor(const State &state, int32_t t, int32_t from,
                          int32_t to) {
  int32_t ground = state.floor[t], starts = never, supports = never;
  bool inside = false;
  for (int32_t id : state.left) {
    const Box &box = boxes[id];
    if (box.first > to || box.last < from)
      continue;
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

Search::Choice Search::choose(const State &state) {
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
        up = nextFloor(state, t, from, to);
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

bool Search::equal(int32_t a, int32_t b) const {
  return std::equal(
      shapes[a].begin(), shapes[a].end(), shapes[b].begin(), shapes[b].end(),
      [](const SearchPiece &x, const SearchPiece &y) {
        return x.first == y.first && x.last == y.last && x.size == y.size;
      });
}

/// The boxes that may start there, the most promising first; of equal ones,
/// one.
std::vector<int32_t> Search::values(const State &state,
                                    const Choice &choice) const {
  std::vector<int32_t> found, kept;
  int32_t t = choice.section;
  for (int32_t id : state.left)
    if (boxes[id].first <= t && t <= boxes[id].last &&
        state.least[id] == state.floor[t])
      found.push_back(id);
  std::sort(found.begin(), found.end(), [&](int32_t a, int32_t b) {
    return key[a] != key[b] ? key[a] > key[b] : a < b;
  });
  for (int32_t id : found)
    if (std::none_of(kept.begin(), kept.end(),
                     [&](int32_t other) { return equal(id, other); }))
      kept.push_back(id);
  return kept;
}

/// The sections that decide that a node has these branches and no others.
uint64_t Search::reason(const State &state, const Choice &choice) const {
  int32_t t = choice.section, ground = state.floor[t];
  uint64_t result = group[t];
  // That the floor cannot rise rests on the whole valley, unless there is no
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

uint64_t Search::hashOf(const State &state) const {
  uint64_t hash = 0;
  for (int32_t s = state.from; s <= state.to; ++s) {
    hash = (hash ^ uint64_t(uint32_t(state.floor[s]))) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  for (int32_t id : state.left)
    hash ^= boxes[id].hash;
  return hash;
}

/// Solves a node: the parts of it that share no time, one by one.
Search::Verdict Search::dive(int depth) {
  if (int(states.size()) <= depth + 1)
    states.resize(depth + 2);
  if (states[depth].left.empty())
    return Good;
  struct Part {
    int32_t slack, from, to;
  };
  std::vector<Part> parts;
  State &state = states[depth];
  std::vector<int32_t> &reach = scratch;
  std::fill(reach.begin() + state.from, reach.begin() + state.to + 1, -1);
  for (int32_t id : state.left)
    reach[boxes[id].first] = std::max(reach[boxes[id].first], boxes[id].last);
  for (int32_t s = state.from; s <= state.to; ++s) {
    if (reach[s] < 0)
      continue;
    Part part{never, s, reach[s]};
    for (; s <= part.to; ++s) {
      part.to = std::max(part.to, reach[s]);
      part.slack =
          std::min(part.slack, capacity - state.floor[s] - state.rest[s]);
    }
    --s;
    parts.push_back(part);
  }
  if (parts.size() == 1) {
    state.from = parts[0].from;
    state.to = parts[0].to;
    return branch(depth);
  }
  std::sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) {
    return std::pair(a.slack, a.from) < std::pair(b.slack, b.from);
  });
  for (const Part &part : parts) {
    states[depth + 1] = states[depth];
    State &next = states[depth + 1];
    next.from = part.from;
    next.to = part.to;
    std::erase_if(next.left, [&](int32_t id) {
      return boxes[id].first < part.from || boxes[id].last > part.to;
    });
    Verdict verdict = branch(depth + 1);
    if (verdict != Good)
      return verdict;
  }
  return Good;
}

Search::Verdict Search::branch(int depth) {
  if (int(states.size()) <= depth + 1)
    states.resize(depth + 2);
  ++nodes;
  uint64_t hash = hashOf(states[depth]);
  if (auto known = failed.find(hash); known != failed.end()) {
    conflict = known->second;
    return Bad;
  }
  if (!deadline.spend(nodeWork) || nodes > nodeLimit)
    return Stop;
  Choice choice = choose(states[depth]);
  Verdict verdict = descend(depth, choice);
  if (verdict == Bad) {
    if (failed.size() >= mostFailed)
      failed.clear();
    failed.emplace(hash, conflict);
  }
  return verdict;
}

Search::Verdict Search::descend(int depth, const Choice &choice) {
  uint64_t reasons = reason(states[depth], choice);
  std::vector<int32_t> boxesThere = values(states[depth], choice);
  for (size_t i = 0; i <= boxesThere.size(); ++i) {
    bool raises = i == boxesThere.size();
    if (raises && choice.raise == never)
      break;
    states[depth + 1] = states[depth];
    State &next = states[depth + 1];
    bool holds = raises ? raise(next, choice.section, choice.raise)
                        : place(next, boxesThere[i]);
    if (holds) {
      Verdict verdict = dive(depth + 1);
      if (verdict != Bad)
        return verdict;
    }
    uint64_t changed =
        raises ? group[choice.section] : boxes[boxesThere[i]].mask;
    if (!(conflict & changed))
      return Bad; // Whatever is decided here, it fails all the same.
    reasons |= conflict;
  }
  conflict = reasons;
  return Bad;
}

void Search::orderValues(int round) {
  key.resize(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    double life = boxes[i].last - boxes[i].first + 1, area = boxes[i].area;
    double tension = std::pow(boxes[i].tension, 24);
    switch (round % 5) {
    case 0:
      key[i] = area;
      break;
    case 1:
      key[i] = area * tension;
      break;
    case 2:
      key[i] = area / life;
      break;
    case 3:
      key[i] = life + 1e-9 * area;
      break;
    default:
      key[i] = area * life;
      break;
    }
    if (round >= 5)
      key[i] *= 0.5 + double(random.next()) / double(1u << 31);
  }
}

SearchOutcome Search::run(std::vector<int32_t> &offsets) {
  if (boxes.empty()) {
    offsets.clear();
    return SearchOutcome::Found;
  }
  State root = rootState();
  if (!boundHolds(root, 0, numSections - 1))
    return SearchOutcome::Exhausted;
  nodeLimit = std::max<int64_t>(1000, 4 * int64_t(boxes.size()));
  for (int round = 0;; ++round) {
    states.resize(2);
    states[0] = root;
    nodes = 0;
    orderValues(round);
    switch (dive(0)) {
    case Good:
      offsets = offset;
      return SearchOutcome::Found;
    case Bad:
      return SearchOutcome::Exhausted;
    case Stop:
      break;
    }
    if (deadline.passed())
      return SearchOutcome::Limit;
    nodeLimit += nodeLimit / 8;
  }
}

} // namespace

SearchOutcome ckopt::planner::searchPacking(
    const std::vector<SearchShape> &shapes, int32_t capacity, uint64_t seed,
    Deadline &deadline, std::vector<int32_t> &offsets) {
  return Search(shapes, capacity, seed, deadline).run(offsets);
}
