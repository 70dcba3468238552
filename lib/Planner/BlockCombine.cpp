//===- BlockCombine.cpp - options of blocks put together ------------------===//
//
// Problem: a chain of blocks, each with options (bytes kept for the backward
// part, extra cost, loads on the way); choose so that the load stays within a
// budget at the least cost. While the backward part is at a block, exactly what
// the blocks before it keep is resident beside the block itself, so a plan is a
// walk along the chain whose state is the sum of bytes kept so far: dynamic
// programming over (block, bytes), bytes exact but one state a bin. Beyond one
// level (as revolve: Griewank 1992; rotor: Beaumont et al. 2019): a stretch of
// blocks may keep nothing but what it hands on, and run forwards once more when
// the backward part comes to it, then with any options, stretches in it
// included. Stretches are the nodes of a binary tree over the chain; a node's
// options are made from its children's and thinned out to those that none
// beats by more than a little, and nodes with equal children are one, so that a
// run of n equal blocks costs O(log n) nodes. Guarantee: exact for one level,
// but for bins. O(bins * options) a block and O(options^2) a node.
//
//===----------------------------------------------------------------------===//
#include "BlockCombine.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

using namespace ckopt::planner;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

/// An option of a tree node: two options of its children, or a block's own.
struct Choice {
  BlockOption cost;
  int32_t left, right; ///< into the children's; left = -1: a block's option
  /// None: the children's. Again: the stretch runs forwards again. Handed: what
  /// its blocks hand on is made again from what they keep.
  enum Kind : uint8_t { None, Again, Handed } kind = None;
};

struct Stretch {
  int32_t left = -1, right = -1; ///< nodes; -1: a block
  int64_t hands = 0;             ///< bytes that later blocks read
  int64_t bound = 0;             ///< bytes that stay whatever is chosen
  int64_t incoming = 0;
  int64_t passTop = 0; ///< load of a forward part that keeps nothing
  double pass = 0;     ///< and its cost
  /// The least that its last block's results cost to make again.
  double leastRemake = 0;
  std::vector<Choice> choices;
  int32_t firstAgain = 0; ///< choices from here on run forwards again
};

class Combiner {
public:
  Combiner(const BlockChain &chain,
           const std::vector<std::vector<BlockOption>> &options, int64_t base,
           int64_t budget, Deadline &deadline)
      : chain(chain), options(options), base(base), budget(budget),
        deadline(deadline), count(int32_t(chain.blocks.size())) {}
  std::optional<ChainPlan> run();

private:
  struct State {
    int64_t bytes = 0;
    double cost = infinity;
    int32_t level = 0, choice = 0, from = 0; ///< the step that led here
  };
  void addBlocks();
  void addLevels();
  std::vector<std::vector<int64_t>> handedOn() const;
  int32_t join(int32_t left, int32_t right, int64_t hands);
  void addAgain(Stretch &stretch, const Stretch &last) const;
  void thin(std::vector<Choice> &choices, size_t most) const;
  void chooseBins();
  std::pair<int32_t, int32_t> range(int32_t from, int32_t k) const;
  void findPrice();
  void step(int32_t at);
  ChainPlan trace() const;
  void expand(ChainPlan &plan, int32_t level, int32_t index, int32_t choice,
              int32_t from, int32_t handedFrom) const;
  const Stretch &at(int32_t level, int32_t index) const {
    return stretches[levels[level][index]];
  }

  const BlockChain &chain;
  const std::vector<std::vector<BlockOption>> &options;
  int64_t base, budget;
  Deadline &deadline;
  int32_t count;
  std::vector<Stretch> stretches;
  /// levels[k][j]: the stretch of the blocks [j << k, (j + 1) << k).
  std::vector<std::vector<int32_t>> levels;
  /// By level and stretch: the most that is there beside blocks while the
  /// backward part is at it.
  std::vector<std::vector<int64_t>> beside;
  int32_t bins = 0;
  int32_t level = 0; ///< stretches of this level are the walk's steps
  double price = 0;  ///< of a byte kept, to compare states of a bin
  std::vector<std::vector<State>> states; ///< by boundary, by bin
};

void Combiner::addBlocks() {
  for (size_t k = 0; k < chain.kinds.size(); ++k) {
    const BlockKind &kind = chain.kinds[k];
    Stretch stretch;
    for (size_t v = 0; v < kind.leaves.size(); ++v)
      stretch.hands += kind.leaves[v] ? kind.graph.values[v].bytes : 0;
    stretch.bound =
        std::max<int64_t>(0, options[k].front().kept - stretch.hands);
    stretch.incoming = kind.incoming;
    stretch.passTop = options[k].front().forwardTop;
    stretch.pass = options[k].front().again;
    stretch.leastRemake = infinity;
    for (const BlockOption &option : options[k])
      stretch.leastRemake = std::min(stretch.leastRemake, option.remake);
    for (size_t i = 0; i < options[k].size(); ++i)
      stretch.choices.push_back({options[k][i], -1, int32_t(i), Choice::None});
    stretch.firstAgain = int32_t(stretch.choices.size());
    stretches.push_back(std::move(stretch));
  }
  levels.emplace_back();
  beside.push_back(chain.beside);
  for (const ChainBlock &block : chain.blocks)
    levels[0].push_back(block.kind);
}

