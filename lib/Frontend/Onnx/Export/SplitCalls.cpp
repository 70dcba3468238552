//===- SplitCalls.cpp - merged calls made again ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem and method are in MergedCalls.cpp. This file decides which removed
// value was which module's call, copies the nodes of those that are certain,
// rewires their readers, and lists the others as suspects.
// O(nodes * operands + merged calls * parameters).
//
//===----------------------------------------------------------------------===//
#include "MergedCalls.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::SmallVector;
using llvm::StringRef;
using Entry = TorchSignature::Entry;

namespace {
/// All operands that read one removed value.
struct MergedValue {
  SmallVector<MergedCalls::Read> reads;
  size_t node = 0; ///< the node whose result they read now
  /// Entries of the copy's parameters; empty if not known.
  std::vector<const Entry *> twin;
};
} // namespace

/// Finds out what each removed value was, as far as that is clear: if several
/// values claim the same parameters, none gets them.
static llvm::MapVector<StringRef, MergedValue>
explainMerged(const MergedCalls &merged,
              llvm::ArrayRef<MergedCalls::Read> reads,
              llvm::ArrayRef<const Entry *> left) {
  llvm::MapVector<StringRef, MergedValue> values;
  for (const MergedCalls::Read &read : reads)
    values[read.value].reads.push_back(read);
  std::map<const Entry *, size_t> takers;
  for (auto &[name, value] : values) {
    const std::string &held = value.reads[0].held;
    value.node = merged.producerOf(held);
    if (llvm::all_of(value.reads, [&](const MergedCalls::Read &read) {
          return read.isDirect && read.held == held;
        }))
      value.twin = merged.twinOf(merged.callOf(value.node), left);
    for (const Entry *entry : value.twin)
      ++takers[entry];
  }
  for (auto &[name, value] : values)
    if (llvm::any_of(value.twin,
                     [&](const Entry *entry) { return takers[entry] > 1; }))
      value.twin.clear();
  return values;
}

SplitCalls onnx_frontend::splitMergedCalls(Graph &graph) {
  SplitCalls result;
  MergedCalls merged(graph);
  std::vector<const Entry *> left = merged.unmentioned();
  std::vector<MergedCalls::Read> reads = merged.reads();
  auto values = explainMerged(merged, reads, left);
  for (auto &[name, value] : values) {
    result.gone.push_back(name.str());
    if (const Entry *buffer = merged.equalBuffer(merged.callOf(value.node)))
      result.lost.push_back("'" + name.str() +
                            "': merged when exporting with an equal call of '" +
                            merged.callOf(value.node).op +
                            "'; it may have read buffer '" + buffer->target +
                            "' in place of a parameter of the same numbers");
  }
  for (auto &[name, value] : values)
    if (std::string twins;
        value.twin.empty() &&
        !(twins = merged.sharedTwins(value.reads, value.node)).empty())
      result.lost.push_back("'" + name.str() + "': " + twins);
  if (left.empty())
    return result;
  for (auto &[name, value] : values)
    llvm::erase_if(left, [&, &value = value](const Entry *entry) {
      return llvm::is_contained(value.twin, entry);
    });
  for (auto &[name, value] : values)
    if (value.twin.empty() && merged.isSuspect(name, value.node, left))
      result.suspects.push_back(name.str());
  llvm::append_range(result.suspects, merged.unplaced(reads, left));
  llvm::append_range(result.suspects, merged.lostOutputs(left));
  // Node numbers without the copies are mapped to numbers with them.
  std::map<std::string, std::vector<std::pair<size_t, std::string>>> readers;
  for (auto &[name, value] : values) {
    if (value.twin.empty())
      continue;
    auto made =
        merged.copyFor(name, value.node, merged.callOf(value.node), value.twin);
    const MergedCalls::Read &first = value.reads[0];
    const std::string held = graph.nodes[first.node].inputs[first.operand];
    for (const NodeCopy &copy : made) {
      const Node &original = graph.nodes[merged.producerOf(copy.original)];
      for (auto [from, to] : llvm::zip(original.outputs, copy.node.outputs))
        for (const MergedCalls::Read &read : value.reads)
          if (from == held)
            readers[graph.nodes[read.node].outputs[0]].push_back(
                {read.operand, to});
    }
    if (made.empty())
      result.suspects.push_back(name.str());
    llvm::append_range(result.copies, made);
  }
  insertCopies(result.copies, graph);
  for (auto [i, node] : llvm::enumerate(graph.nodes))
    if (auto found = readers.find(node.outputs.empty() ? "" : node.outputs[0]);
        found != readers.end())
      for (const auto &[operand, name] : found->second) {
        node.inputs[operand] = name;
        result.reads.push_back({i, operand, name});
      }
  return result;
}

void onnx_frontend::insertCopies(llvm::ArrayRef<NodeCopy> copies,
                                 Graph &graph) {
  llvm::StringMap<SmallVector<const Node *>> behind;
  for (const NodeCopy &copy : copies)
    behind[copy.original].push_back(&copy.node);
  std::vector<Node> nodes;
  for (Node &node : graph.nodes) {
    std::string name = node.outputs.empty() ? "" : node.outputs[0];
    nodes.push_back(std::move(node));
    for (const Node *copy : behind.lookup(name))
      nodes.push_back(*copy);
  }
  graph.nodes = std::move(nodes);
}
