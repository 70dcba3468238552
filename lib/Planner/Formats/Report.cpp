//===- Report.cpp - what a plan does, and why -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: say for each value whether it is kept or made again, and give a
// reason that holds.
// Method: one pass over the steps finds which copy each step reads, and with it
// the waits: from one reading of a copy to the next, and the gaps: from the
// last reading of a copy to the next making of the value. The load at its
// highest within a wait or a gap (a sparse table answers in O(1)) says what
// keeping or dropping would have changed.
// Guarantee: reasons state loads and costs of this very plan; where no single
// number explains a choice, the text says so.
// Complexity: O(n log n) in the steps and their operands.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Report.h"
#include "Model/Order.h"
#include "Structure/Structure.h"

#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Report.h"

#include <algorithm>
#include <bit>

using namespace ckopt;
using namespace ckopt::planner;

const char *planner::fateName(Fate fate) {
  switch (fate) {
  case Fate::Resident:
    return "resident";
  case Fate::Passing:
    return "passing";
  case Fate::Kept:
    return "kept";
  case Fate::Again:
    return "recomputed";
  }
  return "";
}

namespace {

/// Answers queries for the maximum over any range.
class RangeMaximum {
public:
  explicit RangeMaximum(std::vector<int64_t> base) {
    levels.push_back(std::move(base));
    for (size_t width = 1; 2 * width <= levels[0].size(); width *= 2) {
      const std::vector<int64_t> &low = levels.back();
      std::vector<int64_t> next(low.size() - width);
      for (size_t i = 0; i < next.size(); ++i)
        next[i] = std::max(low[i], low[i + width]);
      levels.push_back(std::move(next));
    }
  }
  /// Returns the maximum over [first, last]; 0 if that is empty.
  int64_t operator()(int64_t first, int64_t last) const {
    if (first > last)
      return 0;
    size_t level = std::bit_width(size_t(last - first + 1)) - 1;
    return std::max(levels[level][first],
                    levels[level][last + 1 - (int64_t(1) << level)]);
  }

private:
  std::vector<std::vector<int64_t>> levels;
};

/// The steps inside a wait or a gap, which do not touch the value.
struct Span {
  int32_t first = 0, last = -1;
  int32_t steps() const { return std::max(0, last - first + 1); }
};

/// Facts about a value from the pass over the steps.
struct Trace {
  Span wait;            ///< the longest
  Span gap;             ///< the longest
  int32_t gone = 0;     ///< steps in all gaps
  bool rereads = false; ///< a step reads a copy other than the first
  bool forAgain = true; ///< all such steps are recomputations
  NodeId reader = -1;   ///< one of them
  int32_t lastTouch = -1;
  int32_t lastCopy = -1; ///< the copy touched last
};

class Reporter {
public:
  Reporter(const Graph &graph, const Result &result,
           const ReportOptions &options)
      : graph(graph), plan(result.plan), options(options), problem(graph),
        labels(graph), simulation(simulate(problem, plan.steps, true)),
        load(simulation.usage) {}
  void fill(Report &report);

private:
  void trace();
  void touch(ValueId value, int32_t copy, int32_t step);
  ValueReport describe(ValueId value);
  std::string whyKept(const ValueReport &entry, const Trace &t) const;
  std::string whyAgain(const ValueReport &entry, const Trace &t) const;
  NodeReport describeNode(NodeId node) const;
  std::string share(double cost) const {
    double base = problem.baseCost;
    return base > 0 ? formatPercent(cost / base, 3) + " of the step" : "";
  }

