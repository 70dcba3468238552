//===- Figures.cpp - the figures of a function's plan ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes a plan's figures to an attribute and reads them back, from one list of
// fields. Complexity: O(fields), plus the planner's linear lower bound if there
// is no plan.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Remat/Figures.h"
#include "Planning.h"
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Planner/MemoryNeed.h"
#include "ckopt/Planner/Report.h"
#include "ckopt/Support/Report.h"
#include "mlir/IR/Builders.h"

#include <limits>

using namespace mlir;
using namespace ckopt;

/// The most tensors that attributes name.
static constexpr size_t mostValues = 64;

/// Calls `visit(name, field)` for every field that has one value.
template <typename Figures, typename Visit>
static void forEachField(Figures &f, Visit &&visit) {
  visit("status", f.status);
  visit("restricted_to", f.scope);
  visit("strategy", f.strategy);
  visit("cost_model", f.costModel);
  visit("message", f.message);
  visit("bounds_note", f.boundsNote);
  visit("budget", f.budget);
  visit("arena", f.arena);
  visit("full_arena", f.fullArena);
  visit("argument_bytes", f.argumentBytes);
  visit("load", f.load);
  visit("lowered", f.lowered);
  visit("memory_bound", f.memoryBound);
  visit("smallest_found", f.smallestFound);
  visit("seconds", f.seconds);
  visit("base_seconds", f.baseSeconds);
  visit("lower_bound", f.lowerBound);
  visit("communication", f.communication);
  visit("exposed", f.exposed);
  visit("kernel_bound", f.kernelBound);
  visit("steps", f.steps);
  visit("recomputed", f.recomputed);
  visit("uncounted", f.uncounted);
  visit("unchanged", f.unchanged);
  visit("policy", f.policy);
  visit("regions", f.regions);
  visit("auto_arena", f.autoArena);
  visit("auto_seconds", f.autoSeconds);
  visit("auto_seconds_in_arena", f.autoSecondsInArena);
  visit("need_node", f.needNode);
  visit("need_bytes", f.needBytes);
}

namespace {
/// Adds fields to a list of attributes, without those that are zero or empty.
struct FieldWriter {
  Builder builder;
  NamedAttrList list;
  void operator()(StringRef name, const std::string &text) {
    if (!text.empty())
      list.set(name, builder.getStringAttr(text));
  }
  void operator()(StringRef name, planner::Status status) {
    list.set(name, builder.getStringAttr(planner::statusName(status)));
  }
  void operator()(StringRef name, planner::Scope scope) {
    SmallVector<Attribute> names;
    for (const std::string &each : scope.names())
      names.push_back(builder.getStringAttr(each));
    if (!names.empty())
      list.set(name, builder.getArrayAttr(names));
  }
  void operator()(StringRef name, int64_t number) {
    // These fields are written even if they are zero.
    if (number || name == "recomputed" || name == "load" || name == "arena" ||
        name == "full_arena" || (name == "regions" && list.get("policy")))
      list.set(name, builder.getI64IntegerAttr(number));
  }
  void operator()(StringRef name, double number) {
    if (number != 0 || !(name.starts_with("auto") || name == "exposed" ||
                         name == "communication" || name == "kernel_bound"))
      list.set(name, builder.getF64FloatAttr(number));
  }
  void operator()(StringRef name, bool flag) {
    if (flag)
      list.set(name, builder.getUnitAttr());
  }
};

struct FieldReader {
  DictionaryAttr attr;
  void operator()(StringRef name, std::string &text) const {
    if (auto found = attr.getAs<StringAttr>(name))
      text = found.str();
  }
  void operator()(StringRef name, planner::Status &status) const {
    if (auto found = attr.getAs<StringAttr>(name))
      status = planner::parseStatus(found.getValue()).value_or(status);
  }
  void operator()(StringRef name, planner::Scope &scope) const {
    if (auto found = attr.getAs<ArrayAttr>(name))
      for (auto each : found.getAsRange<StringAttr>())
        scope.add(std::string_view(each.getValue()));
  }
  void operator()(StringRef name, int64_t &number) const {
    if (auto found = attr.getAs<IntegerAttr>(name))
      number = found.getInt();
  }
  void operator()(StringRef name, double &number) const {
    if (auto found = attr.getAs<FloatAttr>(name))
      number = found.getValueAsDouble();
  }
  void operator()(StringRef name, bool &flag) const {
    flag = attr.contains(name);
  }
};
} // namespace

