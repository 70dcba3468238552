//===- ReportWriter.cpp - reports as JSON and timelines -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the facts of Report.cpp in the form of ckopt-report/1, and the memory
// by step and kind. Linear in the steps. Equal results give equal bytes unless
// the planning time is included.
//
//===----------------------------------------------------------------------===//
#include "Model/Problem.h"
#include "ckopt/Planner/Report.h"

#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/MemoryNeed.h"
#include "ckopt/Support/Report.h"

#include <algorithm>

using namespace ckopt;
using namespace ckopt::planner;
namespace json = llvm::json;

namespace {

void writeFigures(json::OStream &out, const Graph &graph, const char *key,
                  const PlanFigures &figures, const Plan *plan,
                  const std::vector<NodeId> *steps) {
  out.attributeObject(key, [&] {
    out.attribute("peak", figures.peak);
    if (plan && !plan->offsets.empty())
      out.attribute("arena", plan->arena);
    out.attribute("cost", jsonNumber(figures.cost));
    out.attribute("steps", figures.steps);
    out.attribute("peak_step", figures.peakStep);
    if (figures.peakStep < figures.steps) {
      NodeId node = steps ? (*steps)[figures.peakStep] : figures.peakStep;
      out.attribute("peak_node", graph.nodeFileId(node));
      out.attribute("peak_node_name", jsonString(Labels(graph).node(node)));
    }
    out.attributeArray("alive_at_peak", [&] {
      for (const PeakEntry &entry : figures.aliveAtPeak)
        out.object([&] {
          if (entry.value >= 0)
            out.attribute("value", graph.valueFileId(entry.value));
          out.attribute("name", jsonString(entry.name));
          out.attribute("bytes", entry.bytes);
        });
    });
  });
}

/// Returns cost / bound - 1, or null if the bound is 0.
json::Value gap(double cost, double bound) {
  return bound > 0 ? jsonNumber(cost / bound - 1) : json::Value(nullptr);
}

void writeBounds(json::OStream &out, const Result &result,
                 const PlanFigures &before) {
  const Plan &plan = result.plan;
  out.attributeObject("bounds", [&] {
    out.attribute("cost", jsonNumber(plan.lowerBound));
    if (plan.orderLowerBound > 0)
      out.attribute("cost_in_program_order", jsonNumber(plan.orderLowerBound));
    out.attribute("memory", plan.provenMinimum);
    if (plan.minimumBudget > 0)
      out.attribute("smallest_found", plan.minimumBudget);
    if (*boundsNote())
      out.attribute("note", boundsNote());
  });
  if (!result.hasPlan())
    return;
  out.attribute("extra_cost", before.cost > 0
                                  ? jsonNumber(plan.cost / before.cost - 1)
                                  : json::Value(0));
  out.attribute("gap", gap(plan.cost, plan.lowerBound));
  if (plan.orderLowerBound > 0)
    out.attribute("gap_in_program_order", gap(plan.cost, plan.orderLowerBound));
}

void writeEntries(json::OStream &out, const Graph &graph, const char *key,
                  const std::vector<PeakEntry> &entries) {
  out.attributeArray(key, [&] {
    for (const PeakEntry &entry : entries)
      out.object([&] {
        if (entry.value >= 0)
          out.attribute("value", graph.valueFileId(entry.value));
        out.attribute("name", jsonString(entry.name));
        out.attribute("bytes", entry.bytes);
      });
  });
}

/// Writes the values that rule out small budgets.
void writeNeed(json::OStream &out, const Graph &graph) {
  MemoryNeed need = memoryNeed(graph);
  if (need.node < 0)
    return;
  out.attributeObject("needed_at_once", [&] {
    out.attribute("node", graph.nodeFileId(need.node));
    out.attribute("name", jsonString(Labels(graph).node(need.node)));
    out.attribute("bytes", need.bytes);
    out.attribute("persistent_bytes", need.persistentBytes);
    writeEntries(out, graph, "values", need.values);
  });
}

void writeValue(json::OStream &out, const Graph &graph,
                const ValueReport &entry) {
  out.object([&] {
    out.attribute("value", graph.valueFileId(entry.value));
    out.attribute("name", jsonString(entry.name));
    out.attribute("bytes", entry.bytes);
    out.attribute("fate", fateName(entry.fate));
    out.attribute("made", entry.made);
    out.attribute("first_step", entry.firstStep);
    out.attribute("last_step", entry.lastStep);
    out.attribute("resident_steps", entry.resident);
    out.attribute("gone_steps", entry.gone);
    out.attribute("cost", jsonNumber(entry.cost));
    out.attribute("reason", jsonString(entry.reason));
  });
}

/// Sums bytes of one kind over the steps, as differences.
class Loads {
public:
  explicit Loads(size_t steps) : change(steps + 1) {}
  void add(int64_t first, int64_t last, MemoryKind kind, int64_t bytes) {
    int64_t end = int64_t(change.size()) - 1;
    if (first > last || first >= end)
      return;
    change[first][size_t(kind)] += bytes;
    change[std::min(last + 1, end)][size_t(kind)] -= bytes;
  }
  void fill(std::vector<TimelineStep> &steps) const {
    std::array<int64_t, numMemoryKinds> now{};
    for (size_t t = 0; t < steps.size(); ++t) {
      for (size_t kind = 0; kind < numMemoryKinds; ++kind)
        now[kind] += change[t][kind];
      steps[t].bytes = now;
    }
  }

private:
  std::vector<std::array<int64_t, numMemoryKinds>> change;
};

TimelinePanel panel(const Problem &problem, const std::vector<NodeId> &steps,
                    double secondsPerCost) {
  const Graph &graph = problem.graph;
  Simulation simulation = simulate(problem, steps, true);
  TimelinePanel result;
  std::vector<char> ran(graph.nodes.size(), 0);
  Labels labels(graph);
  for (NodeId n : steps) {
    TimelineStep &step = result.steps.emplace_back();
    step.name = labels.node(n);
    step.seconds = graph.nodes[n].cost * secondsPerCost;
    step.recomputed = ran[n];
    step.phase = graph.nodes[n].group;
    ran[n] = 1;
  }
  Loads loads(steps.size());
  for (const Copy &copy : simulation.copies) {
    ValueKind kind = graph.values[copy.value].kind;
    MemoryKind shown = kind == ValueKind::Persistent ? MemoryKind::Parameters
                       : kind == ValueKind::Input    ? MemoryKind::Data
                       : result.steps[copy.made].recomputed
                           ? MemoryKind::Recomputed
                           : MemoryKind::Activations;
    int32_t from = copy.taken >= 0 ? copy.made + 1 : std::max(copy.made, 0);
    if (copy.base < 0)
      loads.add(from, copy.last, shown, problem.bytes[copy.value]);
  }
  for (size_t t = 0; t < steps.size(); ++t)
    loads.add(int64_t(t), int64_t(t), MemoryKind::Workspace,
              problem.workspace[steps[t]]);
  loads.fill(result.steps);
  return result;
}

} // namespace