  const Graph &graph;
  const Plan &plan;
  const ReportOptions &options;
  const Problem problem;
  const Labels labels;
  const Simulation simulation;
  const RangeMaximum load;
  std::vector<int32_t> runs;         ///< by node
  std::vector<char> again;           ///< by step: not its node's first run
  std::vector<Trace> traces;         ///< by value
  std::vector<int32_t> made, latest; ///< by value: copies, the latest
  std::vector<int32_t> firstCopy;    ///< by value
  std::vector<Span> residency;       ///< by value: first to last step
  std::vector<int32_t> resident;     ///< by value: steps
  /// The highest cost per byte that the plan pays.
  double costPerByte = 0;
};

void Reporter::touch(ValueId value, int32_t copy, int32_t step) {
  Trace &t = traces[value];
  int32_t since = std::max(t.lastTouch, -1);
  Span between{since + 1, step - 1};
  if (t.lastCopy >= 0 && between.steps() > 0) {
    bool same = t.lastCopy == copy;
    Span &longest = same ? t.wait : t.gap;
    if (between.steps() > longest.steps())
      longest = between;
    if (!same)
      t.gone += between.steps();
  }
  t.lastTouch = step;
  t.lastCopy = copy;
}

void Reporter::trace() {
  int32_t end = int32_t(plan.steps.size());
  runs.assign(graph.nodes.size(), 0);
  again.assign(end, 0);
  traces.assign(graph.values.size(), {});
  made.assign(graph.values.size(), 0);
  latest.assign(graph.values.size(), -1);
  firstCopy.assign(graph.values.size(), -1);
  residency.assign(graph.values.size(), {INT32_MAX, -1});
  resident.assign(graph.values.size(), 0);
  for (size_t c = 0; c < simulation.copies.size(); ++c) {
    const Copy &copy = simulation.copies[c];
    int32_t from = std::max(copy.made, 0);
    int32_t last = std::min(copy.last, end - 1);
    Span &span = residency[copy.value];
    span = {std::min(span.first, from), std::max(span.last, last)};
    resident[copy.value] += std::max(0, last - from + 1);
    if (firstCopy[copy.value] < 0)
      firstCopy[copy.value] = int32_t(c);
  }
  size_t next = 0;
  auto makeUntil = [&](int32_t step) {
    for (; next < simulation.copies.size() &&
           simulation.copies[next].made <= step;
         ++next) {
      ValueId v = simulation.copies[next].value;
      latest[v] = int32_t(next);
      made[v] += simulation.copies[next].made >= 0;
      touch(v, int32_t(next), simulation.copies[next].made);
    }
  };
  makeUntil(-1);
  for (int32_t t = 0; t < end; ++t) {
    NodeId n = plan.steps[t];
    again[t] = runs[n]++ > 0;
    for (ValueId v : problem.reads[n]) {
      if (latest[v] < 0)
        continue;
      touch(v, latest[v], t);
      if (latest[v] == firstCopy[v])
        continue;
      Trace &found = traces[v];
      if (!found.rereads || (found.forAgain && !again[t]))
        found.reader = n;
      found.rereads = true;
      found.forAgain &= bool(again[t]);
    }
    makeUntil(t);
  }
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.endLive[v] && latest[v] >= 0) {
      touch(v, latest[v], end);
      traces[v].rereads |= latest[v] != firstCopy[v];
      traces[v].forAgain &= latest[v] == firstCopy[v];
    }
}

std::string Reporter::whyKept(const ValueReport &entry, const Trace &t) const {
  NodeId producer = problem.producer[entry.value];
  if (!problem.recompute[producer])
    return "its node runs once";
  if (options.budget <= 0)
    return "no budget asks for room";
  int64_t most = load(t.wait.first, t.wait.last);
  // The load counts whole units of alignment; a budget may end inside of one,
  // and then the arena may, too.
  int64_t shown = most <= alignTo(options.budget, graph.alignment)
                      ? std::min(most, options.budget)
                      : most;
  std::string there = "while it waits the load is at most " +
                      formatBytes(shown) + " of " + formatBytes(options.budget);
  // If nothing is made again, nothing had to be dropped.
  bool nothingGone = costPerByte <= 0;
  if (nothingGone ||
      (most < simulation.peak && most + entry.bytes <= options.budget))
    return "there is room: " + there;
  if (most < simulation.peak)
    return "the peak lies elsewhere: " + there;
  std::string text = "making it again would cost " + share(entry.cost);
  double price = entry.cost / double(entry.bytes);
  if (costPerByte > 0 && price > costPerByte)
    return text + ", more for each byte than anything that is recomputed";
  return text + "; others are gone in its place";
}

std::string Reporter::whyAgain(const ValueReport &entry, const Trace &t) const {
  if (t.forAgain && t.reader >= 0)
    return "the recomputation of " + labels.node(t.reader) + " reads it";
  int64_t most = load(t.gap.first, t.gap.last);
  if (t.gap.steps() == 0)
    return "made along with another result of its node";
  std::string there = "gone for " + std::to_string(entry.gone) +
                      " steps, in which the load reaches " + formatBytes(most);
  if (options.budget <= 0)
    return there;
  if (most + entry.bytes > options.budget)
    return there + "; with it, it would pass the budget by " +
           formatBytes(most + entry.bytes - options.budget);
  return there + "; it alone would fit, but not with all that is gone then";
}

