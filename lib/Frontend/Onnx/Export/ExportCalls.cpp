//===- ExportCalls.cpp - noted calls against the nodes of a file ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: PyTorch's exporter drops arguments that have no form in ONNX, and
// changes that the model makes to its own weights, without a word. Method: each
// node still names the call that it came from, with all arguments. CallTable
// says how each argument reaches the file; here the two are compared. An
// argument whose value the file cannot have makes it another function; a call
// or an argument without a line in the table is named as not compared, never
// taken for right. Derivatives are those of the operations in the file: a
// torch.autograd.Function, which has its own, is told by the number of frames
// of forward() in the trace of the call. O(nodes + bytes of notes).
//
//===----------------------------------------------------------------------===//
#include "CallTable.h"
#include "ExportAnalysis.h"
#include "Reader/TorchMetadata.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <set>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;

namespace {
class CallComparer {
public:
  CallComparer(const Graph &graph, ExportAnalysis &result)
      : graph(graph), signature(readSignature(graph)), result(result) {}
  void run();

private:
  using Nodes = llvm::SmallVector<const Node *, 4>;

  void compare(const FxCall &call, ArrayRef<const Node *> nodes);
  void compareArgument(const FxCall &call, const CallArgument &argument,
                       StringRef value, ArrayRef<const Node *> nodes);
  void findKnown();
  bool isGone(StringRef argument) const;
  bool mayRead(ArrayRef<StringRef> values) const;
  void compareMutations();
  void compareModes();
  bool isRunningStatistic(StringRef placeholder) const;
  void findLateReads(const FxCall &call, ArrayRef<const Node *> nodes);
  void findFunctions(ArrayRef<const Node *> nodes);

  const Graph &graph;
  TorchSignature signature;
  ExportAnalysis &result;
  std::vector<FxCall> calls;
  llvm::StringSet<> known; ///< values of calls, inputs and nodes
  /// Nodes that only hand a weight on, as the file has statistics behind their
  /// update: the weight by the result.
  llvm::StringMap<StringRef> copies;
  llvm::MapVector<StringRef, Nodes> unknown; ///< by target
  std::set<std::string> functions;           ///< places that call them
};
} // namespace

/// Returns the numbers in "3", "[1, 2]" or "1e-05"; nothing for other texts.
static std::optional<std::vector<double>> numbersOf(StringRef text) {
  std::vector<double> numbers;
  llvm::SmallVector<StringRef> items;
  bool isList = text.consume_front("[") && text.consume_back("]");
  text.split(items, ',');
  for (StringRef item : items) {
    double number = 0;
    if (item.trim().getAsDouble(number))
      return std::nullopt;
    numbers.push_back(number);
  }
  if (!isList && numbers.size() != 1)
    return std::nullopt;
  return numbers;
}

static std::vector<double> numbersOf(const NodeAttribute &attribute) {
  switch (attribute.kind) {
  case NodeAttribute::Int:
    return {double(attribute.i)};
  case NodeAttribute::Float:
    return {attribute.f};
  case NodeAttribute::Ints:
    return std::vector<double>(attribute.ints.begin(), attribute.ints.end());
  default:
    return {};
  }
}

/// Returns whether the attribute holds the argument: the same numbers, as
/// float32, once or again (a number for each dimension or side), or the same
/// word.
static bool holds(const NodeAttribute &attribute, const CallArgument &argument,
                  StringRef value) {
  bool hasWords = !argument.values.empty();
  for (StringRef pair : argument.values)
    if (pair.split('=').first == value)
      return pair.split('=').second == attribute.s;
  if (hasWords)
    return false;
  if (value == "True" || value == "False")
    return (value == "True") == (attribute.i != 0);
  if (attribute.kind == NodeAttribute::String)
    return attribute.s == value;
  auto given = numbersOf(value);
  std::vector<double> held = numbersOf(attribute);
  if (!given || given->empty() || held.empty() || held.size() % given->size())
    return false;
  for (auto [i, number] : llvm::enumerate(held)) {
    double want = (*given)[i % given->size()];
    if (!(std::abs(number - want) <= 1e-6 * std::abs(want)))
      return false;
  }
  return true;
}

/// An attribute is absent where another form was chosen; values and words that
/// are not numbers ("same", a size that is computed) are read by nodes.
static bool isComparable(const CallArgument &argument, StringRef value) {
  return !argument.values.empty() || value == "True" || value == "False" ||
         (numbersOf(value) && value != "[]") || argument.name == "approximate";
}

