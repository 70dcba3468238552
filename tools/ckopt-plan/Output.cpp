//===- Output.cpp - what ckopt-plan prints and writes ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Output.h"

#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace ckopt;
using namespace ckopt::planner;
using llvm::StringRef;

llvm::Error ckopt::writeOutput(StringRef path, StringRef text) {
  if (path != "-")
    return writeFileAtomically(path, text);
  llvm::outs() << text;
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return llvm::Error::success();
  std::string why = llvm::outs().error().message();
  llvm::outs().clear_error();
  return ioError("cannot write to standard output: " + why);
}

void ckopt::printAlive(llvm::raw_ostream &os, const Result &result) {
  if (result.aliveAtPeak.empty())
    return;
  os << "alive at the peak:\n";
  size_t shown = 0;
  int64_t rest = 0;
  for (const PeakEntry &entry : result.aliveAtPeak) {
    if (shown++ >= 12) {
      rest += entry.bytes;
      continue;
    }
    os << "  " << llvm::right_justify(formatBytes(entry.bytes), 10) << "  "
       << entry.name << "\n";
  }
  if (rest > 0)
    os << "  " << llvm::right_justify(formatBytes(rest), 10) << "  "
       << shown - 12 << " more\n";
}

/// Describes how far the arena is from the least one for its steps.
static std::string describeProof(const Plan &plan) {
  switch (plan.packing.proof(plan.arena)) {
  case PackProof::Load:
    return " (no less for these steps)";
  case PackProof::Search:
    return " (no less for these steps, by search)";
  case PackProof::None:
    break;
  }
  return plan.packing.lowerBound == 0
             ? ""
             : " (these steps need at least " +
                   formatBytes(plan.packing.lowerBound) + ")";
}

/// Prints the figures of a plan, without its name and budget.
static void printPlanLines(llvm::raw_ostream &os, const Graph &graph,
                           const Result &result) {
  const Plan &plan = result.plan;
  double base = baseCost(graph);
  // Sums in another order may come out a rounding below what runs anyway.
  auto percent = [&](double cost) {
    double more = base > 0 ? std::max(0.0, cost / base - 1) : 0;
    return llvm::format("%.3f %%", 100 * more);
  };
  // Plan files of other tools may state no bound; every bound is above 0 if
  // anything has a cost.
  auto bounds = [&]() -> std::string {
    if (base > 0 && plan.lowerBound <= 0 && plan.orderLowerBound <= 0)
      return "no bound stated";
    std::string text;
    llvm::raw_string_ostream line(text);
    if (base <= 0 || plan.lowerBound > 0)
      line << "proven: at least " << percent(plan.lowerBound);
    if (base <= 0 || plan.orderLowerBound > 0)
      line << (text.empty() ? "proven: in program order "
                            : "; in program order ")
           << percent(plan.orderLowerBound);
    return text;
  };
  auto gain = [&]() -> std::string {
    if (plan.lowerBound <= 0 || plan.cost <= plan.lowerBound * (1 + 1e-9))
      return "";
    return "; more search could gain at most " +
           formatPercent(plan.cost / plan.lowerBound - 1, 3);
  };
  os << "peak            "
     << formatBytesExact(planPeak(graph, plan, /*aligned=*/true)) << "\n";
  if (!plan.offsets.empty())
    os << "arena           " << formatBytesExact(plan.arena)
       << describeProof(plan) << "\n";
  os << "recomputed      " << plan.steps.size() - graph.nodes.size()
     << " steps, " << percent(plan.cost) << " more cost (" << bounds() << ")"
     << gain() << "\n"
     << "strategy        " << result.strategy << ", " << statusName(plan.status)
     << "\n";
  BlockCounts blocks = countBlocks(graph);
  if (blocks.copies > 0)
    os << "blocks          " << blocks.copies << " are copies of "
       << blocks.kinds << "\n";
}

void ckopt::printSummary(llvm::raw_ostream &os, const Graph &graph,
                         const Result &result, const ReportOptions &options,
                         int64_t baseline) {
  const Plan &plan = result.plan;
  os << "graph           " << graph.name << ", " << graph.nodes.size()
     << " nodes, " << graph.values.size() << " values\n";
  if (!graph.costModel.empty())
    os << "costs           " << graph.costModel << "\n";
  os << "program order   " << formatBytesExact(baseline) << "\n";
  if (options.budget > 0)
    os << "budget          " << formatBytesExact(options.budget) << "\n";
  if (result.hasPlan())
    printPlanLines(os, graph, result);
  if (plan.minimumBudget > 0)
    os << "smallest found  " << formatBytesExact(plan.minimumBudget) << "\n";
  os << "proven minimum  "
     << (plan.provenMinimum > 0 ? formatBytesExact(plan.provenMinimum)
                                : std::string("none stated"));
  std::string words = plan.scope.words();
  std::string note = words.empty() ? "" : "no plan" + words + " needs less";
  if (plan.minimumBudget > plan.provenMinimum)
    note = formatPercent(1 - double(plan.provenMinimum) /
                                 double(plan.minimumBudget)) +
           " below the smallest found" + (note.empty() ? "" : "; " + note);
  if (plan.provenMinimum > 0 && !note.empty())
    os << " (" << note << ")";
  os << "\n";
  if (*boundsNote())
    os << "bounds          " << boundsNote() << "\n";
  if (options.planSeconds >= 0)
    os << "seconds         " << llvm::format("%.2f", options.planSeconds)
       << "\n";
  if (result.hasPlan() && result.cut)
    os << "note            " << result.message << "\n";
}

llvm::Error ckopt::writeReports(const CommandLine &line, const Graph &graph,
                                const Result &result,
                                const ReportOptions &options) {
  if (!line.report.empty()) {
    // Equal requests must give equal bytes.
    ReportOptions stated = options;
    stated.planSeconds = -1;
    if (llvm::Error error =
            writeOutput(line.report, printReport(graph, result, stated)))
      return error;
  }
  if (line.trace.empty() && line.svg.empty())
    return llvm::Error::success();
  Timeline timeline = planTimeline(graph, result, options);
  if (!line.trace.empty())
    if (llvm::Error error = writeOutput(line.trace, memoryTrace(timeline)))
      return error;
  if (!line.svg.empty())
    if (llvm::Error error = writeOutput(line.svg, timelineSvg(timeline)))
      return error;
  return llvm::Error::success();
}
