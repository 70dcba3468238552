//===- BlockCombine.cpp - options of blocks put together ------------------===//
//
// Problem: a chain of blocks, each with options (bytes kept for the backward
// part, extra cost, loads on the way); choose so that the load stays within a
// budget at the least cost. While the backward part is at a block, exactly what
// the blocks before it keep is resident beside the block itself, so a plan is a
// walk along the chain whose state is the sum of bytes kept so far: dynamic
// programming over (block, bytes), bytes exact but one state a bin. Its steps
// are blocks (in long chains stretches of them), and stretches that run
// forwards again, with options from BlockStretches.cpp. Guarantee: exact for
// one level, but for bins. Complexity: O(bins * options) a step.
//
//===----------------------------------------------------------------------===//
#include "BlockCombine.h"
#include "BlockStretches.h"

#include <algorithm>
#include <limits>

using namespace ckopt::planner;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

/// The walk along a chain.
class Combiner {
public:
  Combiner(const BlockChain &chain,
           const std::vector<std::vector<BlockOption>> &options, int64_t base,
           int64_t budget, Deadline &deadline)
      : chain(chain), options(options), base(base), budget(budget),
        deadline(deadline), count(int32_t(chain.blocks.size())),
        tree(chain, options, base, budget, deadline) {}
  std::optional<ChainPlan> run();

private:
  struct State {
    int64_t bytes = 0;
    double cost = infinity;
    int32_t level = 0, choice = 0, from = 0; ///< the step that led here
  };
  void chooseBins();
  std::pair<int32_t, int32_t> range(int32_t from, int32_t k) const;
  void findPrice();
  void step(int32_t at);
  ChainPlan trace() const;
  void expand(ChainPlan &plan, int32_t level, int32_t index, int32_t choice,
              int32_t from, int32_t handedFrom) const;

  const BlockChain &chain;
  const std::vector<std::vector<BlockOption>> &options;
  int64_t base, budget;
  Deadline &deadline;
  int32_t count;
  StretchTree tree;
  int32_t bins = 0;
  int32_t level = 0; ///< stretches of this level are the walk's steps
  double price = 0;  ///< of a byte kept, to compare states of a bin
  std::vector<std::vector<State>> states; ///< by boundary, by bin
};

/// Choices of a stretch by which the walk goes on from a boundary: all of a
/// step; of longer ones those that are more than steps put together; shorter
/// ones where the chain ends.
std::pair<int32_t, int32_t> Combiner::range(int32_t from, int32_t k) const {
  int32_t index = from >> k;
  if (index << k != from || index >= tree.numStretches(k))
    return {0, 0};
  const Stretch &stretch = tree.at(k, index);
  int32_t all = int32_t(stretch.choices.size());
  bool inside = (from >> level) < tree.numStretches(level);
  if (k < level && inside)
    return {0, 0};
  return {k == 0 || k == level ? 0 : stretch.firstAgain, all};
}

void Combiner::chooseBins() {
  while ((count >> level) > 256 && level + 1 < tree.numLevels())
    ++level;
  int64_t steps = 1;
  for (int32_t from = 0; from < count; ++from)
    for (int32_t k = 0; k < tree.numLevels(); ++k) {
      auto [first, end] = range(from, k);
      steps += end - first;
    }
  bins = int32_t(std::clamp<int64_t>(30000000 / steps, 64, 4096));
}

/// The price at which the blocks' best options keep what there is room for.
void Combiner::findPrice() {
  auto keptAt = [&](double candidate) {
    double sum = 0;
    for (size_t k = 0; k < options.size(); ++k) {
      const BlockOption *best = nullptr;
      for (const BlockOption &option : options[k])
        if (!best || option.extra + candidate * double(option.kept) <
                         best->extra + candidate * double(best->kept))
          best = &option;
      sum += double(best->kept) * chain.kinds[k].members;
    }
    return sum;
  };
  double room = double(budget - base), low = 0,
         high = chain.problem.baseCost / std::max(1.0, room) * 64;
  for (int i = 0; i < 60; ++i) {
    price = (low + high) / 2;
    (keptAt(price) > room ? low : high) = price;
  }
}