DictionaryAttr ckopt::toAttribute(const RematFigures &figures,
                                  MLIRContext *context) {
  FieldWriter writer{Builder(context), {}};
  forEachField(figures, writer);
  auto add = [&](StringRef name,
                 const std::vector<RematFigures::Named> &values) {
    SmallVector<Attribute> items;
    for (const RematFigures::Named &value :
         ArrayRef(values).take_front(mostValues))
      items.push_back(writer.builder.getDictionaryAttr(
          {writer.builder.getNamedAttr(
               "name", writer.builder.getStringAttr(value.name)),
           writer.builder.getNamedAttr(
               "bytes", writer.builder.getI64IntegerAttr(value.bytes))}));
    if (!items.empty())
      writer.list.set(name, writer.builder.getArrayAttr(items));
  };
  add("alive", figures.alive);
  add("need", figures.need);
  return writer.list.getDictionary(context);
}

RematFigures ckopt::figuresFromAttribute(DictionaryAttr attr) {
  RematFigures figures;
  forEachField(figures, FieldReader{attr});
  auto read = [&](StringRef name, std::vector<RematFigures::Named> &values) {
    if (auto array = attr.getAs<ArrayAttr>(name))
      for (auto item : array.getAsRange<DictionaryAttr>()) {
        auto text = item.getAs<StringAttr>("name");
        auto bytes = item.getAs<IntegerAttr>("bytes");
        if (text && bytes)
          values.push_back({text.str(), bytes.getInt()});
      }
  };
  read("alive", figures.alive);
  read("need", figures.need);
  return figures;
}

/// Describes why no plan was found.
static void explainFailure(const RematPlan &plan, RematFigures &figures) {
  const planner::Graph &graph = plan.problem.graph;
  const planner::Result &result = plan.result;
  int64_t reserved = plan.fixedBytes - plan.problem.argumentBytes;
  figures.message = describeNoPlan(graph.name, plan);
  if (result.plan.minimumBudget > 0)
    figures.smallestFound = result.plan.minimumBudget + reserved;
  figures.memoryBound = result.plan.provenMinimum + reserved;
  for (const planner::PeakEntry &entry : result.aliveAtPeak)
    if (entry.value < 0 || graph.values[size_t(entry.value)].kind !=
                               planner::ValueKind::Persistent)
      figures.alive.push_back({entry.name, entry.bytes});
  planner::MemoryNeed need = planner::memoryNeed(graph);
  if (need.node < 0)
    return;
  figures.needNode = planner::Labels(graph).node(need.node);
  figures.needBytes = need.bytes + reserved;
  for (const planner::PeakEntry &entry : need.values)
    figures.need.push_back({entry.name, entry.bytes});
}

