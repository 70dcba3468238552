//===- ExportRecurrent.cpp - weights of LSTM, GRU and RNN -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matches recurrent layers. One call of the program is one node for each layer,
// whose operands pack weights of both directions with the gates in ONNX's
// order: each operand is matched with the parameters in the order in which the
// call takes them. O(operands).
//
//===----------------------------------------------------------------------===//
#include "ExportMatcher.h"
#include "llvm/ADT/STLExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;

/// Matches an initial state: a parameter itself, or a constant folded from it.
void ExportMatcher::noteState(OperandUse use, const FxCall &call,
                              StringRef argument, bool isWhole) {
  const Entry *entry = signature.placeholder(argument);
  if (!entry) {
    noteFolded(use, call, argument);
    if (auto value = folded.find(argument.str()); value != folded.end())
      value->second.batch = 1;
    return;
  }
  if (isWhole && recovered.bind(use, entry->target, Form::Same))
    boundHere.insert(entry->target);
  else
    open.push_back(use);
}

/// Matches LSTM, GRU and RNN.
bool ExportMatcher::matchRecurrent(ArrayRef<size_t> nodes, const FxCall &call) {
  bool isRnn = call.op == "rnn_tanh" || call.op == "rnn_relu";
  const char *op = call.op == "lstm"  ? "LSTM"
                   : call.op == "gru" ? "GRU"
                                      : "RNN";
  if (!isRnn && call.op != "lstm" && call.op != "gru")
    return false;
  llvm::SmallVector<int64_t> order =
      isRnn               ? llvm::SmallVector<int64_t>{0}
      : call.op == "lstm" ? llvm::SmallVector<int64_t>{0, 3, 1, 2}
                          : llvm::SmallVector<int64_t>{1, 0, 2};
  std::vector<std::string> targets;
  size_t lead = call.op == "lstm" ? 3 : 2; // the data and the states
  for (const std::string &argument :
       ArrayRef(call.args).drop_front(std::min(lead, call.args.size())))
    if (const Entry *entry = signature.placeholder(argument))
      targets.push_back(entry->target);
  std::vector<size_t> layers;
  size_t directions = 1;
  for (size_t node : nodes) {
    if (graph.nodes[node].op != op)
      continue;
    layers.push_back(node);
    for (const NodeAttribute &attribute : graph.nodes[node].attributes)
      if (attribute.name == "direction" && attribute.s == "bidirectional")
        directions = 2;
  }
  size_t sets = layers.size() * directions;
  if (!sets || targets.size() % sets || targets.size() < 2 * sets)
    return false;
  size_t each = targets.size() / sets; // weight_ih, weight_hh, biases
  for (auto [layer, node] : llvm::enumerate(layers))
    for (size_t operand = 1; operand < graph.nodes[node].inputs.size();
         ++operand) {
      OperandUse use{node, operand};
      if (!readsInitializer(use))
        continue;
      std::vector<std::string> held;
      for (size_t d = 0; d < directions; ++d) {
        size_t first = (layer * directions + d) * each;
        if (operand <= 2)
          held.push_back(targets[first + operand - 1]);
        else if (operand == 3 && each == 4)
          held.insert(held.end(), {targets[first + 2], targets[first + 3]});
      }
      size_t state = operand - 4; // arguments: the data, the states, ...
      if (operand >= 5 && state < call.args.size() &&
          !produced.contains(call.args[state]))
        noteState(use, call, call.args[state], layers.size() == 1);
      else if (held.empty())
        noteConstant(use, "an initial state or a bias that the model lacks");
      else if (recovered.bindPacked(use, held, order, directions))
        boundHere.insert(held.begin(), held.end());
      else
        open.push_back(use);
    }
  return true;
}