/// By level and stretch: bytes made in it that later blocks read.
std::vector<std::vector<int64_t>> Combiner::handedOn() const {
  std::vector<std::vector<int64_t>> sums;
  for (int32_t length = count, level = 0; length > 0; length /= 2, ++level)
    sums.emplace_back(length, 0);
  for (ValueId v = 0; v < chain.problem.numValues; ++v) {
    const StorageSpan &span = chain.spans[v];
    if (span.made < 0 || span.made > chain.turn)
      continue;
    int32_t block = chain.blockAt(span.made);
    int32_t reader = chain.blockAt(span.lastBefore);
    if (span.firstAfter >= 0)
      reader = std::max(reader, chain.blockAt(span.firstAfter));
    for (size_t k = 0; k < sums.size(); ++k) {
      int32_t index = block >> k;
      if (index >= int32_t(sums[k].size()) || reader >> k <= index)
        break;
      sums[k][index] += chain.problem.bytes[v];
    }
  }
  return sums;
}

void Combiner::addLevels() {
  std::vector<std::vector<int64_t>> hands = handedOn();
  std::map<std::tuple<int32_t, int32_t, int64_t>, int32_t> known;
  for (size_t k = 1; k < hands.size(); ++k) {
    const std::vector<int32_t> below = levels.back();
    std::vector<int32_t> level;
    for (size_t j = 0; j < hands[k].size(); ++j) {
      int32_t left = below[2 * j], right = below[2 * j + 1];
      auto [it, fresh] =
          known.insert({{left, right, hands[k][j]}, int32_t(stretches.size())});
      if (fresh) {
        if (deadline.passed())
          return;
        join(left, right, hands[k][j]);
      }
      level.push_back(it->second);
    }
    levels.push_back(std::move(level));
    beside.emplace_back();
    for (size_t j = 0; j < hands[k].size(); ++j)
      beside[k].push_back(
          std::max(beside[k - 1][2 * j], beside[k - 1][2 * j + 1]));
  }
}

int32_t Combiner::join(int32_t left, int32_t right, int64_t hands) {
  const Stretch &a = stretches[left], &b = stretches[right];
  Stretch result;
  result.left = left;
  result.right = right;
  result.hands = hands;
  result.bound = a.bound + b.bound;
  result.incoming = b.incoming;
  result.passTop = std::max(a.passTop, a.hands + a.bound + b.passTop);
  result.pass = a.pass + b.pass;
  result.leastRemake = b.leastRemake;
  for (size_t i = 0; i < a.choices.size(); ++i)
    for (size_t j = 0; j < b.choices.size(); ++j) {
      const BlockOption &x = a.choices[i].cost, &y = b.choices[j].cost;
      BlockOption sum;
      sum.kept = x.kept + y.kept;
      sum.forwardTop = std::max(x.forwardTop, x.kept + y.forwardTop);
      sum.backTop = std::max(x.kept + y.backTop, x.backTop);
      sum.extra = x.extra + y.extra;
      sum.again = x.again + y.again;
      sum.againPart = x.again + y.againPart;
      sum.handed = x.handed + y.handed;
      sum.remake = x.remake + y.remake;
      if (base + std::max(sum.forwardTop, sum.backTop) <= budget)
        result.choices.push_back({sum, int32_t(i), int32_t(j), Choice::None});
    }
  deadline.spend(int64_t(a.choices.size() * b.choices.size()));
  thin(result.choices, 40);
  result.firstAgain = int32_t(result.choices.size());
  addAgain(result, b);
  stretches.push_back(std::move(result));
  return int32_t(stretches.size()) - 1;
}

/// The stretch keeps nothing at first and runs forwards again with each of its
/// choices; or it keeps what they keep but for what its blocks hand on to each
/// other, which is made again when the backward part comes to the stretch.
void Combiner::addAgain(Stretch &stretch, const Stretch &last) const {
  std::vector<Choice> again, handed;
  for (int32_t i = 0; i < stretch.firstAgain; ++i) {
    const BlockOption &inner = stretch.choices[i].cost;
    BlockOption option;
    option.kept = stretch.hands + stretch.bound;
    option.forwardTop = stretch.passTop;
    option.backTop = std::max({stretch.incoming + inner.forwardTop,
                               inner.backTop, stretch.incoming + option.kept});
    option.extra = inner.extra + inner.againPart;
    option.again = option.remake = stretch.pass;
    option.againPart = 0;
    option.handed = stretch.hands;
    if (base + option.backTop <= budget)
      again.push_back({option, i, 0, Choice::Again});
    option = inner;
    option.kept = inner.kept - inner.handed + stretch.hands;
    option.backTop =
        std::max(inner.backTop, stretch.incoming + inner.forwardTop);
    option.extra = inner.extra + inner.remake - last.leastRemake;
    option.handed = stretch.hands;
    if (option.kept < inner.kept && base + option.backTop <= budget)
      handed.push_back({option, i, 0, Choice::Handed});
  }
  thin(again, 12);
  thin(handed, 24);
  stretch.choices.insert(stretch.choices.end(), again.begin(), again.end());
  stretch.choices.insert(stretch.choices.end(), handed.begin(), handed.end());
}