/// Goes on from a boundary by every stretch that begins there.
void Combiner::step(int32_t from) {
  double best = infinity;
  for (State &state : states[from]) {
    if (state.cost >= best) {
      state.cost = infinity; // More bytes, no less cost.
      continue;
    }
    best = state.cost;
  }
  int64_t room = budget - base;
  if (states[from].empty())
    return;
  for (int32_t k = 0; k < tree.numLevels(); ++k) {
    auto [first, past] = range(from, k);
    if (first == past)
      continue;
    int32_t index = from >> k, end = (index + 1) << k;
    const Stretch &stretch = tree.at(k, index);
    int64_t rest = tree.besideOf(k, index);
    if (states[end].empty())
      states[end].resize(bins);
    for (int32_t b = 0; b < bins && b < int32_t(states[from].size()); ++b) {
      const State &state = states[from][b];
      if (state.cost == infinity)
        continue;
      for (int32_t c = first; c < past; ++c) {
        const BlockOption &option = stretch.choices[c].cost;
        if (state.bytes + option.forwardTop > room ||
            state.bytes + option.backTop + rest > room)
          continue;
        State next{state.bytes + option.kept, state.cost + option.extra, k, c,
                   b};
        size_t bin = size_t(double(next.bytes) / double(room + 1) * bins);
        State &known = states[end][std::min(bin, size_t(bins) - 1)];
        double value = next.cost + price * double(next.bytes);
        double best = known.cost + price * double(known.bytes);
        if (value < best || (value == best && next.bytes < known.bytes))
          known = next;
      }
    }
    deadline.spend(int64_t(bins) * (past - first) / 16);
  }
}

void Combiner::expand(ChainPlan &plan, int32_t level, int32_t index,
                      int32_t choice, int32_t from, int32_t handedFrom) const {
  const Stretch &stretch = tree.at(level, index);
  const StretchChoice &chosen = stretch.choices[choice];
  if (level == 0) {
    plan.choices[index] = {chosen.right, from, handedFrom};
    return;
  }
  if (chosen.kind != StretchChoice::None) {
    int32_t first = index << level, end = (index + 1) << level;
    int32_t start = chain.blocks[end - 1].start;
    plan.again.push_back({first, end, handedFrom});
    expand(plan, level, index, chosen.left,
           chosen.kind == StretchChoice::Again ? start : from, start);
    return;
  }
  expand(plan, level - 1, 2 * index, chosen.left, from, handedFrom);
  expand(plan, level - 1, 2 * index + 1, chosen.right, from, handedFrom);
}

ChainPlan Combiner::trace() const {
  ChainPlan plan;
  plan.choices.resize(count);
  int32_t best = 0;
  for (int32_t b = 1; b < bins; ++b)
    if (states[count][b].cost < states[count][best].cost)
      best = b;
  plan.extra = states[count][best].cost;
  for (int32_t end = count, bin = best; end > 0;) {
    const State &state = states[end][bin];
    int32_t first = end - (1 << state.level);
    expand(plan, state.level, first >> state.level, state.choice, 0, 0);
    int64_t before = states[first][state.from].bytes;
    const BlockOption &option =
        tree.at(state.level, first >> state.level).choices[state.choice].cost;
    plan.top = std::max({plan.top, base + before + option.forwardTop,
                         base + before + option.backTop +
                             tree.besideOf(state.level, first >> state.level)});
    bin = state.from;
    end = first;
  }
  return plan;
}

std::optional<ChainPlan> Combiner::run() {
  chooseBins();
  findPrice();
  states.resize(count + 1);
  states[0].resize(bins);
  states[0][0].cost = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (deadline.passed())
      return std::nullopt;
    step(i);
  }
  if (states[count].empty())
    return std::nullopt;
  for (const State &state : states[count])
    if (state.cost < infinity)
      return trace();
  return std::nullopt;
}

} // namespace

std::optional<ChainPlan> ckopt::planner::combineBlocks(
    const BlockChain &chain,
    const std::vector<std::vector<BlockOption>> &options, int64_t base,
    int64_t budget, Deadline &deadline) {
  if (base > budget)
    return std::nullopt;
  return Combiner(chain, options, base, budget, deadline).run();
}
