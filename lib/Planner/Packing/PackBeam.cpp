//===- PackBeam.cpp - packing by beam search ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: do boxes with given lifetimes fit an arena of a given capacity,
// where next to nothing may be lost? Depth-first search commits itself early
// and seldom returns to what it decided first. Method: beam search over
// canonical packings (PackSkyline.cpp; compare Libralesso et al., 2020, for
// other packing problems): of all partial packings after a number of branches
// those stay that lose least where little can be lost. What counts is how much
// each section still has to take, against the room that is left to waste in it:
// the sum of rest^2 / (room + ease) as shares of the capacity. Passes with
// several values of ease, with and without noise, and growing widths.
//   Guarantee: Found packs within the capacity; Exhausted, where no pass had to
// drop anything, is a proof, up to collisions of a 64-bit hash. Gives up: after
// all passes, or with its share of the limits. Complexity: a pass costs O(width
// * depth * branches) steps of a Skyline each.
//
//===----------------------------------------------------------------------===//
#include "Packing/PackBeam.h"
#include "Packing/PackSkyline.h"

#include <algorithm>
#include <array>
#include <unordered_set>

using namespace ckopt::planner;

namespace {

/// Weights by which partial packings are compared.
struct Guide {
  /// Share of the capacity: the larger, the less tight sections count.
  double ease;
  double noise; ///< relative
};
constexpr std::array<Guide, 3> guides{{{0.1, 0}, {0.4, 0.02}, {0.1, 0.02}}};
constexpr int firstWidth = 8;
/// The most bytes of partial packings that a pass may hold.
constexpr int64_t mostBytes = int64_t(192) << 20;

} // namespace

class PackBeam::Beam : Skyline {
public:
  Beam(const std::vector<SearchShape> &shapes, int32_t capacity, uint64_t seed)
      : Skyline(shapes, capacity, seed) {}
  SearchOutcome run(Deadline &deadline, std::vector<int32_t> &offsets);

private:
  struct Partial {
    State state;
    double score = 0;
    uint64_t hash = 0;
    bool dead = false; ///< cannot be completed
  };
  int doublings() const { return pass / int(guides.size()); }
  SearchOutcome sweep(Deadline &deadline);
  bool force(State &state, Choice &choice, std::vector<int32_t> &boxesThere,
             Deadline &deadline);
  void expand(const State &state, const Choice &choice,
              const std::vector<int32_t> &boxesThere, Deadline &deadline);
  void keepBest();
  double scoreOf(const State &state);

  /// Without explanations of failures.
  const int64_t branchWork = (nodeWork + 1) / 2;
  int pass = -1;
  size_t width = 0;
  /// The memory limit was reached: only noise makes a difference.
  bool wide = false;
  bool dropped = false; ///< in this pass
  /// Only the first `alive` entries of `current` and the first `grown` of
  /// `next` are valid; the others are reused storage.
  std::vector<Partial> current, next;
  size_t alive = 0, grown = 0;
  std::unordered_set<uint64_t> seen;
  std::vector<int32_t> found;
};

using Beam = PackBeam::Beam;

double Beam::scoreOf(const State &state) {
  const Guide &guide = guides[size_t(pass) % guides.size()];
  double score = 0, unit = 1.0 / capacity;
  for (int32_t s = 0; s < numSections; ++s) {
    if (state.count[s] == 0)
      continue;
    double rest = state.rest[s] * unit;
    score += rest * rest / (state.room[s] * unit + guide.ease);
  }
  if (double noise = wide ? std::max(guide.noise, 0.01) : guide.noise;
      noise > 0)
    score *= 1 + noise * double(random.next()) / double(1u << 31);
  return score;
}

