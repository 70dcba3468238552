//===- PackSolve.cpp - a packing problem from model to offsets ------------===//
//
// Best fit in several orders first, since it mostly ends within a percent of
// the load, in no time; then the exact search at the target, with a small share
// of the work; then hill climbing and the search in turns with growing shares.
// Where the search runs out of packings, the bound rises and it asks for half
// of the way to what is known. Problems too large for the search give it their
// core, the largest units, and best fit completes what it
// finds. The core of a problem is a problem of its own, so what is exhausted
// for it is ruled out for the whole.
//   Guarantee: no overlap; a bound that is a load or an exhausted search.
//
//===----------------------------------------------------------------------===//
#include "PackSolve.h"
#include "PackSearch.h"

#include <algorithm>
#include <numeric>

using namespace ckopt::planner;

namespace {

/// What a search of this many shapes may cost in memory: a state a depth.
constexpr size_t mostShapes = 1200;

/// Their load, in the units of their sizes.
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
  bool searchAt(int64_t capacity, int64_t units);
  /// What was asked for is ruled out.
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
  size_t coreSize = 300; ///< chains searched where there are too many
};

/// All chains, or the largest ones.
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
  // The small ones find room between the others.
  std::vector<std::pair<int64_t, int32_t>> ranked;
  for (size_t c = 0; c < chains.size(); ++c)
    ranked.push_back({-model.units[chains[c][0]].bytes, int32_t(c)});
  std::sort(ranked.begin(), ranked.end());
  std::vector<Chain> core;
  for (size_t k = 0; k < coreSize; ++k)
    core.push_back(chains[ranked[k].second]);
  return core;
}

/// The chains over ranks of the times at which one of them starts.
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
  auto rank = [&](int32_t step) { // Starts up to the step, less one.
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
        continue; // Dies in the step in which it takes over.
      int64_t size = (unit.bytes + scale - 1) / scale;
      shape.push_back(
          {rank(startOf(chain, k)), rank(unit.last), int32_t(size)});
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

/// Searches for a packing within the capacity; true if something is known
/// afterwards that was not known before.
bool Solver::searchAt(int64_t capacity, int64_t units) {
  std::vector<Chain> chains = coreChains();
  if (chains.empty())
    return false;
  int64_t scale = 0;
  bool linked = false;
  for (const Chain &chain : chains) {
    linked |= chain.size() > 1 || model.units[chain[0]].before >= 0;
    for (int32_t u : chain)
      scale = std::gcd(scale, model.units[u].bytes);
  }
  bool exact = capacity / scale < (1 << 30);
  if (!exact) // Coarser sizes, rounded up: sound for what is found.
    scale = capacity / (1 << 29) + 1;
  std::vector<SearchShape> shapes = shapesOf(chains, scale);
  std::vector<int32_t> found;
  Deadline part = deadline.part(units);
  int32_t room = int32_t(capacity / scale);
  if (!exact) // What rounding adds is far below a percent: let it in.
    room = std::max(room, loadOf(shapes));
  SearchOutcome outcome = searchPacking(shapes, room, seed, part, found);
  deadline.spend(part.spent());
  if (outcome == SearchOutcome::Exhausted && exact && !linked) {
    lowerBound = std::max(lowerBound, (capacity / scale + 1) * scale);
    bySearch = true;
    return true;
  }
  if (outcome != SearchOutcome::Found)
    return false;
  std::vector<int32_t> fixed;
  std::vector<int64_t> at;
  for (size_t c = 0; c < chains.size(); ++c)
    for (int32_t u : chains[c]) {
      fixed.push_back(u);
      at.push_back(int64_t(found[c]) * scale);
    }
  int64_t before = fit.arena();
  fit.complete(fixed, at, deadline);
  return fit.arena() < before;
}

PackAnswer Solver::run() {
  fit.tryOrders(limit(), deadline);
  // Shares of the work grow, so that easy problems end soon.
  int64_t share = 400000;
  for (int round = 0;
       fit.arena() > limit() && !hopeless() && !deadline.passed(); ++round) {
    inPart(share, [&](Deadline &part) { fit.sample(limit(), part); });
    int64_t low = limit(), high = fit.arena();
    if (fit.arena() > limit()) // At the target, or half way to what is known.
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

} // namespace

PackAnswer ckopt::planner::packModel(const PackModel &model, int64_t target,
                                     uint64_t seed, Deadline &deadline) {
  return Solver(model, target, seed, deadline).run();
}