void CallComparer::compareArgument(const FxCall &call,
                                   const CallArgument &argument,
                                   StringRef value,
                                   ArrayRef<const Node *> nodes) {
  auto text = [&] {
    return nodes.front()->describe() + ": the model calls " + call.target +
           " with " + argument.name.str() + " = " + value.str();
  };
  switch (argument.kind) {
  case CallArgument::Read:
  case CallArgument::Idle:
    return;
  case CallArgument::Only:
  case CallArgument::Uncertain: {
    // Recurrent layers drop in training alone.
    bool trains = argument.name != "dropout" || call.texts.size() < 7 ||
                  call.texts[6] != "False";
    if (!trains || llvm::is_contained(argument.values, value))
      return;
    if (argument.kind == CallArgument::Only)
      result.differing.push_back(text() + ", which the exporter dropped");
    else
      result.uncompared.push_back(text());
    return;
  }
  case CallArgument::Attribute:
    break;
  }
  bool found = false;
  for (const Node *node : nodes)
    for (const NodeAttribute &attribute : node->attributes)
      if (attribute.name == argument.attribute) {
        if (holds(attribute, argument, value))
          return;
        found = true;
      }
  if (found && isComparable(argument, value))
    result.differing.push_back(text() + ", and the file has another '" +
                               argument.attribute.str() + "'");
}

void CallComparer::compare(const FxCall &call, ArrayRef<const Node *> nodes) {
  if (call.target.empty())
    return;
  const CallArguments *arguments = findCall(call.target);
  bool isKnown = arguments && call.texts.size() <= arguments->size();
  for (const auto &[name, value] : call.keywords)
    isKnown &= arguments && llvm::any_of(*arguments, [&](const auto &argument) {
                 return argument.name == name;
               });
  if (!isKnown) {
    unknown[call.target].append(nodes.begin(), nodes.end());
    return;
  }
  ++result.numCompared;
  for (auto [argument, value] : llvm::zip(*arguments, call.texts))
    compareArgument(call, argument, value, nodes);
  for (const CallArgument &argument : *arguments)
    if (auto given = call.keywords.find(argument.name.str());
        given != call.keywords.end())
      compareArgument(call, argument, given->second, nodes);
}

/// Returns whether batch norms that train are all that reads the value.
bool CallComparer::isRunningStatistic(StringRef placeholder) const {
  bool found = false;
  for (const FxCall &call : calls) {
    if (!llvm::is_contained(call.args, placeholder))
      continue;
    found = normTrains(call).value_or(false);
    if (!found)
      return false;
  }
  return found;
}

/// Collects the values that the file has, and the calls whose results it has
/// not: the exporter's optimizer removed or merged them.
void CallComparer::findKnown() {
  for (const FxCall &call : calls)
    known.insert(call.name);
  for (const std::string &input : signature.inputs)
    known.insert(input);
  for (const Node &node : graph.nodes)
    for (const std::string &output : node.outputs)
      known.insert(output);
  for (const FxCall &call : calls)
    for (const std::string &argument : call.args)
      if (isGone(argument) && splitFxName(argument).first != "getitem")
        result.removed.insert(splitFxName(argument).first.str());
}

bool CallComparer::isGone(StringRef argument) const {
  return !known.contains(argument) && !signature.placeholder(argument);
}

/// Returns whether a call reads one of the values, or one that is gone may.
bool CallComparer::mayRead(ArrayRef<StringRef> values) const {
  return llvm::any_of(calls, [&](const FxCall &call) {
    return llvm::any_of(call.args, [&](StringRef argument) {
      return llvm::is_contained(values, argument) || isGone(argument);
    });
  });
}

/// A norm's update of its statistics has no form in the exporter's files: who
/// reads them later in the same call of forward() gets the old ones there.
void CallComparer::findLateReads(const FxCall &call,
                                 ArrayRef<const Node *> nodes) {
  if (normTrains(call).value_or(false))
    return;
  for (const Node *node : nodes)
    for (StringRef input : node->inputs) {
      auto copied = copies.find(input);
      StringRef weight = copied == copies.end() ? input : copied->second;
      const auto *entry = signature.target(weight);
      bool isUpdated =
          entry && llvm::any_of(signature.mutations, [&](const auto &mutation) {
            return mutation.target == weight;
          });
      if (isUpdated && isRunningStatistic(entry->placeholder) &&
          !llvm::is_contained(call.args, entry->placeholder))
        result.differing.push_back(
            node->describe() + ": reads '" + weight.str() +
            "' behind its update by a batch norm, which the exporter dropped: "
            "the file has the value from before");
    }
}

/// ONNX has no operator that changes a weight: the file computes with the
/// changed value at most, and starts from the old one in the next step.
void CallComparer::compareMutations() {
  for (const auto &[value, target] : signature.mutations) {
    const auto *entry = signature.target(target);
    if (!entry || isRunningStatistic(entry->placeholder) ||
        leafOf(target) == "num_batches_tracked") // of torch.nn's norms
      continue;
    if (entry->isParameter || mayRead({entry->placeholder, value}))
      result.differing.push_back(
          "'" + target +
          "': forward changes it in place, which the exporter dropped: it "
          "would stay as it is in the file");
    else
      result.notes.push_back("'" + target +
                             "', which forward changes and nothing reads, "
                             "stays as it is");
  }
}