RematFigures ckopt::getFigures(const RematPlan &plan) {
  const planner::Plan &found = plan.result.plan;
  RematFigures figures;
  figures.function = plan.problem.graph.name;
  figures.status = found.status;
  figures.scope = found.scope;
  figures.strategy = plan.result.strategy;
  figures.boundsNote = planner::boundsNote();
  figures.costModel = plan.problem.costs.describe();
  if (plan.budgetBytes != std::numeric_limits<int64_t>::max())
    figures.budget = plan.budgetBytes;
  figures.fullArena = plan.fullArena;
  figures.argumentBytes = plan.fixedBytes;
  figures.baseSeconds = plan.baseCost;
  figures.lowerBound = found.lowerBound;
  figures.uncounted = int64_t(plan.problem.uncounted.size());
  const PolicyOutcome &policy = plan.policy;
  figures.policy = policy.given && !plan.unchanged;
  if (figures.policy)
    figures.regions = int64_t(policy.regions.size());
  if (figures.policy && policy.compared && policy.autoFits) {
    figures.autoArena = policy.autoArena;
    figures.autoSeconds = policy.autoCost;
    figures.autoSecondsInArena = policy.sameBytesCost;
  }
  if (!plan.result.hasPlan()) {
    explainFailure(plan, figures);
    return figures;
  }
  figures.memoryBound =
      found.provenMinimum + plan.fixedBytes - plan.problem.argumentBytes;
  figures.arena = plan.arena;
  figures.load = plan.load;
  figures.lowered = plan.lowered;
  figures.unchanged = plan.unchanged;
  figures.seconds = found.cost;
  figures.steps = int64_t(found.steps.size());
  figures.recomputed = plan.recomputedSteps();
  figures.kernelBound = plan.kernelBound;
  if (plan.time && plan.hidesMessages)
    figures.noteTime(*plan.time);
  else if (plan.time)
    figures.communication = figures.exposed = plan.time->messages;
  return figures;
}

void RematFigures::noteTime(const planner::StepTime &time) {
  communication = time.messages;
  exposed = time.exposed;
  seconds = time.seconds();
  lowerBound = std::min(kernelBound, seconds);
  if (seconds > lowerBound * (1 + 1e-6) && planner::isPlan(status))
    status = planner::Status::Feasible;
}

void ckopt::writeFigures(llvm::json::OStream &json, const RematFigures &f) {
  auto named = [&](StringRef name,
                   const std::vector<RematFigures::Named> &values) {
    json.attributeArray(name, [&] {
      for (const RematFigures::Named &value : values)
        json.object([&] {
          json.attribute("name", jsonString(value.name));
          json.attribute("bytes", value.bytes);
        });
    });
  };
  json.attribute("name", jsonString(f.function));
  json.attribute("status", planner::statusName(f.status));
  planner::writeScope(json, f.scope);
  json.attribute("budget_bytes", f.budget > 0 ? llvm::json::Value(f.budget)
                                              : llvm::json::Value(nullptr));
  json.attribute("full_arena_bytes", f.fullArena);
  json.attribute("argument_bytes", f.argumentBytes);
  json.attribute("memory_bound_bytes", f.memoryBound);
  json.attribute("base_seconds", jsonNumber(f.baseSeconds));
  json.attribute("cost_model", jsonString(f.costModel));
  if (!f.boundsNote.empty())
    json.attribute("bounds_note", f.boundsNote);
  if (!f.hasPlan()) {
    json.attribute("message", jsonString(f.message));
    json.attribute("smallest_found_bytes",
                   f.smallestFound > 0 ? llvm::json::Value(f.smallestFound)
                                       : llvm::json::Value(nullptr));
    named("alive_at_peak_of_smallest", f.alive);
    json.attributeObject("needed_at_once", [&] {
      json.attribute("node", jsonString(f.needNode));
      json.attribute("bytes", f.needBytes);
      json.attribute("proves_the_bound", f.needBytes >= f.memoryBound);
      named("values", f.need);
    });
    return;
  }
  json.attribute("planned_peak_bytes", f.arena);
  json.attribute("load_bytes", f.load);
  if (f.lowered > 0)
    json.attribute("lowered_bytes", f.lowered);
  json.attribute("steps", f.steps);
  json.attribute("recomputed_steps", f.recomputed);
  json.attribute("seconds", jsonNumber(f.seconds));
  json.attribute("lower_bound_seconds", jsonNumber(f.lowerBound));
  if (f.communication > 0) {
    json.attribute("kernel_seconds", jsonNumber(f.seconds - f.exposed));
    json.attribute("communication_seconds", jsonNumber(f.communication));
    json.attribute("exposed_seconds", jsonNumber(f.exposed));
  }
  json.attribute("strategy", jsonString(f.strategy));
}
