//===- PackSolve.cpp - a packing problem from model to offsets ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: offsets in an arena as small as possible, or within a capacity.
// Method: best fit in several orders first, since it mostly ends within a
// percent of the load, in no time (what lives all the time lies at the bottom);
// then ejection with less and less room, beam search at the target, the exact
// search and hill climbing in turns with growing shares. Where the exact search
// runs out of packings, the bound rises and it asks for half of the way to what
// is known. Problems too large for the searches give them their core, the
// largest units, and best fit completes what they find. The core of a problem
// is a problem of its own, so what is exhausted for it is ruled out for the
// whole.
//   Guarantee: no overlap; a bound that is a load or an exhausted search. Gives
// up: at the bound, or with the limits. Complexity: that of each in its share.
//
//===----------------------------------------------------------------------===//
#include "Packing/PackSolve.h"
#include "Packing/PackBeam.h"
#include "Packing/PackEject.h"

#include <algorithm>
#include <memory>
#include <numeric>

using namespace ckopt::planner;

namespace {

/// The most shapes of a search, whose memory is one state for each depth.
constexpr size_t mostShapes = 1200;
/// The most units that ejection places, because each placement looks at all of
/// them.
constexpr size_t mostEjected = 4000;

/// Returns the load in the shapes' units of size.
int32_t loadOf(const std::vector<SearchShape> &shapes) {
  int32_t sections = 0;
  for (const SearchShape &shape : shapes)
    sections = std::max(sections, shape.back().last + 1);
  std::vector<int32_t> sums(size_t(sections) + 1, 0);
  for (const SearchShape &shape : shapes)
    for (const SearchPiece &piece : shape) {
      sums[piece.first] += piece.size;
      sums[piece.last + 1] -= piece.size;
    }
  int32_t sum = 0, most = 0;
  for (int32_t change : sums)
    most = std::max(most, sum += change);
  return most;
}

class Solver {
public:
  Solver(const PackModel &model, int64_t target, uint64_t seed,
         Deadline &deadline)
      : model(model), target(target), seed(seed), deadline(deadline),
        fit(model, seed), lowerBound(model.load) {}
  PackAnswer run();

private:
  /// Units that share an offset, in order of time.
  using Chain = std::vector<int32_t>;
  std::vector<Chain> coreChains() const;
  std::vector<SearchShape> shapesOf(const std::vector<Chain> &chains,
                                    int64_t scale) const;
  /// The input of a search.
  struct Question {
    std::vector<Chain> chains;
    std::vector<SearchShape> shapes;
    int64_t scale = 0; ///< bytes in one unit of size
    int32_t room = 0;  ///< the capacity in these units
    /// Whether a failed search proves that there is no packing.
    bool proves = false;
  };
  Question ask(int64_t capacity) const;
  void take(SearchOutcome outcome, const Question &question, int64_t capacity,
            const std::vector<int32_t> &found);
  void searchAt(int64_t capacity, int64_t units);
  void beamAt(int64_t capacity, int64_t units);
  void eject(int64_t units);
  /// Returns whether the target is proven impossible.
  bool hopeless() const { return target > 0 && lowerBound > target; }
  template <typename Body> void inPart(int64_t units, Body body) {
    Deadline part = deadline.part(units);
    body(part);
    deadline.spend(part.spent());
  }
  int64_t limit() const { return std::max(target, lowerBound); }