/// Returns whether a frame's file defines modules alone: they may be called
/// without being registered, as activations are.
static bool definesModules(StringRef frame) {
  return frame.contains("torch/nn/modules/") ||
         frame.contains("transformers/activations.py");
}

/// Returns "m.py:3" for 'File "/dir/m.py", line 3, in forward'.
static std::string placeOf(StringRef frame) {
  StringRef file = frame.split('"').second.split('"').first;
  StringRef line = frame.split(", line ").second.split(',').first;
  return (file.substr(file.rfind('/') + 1) + ":" + line).str();
}

/// In the trace of a call, each module's forward() is a frame. One more is that
/// of a torch.autograd.Function, whoever calls its apply(): that frame the
/// exporter leaves out.
void CallComparer::findFunctions(ArrayRef<const Node *> nodes) {
  const Node &node = *nodes.front();
  size_t forwards = 0, last = 0;
  for (auto [i, frame] : llvm::enumerate(node.frames))
    if (StringRef(frame).ends_with(", in forward")) {
      ++forwards;
      last = i;
    }
  if (node.inRegion || node.scopes.empty() || forwards < 2)
    return;
  if (forwards > node.scopes.size() + definesModules(node.frames[last]))
    functions.insert(placeOf(node.frames[last - 1]));
}

/// Norms that evaluate where nothing trains are those of a model in evaluation
/// mode, or were put in it alone. Instance norms have no running statistics in
/// ONNX.
void CallComparer::compareModes() {
  size_t evaluate = 0;
  for (const FxCall &call : calls)
    if (call.op == "instance_norm" && call.positions.size() > 5 &&
        !call.positions[3].empty() && call.texts[5] == "True")
      result.uncompared.push_back("'" + call.name +
                                  "': the model updates running statistics of "
                                  "this instance norm, the file does not");
  for (const FxCall &call : calls) {
    auto trains = normTrains(call);
    if (trains.value_or(false))
      return;
    evaluate += trains && StringRef(call.op).contains("batch_norm");
  }
  bool drops = llvm::any_of(graph.nodes, [](const Node &node) {
    return node.op == "Dropout" && node.inputs.size() > 2;
  });
  if (evaluate && !drops)
    result.uncompared.push_back(
        std::to_string(evaluate) +
        " batch norms were in evaluation mode when exporting, and nothing in "
        "training mode; they train with the batch's statistics, as after "
        "model.train()");
}

/// The exporter's optimizer puts in such nodes without a note.
static bool onlyMoves(StringRef op) {
  return llvm::is_contained({"Constant", "Identity", "Cast", "Split", "Squeeze",
                             "Unsqueeze", "Reshape"},
                            op);
}

void CallComparer::run() {
  llvm::MapVector<StringRef, Nodes> groups;
  size_t unnoted = 0;
  forEachNode(graph.nodes, [&](const Node &node) {
    if (node.op == "Identity" && node.inputs.size() == 1)
      copies[node.outputs[0]] = node.inputs[0];
    if (!node.fxName.empty() || !node.fxNode.empty())
      groups[node.fxNode.empty() ? node.fxName : node.fxNode].push_back(&node);
    else if (node.rewriteRule.empty() && !onlyMoves(node.op) &&
             llvm::none_of(node.outputs, [&](const std::string &output) {
               return result.quantized.contains(output);
             }))
      ++unnoted;
  });
  if (groups.empty())
    return;
  for (const auto &[key, nodes] : groups)
    calls.push_back(readFxCall(*nodes.front(), signature));
  findKnown();
  for (const auto &[call, group] : llvm::zip_equal(calls, groups)) {
    compare(call, group.second);
    findLateReads(call, group.second);
    findFunctions(group.second);
  }
  compareMutations();
  compareModes();
  for (const auto &[target, nodes] : unknown)
    result.uncompared.push_back(
        nodes.front()->describe() + ": " + target.str() + " (" +
        std::to_string(nodes.size()) +
        (nodes.size() == 1 ? " node" : " nodes") +
        "), a call that ckopt has not compared with its form in ONNX");
  for (const std::string &place : functions)
    result.uncompared.push_back(
        "'" + place +
        "' calls a forward() of no module: if it is that of a "
        "torch.autograd.Function, its backward() is not in the file, and "
        "gradients are those of the operations in its forward()");
  if (unnoted)
    result.uncompared.push_back(std::to_string(unnoted) +
                                " nodes without a note of their call");
}

void onnx_frontend::compareCalls(const Graph &graph, ExportAnalysis &result) {
  CallComparer(graph, result).run();
}