ValueReport Reporter::describe(ValueId v) {
  ValueReport entry;
  const Trace &t = traces[v];
  entry.value = v;
  entry.name = labels.value(v, problem.producer[v]);
  entry.bytes = problem.bytes[v];
  entry.made = made[v];
  entry.firstStep = residency[v].first;
  entry.lastStep = residency[v].last;
  entry.resident = resident[v];
  entry.gone = t.gone;
  NodeId producer = problem.producer[v];
  if (producer < 0) {
    entry.fate = Fate::Resident;
    entry.reason = graph.values[v].kind == ValueKind::Input
                       ? "there from the start, until its last reader"
                       : "there from the start to the end";
    return entry;
  }
  double once = problem.cost[producer];
  entry.cost = t.rereads ? once * (runs[producer] - 1) : once;
  if (t.rereads) {
    entry.fate = Fate::Again;
    entry.reason = whyAgain(entry, t);
  } else if (t.wait.steps() > 0) {
    entry.fate = Fate::Kept;
    entry.reason = whyKept(entry, t);
  } else {
    entry.reason = made[v] > 1 ? "made along with another result of its node"
                               : "its readers follow at once";
  }
  return entry;
}

NodeReport Reporter::describeNode(NodeId n) const {
  NodeReport entry;
  entry.node = n;
  entry.runs = runs[n];
  entry.extraCost = problem.cost[n] * (runs[n] - 1);
  std::string values;
  int64_t bytes = 0;
  int named = 0;
  for (ValueId v : problem.outputs[n])
    if (traces[v].rereads) {
      bytes += problem.bytes[v];
      if (named++ < 3)
        values += (values.empty() ? "" : ", ") + labels.value(v, n);
    }
  entry.reason = values.empty()
                     ? "nothing reads what it makes again"
                     : "frees " + formatBytes(bytes) + " of " + values +
                           (named > 3 ? ", ..." : "") + " in between";
  return entry;
}

void Reporter::fill(Report &report) {
  trace();
  for (ValueId v = 0; v < problem.numValues; ++v) {
    NodeId producer = problem.producer[v];
    if (producer >= 0 && traces[v].rereads && problem.bytes[v] > 0)
      costPerByte = std::max(costPerByte,
                             problem.cost[producer] / double(problem.bytes[v]));
  }
  for (ValueId v = 0; v < problem.numValues; ++v)
    if (problem.bytes[v] > 0 && residency[v].last >= 0)
      report.values.push_back(describe(v));
  for (NodeId n = 0; n < problem.numNodes; ++n)
    if (runs[n] > 1)
      report.nodes.push_back(describeNode(n));
}

PlanFigures figures(const Graph &graph, const std::vector<NodeId> &steps) {
  Simulation simulation = simulate(graph, steps, true);
  PlanFigures result;
  result.peak = simulation.peak;
  result.cost = simulation.cost;
  result.steps = int32_t(steps.size());
  result.peakStep = simulation.peakStep;
  result.aliveAtPeak = aliveAt(graph, steps, simulation, simulation.peakStep);
  return result;
}

} // namespace

int64_t planner::planPeak(const Graph &graph, const Plan &plan, bool aligned) {
  return simulate(graph, plan.steps, aligned).peak;
}

BlockCounts planner::countBlocks(const Graph &graph) {
  BlockCounts counts;
  Problem problem(graph);
  std::vector<NodeId> order = programOrder(problem);
  int32_t turn = simulate(problem, order, true).peakStep;
  for (const auto &group : findRepeatedBlocks(problem, order, turn)) {
    ++counts.kinds;
    counts.copies += int32_t(group.size());
  }
  return counts;
}

Report planner::makeReport(const Graph &graph, const Result &result,
                           const ReportOptions &options) {
  Report report;
  std::vector<NodeId> program(graph.nodes.size());
  for (size_t i = 0; i < program.size(); ++i)
    program[i] = NodeId(i);
  report.before = figures(graph, program);
  if (!result.hasPlan())
    return report;
  report.after = figures(graph, result.plan.steps);
  report.blocks = countBlocks(graph);
  Reporter(graph, result, options).fill(report);
  return report;
}