/// Takes branches while there is no choice. Returns false if there is no
/// packing, or (if nothing is left to place) if `found` is one.
bool Beam::force(State &state, Choice &choice, std::vector<int32_t> &boxesThere,
                 Deadline &deadline) {
  while (true) {
    if (state.left.empty()) {
      found = state.least;
      return false;
    }
    choice = choose(state);
    if (choice.branches == 0)
      return false;
    boxesThere = values(state, choice);
    if (boxesThere.size() + (choice.raise != never ? 1 : 0) > 1)
      return true;
    bool holds = choice.raise != never
                     ? raise(state, choice.section, choice.raise)
                     : place(state, boxesThere[0]);
    deadline.spend(branchWork);
    if (!holds)
      return false;
  }
}

void Beam::expand(const State &state, const Choice &choice,
                  const std::vector<int32_t> &boxesThere, Deadline &deadline) {
  size_t branches = boxesThere.size() + (choice.raise != never ? 1 : 0);
  for (size_t i = 0; i < branches; ++i) {
    if (grown == next.size())
      next.emplace_back();
    Partial &partial = next[grown];
    partial.state = state;
    partial.dead = false;
    bool holds = i < boxesThere.size()
                     ? place(partial.state, boxesThere[i])
                     : raise(partial.state, choice.section, choice.raise);
    deadline.spend(branchWork);
    if (!holds)
      continue;
    partial.hash = hashOf(partial.state);
    if (!seen.insert(partial.hash).second)
      continue;
    partial.score = scoreOf(partial.state);
    if (++grown >= 2 * width)
      keepBest();
  }
}

void Beam::keepBest() {
  if (grown <= width)
    return;
  auto begin = next.begin();
  std::nth_element(begin, begin + int64_t(width), begin + int64_t(grown),
                   [](const Partial &a, const Partial &b) {
                     return a.score != b.score ? a.score < b.score
                                               : a.hash < b.hash;
                   });
  grown = width;
  dropped = true;
}

/// Continues a pass.
SearchOutcome Beam::sweep(Deadline &deadline) {
  Choice choice;
  std::vector<int32_t> boxesThere;
  while (alive > 0) {
    grown = 0;
    seen.clear();
    for (size_t i = 0; i < alive; ++i) {
      State &state = current[i].state;
      if (current[i].dead)
        continue;
      if (force(state, choice, boxesThere, deadline))
        expand(state, choice, boxesThere, deadline);
      else
        current[i].dead = true; // skip it if the level is started again
      if (!found.empty())
        return SearchOutcome::Found;
      if (deadline.passed())
        return SearchOutcome::Limit;
    }
    keepBest();
    current.swap(next);
    alive = grown;
  }
  return dropped ? SearchOutcome::Limit : SearchOutcome::Exhausted;
}

PackBeam::PackBeam(std::vector<SearchShape> shapes, int32_t capacity,
                   uint64_t seed)
    : shapes(std::move(shapes)),
      beam(std::make_unique<Beam>(this->shapes, capacity, seed)) {}
PackBeam::~PackBeam() = default;

SearchOutcome PackBeam::run(Deadline &deadline, std::vector<int32_t> &offsets) {
  return beam->run(deadline, offsets);
}

SearchOutcome Beam::run(Deadline &deadline, std::vector<int32_t> &offsets) {
  offsets.clear();
  if (boxes.empty())
    return SearchOutcome::Found;
  while (true) {
    if (alive == 0) {
      ++pass;
      size_t bytes = (size_t(numSections) * 4 + shapes.size() * 3) * 4 + 256;
      size_t most = std::max<size_t>(64, size_t(mostBytes) / bytes / 3);
      width = size_t(firstWidth) << std::min(doublings(), 24);
      wide = width > most;
      width = std::min(width, most);
      dropped = false;
      current.resize(1);
      current[0].state = rootState();
      current[0].dead = false;
      alive = 1;
      if (!boundHolds(current[0].state, 0, numSections - 1))
        return SearchOutcome::Exhausted;
    }
    SearchOutcome outcome = sweep(deadline);
    if (outcome == SearchOutcome::Found)
      offsets = found;
    if (outcome != SearchOutcome::Limit || deadline.passed())
      return outcome;
  }
}
