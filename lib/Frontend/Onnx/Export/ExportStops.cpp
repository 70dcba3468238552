//===- ExportStops.cpp - where the exported program stops gradients -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds where detach() stopped gradients. In a file as it was traced, PyTorch's
// detach() is a node Identity, whose import stops the gradient. Optimizing
// removes the node; but the calls that read the detached value still name it,
// so the operand at the position of that argument stops the gradient instead.
// If another node with the same operands was merged into the reader, or nothing
// names a detached value any more, gradients would flow where the model has
// none: then the file is reported as incomplete. O(operands).
//
//===----------------------------------------------------------------------===//
#include "ExportMatcher.h"
#include "llvm/ADT/STLExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;

static bool isDetach(StringRef name) {
  return splitFxName(name).first == "detach";
}

/// Stops the gradient of the operands that are the call's detached value;
/// returns false if the file does not tell which these are.
bool ExportMatcher::placeStop(ArrayRef<size_t> nodes, const FxCall &call,
                              StringRef detached) {
  const Node &first = graph.nodes[nodes.front()];
  if (nodes.size() == 1 && first.rewriteRule.empty() &&
      first.inputs.size() == call.args.size()) {
    for (auto [operand, argument] : llvm::enumerate(call.args))
      if (argument == detached)
        result.edits.stopped.push_back({nodes.front(), operand});
    return true;
  }
  llvm::StringSet<> inner;
  for (size_t node : nodes)
    for (const std::string &output : graph.nodes[node].outputs)
      inner.insert(output);
  llvm::StringSet<> seen;
  llvm::StringMap<llvm::SmallVector<OperandUse>> others;
  for (size_t node : nodes)
    for (auto [operand, name] : llvm::enumerate(graph.nodes[node].inputs)) {
      if (name.empty() || inner.contains(name))
        continue;
      const Entry *entry = signature.target(name);
      StringRef value = entry ? StringRef(entry->placeholder) : name;
      if (llvm::is_contained(call.args, value))
        seen.insert(value);
      else if (entry || !recovered.initializer(name))
        others[name].push_back({node, operand});
    }
  for (const std::string &argument : call.args)
    if (argument != detached && produced.contains(argument) &&
        !seen.contains(argument))
      return false;
  if (others.size() != 1)
    return seen.contains(detached); // a constant
  for (OperandUse use : others.begin()->second)
    result.edits.stopped.push_back({use.node, use.operand});
  return true;
}

void ExportMatcher::matchStops(ArrayRef<size_t> nodes, const FxCall &call) {
  if (isDetach(call.name))
    namedStops.insert(call.name);
  std::vector<StringRef> detached;
  for (const std::string &argument : call.args)
    if (isDetach(argument) && !produced.contains(argument) &&
        !signature.placeholder(argument) &&
        !llvm::is_contained(detached, argument))
      detached.push_back(argument);
  for (StringRef argument : detached) {
    namedStops.insert(argument);
    if (detached.size() > 1 && nodes.size() > 1)
      loseStop(argument, graph.nodes[nodes.back()]);
    else if (!placeStop(nodes, call, argument))
      loseStop(argument, graph.nodes[nodes.back()]);
    else
      ++numStops;
  }
}

void ExportMatcher::loseStop(StringRef name, const Node &node) {
  result.lost.push_back("'" + name.str() + "': no gradient flows back from " +
                        node.describe() +
                        " to a value that it reads (detach() in the model), "
                        "and the file does not say to which any more");
}

static bool castsToHalf(const Node &node) {
  for (const NodeAttribute &attribute : node.attributes)
    if (node.op == "Cast" && attribute.name == "to" &&
        (attribute.i == 10 || attribute.i == 16)) // TensorProto.DataType
      return true;
  return false;
}

/// The exporter inlines regions with another mode of computing into the
/// program, under generated names. Values of a region under torch.no_grad()
/// have no gradient; under autocast there are casts.
void ExportMatcher::stopInRegions() {
  std::string names;
  int64_t count = 0;
  for (auto [i, node] : llvm::enumerate(graph.nodes)) {
    if (!node.inRegion)
      continue;
    if (castsToHalf(node))
      return;
    ++count;
  }
  if (!count)
    return;
  llvm::StringSet<> within;
  for (const Node &node : graph.nodes)
    for (const std::string &output : node.outputs)
      if (node.inRegion && node.op != "Constant" && node.op != "Shape")
        within.insert(output);
  // Equal calls inside and outside of the region were merged: one value stands
  // for both.
  for (auto [node, call] : llvm::zip_equal(graph.nodes, calls))
    for (const std::string &input : node.inputs)
      if (!node.inRegion && !call.guessed && within.contains(input) &&
          !llvm::is_contained(call.args, input) &&
          llvm::none_of(call.args, isDetach))
        result.lost.push_back("'" + input + "': " + node.describe() +
                              " reads the value of a region without gradients "
                              "(torch.no_grad()) in place of an equal one");
  for (auto [i, node] : llvm::enumerate(graph.nodes))
    for (size_t operand = 0; node.inRegion && operand < node.inputs.size();
         ++operand)
      result.edits.stopped.push_back({i, operand});
  result.notes.push_back(std::to_string(count) +
                         " nodes stand in a region without gradients "
                         "(torch.no_grad()): none flow through them");
}

/// The program numbers its calls: a number that no node names was optimized
/// away together with its readers.
void ExportMatcher::finishStops() {
  stopInRegions();
  unsigned last = 0;
  for (const auto &name : namedStops)
    last = std::max(last, splitFxName(name.first()).second);
  bool isOptimized = numStops || llvm::any_of(result.lost, [](StringRef text) {
                       return text.starts_with("'detach");
                     });
  for (unsigned i = 0; isOptimized && i < last; ++i) {
    std::string name = i ? "detach_" + std::to_string(i) : "detach";
    if (!namedStops.contains(name) && !signature.outputs.contains(name))
      result.lost.push_back("'" + name +
                            "': no gradient flows through it in the model "
                            "(detach()), and nothing in the file reads it by "
                            "its name any more");
  }
  if (numStops)
    result.notes.push_back(std::to_string(numStops) +
                           " operands are detached in the model: gradients "
                           "stop there");
}
