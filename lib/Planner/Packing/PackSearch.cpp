//===- PackSearch.cpp - exact packing of few boxes ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: do boxes with given lifetimes fit an arena of a given capacity?
// Method: depth-first search over canonical packings (PackSkyline.cpp), in the
// spirit of MiniMalloc (Moffitt, ASPLOS 2023). Parts that share no time are
// solved apart; conflicts name the sections that a failure rests on, so that
// decisions elsewhere are jumped over (Prosser, 1993); failed states are
// remembered by hash. Restarts with other value orders and growing node limits.
//   Guarantee: Found packs within the capacity; Exhausted is a proof, up to
// collisions of a 64-bit hash. Gives up: after its share of nodes. Complexity:
// exponential in the worst case; O(boxes + sum of their lengths in sections) a
// node.
//
//===----------------------------------------------------------------------===//
#include "Packing/PackSkyline.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

using namespace ckopt::planner;

namespace {

constexpr size_t mostFailed = 1 << 21;

class Search : Skyline {
public:
  Search(const std::vector<SearchShape> &shapes, int32_t capacity,
         uint64_t seed, Deadline &deadline)
      : Skyline(shapes, capacity, seed), deadline(deadline),
        offset(shapes.size(), 0), reach(numSections, 0) {}
  SearchOutcome run(std::vector<int32_t> &offsets);

private:
  enum Verdict { Good, Bad, Stop };
  void orderValues(int round);
  Verdict dive(int depth);
  Verdict branch(int depth);
  Verdict descend(int depth, const Choice &choice);

  Deadline &deadline;
  std::vector<double> key;   ///< by box: larger keys are tried first
  std::vector<State> states; ///< by depth
  std::vector<int32_t> offset, reach;
  /// Failed states and their conflicts.
  std::unordered_map<uint64_t, uint64_t> failed;
  int64_t nodes = 0, nodeLimit = 0;
};

/// Solves the parts of a node that share no time, one by one.
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
  std::sort(boxesThere.begin(), boxesThere.end(), [&](int32_t a, int32_t b) {
    return key[a] != key[b] ? key[a] > key[b] : a < b;
  });
  for (size_t i = 0; i <= boxesThere.size(); ++i) {
    bool raises = i == boxesThere.size();
    if (raises && choice.raise == never)
      break;
    states[depth + 1] = states[depth];
    State &next = states[depth + 1];
    if (!raises)
      offset[boxesThere[i]] = next.least[boxesThere[i]];
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
      return Bad; // the failure does not depend on this decision
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
