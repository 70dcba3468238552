//===- GraphJsonWriter.cpp - writes ckopt-graph/1 and ckopt-plan/1 --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the files that GraphJson.cpp and PlanJson.cpp read. The same graph or
// plan gives the same bytes.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/GraphJson.h"
#include "ckopt/Support/Report.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
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

/// Writes the ids of the file that the graph came from.
void writeValues(json::OStream &out, llvm::StringRef key, const Graph &graph,
                 const std::vector<ValueId> &list) {
  out.attributeArray(key, [&] {
    for (ValueId item : list)
      out.value(graph.valueFileId(item));
  });
}

void writeNodes(json::OStream &out, llvm::StringRef key, const Graph &graph,
                const std::vector<NodeId> &list) {
  out.attributeArray(key, [&] {
    for (NodeId item : list)
      out.value(graph.nodeFileId(item));
  });
}

void writeNode(json::OStream &out, const Graph &graph, NodeId id) {
  const Node &node = graph.nodes[id];
  out.object([&] {
    out.attribute("id", graph.nodeFileId(id));
    out.attribute("name", jsonString(node.name));
    out.attribute("cost", node.cost);
    writeValues(out, "inputs", graph, node.inputs);
    writeValues(out, "outputs", graph, node.outputs);
    out.attribute("workspace", node.workspace);
    out.attribute("recompute", node.recompute);
    if (!node.reuse.empty())
      out.attributeArray("reuse", [&] {
        for (auto [i, o] : node.reuse)
          out.array([&] {
            out.value(graph.valueFileId(i));
            out.value(graph.valueFileId(o));
          });
      });
    if (!node.mutates.empty())
      writeValues(out, "mutates", graph, node.mutates);
    if (!node.after.empty())
      writeNodes(out, "after", graph, node.after);
    if (!node.group.empty())
      out.attribute("group", jsonString(node.group));
  });
}

/// Writes a list of certificates: the keys are the fields of Certificate.
void writeCertificates(json::OStream &out, const Graph &graph,
                       const std::vector<Certificate> &list) {
  auto pairs = [&](llvm::StringRef key, const auto &entries, auto first,
                   auto second) {
    out.attributeArray(key, [&] {
      for (auto [a, b] : entries)
        out.array([&] {
          out.value(first(a));
          out.value(second(b));
        });
    });
  };
  auto same = [](int64_t number) { return number; };
  auto value = [&](ValueId v) { return int64_t(graph.valueFileId(v)); };
  out.attributeArray("certificate", [&] {
    for (const Certificate &certificate : list)
      out.object([&] {
        out.attribute("bounds", certificate.anyOrder ? "lower_bound"
                                                     : "order_lower_bound");
        out.attribute("budget", certificate.budget);
        out.attribute("scale_bits", certificate.scaleBits);
        if (!certificate.rows.empty())
          writeNodes(out, "rows", graph, certificate.rows);
        pairs("claims", certificate.claims, value, value);
        if (certificate.tree.empty())
          pairs("prices", certificate.prices, same, same);
        else
          out.attributeArray("tree", [&] {
            for (const Certificate::Case &entry : certificate.tree)
              out.object([&] {
                if (entry.storage < 0)
                  return pairs("prices", entry.prices, same, same);
                out.attributeArray("gap", [&] {
                  out.value(value(entry.storage));
                  out.value(graph.nodeFileId(entry.from));
                });
              });
          });
      });
  });
}

void writeSteps(json::OStream &out, const Graph &graph, const Plan &plan) {
  writeNodes(out, "steps", graph, plan.steps);
  out.attribute("cost", plan.cost);
  out.attribute("peak", plan.peak);
  out.attribute("lower_bound", plan.lowerBound);
  if (plan.orderLowerBound > 0)
    out.attribute("order_lower_bound", plan.orderLowerBound);
  if (plan.offsets.empty())
    return;
  out.attribute("arena", plan.arena);
  if (plan.packing.lowerBound > 0)
    out.attributeObject("packing", [&] {
      out.attribute("load", plan.packing.load);
      out.attribute("lower_bound", plan.packing.lowerBound);
      out.attribute("proof", plan.packing.searched ? "search" : "load");
    });
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
          out.value(graph.valueFileId(v));
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
    out.attribute("name", jsonString(graph.name));
    out.attribute("alignment", graph.alignment);
    if (!graph.costModel.empty())
      out.attribute("cost_model", jsonString(graph.costModel));
    out.attributeArray("values", [&] {
      for (size_t i = 0; i < graph.values.size(); ++i) {
        const Value &value = graph.values[i];
        out.object([&] {
          out.attribute("id", graph.valueFileId(ValueId(i)));
          out.attribute("bytes", value.bytes);
          out.attribute("kind", kindName(value.kind));
          if (value.aliasOf >= 0)
            out.attribute("alias_of", graph.valueFileId(value.aliasOf));
          if (!value.name.empty())
            out.attribute("name", jsonString(value.name));
        });
      }
    });
    out.attributeArray("nodes", [&] {
      for (size_t i = 0; i < graph.nodes.size(); ++i)
        writeNode(out, graph, NodeId(i));
    });
  });
  return result;
}

void ckopt::planner::writeScope(json::OStream &out, const Scope &scope) {
  std::vector<std::string> names = scope.names();
  if (names.size() == 1)
    out.attribute("restricted_to", names[0]);
  else if (names.size() > 1)
    out.attribute("restricted_to", json::Array(names));
}

std::string ckopt::planner::printPlan(const Graph &graph, const Result &result,
                                      int64_t budget) {
  std::string written;
  llvm::raw_string_ostream stream(written);
  json::OStream out(stream);
  out.object([&] {
    out.attribute("format", "ckopt-plan/1");
    out.attribute("graph", jsonString(graph.name));
    if (budget > 0)
      out.attribute("budget", budget);
    if (result.hasPlan())
      writeSteps(out, graph, result.plan);
    out.attribute("status", statusName(result.plan.status));
    if (result.plan.proof == Proof::Search)
      out.attribute("proof", "search");
    if (!result.strategy.empty())
      out.attribute("strategy", result.strategy);
    if (!graph.costModel.empty())
      out.attribute("cost_model", jsonString(graph.costModel));
    if (result.plan.minimumBudget > 0)
      out.attribute("minimum_budget", result.plan.minimumBudget);
    if (result.plan.provenMinimum > 0)
      out.attribute("proven_minimum", result.plan.provenMinimum);
    writeScope(out, result.plan.scope);
    if (result.hasPlan() && !result.plan.certificates.empty())
      writeCertificates(out, graph, result.plan.certificates);
  });
  return written;
}
