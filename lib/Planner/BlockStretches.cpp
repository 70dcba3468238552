//===- BlockStretches.cpp - options of stretches of blocks ----------------===//
//
// Problem: beyond one level of checkpoints (as revolve: Griewank 1992; rotor:
// Beaumont et al. 2019) a stretch of blocks may keep nothing but what it hands
// on, and run forwards once more when the backward part comes to it, then with
// any options, stretches in it included. Method: stretches are the nodes of a
// binary tree over the chain; a node's options are made from its children's and
// thinned out to those that none beats by more than a little. Nodes with equal
// children are one, so that a run of n equal blocks costs O(log n) nodes.
// Guarantee: every option is put together from options of blocks, as far as
// blocks tell; which ones are thinned out is a heuristic. Complexity:
// O(options^2) a node.
//
//===----------------------------------------------------------------------===//
#include "BlockStretches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

using namespace ckopt::planner;

StretchTree::StretchTree(const BlockChain &chain,
                         const std::vector<std::vector<BlockOption>> &options,
                         int64_t base, int64_t budget, Deadline &deadline)
    : chain(chain), base(base), budget(budget), deadline(deadline) {
  addBlocks(options);
  addLevels();
}

void StretchTree::addBlocks(
    const std::vector<std::vector<BlockOption>> &options) {
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
    stretch.leastRemake = std::numeric_limits<double>::infinity();
    for (const BlockOption &option : options[k])
      stretch.leastRemake = std::min(stretch.leastRemake, option.remake);
    for (size_t i = 0; i < options[k].size(); ++i)
      stretch.choices.push_back(
          {options[k][i], -1, int32_t(i), StretchChoice::None});
    stretch.firstAgain = int32_t(stretch.choices.size());
    stretches.push_back(std::move(stretch));
  }
  levels.emplace_back();
  beside.push_back(chain.beside);
  for (const ChainBlock &block : chain.blocks)
    levels[0].push_back(block.kind);
}

/// By level and stretch: bytes made in it that later blocks read.
std::vector<std::vector<int64_t>> StretchTree::handedOn() const {
  std::vector<std::vector<int64_t>> sums;
  for (int32_t length = int32_t(chain.blocks.size()), level = 0; length > 0;
       length /= 2, ++level)
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

void StretchTree::addLevels() {
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

void StretchTree::join(int32_t left, int32_t right, int64_t hands) {
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
        result.choices.push_back(
            {sum, int32_t(i), int32_t(j), StretchChoice::None});
    }
  deadline.spend(int64_t(a.choices.size() * b.choices.size()));
  thin(result.choices, 40);
  result.firstAgain = int32_t(result.choices.size());
  addAgain(result, b);
  stretches.push_back(std::move(result));
}

/// The stretch keeps nothing at first and runs forwards again with each of its
/// choices; or it keeps what they keep but for what its blocks hand on to each
/// other, which is made again when the backward part comes to the stretch.
void StretchTree::addAgain(Stretch &stretch, const Stretch &last) const {
  std::vector<StretchChoice> again, handed;
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
      again.push_back({option, i, 0, StretchChoice::Again});
    option = inner;
    option.kept = inner.kept - inner.handed + stretch.hands;
    option.backTop =
        std::max(inner.backTop, stretch.incoming + inner.forwardTop);
    option.extra = inner.extra + inner.remake - last.leastRemake;
    option.handed = stretch.hands;
    if (option.kept < inner.kept && base + option.backTop <= budget)
      handed.push_back({option, i, 0, StretchChoice::Handed});
  }
  thin(again, 12);
  thin(handed, 24);
  stretch.choices.insert(stretch.choices.end(), again.begin(), again.end());
  stretch.choices.insert(stretch.choices.end(), handed.begin(), handed.end());
}

/// Leaves those that none beats, then those that none beats by more than a
/// little, until `most` are left.
void StretchTree::thin(std::vector<StretchChoice> &choices, size_t most) const {
  auto top = [](const StretchChoice &choice) {
    return std::max(choice.cost.forwardTop, choice.cost.backTop);
  };
  std::sort(choices.begin(), choices.end(),
            [&](const StretchChoice &a, const StretchChoice &b) {
              return std::tuple(a.cost.extra, a.cost.kept, top(a), a.left,
                                a.right) < std::tuple(b.cost.extra, b.cost.kept,
                                                      top(b), b.left, b.right);
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
  std::vector<StretchChoice> least{choices[leastKept]};
  if (leastTop != leastKept)
    least.push_back(choices[leastTop]);
  int64_t span = choices.front().cost.kept - least[0].cost.kept;
  for (int64_t slack = 0; choices.size() > most || slack == 0;
       slack = std::max<int64_t>(slack * 2, span / 512 + 1)) {
    std::vector<StretchChoice> left;
    for (const StretchChoice &choice : choices) {
      bool beaten = false;
      for (const StretchChoice &other : left)
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
