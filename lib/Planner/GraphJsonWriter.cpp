//===- GraphJsonWriter.cpp - writes ckopt-graph/1 and ckopt-plan/1 --------===//
//
// What GraphJson.cpp reads. The same graph or plan gives the same bytes.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/GraphJson.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt::planner;
namespace json = llvm::json;

namespace {

const char *kindName(ValueKind kind) {
  switch (kind) {
  case ValueKind::Temp:
    return "temp";
  case ValueKind::Input:
    return "input";
  case ValueKind::Persistent:
    return "persistent";
  case ValueKind::Output:
    return "output";
  }
  return "temp";
}

/// Names may hold any bytes.
std::string text(const std::string &name) {
  return json::isUTF8(name) ? name : json::fixUTF8(name);
}

void writeList(json::OStream &out, llvm::StringRef key,
               const std::vector<int32_t> &list) {
  out.attributeArray(key, [&] {
    for (int32_t item : list)
      out.value(item);
  });
}

void writeNode(json::OStream &out, const Node &node, size_t id) {
  out.object([&] {
    out.attribute("id", int64_t(id));
    out.attribute("name", text(node.name));
    out.attribute("cost", node.cost);
    writeList(out, "inputs", node.inputs);
    writeList(out, "outputs", node.outputs);
    out.attribute("workspace", node.workspace);
    out.attribute("recompute", node.recompute);
    if (!node.reuse.empty())
      out.attributeArray("reuse", [&] {
        for (auto [i, o] : node.reuse)
          out.array([&] {
            out.value(i);
            out.value(o);
          });
      });
    if (!node.mutates.empty())
      writeList(out, "mutates", node.mutates);
    if (!node.after.empty())
      writeList(out, "after", node.after);
    if (!node.group.empty())
      out.attribute("group", text(node.group));
  });
}

void writeSteps(json::OStream &out, const Plan &plan) {
  writeList(out, "steps", plan.steps);
  out.attribute("cost", plan.cost);
  out.attribute("peak", plan.peak);
  out.attribute("lower_bound", plan.lowerBound);
  if (plan.orderLowerBound > 0)
    out.attribute("order_lower_bound", plan.orderLowerBound);
  if (plan.offsets.empty())
    return;
  out.attribute("arena", plan.arena);
  out.attributeArray("offsets", [&] {
    for (const std::vector<int64_t> &row : plan.offsets)
      out.array([&] {
        for (int64_t offset : row)
          out.value(offset);
      });
  });
  if (!plan.initial.empty())
    out.attributeArray("initial", [&] {
      for (auto [v, offset] : plan.initial)
        out.array([&] {
          out.value(v);
          out.value(offset);
        });
    });
}

} // namespace

std::string ckopt::planner::printGraph(const Graph &graph) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  json::OStream out(stream);
  out.object([&] {
    out.attribute("format", "ckopt-graph/1");
    out.attribute("name", text(graph.name));
    out.attribute("alignment", graph.alignment);
    out.attributeArray("values", [&] {
      for (size_t i = 0; i < graph.values.size(); ++i) {
        const Value &value = graph.values[i];
        out.object([&] {
          out.attribute("id", int64_t(i));
          out.attribute("bytes", value.bytes);
          out.attribute("kind", kindName(value.kind));
          if (value.aliasOf >= 0)
            out.attribute("alias_of", value.aliasOf);
          if (!value.name.empty())
            out.attribute("name", text(value.name));
        });
      }
    });
    out.attributeArray("nodes", [&] {
      for (size_t i = 0; i < graph.nodes.size(); ++i)
        writeNode(out, graph.nodes[i], i);
    });
  });
  return result;
}

std::string ckopt::planner::printPlan(const Graph &graph, const Result &result,
                                      int64_t budget) {
  std::string written;
  llvm::raw_string_ostream stream(written);
  json::OStream out(stream);
  out.object([&] {
    out.attribute("format", "ckopt-plan/1");
    out.attribute("graph", text(graph.name));
    if (budget > 0)
      out.attribute("budget", budget);
    if (result.hasPlan())
      writeSteps(out, result.plan);
    out.attribute("status", result.plan.status);
    if (!result.strategy.empty())
      out.attribute("strategy", result.strategy);
    if (result.plan.minimumBudget > 0)
      out.attribute("minimum_budget", result.plan.minimumBudget);
    if (result.plan.provenMinimum > 0)
      out.attribute("proven_minimum", result.plan.provenMinimum);
  });
  return written;
}
