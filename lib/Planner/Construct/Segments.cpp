//===- Segments.cpp - checkpoints at narrow cuts --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: the cheapest plan that fits the budget, also far below the square
// root of what the graph saves. Method: sublinear-memory training (Chen et al.,
// 2016) on any graph, in levels as in treeverse (Griewank, 1992): the run up to
// the peak is cut into segments of about equal saved bytes, at places where few
// bytes are live. What is live at a cut is a checkpoint, all else that waits
// for a use beyond the peak is let go of; the backward part replays a segment
// when it first needs something of it and keeps what it replays for its own
// uses. With branching b, every b-th cut is of a higher level, and a cut's
// checkpoint is kept only once the backward part has come to the last but one
// higher cut, so that the bytes of checkpoints grow with the logarithm of the
// graph and the replays with the levels. Many segment sizes, cuts between the
// network's blocks where it repeats one (Blocks), and a few branchings are
// tried, and eviction on top where they do not fit; memory that is left is then
// filled (ReplayFill). Gives up: a size or branching that costs six times the
// graph (twelve where only checkpoints stay); all after some twenty sizes.
// Complexity: O(n log n) for each size and branching.
//
//===----------------------------------------------------------------------===//
#include "Construct/Construct.h"
#include "Construct/Executor.h"
#include "Structure/Structure.h"

#include <algorithm>
#include <limits>

using namespace ckopt::planner;

namespace {

/// Segments that a graph is cut into: less than two save nothing, 200 take
/// more checkpoints than what they save.
constexpr double leastParts = 1.5, mostParts = 200;
/// Number of cuts of one level for each cut of the next; 0: one level.
constexpr int branchings[] = {0, 2, 3, 5};
/// The backward part counts as having reached a segment once it has used one in
/// this many of the bytes that the segment saved.
constexpr double earlyDivisor = 20;
/// Levels replay more than other constructions do, and most of all where only
/// checkpoints stay.
constexpr double mostReplaysLevels = 6, mostReplaysLean = 12;

class Segmenter {
public:
  Segmenter(StrategyContext &context, const std::vector<NodeId> &order)
      : context(context), problem(context.problem), order(order),
        price(pricesByNode(context)) {
    survey();
  }
  void run(bool lean);
  bool found = false; ///< a plan within the budget

private:
  void survey();
  std::vector<int32_t> chooseCuts(int64_t segmentBytes) const;
  std::vector<int32_t> starts(const std::vector<int32_t> &cuts) const;
  ExecutorOptions plan(const std::vector<int32_t> &cuts,
                       const std::vector<int32_t> &start, int branching,
                       bool lean) const;
  bool attempt(ExecutorOptions options);
  void attemptCuts(const std::vector<int32_t> &cuts, bool lean);
  std::vector<std::vector<int32_t>> blockCuts() const;

  StrategyContext &context;
  const Problem &problem;
  const std::vector<NodeId> &order;
  std::vector<double> price;      ///< by node, of a byte
  int32_t turn = 0;               ///< position of the peak
  std::vector<StorageSpan> spans; ///< by storage
  /// Bytes live after a position, before the turn.
  std::vector<int64_t> cutBytes;
  std::vector<int64_t> savedBytes; ///< sums of bytes that live past the turn
};

void Segmenter::survey() {
  turn =
      std::min(simulate(problem, order, true).peakStep, problem.numNodes - 1);
  spans = storageSpans(problem, order, turn);
  cutBytes.assign(turn + 2, 0);
  savedBytes.assign(turn + 2, 0);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    const StorageSpan &span = spans[v];
    if (span.made < 0 || span.made > turn)
      continue;
    if (span.lastBefore > span.made) {
      cutBytes[span.made] += problem.bytes[v];
      cutBytes[span.lastBefore] -= problem.bytes[v];
    }
    if (span.firstAfter >= 0)
      savedBytes[span.made] += problem.bytes[v];
  }
  for (int32_t p = 1; p <= turn; ++p) {
    cutBytes[p] += cutBytes[p - 1];
    savedBytes[p] += savedBytes[p - 1];
  }
}

/// Chooses positions after which to cut: the narrowest in the second half of
/// each segment.
std::vector<int32_t> Segmenter::chooseCuts(int64_t segmentBytes) const {
  std::vector<int32_t> cuts;
  int64_t start = 0;
  int32_t narrowest = -1;
  for (int32_t p = 0; p < turn; ++p) {
    int64_t saved = savedBytes[p] - start;
    if (saved < segmentBytes / 2)
      continue;
    if (narrowest < 0 || cutBytes[p] <= cutBytes[narrowest])
      narrowest = p;
    if (saved >= segmentBytes) {
      cuts.push_back(narrowest);
      start = savedBytes[narrowest];
      p = std::max(p, narrowest);
      narrowest = -1;
    }
  }
  return cuts;
}

/// Returns, for each segment, the position at which the backward part reaches
/// it: where a twentieth of its saved bytes has been used, since a few may be
/// used early. Positions fall along the segments; the last segment is resident
/// from the start.
std::vector<int32_t> Segmenter::starts(const std::vector<int32_t> &cuts) const {
  std::vector<std::vector<std::pair<int32_t, int64_t>>> uses(cuts.size() + 1);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    const StorageSpan &span = spans[v];
    if (span.made < 0 || span.made > turn || span.firstAfter < 0)
      continue;
    size_t segment =
        std::lower_bound(cuts.begin(), cuts.end(), span.made) - cuts.begin();
    uses[segment].push_back({span.firstAfter, problem.bytes[v]});
  }
  std::vector<int32_t> start(cuts.size() + 1, 0);
  int32_t latest = turn;
  for (size_t i = cuts.size(); i-- > 0;) {
    std::sort(uses[i].begin(), uses[i].end());
    double sum = 0, seen = 0;
    for (auto [position, bytes] : uses[i])
      sum += double(bytes);
    for (auto [position, bytes] : uses[i])
      if ((seen += double(bytes)) * earlyDivisor >= sum) {
        latest = std::max(latest, position);
        break;
      }
    start[i] = latest;
  }
  return start;
}

