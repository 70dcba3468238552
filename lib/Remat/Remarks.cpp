//===- Remarks.cpp - what a plan does with each value ---------------------===//
//
// Problem: tell people which values a plan keeps and which it computes again,
// and why.
// Method: the simulation of the plan gives each copy's steps and the load at
// each step; a table of maxima over powers of two gives the load of a range.
// Steps count from 0 in the planned order. Kept values are analysis remarks,
// recomputed ones passed remarks.
// Complexity: O(steps log steps + copies).
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/Remarks.h"
#include "ckopt/Planner/Simulator.h"
#include "ckopt/Remat/Remat.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <mutex>

using namespace mlir;
using namespace ckopt;

namespace {

/// Largest element of any range, in constant time.
class RangeMaximum {
public:
  explicit RangeMaximum(std::vector<int64_t> values) {
    levels.push_back(std::move(values));
    for (size_t width = 1; 2 * width <= levels[0].size(); width *= 2) {
      const std::vector<int64_t> &last = levels.back();
      std::vector<int64_t> next(last.size() - width);
      for (size_t i = 0; i < next.size(); ++i)
        next[i] = std::max(last[i], last[i + width]);
      levels.push_back(std::move(next));
    }
  }
  /// Of [first, last]; 0 for an empty range.
  int64_t get(int64_t first, int64_t last) const {
    last = std::min<int64_t>(last, int64_t(levels[0].size()) - 1);
    if (first > last)
      return 0;
    unsigned level = llvm::Log2_64(uint64_t(last - first + 1));
    const std::vector<int64_t> &row = levels[level];
    return std::max(row[first], row[last + 1 - (int64_t(1) << level)]);
  }

private:
  std::vector<std::vector<int64_t>> levels;
};

/// What there is to say of one value.
struct Story {
  bool again = false;
  int64_t bytes = 0, first = 0, last = 0, runs = 1;
  double seconds = 0;
  std::string text, reason;
};

class RemarkWriter {
public:
  RemarkWriter(func::FuncOp function, const RematPlan &plan, bool diagnostics)
      : function(function), plan(plan), graph(plan.problem.graph),
        simulation(planner::simulate(graph, plan.result.plan.steps,
                                     /*aligned=*/true)),
        load(simulation.usage), diagnostics(diagnostics),
        reserved(plan.fixedBytes - plan.problem.argumentBytes) {}
  void run();

private:
  Story tell(const planner::Node &node, const planner::Value &value,
             ArrayRef<const planner::Copy *> copies) const;
  std::string whyKept(const planner::Node &node, const planner::Value &value,
                      const Story &story) const;
  std::string whyAgain(ArrayRef<const planner::Copy *> copies,
                       const Story &story) const;
  void emit(Value value, const std::string &name, const Story &story) const;

  func::FuncOp function;
  const RematPlan &plan;
  const planner::Graph &graph;
  planner::Simulation simulation;
  RangeMaximum load;
  bool diagnostics;
  int64_t reserved;
};

} // namespace

static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

std::string RemarkWriter::whyKept(const planner::Node &node,
                                  const planner::Value &value,
                                  const Story &story) const {
  if (value.kind == planner::ValueKind::Output)
    return "it is a result of the function";
  if (!node.recompute)
    return "its op runs once (it has side effects or updates a state)";
  if (plan.budgetBytes == unlimited)
    return "there is no budget";
  int64_t room =
      plan.budgetBytes - reserved - load.get(story.first, story.last);
  return "computing it again would cost " + formatSeconds(story.seconds) +
         "; with it the budget has " + formatBytes(std::max<int64_t>(room, 0)) +
         " left in these steps";
}

std::string RemarkWriter::whyAgain(ArrayRef<const planner::Copy *> copies,
                                   const Story &story) const {
  int64_t from = copies[0]->last + 1, to = copies[1]->made - 1, fullest = -1;
  for (size_t i = 0; i + 1 < copies.size(); ++i) {
    int64_t here = load.get(copies[i]->last + 1, copies[i + 1]->made - 1);
    if (here <= fullest)
      continue;
    fullest = here;
    from = copies[i]->last + 1;
    to = copies[i + 1]->made - 1;
  }
  std::string text = "held over steps " + std::to_string(from) + " to " +
                     std::to_string(to) + " it would need " +
                     formatBytes(fullest + reserved + story.bytes) + " there";
  if (fullest + reserved + story.bytes > plan.budgetBytes)
    return text + ", more than the budget of " + formatBytes(plan.budgetBytes);
  return text + "; others use that room to be computed again or placed";
}

Story RemarkWriter::tell(const planner::Node &node, const planner::Value &value,
                         ArrayRef<const planner::Copy *> copies) const {
  Story story;
  story.bytes = value.bytes;
  story.first = copies.front()->made;
  story.last = std::min<int64_t>(copies.back()->last,
                                 int64_t(plan.result.plan.steps.size()) - 1);
  story.runs = int64_t(copies.size());
  story.seconds = node.cost;
  story.again = copies.size() > 1;
  llvm::raw_string_ostream os(story.text);
  os << formatBytes(value.bytes);
  if (!story.again) {
    os << " from step " << story.first << " to step " << story.last;
    story.reason = whyKept(node, value, story);
    return story;
  }
  os << " made at steps ";
  llvm::interleaveComma(copies, os,
                        [&](const planner::Copy *copy) { os << copy->made; });
  os << " for " << formatSeconds(node.cost) << " each";
  story.reason = whyAgain(copies, story);
  return story;
}

void RemarkWriter::emit(Value value, const std::string &name,
                        const Story &story) const {
  Location loc = value.getLoc();
  if (diagnostics)
    emitRemark(loc) << (story.again ? "recomputed: " : "kept: ") << name << ", "
                    << story.text << ": " << story.reason;
  // Functions may be planned in parallel; the engine is the context's.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  auto opts = remark::RemarkOpts::name(story.again ? "Recomputed" : "Kept")
                  .category("remat")
                  .function(func::FuncOp(function).getSymName());
  remark::detail::InFlightRemark out =
      story.again ? remark::passed(loc, opts) : remark::analysis(loc, opts);
  if (!out)
    return;
  out << remark::metric("Value", name) << remark::metric("Bytes", story.bytes)
      << remark::metric("FirstStep", story.first)
      << remark::metric("LastStep", story.last)
      << remark::metric("Runs", story.runs)
      << remark::metric("Seconds", story.seconds)
      << remark::reason("{0}", story.reason);
}

void RemarkWriter::run() {
  std::vector<SmallVector<const planner::Copy *, 2>> copies(
      graph.values.size());
  for (const planner::Copy &copy : simulation.copies)
    copies[size_t(copy.value)].push_back(&copy);
  for (auto [node, op] : llvm::zip(graph.nodes, plan.problem.ops))
    for (Value result : op->getResults()) {
      planner::ValueId id = plan.problem.storage.lookup(result);
      // New states lie in their argument's bytes.
      if (!llvm::is_contained(node.outputs, id) || copies[size_t(id)].empty())
        continue;
      const planner::Value &value = graph.values[size_t(id)];
      Story story = tell(node, value, copies[size_t(id)]);
      if (value.bytes > 0 && (story.again || story.last > story.first + 1))
        emit(result, value.name, story);
    }
}

void ckopt::emitPlanRemarks(func::FuncOp function, const RematPlan &plan,
                            bool asDiagnostics) {
  if (!asDiagnostics && !function.getContext()->getRemarkEngine())
    return;
  RemarkWriter(function, plan, asDiagnostics).run();
}
