//===- Segments.cpp - checkpoints at narrow cuts --------------------------===//
//
// Sublinear-memory training (Chen et al., 2016) on any graph: the run up to the
// peak is cut into segments of about equal saved bytes, at places where few
// bytes are live; what is live at a cut is kept (a checkpoint), all else that
// waits for a use beyond the peak is let go of, and the backward part replays a
// segment when it first needs something of it, keeping what it replays for its
// own uses. Many segment sizes are tried, plain and with eviction on top
// (checkpoints of checkpoints, as revolve's, come out of the eviction).
// O(n log n) per segment size.
//
//===----------------------------------------------------------------------===//
#include "Executor.h"
#include "ReplayFill.h"
#include "Strategy.h"

#include <algorithm>
#include <limits>

using namespace ckopt::planner;

namespace {

class Segmenter {
public:
  Segmenter(StrategyContext &context, const std::vector<NodeId> &order)
      : context(context), problem(context.problem), order(order),
        price(pricesByNode(context)) {
    survey();
  }
  void run();

private:
  struct Span {
    int32_t made;       ///< position
    int32_t lastBefore; ///< last use up to the turn
    int32_t lastUse;
  };
  void survey();
  std::vector<int32_t> chooseCuts(int64_t segmentBytes) const;
  void attempt(const std::vector<int32_t> &cuts);

  StrategyContext &context;
  const Problem &problem;
  const std::vector<NodeId> &order;
  std::vector<double> price;       ///< by node, of a byte
  int32_t turn = 0;                ///< position of the peak
  std::vector<Span> spans;         ///< by storage
  std::vector<int64_t> cutBytes;   ///< live behind a position, before the turn
  std::vector<int64_t> savedBytes; ///< sums of bytes that wait past the turn
};

void Segmenter::survey() {
  turn =
      std::min(simulate(problem, order, true).peakStep, problem.numNodes - 1);
  spans.assign(problem.numValues, {-1, -1, -1});
  for (int32_t p = 0; p < problem.numNodes; ++p) {
    for (ValueId v : problem.outputs[order[p]])
      if (problem.root[v] == v)
        spans[v] = {p, p <= turn ? p : -1, p};
    for (ValueId v : problem.reads[order[p]]) {
      Span &span = spans[problem.root[v]];
      span.lastUse = p;
      if (p <= turn)
        span.lastBefore = p;
    }
  }
  cutBytes.assign(turn + 2, 0);
  savedBytes.assign(turn + 2, 0);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    const Span &span = spans[v];
    if (span.made < 0 || span.made > turn)
      continue;
    if (span.lastBefore > span.made) {
      cutBytes[span.made] += problem.bytes[v];
      cutBytes[span.lastBefore] -= problem.bytes[v];
    }
    if (span.lastUse > turn)
      savedBytes[span.made] += problem.bytes[v];
  }
  for (int32_t p = 1; p <= turn; ++p) {
    cutBytes[p] += cutBytes[p - 1];
    savedBytes[p] += savedBytes[p - 1];
  }
}

/// Positions behind which to cut: the narrowest in the second half of each
/// segment.
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

void Segmenter::attempt(const std::vector<int32_t> &cuts) {
  ExecutorOptions options;
  options.drop.assign(problem.numValues, 0);
  options.hold.assign(problem.numValues, 0);
  for (ValueId v = 0; v < problem.numValues; ++v) {
    const Span &span = spans[v];
    if (span.made < 0 || span.made > turn)
      continue;
    auto cut = std::lower_bound(cuts.begin(), cuts.end(), span.made);
    bool checkpoint = cut != cuts.end() && *cut < span.lastBefore;
    options.hold[v] = checkpoint;
    options.drop[v] = !checkpoint;
  }
  // What is needed again within a segment's length stays.
  int32_t longest = cuts.front();
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    longest = std::max(longest, cuts[i + 1] - cuts[i]);
  options.near = longest;
  options.costLimit = 4 * problem.baseCost;
  for (bool evict : {false, true}) {
    options.budget =
        evict ? context.budget : std::numeric_limits<int64_t>::max() / 4;
    if (auto steps = execute(problem, order, options))
      if (reportFilled(context, std::move(*steps), price))
        return;
  }
}

void Segmenter::run() {
  if (turn < 2 || savedBytes[turn] == 0)
    return;
  std::vector<int32_t> last;
  double tries = problem.numNodes > 4000 ? 1.6 : 1.25;
  for (double parts = 1.5; parts < 200; parts *= tries) {
    if (context.deadline.passed())
      return;
    std::vector<int32_t> cuts =
        chooseCuts(int64_t(double(savedBytes[turn]) / parts));
    if (cuts.empty() || cuts == last)
      continue;
    last = cuts;
    attempt(cuts);
  }
}

} // namespace

void ckopt::planner::runSegments(StrategyContext &context) {
  if (context.problem.numNodes == 0)
    return;
  size_t orders = std::min<size_t>(context.orders.size(), 2);
  for (size_t k = 0; k < orders; ++k)
    Segmenter(context, context.orders[k]).run();
}
