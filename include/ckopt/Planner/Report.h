//===- Report.h - facts about a plan, for people and scripts ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The facts about a plan: which values it keeps, which it makes again, and why;
// the values in memory at the peak; the memory of the step before and after.
// Facts are computed here once, so that JSON, pictures and text agree.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PLANNER_REPORT_H
#define CKOPT_PLANNER_REPORT_H

#include "ckopt/Planner/Labels.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Support/Timeline.h"

namespace llvm::json {
class OStream;
}

namespace ckopt::planner {

/// How a plan treats a value.
enum class Fate : uint8_t {
  Resident, ///< an input or persistent value, resident before the first step
  Passing,  ///< read right after it is made, so dropping it frees nothing
  Kept,     ///< waits in memory for a later reader
  Again,    ///< dropped and made again for a later reader
};
/// Returns "resident", "passing", "kept" or "recomputed".
const char *fateName(Fate fate);

struct ValueReport {
  ValueId value = -1;
  std::string name;
  int64_t bytes = 0; ///< aligned; views, which need no bytes, are not listed
  Fate fate = Fate::Passing;
  int32_t made = 0; ///< number of times that it is made
  /// Its first and last step in memory, and the numbers of steps in between in
  /// which it is resident, and in which it is not.
  int32_t firstStep = 0, lastStep = 0, resident = 0, gone = 0;
  /// Cost of its node's extra runs if it is made again, else of one run.
  double cost = 0;
  std::string reason;
};

/// A node that runs more than once.
struct NodeReport {
  NodeId node = -1;
  int32_t runs = 0;
  double extraCost = 0;
  std::string reason;
};

/// Repeated blocks of a training step in program order: those that the graph
/// names (Node::group), or sequences of nodes of equal shapes and wiring.
struct BlockCounts {
  int32_t kinds = 0;  ///< different blocks that have two or more copies
  int32_t copies = 0; ///< copies of these
};
/// Counts the blocks of a valid graph. O(graph log graph) in addition to
/// findRepeats().
BlockCounts countBlocks(const Graph &graph);

/// Totals of one sequence of steps.
struct PlanFigures {
  int64_t peak = 0; ///< load, aligned bytes
  double cost = 0;
  int32_t steps = 0, peakStep = 0;
  std::vector<PeakEntry> aliveAtPeak;
};

struct ReportOptions {
  int64_t budget = 0; ///< bytes; 0: none
  /// Seconds in a unit of cost; 0 if unknown.
  double secondsPerCost = 0;
  /// Time that planning took; negative: left out, so that equal plans give
  /// equal reports.
  double planSeconds = -1;
};

struct Report {
  PlanFigures before; ///< program order without recomputation
  PlanFigures after;  ///< empty if there is no plan
  std::vector<ValueReport> values;
  std::vector<NodeReport> nodes;
  BlockCounts blocks; ///< zero if there is no plan
};

/// Collects facts about a result; if `result.plan` has steps, it must be valid.
/// O(n log n) in the steps and their operands.
Report makeReport(const Graph &graph, const Result &result,
                  const ReportOptions &options);

/// Returns the load of a plan in bytes, with sizes as given or rounded up to
/// the alignment.
int64_t planPeak(const Graph &graph, const Plan &plan, bool aligned);

/// Writes the plan's members of ckopt-report/1 (docs/planner.md) into an object
/// that the caller has begun.
void writeReport(llvm::json::OStream &out, const Graph &graph,
                 const Result &result, const Report &report,
                 const ReportOptions &options);

/// Returns a complete ckopt-report/1 file.
std::string printReport(const Graph &graph, const Result &result,
                        const ReportOptions &options);

/// Returns memory by step, before and (if there is a plan) after, for
/// timelineSvg() and memoryTrace().
Timeline planTimeline(const Graph &graph, const Result &result,
                      const ReportOptions &options);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_REPORT_H
