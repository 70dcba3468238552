//===- BlockOptions.cpp - the ways to run one block -----------------------===//
//
// Problem: one block with its input there; what to keep from its forward part
// so that its backward part can make the rest again, for every trade of bytes
// for cost. Method: what a set of kept values costs is the closure of what the
// backward part reads over what must then run again. Few values: all subsets.
// Many: for a price of a byte the best set is a minimum cut (a value is kept,
// an arc of its bytes, or its maker runs, an arc of its cost, and wants what
// it reads), and prices between two neighbouring sets find all corners of the
// convex hull (Eisner and Severance, 1976); sets one value away from a corner
// fill the hull's inside. What is not beaten runs through the executor once,
// which gives its cost and loads exactly. Guarantee: options can be run;
// with all subsets, no set of kept values is missed. O(2^values) or O(corners)
// minimum cuts.
//
//===----------------------------------------------------------------------===//
#include "BlockOptions.h"
#include "Executor.h"
#include "MaximumFlow.h"
#include "Order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

using namespace ckopt::planner;

/// Options of a kind at most.
static constexpr size_t mostOptions = 32;

namespace {

/// A set of kept values, by index into OptionFinder::choices.
struct Kept {
  std::vector<char> set;
  int64_t bytes = 0;
  double cost = 0;
};

class OptionFinder {
public:
  OptionFinder(const BlockKind &kind, Deadline &deadline);
  std::vector<BlockOption> run(int64_t subsets);

private:
  void findChoices();
  double closure(const std::vector<char> &kept, bool backward, bool leaving);
  double remake(const std::vector<char> &kept);
  Kept weigh(std::vector<char> set);
  std::vector<Kept> allSubsets();
  std::vector<Kept> corners();
  Kept cut(double price);
  BlockOption measure(const Kept &kept);

