//===- Subgraphs.cpp - subgraphs and functions under names of their own ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model may use one body in several places: functions that are called twice,
// loops that are unrolled, branches that use the same names. Everything after
// the reader works on names, so each copy of a body gets unique names here;
// later passes then need no scopes. Linear in the nodes that result.
//
//===----------------------------------------------------------------------===//
#include "Subgraphs.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;

void onnx_frontend::forEachNode(const std::vector<Node> &nodes,
                                llvm::function_ref<void(const Node &)> visit) {
  for (const Node &node : nodes) {
    visit(node);
    for (const NodeAttribute &attribute : node.attributes)
      if (attribute.graph)
        forEachNode(attribute.graph->nodes, visit);
  }
}

std::string onnx_frontend::uniqueName(llvm::StringSet<> &taken,
                                      llvm::StringRef wanted) {
  std::string name = wanted.str();
  for (int64_t i = 2; !taken.insert(name).second; ++i)
    name = (wanted + "@" + llvm::Twine(i)).str();
  return name;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

std::string Renamer::use(llvm::StringRef name) const {
  auto found = names.find(name);
  return found == names.end() ? name.str() : found->second;
}

std::string Renamer::define(llvm::StringRef name) {
  if (name.empty())
    return "";
  return names[name] = fresh(name);
}

std::optional<NodeAttribute>
Renamer::resolve(const NodeAttribute &attribute) const {
  if (attribute.reference.empty() || !call)
    return attribute;
  auto find = [&](const std::vector<NodeAttribute> &list)
      -> std::optional<NodeAttribute> {
    for (const NodeAttribute &given : list)
      if (given.name == attribute.reference) {
        NodeAttribute value = given;
        value.name = attribute.name;
        return value;
      }
    return std::nullopt;
  };
  auto given = find(call->attributes);
  return given ? given : find(function->defaults);
}

Node Renamer::copy(const Node &node) {
  Node to = node;
  for (std::string &input : to.inputs)
    input = use(input);
  to.attributes.clear();
  for (const NodeAttribute &attribute : node.attributes) {
    auto value = resolve(attribute);
    if (!value)
      continue;
    // A graph that the call passes as an attribute uses the names of the
    // caller.
    if (value->graph && attribute.reference.empty())
      value->graph = std::make_shared<Graph>(copy(*value->graph));
    to.attributes.push_back(std::move(*value));
  }
  for (std::string &output : to.outputs)
    output = define(output);
  return to;
}

Graph Renamer::copy(const Graph &graph) {
  llvm::StringMap<std::string> outside = names;
  Graph to;
  for (const Tensor &tensor : graph.initializers)
    to.initializers.push_back({define(tensor.name), tensor.value});
  for (ValueInfo input : graph.inputs) {
    input.name = define(input.name);
    to.inputs.push_back(std::move(input));
  }
  for (const Node &node : graph.nodes)
    to.nodes.push_back(copy(node));
  for (ValueInfo output : graph.outputs) {
    output.name = use(output.name);
    to.outputs.push_back(std::move(output));
  }
  names = std::move(outside);
  return to;
}

static void hoistInitializers(Graph &graph, std::vector<Tensor> &to) {
  for (Tensor &tensor : graph.initializers)
    to.push_back(std::move(tensor));
  graph.initializers.clear();
  for (Node &node : graph.nodes)
    for (NodeAttribute &attribute : node.attributes)
      if (attribute.graph)
        hoistInitializers(*attribute.graph, to);
}

void onnx_frontend::separateSubgraphs(std::vector<Node> &nodes,
                                      llvm::StringSet<> &taken,
                                      std::vector<Tensor> &initializers) {
  for (Node &node : nodes)
    for (NodeAttribute &attribute : node.attributes) {
      if (!attribute.graph)
        continue;
      Renamer renamer(
          [&](llvm::StringRef name) { return uniqueName(taken, name); });
      *attribute.graph = renamer.copy(*attribute.graph);
      hoistInitializers(*attribute.graph, initializers);
    }
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {
class Expander {
public:
  Expander(llvm::ArrayRef<Function> functions, llvm::StringSet<> &taken)
      : taken(taken) {
    for (const Function &function : functions)
      table[{function.domain, function.name, function.overload}] = &function;
  }

  llvm::Error expand(std::vector<Node> &nodes);

private:
  std::vector<Node> instantiate(const Node &call, const Function &function);

  llvm::StringSet<> &taken;
  std::map<std::tuple<std::string, std::string, std::string>, const Function *>
      table;
  std::vector<const Function *> active;
  int64_t made = 0;
};
} // namespace

/// Returns the function's nodes with the call's operands and results.
std::vector<Node> Expander::instantiate(const Node &call,
                                        const Function &function) {
  llvm::StringMap<std::string> results;
  for (auto [i, output] : llvm::enumerate(function.outputs))
    if (i < call.outputs.size() && !call.outputs[i].empty())
      results.try_emplace(output, call.outputs[i]);
  Renamer renamer([&](llvm::StringRef name) {
    auto result = results.find(name);
    return result != results.end()
               ? result->second
               : uniqueName(taken, call.name + "/" + name.str());
  });
  renamer.setCall(&call, &function);
  for (auto [i, input] : llvm::enumerate(function.inputs))
    renamer.bind(input, i < call.inputs.size() ? call.inputs[i] : "");
  std::vector<Node> nodes;
  llvm::StringSet<> defined;
  for (const Node &inner : function.nodes) {
    Node node = renamer.copy(inner);
    node.name = call.name + "/" + inner.name;
    if (node.scopes.empty()) {
      node.scopes = call.scopes;
      node.classes = call.classes;
    }
    for (const std::string &output : node.outputs)
      defined.insert(output);
    nodes.push_back(std::move(node));
  }
  // A result may be an operand, or one value may be returned twice.
  for (auto [i, output] : llvm::enumerate(function.outputs)) {
    if (i >= call.outputs.size() || call.outputs[i].empty() ||
        defined.contains(call.outputs[i]))
      continue;
    Node node;
    node.name = call.name + "/" + output;
    node.op = "Identity";
    node.opset = 13; // has the same form in all opsets
    node.inputs = {renamer.use(output)};
    node.outputs = {call.outputs[i]};
    nodes.push_back(std::move(node));
  }
  return nodes;
}

llvm::Error Expander::expand(std::vector<Node> &nodes) {
  constexpr int64_t mostNodes = 1 << 18;
  std::vector<Node> result;
  for (Node &node : nodes) {
    for (NodeAttribute &attribute : node.attributes)
      if (attribute.graph)
        if (llvm::Error error = expand(attribute.graph->nodes))
          return error;
    auto found = table.find({node.domain, node.op, node.overload});
    if (found == table.end()) {
      result.push_back(std::move(node));
      continue;
    }
    const Function &function = *found->second;
    if (llvm::is_contained(active, &function))
      return inputError("function '" + function.domain + "." + function.name +
                        "' calls itself");
    std::vector<Node> body = instantiate(node, function);
    made += int64_t(body.size());
    if (made > mostNodes)
      return inputError("the model's functions expand to more than " +
                        llvm::Twine(mostNodes) + " nodes");
    active.push_back(&function);
    if (llvm::Error error = expand(body))
      return error;
    active.pop_back();
    llvm::move(body, std::back_inserter(result));
  }
  nodes = std::move(result);
  return llvm::Error::success();
}

llvm::Error onnx_frontend::expandFunctions(std::vector<Node> &nodes,
                                           llvm::ArrayRef<Function> functions,
                                           llvm::StringSet<> &taken) {
  if (functions.empty())
    return llvm::Error::success();
  return Expander(functions, taken).expand(nodes);
}
