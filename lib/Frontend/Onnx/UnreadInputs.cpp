//===- UnreadInputs.cpp - inputs without effect ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An input that nothing reads is one that a user feeds in vain: torch.export
// takes two inputs that are one tensor for one, and the other has no effect any
// more. The values that outputs depend on are collected backward; a node with
// subgraphs reads whatever these read.
//
//===----------------------------------------------------------------------===//
#include "UnreadInputs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;

static void readBy(const Node &node, llvm::StringSet<> &read) {
  for (const std::string &input : node.inputs)
    read.insert(input);
  for (const NodeAttribute &attribute : node.attributes) {
    if (!attribute.graph)
      continue;
    for (const ValueInfo &output : attribute.graph->outputs)
      read.insert(output.name);
    for (const Node &inner : attribute.graph->nodes)
      readBy(inner, read);
  }
}

std::vector<std::string>
onnx_frontend::findUnread(const Graph &graph,
                          const std::vector<const ValueInfo *> &inputs) {
  llvm::StringSet<> read;
  for (const ValueInfo &output : graph.outputs)
    read.insert(output.name);
  for (const Node &node : llvm::reverse(graph.nodes)) {
    if (llvm::none_of(node.outputs, [&](const std::string &output) {
          return read.contains(output);
        }))
      continue;
    readBy(node, read);
  }
  std::vector<std::string> unread;
  for (const ValueInfo *input : inputs)
    if (!read.contains(input->name))
      unread.push_back(input->name);
  return unread;
}