/// Leaves those that none beats, then those that none beats by more than a
/// little, until `most` are left.
void Combiner::thin(std::vector<Choice> &choices, size_t most) const {
  auto top = [](const Choice &choice) {
    return std::max(choice.cost.forwardTop, choice.cost.backTop);
  };
  std::sort(
      choices.begin(), choices.end(), [&](const Choice &a, const Choice &b) {
        return std::tuple(a.cost.extra, a.cost.kept, top(a), a.left, a.right) <
               std::tuple(b.cost.extra, b.cost.kept, top(b), b.left, b.right);
      });
  if (choices.empty())
    return;
  // The least of each stays, whatever the slack.
  size_t leastKept = 0, leastTop = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].cost.kept < choices[leastKept].cost.kept)
      leastKept = i;
    if (top(choices[i]) < top(choices[leastTop]))
      leastTop = i;
  }
  std::vector<Choice> least{choices[leastKept]};
  if (leastTop != leastKept)
    least.push_back(choices[leastTop]);
  int64_t span = choices.front().cost.kept - least[0].cost.kept;
  for (int64_t slack = 0; choices.size() > most || slack == 0;
       slack = std::max<int64_t>(slack * 2, span / 512 + 1)) {
    std::vector<Choice> left;
    for (const Choice &choice : choices) {
      bool beaten = false;
      for (const Choice &other : left)
        beaten |= other.cost.kept <= choice.cost.kept + slack &&
                  top(other) <= top(choice) + slack;
      if (!beaten)
        left.push_back(choice);
    }
    deadline.spend(int64_t(choices.size() * left.size() / 16));
    choices = std::move(left);
    if (slack > span)
      break;
  }
  choices.resize(std::min(choices.size(), most), least[0]);
  choices.insert(choices.end(), least.begin(), least.end());
}

/// Choices of a stretch by which the walk goes on from a boundary: all of a
/// step; of longer ones those that are more than steps put together; shorter
/// ones where the chain ends.
std::pair<int32_t, int32_t> Combiner::range(int32_t from, int32_t k) const {
  int32_t index = from >> k;
  if (index << k != from || index >= int32_t(levels[k].size()))
    return {0, 0};
  const Stretch &stretch = at(k, index);
  int32_t all = int32_t(stretch.choices.size());
  bool inside = (from >> level) < int32_t(levels[level].size());
  if (k < level && inside)
    return {0, 0};
  return {k == 0 || k == level ? 0 : stretch.firstAgain, all};
}

void Combiner::chooseBins() {
  while ((count >> level) > 256 && level + 1 < int32_t(levels.size()))
    ++level;
  int64_t steps = 1;
  for (int32_t from = 0; from < count; ++from)
    for (int32_t k = 0; k < int32_t(levels.size()); ++k) {
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
  for (int32_t k = 0; k < int32_t(levels.size()); ++k) {
    auto [first, past] = range(from, k);
    if (first == past)
      continue;
    int32_t index = from >> k, end = (index + 1) << k;
    const Stretch &stretch = at(k, index);
    int64_t rest = beside[k][index];
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
  const Stretch &stretch = at(level, index);
  const Choice &chosen = stretch.choices[choice];
  if (level == 0) {
    plan.choices[index] = {chosen.right, from, handedFrom};
    return;
  }
  if (chosen.kind != Choice::None) {
    int32_t first = index << level, end = (index + 1) << level;
    int32_t start = chain.blocks[end - 1].start;
    plan.again.push_back({first, end, handedFrom});
    expand(plan, level, index, chosen.left,
           chosen.kind == Choice::Again ? start : from, start);
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
        at(state.level, first >> state.level).choices[state.choice].cost;
    plan.top = std::max({plan.top, base + before + option.forwardTop,
                         base + before + option.backTop +
                             beside[state.level][first >> state.level]});
    bin = state.from;
    end = first;
  }
  return plan;
}

std::optional<ChainPlan> Combiner::run() {
  if (base > budget)
    return std::nullopt;
  addBlocks();
  addLevels();
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
  return Combiner(chain, options, base, budget, deadline).run();
}