void planner::writeReport(json::OStream &out, const Graph &graph,
                          const Result &result, const Report &report,
                          const ReportOptions &options) {
  const Plan &plan = result.plan;
  out.attribute("graph", jsonString(graph.name));
  out.attributeObject("costs", [&] {
    out.attribute("source", graph.costModel.empty()
                                ? json::Value("as given in the graph")
                                : jsonString(graph.costModel));
    out.attribute("seconds_per_unit", options.secondsPerCost > 0
                                          ? jsonNumber(options.secondsPerCost)
                                          : json::Value(nullptr));
  });
  out.attribute("budget", options.budget > 0 ? json::Value(options.budget)
                                             : json::Value(nullptr));
  out.attribute("status", statusName(plan.status));
  writeScope(out, plan.scope);
  if (!result.strategy.empty())
    out.attribute("strategy", jsonString(result.strategy));
  if (!result.message.empty())
    out.attribute("message", jsonString(result.message));
  if (options.planSeconds >= 0)
    out.attribute("plan_seconds", jsonNumber(options.planSeconds));
  writeBounds(out, result, report.before);
  writeFigures(out, graph, "before", report.before, nullptr, nullptr);
  if (!result.hasPlan()) {
    // List the values at the peak of the smallest plan found.
    writeEntries(out, graph, "alive_at_peak_of_smallest", result.aliveAtPeak);
    writeNeed(out, graph);
    return;
  }
  writeFigures(out, graph, "after", report.after, &plan, &plan.steps);
  out.attributeObject("blocks", [&] {
    out.attribute("kinds", report.blocks.kinds);
    out.attribute("members", report.blocks.copies);
  });
  out.attributeArray("values", [&] {
    for (const ValueReport &entry : report.values)
      writeValue(out, graph, entry);
  });
  Labels labels(graph);
  out.attributeArray("recomputed", [&] {
    for (const NodeReport &entry : report.nodes)
      out.object([&] {
        out.attribute("node", graph.nodeFileId(entry.node));
        out.attribute("name", jsonString(labels.node(entry.node)));
        out.attribute("runs", entry.runs);
        out.attribute("extra_cost", jsonNumber(entry.extraCost));
        out.attribute("reason", jsonString(entry.reason));
      });
  });
}

std::string planner::printReport(const Graph &graph, const Result &result,
                                 const ReportOptions &options) {
  Report report = makeReport(graph, result, options);
  return jsonText([&](json::OStream &out) {
    out.object([&] {
      out.attribute("format", "ckopt-report/1");
      writeReport(out, graph, result, report, options);
    });
  });
}

Timeline planner::planTimeline(const Graph &graph, const Result &result,
                               const ReportOptions &options) {
  Timeline timeline;
  timeline.title = graph.name.empty() ? "graph" : graph.name;
  timeline.subtitle =
      options.budget > 0 ? "budget " + std::to_string(options.budget) + " bytes"
                         : "no budget";
  if (!graph.costModel.empty())
    timeline.subtitle += ", costs: " + graph.costModel;
  double scale = options.secondsPerCost;
  if (scale <= 0) {
    scale = 1;
    timeline.costUnit = "cost";
  }
  std::vector<NodeId> program(graph.nodes.size());
  for (size_t i = 0; i < program.size(); ++i)
    program[i] = NodeId(i);
  timeline.panels.push_back(panel(Problem(graph), program, scale));
  timeline.panels.back().title = "before: program order, nothing recomputed";
  timeline.panels.back().budget = options.budget;
  if (!result.hasPlan())
    return timeline;
  timeline.panels.push_back(panel(Problem(graph), result.plan.steps, scale));
  timeline.panels.back().title = "after: the plan";
  timeline.panels.back().budget = options.budget;
  if (!result.plan.offsets.empty())
    timeline.panels.back().plannedPeak = result.plan.arena;
  return timeline;
}
