//===- Report.h - what a plan does, for people and scripts ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is kept and what is made again, and why; what lies in memory at the
// peak; the memory of the step before and after. Facts are computed here once;
// JSON, pictures and text print the same ones.
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

/// What a plan does with a value.
enum class Fate : uint8_t {
  Resident, ///< an input or persistent value: there before the first step
  Passing,  ///< read at once: there is no time to be gone for
  Kept,     ///< waits in memory for a later reader
  Again,    ///< let go of and made again for a later reader
};
/// "resident", "passing", "kept", "recomputed".
const char *fateName(Fate fate);

struct ValueReport {
  ValueId value = -1;
  std::string name;
  int64_t bytes = 0; ///< aligned; views, which need none, are not listed
  Fate fate = Fate::Passing;
  int32_t made = 0; ///< times that it is made
  /// Steps of its first and last residency, and for how many steps in between
  /// it is resident, and gone.
  int32_t firstStep = 0, lastStep = 0, resident = 0, gone = 0;
  /// Cost of its node's extra runs if it is made again, of one run otherwise.
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
/// names (Node::group), or runs of nodes of equal shapes and wiring.
struct BlockCounts {
  int32_t kinds = 0;  ///< different ones that have two or more members
  int32_t copies = 0; ///< members of these
};
/// For a valid graph. O(graph log graph) but for findRepeats().
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
  /// Seconds that a unit of cost stands for; 0: it is not known.
  double secondsPerCost = 0;
  /// Time that planning took; negative: not stated, so that equal plans give
  /// equal reports.
  double planSeconds = -1;
};

struct Report {
  PlanFigures before; ///< program order, nothing recomputed
  PlanFigures after;  ///< empty if there is no plan
  std::vector<ValueReport> values;
  std::vector<NodeReport> nodes;
  BlockCounts blocks; ///< zero if there is no plan
};

/// Facts about a result; `result.plan` must be valid where there is one.
/// O(n log n) in the steps and their operands.
Report makeReport(const Graph &graph, const Result &result,
                  const ReportOptions &options);

/// Load of a plan in bytes, of sizes as they are or rounded up to the
/// alignment.
int64_t planPeak(const Graph &graph, const Plan &plan, bool aligned);

/// Writes the members of ckopt-report/1 (docs/planner.md) that speak of the
/// plan into an object that the caller has begun.
void writeReport(llvm::json::OStream &out, const Graph &graph,
                 const Result &result, const Report &report,
                 const ReportOptions &options);

/// A whole ckopt-report/1 file.
std::string printReport(const Graph &graph, const Result &result,
                        const ReportOptions &options);

/// Memory by step, before and (where there is a plan) after, for
/// timelineSvg(), memoryTrace() and timelineChart().
Timeline planTimeline(const Graph &graph, const Result &result,
                      const ReportOptions &options);

} // namespace ckopt::planner

#endif // CKOPT_PLANNER_REPORT_H