  const PackModel &model;
  int64_t target;
  uint64_t seed;
  Deadline &deadline;
  PackFit fit;
  int64_t lowerBound;
  bool bySearch = false;
  /// Most chains that a search gets, if there are too many.
  size_t coreSize = 300;
  /// The beam search at beamCapacity for beamCore chains at most.
  std::unique_ptr<PackBeam> beam;
  /// Share of the bytes above the target that remains.
  double ejectShare = 0.15;
  int ejectMode = 0; ///< how the next ejection starts and proceeds
  int64_t beamCapacity = -1;
  size_t beamCore = 0;
};

/// Returns all chains, or the largest ones.
std::vector<Solver::Chain> Solver::coreChains() const {
  std::vector<Chain> chains;
  std::vector<int32_t> chainOf(model.units.size(), -1);
  for (int32_t u = 0; u < int32_t(model.units.size()); ++u) {
    const PackUnit &unit = model.units[u];
    if (unit.bytes == 0)
      continue;
    if (unit.before >= 0 && chainOf[unit.before] >= 0 &&
        unit.bytes <= model.units[unit.before].bytes) {
      chainOf[u] = chainOf[unit.before];
      chains[chainOf[u]].push_back(u);
    } else {
      chainOf[u] = int32_t(chains.size());
      chains.push_back({u});
    }
  }
  if (chains.size() <= mostShapes)
    return chains;
  // Small chains are left out, because they find room between the others.
  std::vector<std::pair<int64_t, int32_t>> ranked;
  for (size_t c = 0; c < chains.size(); ++c)
    ranked.push_back({-model.units[chains[c][0]].bytes, int32_t(c)});
  std::sort(ranked.begin(), ranked.end());
  std::vector<Chain> core;
  for (size_t k = 0; k < coreSize; ++k)
    core.push_back(chains[ranked[k].second]);
  return core;
}

/// Converts chains to shapes over ranks of the times at which one of them
/// starts.
std::vector<SearchShape> Solver::shapesOf(const std::vector<Chain> &chains,
                                          int64_t scale) const {
  auto startOf = [&](const Chain &chain, size_t k) {
    return model.units[chain[k]].first + (k > 0 ? 1 : 0);
  };
  std::vector<int32_t> starts;
  for (const Chain &chain : chains)
    for (size_t k = 0; k < chain.size(); ++k)
      starts.push_back(startOf(chain, k));
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  auto rank = [&](int32_t step) { // number of starts up to the step, less one
    return int32_t(std::upper_bound(starts.begin(), starts.end(), step) -
                   starts.begin()) -
           1;
  };
  std::vector<SearchShape> shapes;
  for (const Chain &chain : chains) {
    SearchShape shape;
    for (size_t k = 0; k < chain.size(); ++k) {
      const PackUnit &unit = model.units[chain[k]];
      if (startOf(chain, k) > unit.last)
        continue; // it ends in the step in which it takes over
      int64_t size = (unit.bytes + scale - 1) / scale;
      shape.push_back(
          {rank(startOf(chain, k)), rank(unit.last), int32_t(size)});
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

Solver::Question Solver::ask(int64_t capacity) const {
  Question question;
  question.chains = coreChains();
  if (question.chains.empty())
    return question;
  bool linked = false;
  for (const Chain &chain : question.chains) {
    linked |= chain.size() > 1 || model.units[chain[0]].before >= 0;
    for (int32_t u : chain)
      question.scale = std::gcd(question.scale, model.units[u].bytes);
  }
  bool exact = capacity / question.scale < (1 << 30);
  if (!exact) // coarser sizes, rounded up, so that a packing found is valid
    question.scale =
        (capacity / (1 << 29) / question.scale + 1) * question.scale;
  question.shapes = shapesOf(question.chains, question.scale);
  question.room = int32_t(capacity / question.scale);
  if (!exact) // rounding adds far below a percent, so allow for it
    question.room = std::max(question.room, loadOf(question.shapes));
  question.proves = exact && !linked;
  return question;
}

/// Uses the result of a search for a packing within the capacity.
void Solver::take(SearchOutcome outcome, const Question &question,
                  int64_t capacity, const std::vector<int32_t> &found) {
  if (outcome == SearchOutcome::Exhausted && question.proves) {
    lowerBound =
        std::max(lowerBound, (capacity / question.scale + 1) * question.scale);
    bySearch = true;
  }
  if (outcome != SearchOutcome::Found)
    return;
  std::vector<int32_t> fixed;
  std::vector<int64_t> at;
  for (size_t c = 0; c < question.chains.size(); ++c)
    for (int32_t u : question.chains[c]) {
      fixed.push_back(u);
      at.push_back(int64_t(found[c]) * question.scale);
    }
  fit.complete(fixed, at, deadline);
}

void Solver::searchAt(int64_t capacity, int64_t units) {
  Question question = ask(capacity);
  if (question.chains.empty())
    return;
  std::vector<int32_t> found;
  SearchOutcome outcome = SearchOutcome::Limit;
  inPart(units, [&](Deadline &part) {
    outcome = searchPacking(question.shapes, question.room, seed, part, found);
  });
  take(outcome, question, capacity, found);
}

void Solver::beamAt(int64_t capacity, int64_t units) {
  Question question = ask(capacity);
  if (question.chains.empty())
    return;
  if (!beam || beamCapacity != capacity ||
      (beamCore != coreSize && question.chains.size() == coreSize)) {
    beam = std::make_unique<PackBeam>(question.shapes, question.room, seed);
    beamCapacity = capacity;
    beamCore = coreSize;
  }
  std::vector<int32_t> found;
  SearchOutcome outcome = SearchOutcome::Limit;
  inPart(units, [&](Deadline &part) { outcome = beam->run(part, found); });
  take(outcome, question, capacity, found);
  if (outcome != SearchOutcome::Limit)
    beam.reset();
}

/// Ejects with less and less room: the difference between the target and the
/// best known packing is multiplied by a share, which grows after failures.
void Solver::eject(int64_t units) {
  std::vector<int32_t> ids(model.units.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    int64_t left = model.units[a].bytes, right = model.units[b].bytes;
    return left != right ? left > right : a < b;
  });
  // Small chains find room between the others.
  size_t count = 0;
  while (count < std::min(ids.size(), mostEjected) &&
         model.units[ids[count]].bytes > model.load / 50000)
    ++count;
  ids.resize(count);
  if (model.linked || count < 2)
    return;
  int64_t grain = 0;
  for (const PackUnit &unit : model.units)
    grain = std::gcd(grain, unit.bytes);
  Deadline all = deadline.part(units);
  double &share = ejectShare;
  while (fit.arena() > limit() && !all.passed()) {
    int64_t room = limit() + int64_t(double(fit.arena() - limit()) * share);
    // Boxes also hang from the top, so offsets must stay aligned.
    room -= room % grain;
    Deadline part = all.part(ejectMode == 0 ? units / 4 : units / 2);
    PackEject packer(model, ids, seed++);
    int64_t before = fit.arena();
    bool afresh = ejectMode == 0;
    packer.run(room, afresh ? std::vector<int64_t>() : fit.offsets(),
               ejectMode != 1, part);
    fit.complete(packer.placedIds(), packer.placedAt(), deadline);
    all.spend(part.spent());
    if (fit.arena() == before) {
      ejectMode = (ejectMode + 1) % 3;
      share = share > 0.8 ? 0.15 : share + 0.25;
    }
  }
  deadline.spend(all.spent());
}

PackAnswer Solver::run() {
  fit.tryOrders(limit(), deadline);
  // Shares of the work grow, so that easy problems end soon.
  int64_t share = 400000;
  for (int round = 0;
       fit.arena() > limit() && !hopeless() && !deadline.passed(); ++round) {
    // If the whole problem can be searched, sampling seldom helps.
    bool whole = model.units.size() <= mostShapes;
    inPart(whole ? share / 4 : share,
           [&](Deadline &part) { fit.sample(limit(), part); });
    if (fit.arena() > limit())
      eject(model.units.size() > 600 ? 6 * share
            : round == 0             ? share
                                     : share / 2);
    if (fit.arena() > limit())
      beamAt(limit(), whole ? 4 * share : 2 * share);
    // Aim at the target, or half way to the best known size.
    if (int64_t low = limit(), high = fit.arena(); high > low && !hopeless())
      searchAt(round % 2 == 0 ? low : low + (high - low) / 2,
               round % 2 == 0 ? 2 * share : share);
    inPart(share / 2, [&](Deadline &part) { fit.improve(limit(), part); });
    share *= 2;
    ++seed;
    coreSize = std::min(2 * coreSize, mostShapes);
  }
  PackAnswer answer;
  answer.arena = std::max<int64_t>(fit.arena(), 0);
  answer.offsets = fit.offsets();
  answer.lowerBound = lowerBound;
  answer.searched = bySearch;
  return answer;
}

/// A model without the units that live for all steps: they lie at the bottom,
/// which loses nothing, since every other unit overlaps all of them in time.
struct Grounded {
  explicit Grounded(const PackModel &model);

  PackModel rest;
  /// By unit of the whole model; -1 if at the bottom.
  std::vector<int32_t> newId;
  std::vector<int64_t> offset; ///< by unit at the bottom
  int64_t height = 0;
};

Grounded::Grounded(const PackModel &model)
    : rest(model), newId(model.units.size(), -1),
      offset(model.units.size(), 0) {
  int32_t begin = INT32_MAX, end = -1;
  for (const PackUnit &unit : model.units) {
    begin = std::min(begin, unit.first);
    end = std::max(end, unit.last);
  }
  rest.units.clear();
  rest.followers.clear();
  rest.tension.clear();
  for (size_t u = 0; u < model.units.size(); ++u) {
    const PackUnit &unit = model.units[u];
    if (unit.first == begin && unit.last == end && unit.before < 0 &&
        model.followers[u].empty()) {
      offset[u] = height;
      height += unit.bytes;
      continue;
    }
    newId[u] = int32_t(rest.units.size());
    rest.units.push_back(unit);
    rest.tension.push_back(model.tension[u]);
    rest.followers.push_back(model.followers[u]);
  }
  rest.load -= height;
  for (size_t u = 0; u < rest.units.size(); ++u) {
    rest.tension[u] -= height;
    if (int32_t &before = rest.units[u].before; before >= 0)
      before = newId[before];
    for (int32_t &follower : rest.followers[u])
      follower = newId[follower];
  }
}

} // namespace

PackAnswer ckopt::planner::packModel(const PackModel &model, int64_t target,
                                     uint64_t seed, Deadline &deadline) {
  Grounded grounded(model);
  int64_t height = grounded.height;
  int64_t above = target > 0 ? std::max<int64_t>(1, target - height) : 0;
  PackAnswer answer = Solver(grounded.rest, above, seed, deadline).run();
  answer.arena += height;
  answer.lowerBound += height;
  std::vector<int64_t> offsets = std::move(grounded.offset);
  for (size_t u = 0; u < offsets.size(); ++u)
    if (int32_t id = grounded.newId[u]; id >= 0)
      offsets[u] = height + answer.offsets[id];
  answer.offsets = std::move(offsets);
  return answer;
}