/// With `branching` 0 there is one level. With `lean`, only checkpoints stay,
/// and results of replays are not kept for later uses.
ExecutorOptions Segmenter::plan(const std::vector<int32_t> &cuts,
                                const std::vector<int32_t> &start,
                                int branching, bool lean) const {
  int32_t count = int32_t(cuts.size());
  // Cut i lies between the segments i and i + 1; its checkpoint is kept from
  // the time at which the backward part reaches the next higher cut, or from
  // the start.
  std::vector<int32_t> from(count, 0);
  for (int32_t j = 0; branching > 0 && j < count; ++j) {
    int64_t stride = branching;
    while ((j + 1) % stride == 0 && stride <= count)
      stride *= branching;
    from[j] = start[std::min<int64_t>(count, (j / stride + 1) * stride - 1)];
  }
  ExecutorOptions options;
  options.deadline = &context.deadline;
  options.turn = turn;
  options.near = lean ? 2 : 1;
  options.keepFrom.assign(problem.numValues, 0);
  options.anchor.assign(problem.numValues, -1);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    const StorageSpan &span = spans[v];
    if (span.made < 0 || span.made > turn)
      continue;
    int32_t i = int32_t(std::lower_bound(cuts.begin(), cuts.end(), span.made) -
                        cuts.begin());
    int32_t &keep = options.keepFrom[v];
    keep = lean                   ? problem.numNodes
           : span.firstAfter >= 0 ? std::min(start[i], span.firstAfter)
                                  : start[i];
    if (i < count && cuts[i] < span.lastBefore)
      options.anchor[v] = start[std::max(i - 1, 0)];
    for (int32_t j = i; j < count && cuts[j] < span.lastBefore; ++j)
      keep = std::min(keep, from[j]);
  }
  return options;
}

bool Segmenter::attempt(ExecutorOptions options) {
  options.costLimit = (options.near > 1 ? mostReplaysLean : mostReplaysLevels) *
                      problem.baseCost;
  for (bool evict : {false, true}) {
    options.budget = evict ? context.budget : noBudget;
    if (auto steps = execute(problem, order, options))
      if (reportFilled(context, std::move(*steps), price))
        return true;
  }
  return false;
}

/// Returns cuts at the starts of repeated blocks: at every block, every second
/// one, every fourth one and so on.
std::vector<std::vector<int32_t>> Segmenter::blockCuts() const {
  std::vector<int32_t> place(problem.numNodes), begins;
  for (int32_t p = 0; p < problem.numNodes; ++p)
    place[order[p]] = p;
  for (const auto &group : findRepeatedBlocks(problem, order, turn))
    for (const std::vector<NodeId> &block : group)
      if (int32_t p = place[block.front()]; p > 0)
        begins.push_back(p - 1);
  std::sort(begins.begin(), begins.end());
  std::vector<std::vector<int32_t>> result;
  for (size_t stride = 1; stride * 2 <= begins.size(); stride *= 2) {
    std::vector<int32_t> cuts;
    for (size_t i = stride - 1; i < begins.size(); i += stride)
      cuts.push_back(begins[i]);
    result.push_back(std::move(cuts));
  }
  return result;
}

void Segmenter::attemptCuts(const std::vector<int32_t> &cuts, bool lean) {
  std::vector<int32_t> start = starts(cuts);
  for (int branching : branchings) {
    if (context.deadline.passed() || branching > int(cuts.size()) / 2)
      return;
    bool fits = attempt(plan(cuts, start, branching, lean));
    found |= fits;
    // More levels cost more where one is enough.
    if (fits && problem.numNodes > largeGraph)
      return;
  }
}

void Segmenter::run(bool lean) {
  if (turn < 2 || savedBytes[turn] == 0)
    return;
  std::vector<int32_t> last;
  // Sizes of segments fall by a factor, which is larger for larger graphs.
  double factor = problem.numNodes > hugeGraph    ? 2.5
                  : problem.numNodes > largeGraph ? 1.6
                                                  : 1.25;
  for (double parts = leastParts; parts < mostParts; parts *= factor) {
    std::vector<int32_t> cuts =
        chooseCuts(int64_t(double(savedBytes[turn]) / parts));
    if (cuts.empty() || cuts == last)
      continue;
    last = cuts;
    attemptCuts(cuts, lean);
  }
  if (problem.numNodes <= hugeGraph)
    for (const std::vector<int32_t> &cuts : blockCuts())
      attemptCuts(cuts, lean);
}

} // namespace

void ckopt::planner::runSegments(StrategyContext &context) {
  if (context.problem.numNodes == 0)
    return;
  size_t orders = std::min<size_t>(context.orders.size(), 2);
  for (size_t k = 0; k < orders; ++k) {
    Segmenter segmenter(context, context.orders[k]);
    segmenter.run(false);
    if (!segmenter.found)
      segmenter.run(true);
    if (segmenter.found && context.problem.numNodes > hugeGraph)
      return;
  }
}