  const BlockKind &kind;
  Problem problem;
  Deadline &deadline;
  std::vector<NodeId> order;
  std::vector<ValueId> choices; ///< storages that may be kept or not
  std::vector<char> wanted;     ///< by value: read by the backward part
  std::vector<char> fixed;      ///< by storage: there whatever is kept
  std::vector<char> needed, isKept;
  int64_t work = 0;
};

OptionFinder::OptionFinder(const BlockKind &kind, Deadline &deadline)
    : kind(kind), problem(kind.graph), deadline(deadline),
      order(programOrder(problem)), wanted(problem.numValues, 0),
      fixed(problem.numValues, 0), needed(problem.numValues, 0),
      isKept(problem.numValues, 0) {
  for (NodeId n = kind.turn + 1; n < problem.numNodes; ++n)
    for (ValueId v : problem.reads[n])
      if (NodeId maker = problem.producer[v]; maker >= 0 && maker < kind.turn)
        wanted[v] = 1;
  for (ValueId v = 0; v < problem.numValues; ++v) {
    NodeId maker = problem.producer[v];
    fixed[v] = maker < 0 || maker >= kind.turn || kind.leaves[v] ||
               kind.stays[v] || !problem.recompute[maker];
  }
  findChoices();
}

/// What the backward part reads, or what would have to be made again for it.
void OptionFinder::findChoices() {
  closure(std::vector<char>(problem.numValues, 0), true, false);
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (needed[v] && problem.root[v] == v && !fixed[v])
      choices.push_back(v);
}

/// Cost of the forward nodes that must run where only `kept` (by storage) and
/// what is fixed is there: for the backward part, or (not `backward`) to make
/// what is kept and, if `leaving`, what leaves. Sets `needed`.
double OptionFinder::closure(const std::vector<char> &kept, bool backward,
                             bool leaving) {
  needed.assign(problem.numValues, 0);
  for (ValueId v = 0; v < problem.numValues; ++v)
    needed[v] = backward ? wanted[v]
                         : kept[v] || (leaving && kind.leaves[v]) ||
                               (kind.stays[v] && leaving);
  double sum = 0;
  for (NodeId n = kind.turn; n-- > 0;) {
    bool runs = false;
    for (ValueId v : problem.outputs[n]) {
      ValueId r = problem.root[v];
      runs |= needed[v] && (!backward || (!kept[r] && !fixed[r]));
    }
    // What cannot run again was kept.
    if (!runs || !problem.recompute[n])
      continue;
    sum += problem.cost[n];
    for (ValueId v : problem.reads[n])
      needed[v] = 1;
  }
  work += problem.numNodes + problem.numValues;
  return sum;
}

/// Cost of making what leaves again where `kept` is there and it is not.
double OptionFinder::remake(const std::vector<char> &kept) {
  needed = kind.leaves;
  double sum = 0;
  for (NodeId n = kind.turn; n-- > 0;) {
    bool runs = false;
    for (ValueId v : problem.outputs[n]) {
      ValueId r = problem.root[v];
      runs |= needed[v] && !kept[r] && !kind.stays[r];
    }
    if (!runs || !problem.recompute[n])
      continue;
    sum += problem.cost[n];
    for (ValueId v : problem.reads[n])
      needed[v] = 1;
  }
  work += problem.numNodes;
  return sum;
}

Kept OptionFinder::weigh(std::vector<char> set) {
  Kept kept{std::move(set)};
  std::fill(isKept.begin(), isKept.end(), 0);
  for (size_t i = 0; i < choices.size(); ++i)
    if (kept.set[i]) {
      isKept[choices[i]] = 1;
      kept.bytes += problem.bytes[choices[i]];
    }
  kept.cost = closure(isKept, true, false);
  return kept;
}

std::vector<Kept> OptionFinder::allSubsets() {
  std::vector<Kept> all;
  for (int64_t mask = 0; mask < int64_t(1) << choices.size(); ++mask) {
    std::vector<char> set(choices.size());
    for (size_t i = 0; i < choices.size(); ++i)
      set[i] = mask >> i & 1;
    all.push_back(weigh(std::move(set)));
  }
  return all;
}

/// The best set where a byte costs `price`.
Kept OptionFinder::cut(double price) {
  // Vertices: source, sink, values, forward nodes.
  int32_t values = problem.numValues;
  MaximumFlow flow(2 + values + kind.turn);
  double total = std::max(problem.baseCost, 1e-300);
  double scale = 1e12 / total;
  auto capacity = [&](double amount) {
    return int64_t(std::min(amount * scale, 1e15));
  };
  for (ValueId v = 0; v < values; ++v) {
    NodeId maker = problem.producer[v];
    if (wanted[v])
      flow.connect(0, 2 + v, MaximumFlow::unlimited);
    ValueId r = problem.root[v];
    if (fixed[r] || maker < 0 || maker >= kind.turn)
      continue;
    if (r == v) {
      flow.connect(2 + v, 2 + values + maker,
                   capacity(price * double(problem.bytes[v])));
    } else {
      // A view is there with its storage.
      flow.connect(2 + v, 2 + r, MaximumFlow::unlimited);
    }
  }
  for (NodeId n = 0; n < kind.turn; ++n) {
    flow.connect(2 + values + n, 1, capacity(problem.cost[n]));
    for (ValueId v : problem.reads[n])
      flow.connect(2 + values + n, 2 + v, MaximumFlow::unlimited);
  }
  flow.run(0, 1, work);
  std::vector<char> set(choices.size(), 0);
  for (size_t i = 0; i < choices.size(); ++i) {
    ValueId v = choices[i];
    set[i] =
        flow.reached(2 + v) && !flow.reached(2 + values + problem.producer[v]);
  }
  return weigh(std::move(set));
}

std::vector<Kept> OptionFinder::corners() {
  Kept most = weigh(std::vector<char>(choices.size(), 0));
  Kept none = cut(0);
  none = none.cost > 0 ? weigh(std::vector<char>(choices.size(), 1)) : none;
  std::vector<Kept> all{most, none};
  std::vector<std::pair<Kept, Kept>> open{{most, none}};
  while (!open.empty() && all.size() < mostOptions && !deadline.passed()) {
    auto [low, high] = std::move(open.back());
    open.pop_back();
    if (high.bytes <= low.bytes || low.cost <= high.cost)
      continue;
    double price = (low.cost - high.cost) / double(high.bytes - low.bytes);
    Kept found = cut(price);
    double value = found.cost + price * double(found.bytes);
    if (value >= (low.cost + price * double(low.bytes)) * (1 - 1e-6))
      continue;
    all.push_back(found);
    open.push_back({low, found});
    open.push_back({found, high});
  }
  size_t count = all.size();
  for (size_t k = 0; k < count && !deadline.passed(); ++k)
    for (size_t i = 0; i < choices.size() && choices.size() < 200; ++i) {
      std::vector<char> set = all[k].set;
      set[i] = !set[i];
      all.push_back(weigh(std::move(set)));
    }
  return all;
}

/// Runs the block by the executor, with what is kept.
BlockOption OptionFinder::measure(const Kept &kept) {
  ExecutorOptions options;
  options.budget = std::numeric_limits<int64_t>::max() / 4;
  options.turn = kind.turn - 1;
  options.keepFrom.assign(problem.numValues, 0);
  options.anchor.assign(problem.numValues, -1);
  BlockOption result{};
  std::fill(isKept.begin(), isKept.end(), 0);
  for (size_t i = 0; i < choices.size(); ++i)
    if (kept.set[i])
      isKept[choices[i]] = 1;
  for (ValueId v = 0; v < problem.numValues; ++v) {
    NodeId maker = problem.producer[v];
    if (problem.root[v] != v || maker < 0 || maker >= kind.turn)
      continue;
    if (isKept[v] || kind.leaves[v] || kind.stays[v])
      options.anchor[v] = problem.numNodes - 1;
    else
      options.keepFrom[v] = kind.turn;
    if (isKept[v])
      result.keep.push_back(v);
  }
  std::optional<std::vector<NodeId>> steps = execute(problem, order, options);
  if (!steps)
    steps = order;
  Simulation seen = simulate(problem, *steps, true);
  work += 64 * int64_t(steps->size());
  size_t turn =
      std::find(steps->begin(), steps->end(), kind.turn) - steps->begin();
  result.kept = seen.usage[turn] - kind.incoming;
  for (size_t i = 0; i < steps->size(); ++i) {
    int64_t &top = i < turn ? result.forwardTop : result.backTop;
    top = std::max(top, seen.usage[i]);
  }
  result.forwardTop = std::max(result.forwardTop, result.kept);
  result.extra = std::max(0.0, seen.cost - problem.baseCost);
  result.again = closure(isKept, false, true);
  result.handed = 0;
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (kind.leaves[v])
      result.handed += problem.bytes[v];
  result.remake = remake(isKept);
  result.againPart = result.keep.empty() ? 0 : closure(isKept, false, false);
  return result;
}

/// Those that none beats, by rising bytes, thinned out to `most`.
void pareto(std::vector<Kept> &all, size_t most) {
  std::sort(all.begin(), all.end(), [](const Kept &a, const Kept &b) {
    return std::tie(a.bytes, a.cost, a.set) < std::tie(b.bytes, b.cost, b.set);
  });
  double best = std::numeric_limits<double>::infinity();
  std::erase_if(all, [&](const Kept &kept) {
    if (kept.cost >= best * (1 - 1e-12))
      return true;
    best = kept.cost;
    return false;
  });
  // What saves the least beside its neighbours goes first.
  while (all.size() > most) {
    size_t worst = 1;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 1; i + 1 < all.size(); ++i) {
      const Kept &a = all[i - 1], &b = all[i], &c = all[i + 1];
      double share = double(b.bytes - a.bytes) / double(c.bytes - a.bytes);
      double line = a.cost + share * (c.cost - a.cost);
      // How far below the line between its neighbours, and how far from them.
      double gain = (line - b.cost) +
                    0.1 * (a.cost - c.cost) * std::min(share, 1 - share);
      if (gain < least) {
        least = gain;
        worst = i;
      }
    }
    all.erase(all.begin() + int64_t(worst));
  }
}

std::vector<BlockOption> OptionFinder::run(int64_t subsets) {
  std::vector<Kept> sets;
  if (choices.size() < 20 && (int64_t(1) << choices.size()) <= subsets)
    sets = allSubsets();
  else
    sets = corners();
  pareto(sets, mostOptions);
  std::vector<BlockOption> result;
  for (const Kept &kept : sets)
    result.push_back(measure(kept));
  deadline.spend(work);
  return result;
}

} // namespace

std::vector<BlockOption> ckopt::planner::blockOptions(const BlockKind &kind,
                                                      int64_t subsets,
                                                      Deadline &deadline) {
  return OptionFinder(kind, deadline).run(subsets);
}
