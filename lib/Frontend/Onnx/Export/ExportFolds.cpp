//===- ExportFolds.cpp - parameters that no call mentions -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: where folding computed a whole call, no node is left that tells its
// operands. The constant may be rows of a position table, a transposed or
// repeated parameter, or a mask, a rotary table or an initial state. Method:
// the origin of a constant follows, in this order, from the program's name for
// it ("zeros", "embedding_1"), its values, the line of Python that reads it,
// and, if one unmentioned parameter and one unexplained constant are left, from
// that (ExportViews.cpp, ExportStates.cpp). Parameters without a match are
// reported as lost, never guessed.
//
//===----------------------------------------------------------------------===//
#include "ExportMatcher.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

bool onnx_frontend::isCreation(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"zeros", "ones", "full", "arange", "eye", "linspace", "empty",
              "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros",
              "new_ones", "new_full", "scalar_tensor_default", "scalar_tensor",
              "lift_fresh_copy", "_tensor_constant"},
             true)
      .Default(false);
}

/// Returns whether the call always has a weight.
static bool needsWeight(StringRef op) {
  return op.starts_with("conv") || op.contains("_norm") ||
         llvm::StringSwitch<bool>(op)
             .Cases({"linear", "addmm", "lstm", "gru", "prelu"}, true)
             .Default(false);
}

StringRef onnx_frontend::scopeOf(const Node &node) {
  return node.scopes.empty() ? StringRef() : StringRef(node.scopes.back());
}

void ExportMatcher::lose(const Entry &entry, const Twine &how) {
  settled.insert(entry.target);
  result.lost.push_back("'" + entry.target + "': " + how.str());
}

/// Returns whether a condition selects a number that is no parameter itself,
/// such as that of masked scores.
bool ExportMatcher::isFill(OperandUse use) const {
  return graph.nodes[use.node].op == "Where" && use.operand > 0 &&
         readsInitializer(use) && !signature.target(recovered.nameOf(use)) &&
         recovered.valueOf(use).shape().empty();
}

/// Returns whether the operand's node makes what is stored in few bits wide.
bool ExportMatcher::isOfQuantized(OperandUse use) const {
  return llvm::any_of(
      graph.nodes[use.node].outputs,
      [&](const std::string &made) { return result.quantized.contains(made); });
}

void ExportMatcher::noteFolded(OperandUse use, const FxCall &call,
                               StringRef name, Form form) {
  if (isOfQuantized(use))
    return noteConstant(use, "part of a quantized weight");
  const std::string &held = recovered.nameOf(use);
  if (isFill(use))
    return noteConstant(use, "a number that a condition selects");
  if (call.guessed) {
    if (const Entry *entry = signature.target(held))
      return recovered.claim(entry->target);
    if (StringRef(held).starts_with("val_"))
      return noteConstant(use, "computed inside of '" + call.op +
                                   "', from no parameter");
    name = held;
  }
  std::vector<StringRef> candidates;
  for (const std::string &argument : call.args)
    if (!signature.placeholder(argument) && !produced.contains(argument) &&
        !constant.contains(argument))
      candidates.push_back(argument);
  if (name.empty() && candidates.empty())
    return noteConstant(use, "computed inside of '" + call.op +
                                 "', from no parameter");
  if (name.empty() && candidates.size() == 1)
    name = candidates.front();
  if (name.empty() && llvm::is_contained(candidates, held))
    name = held;
  // The value is named after the parameter only because both were equal.
  FoldedValue &value = folded[name.empty() ? held : name.str()];
  value.name = name.empty() ? held : name.str();
  value.transposed |= form == Form::Transposed;
  value.uses.push_back(use);
}

/// Nodes that a rewrite made, such as Split, have no call: a constant that they
/// read is named after the call that was rewritten.
void ExportMatcher::noteNameless(OperandUse use) {
  if (!readsInitializer(use) || signature.target(recovered.nameOf(use)))
    return;
  if (isFromNoParameter(recovered.nameOf(use)))
    return noteConstant(use, "computed from buffers and numbers alone");
  if (isFill(use))
    return noteConstant(use, "a number that a condition selects");
  if (isOfQuantized(use))
    return noteConstant(use, "part of a quantized weight");
  FoldedValue &value = folded[recovered.nameOf(use)];
  value.name = recovered.nameOf(use);
  value.uses.push_back(use);
}

/// Returns the node's module, or that of a reader if it has none.
StringRef ExportMatcher::scopeNear(size_t node) const {
  const Node &self = graph.nodes[node];
  if (!self.scopes.empty())
    return scopeOf(self);
  for (const Node &other : graph.nodes)
    for (const std::string &output : self.outputs)
      if (!other.scopes.empty() && llvm::is_contained(other.inputs, output))
        return scopeOf(other);
  return {};
}

std::vector<const TorchSignature::Entry *> ExportMatcher::unmentioned() const {
  std::vector<const Entry *> result;
  for (const Entry &entry : signature.entries)
    if (entry.isParameter && !recovered.isBound(entry.target) &&
        !settled.contains(entry.target))
      result.push_back(&entry);
  return result;
}

std::vector<FoldedValue *> ExportMatcher::unexplained() {
  std::vector<FoldedValue *> result;
  for (auto &[name, value] : folded)
    if (!value.explained)
      result.push_back(&value);
  // The program numbers values in the order of execution.
  llvm::sort(result, [](FoldedValue *a, FoldedValue *b) {
    return splitFxName(a->name) < splitFxName(b->name);
  });
  return result;
}

/// A module that reads another module's parameter of the same own name is tied
/// to it: the program has one placeholder for both.
void ExportMatcher::findTied() {
  llvm::StringMap<llvm::SmallVector<size_t>> nodesOf;
  for (auto [i, node] : llvm::enumerate(graph.nodes))
    nodesOf[scopeOf(node)].push_back(i);
  for (const Entry *entry : unmentioned()) {
    StringRef module = moduleOf(entry->target);
    for (size_t node : nodesOf.lookup(module))
      for (const std::string &argument : calls[node].args) {
        const Entry *other = signature.placeholder(argument);
        if (!other || moduleOf(other->target) == module ||
            leafOf(other->target) != leafOf(entry->target) ||
            !settled.insert(entry->target).second)
          continue;
        result.tied.emplace(entry->target, other->target);
      }
  }
  std::string names;
  for (const auto &[name, kept] : result.tied)
    names += (names.empty() ? "'" : ", '") + name + "' (is '" + kept + "')";
  if (!names.empty())
    result.notes.push_back("tied parameters: " + names);
}

void ExportMatcher::explainConstants() {
  for (auto &[name, value] : folded) {
    StringRef op = splitFxName(name).first;
    bool mask = llvm::all_of(value.uses, [&](OperandUse use) {
      return isMask(recovered.valueOf(use));
    });
    if (!isCreation(op) && !mask)
      continue;
    value.explained = true;
    for (OperandUse use : value.uses)
      noteConstant(use, mask ? "a mask" : ("made by '" + op + "'").str());
  }
}

/// With a scale of 1, "x * scale" is removed, and the readers of the product
/// read x.
void ExportMatcher::explainVanished() {
  llvm::StringMap<StringRef> madeBy;
  for (auto [node, call] : llvm::zip(graph.nodes, calls))
    for (const std::string &output : node.outputs)
      madeBy[output] = call.name;
  for (auto [i, node] : llvm::enumerate(graph.nodes)) {
    const FxCall &call = calls[i];
    bool positional = node.inputs.size() == call.args.size();
    for (auto [place, argument] : llvm::enumerate(call.args)) {
      StringRef op = splitFxName(argument).first;
      bool mayVanish = op == "mul" || op == "add" || op == "sub" ||
                       op == "div" || op == "pow";
      if (call.guessed || !mayVanish || !vanished.empty() ||
          produced.contains(argument) || signature.placeholder(argument))
        continue;
      for (auto [operand, input] : llvm::enumerate(node.inputs)) {
        // An operand that the call does not name stands for what is gone.
        bool here = positional ? operand == place && input != argument
                               : !llvm::is_contained(call.args, input) &&
                                     madeBy.contains(input) &&
                                     madeBy.lookup(input) != call.name;
        if (here && !recovered.initializer(input))
          vanished = argument;
      }
    }
  }
}

void ExportMatcher::reportFolded() {
  explainVanished();
  bool isAnyLeft = !unmentioned().empty();
  std::string suspects;
  for (FoldedValue *value : unexplained()) {
    StringRef op = splitFxName(value->name).first;
    const std::string &held = recovered.nameOf(value->uses.front());
    const Node &node = graph.nodes[value->uses.front().node];
    bool isLost = loseSources(*value);
    // Nodes of no call are other tools', which note nothing.
    bool isNoted = foldedFrom(graph, held).has_value() ||
                   calls[value->uses.front().node].name.empty();
    bool suspect = needsWeight(op) || isAnyLeft || isLost || !isNoted;
    for (OperandUse use : value->uses) {
      if (!suspect)
        noteConstant(use, "computed when exporting ('" + value->name +
                              "'), and taken for a constant");
      else
        trained.insert(recovered.nameOf(use));
    }
    if (!isLost && (needsWeight(op) || !isNoted))
      result.lost.push_back(
          "'" + value->name + "': computed when exporting" +
          (isNoted ? ", from parameters" : "; the file does not note of what") +
          ", for " + node.describe());
    if (suspect)
      suspects += (suspects.empty() ? "'" : ", '") + value->name + "'";
  }
  std::vector<const Entry *> left = unmentioned();
  std::string unused;
  for (const Entry *entry : left) {
    if (!suspects.empty())
      lose(*entry, "folded into one of " + suspects);
    else if (!merged.empty())
      lose(*entry, "the call that reads it, perhaps '" + merged.front() +
                       "', was merged with an equal one when exporting, or did "
                       "nothing then");
    else if (!vanished.empty())
      lose(*entry, "it is not in the file, and neither are operations that may "
                   "have read it ('" +
                       vanished +
                       "'): its value made them do nothing when exporting");
    else
      unused += (unused.empty() ? "'" : ", '") + entry->target + "'";
  }
  if (!unused.empty())
    result.notes.push_back("the model does not read " + unused);
}

/// Reports the parameters that the note on a constant names.
bool ExportMatcher::loseSources(const FoldedValue &value) {
  OperandUse use = value.uses.front();
  bool any = false;
  for (StringRef name : foldedNames(recovered.nameOf(use))) {
    const Entry *entry = signature.target(name);
    if (!entry || !entry->isParameter)
      continue;
    any = true;
    if (lostInPart.insert(entry->target).second)
      lose(*entry, "in " + graph.nodes[use.node].describe() +
                       " it is folded into '" + value.name + "'");
  }
  return any;
}

/// Returns the names in the note one by one; none if there is no note.
std::vector<StringRef> ExportMatcher::foldedNames(StringRef constant) const {
  std::vector<StringRef> names;
  StringRef rest = foldedFrom(graph, constant).value_or("").split('\'').second;
  while (!rest.empty()) {
    auto [name, after] = rest.split('\'');
    names.push_back(name);
    rest = after.split('\'').second;
  }
  return names;
}

/// Collects constants that were folded from no parameter, and the values that
/// they were folded from.
void ExportMatcher::findConstantValues() {
  for (const Tensor &tensor : graph.initializers) {
    if (!isFromNoParameter(tensor.name))
      continue;
    for (StringRef name : foldedNames(tensor.name))
      constant.insert(name);
  }
}

/// Returns whether the constant was folded, and from no parameter.
bool ExportMatcher::isFromNoParameter(StringRef name) const {
  std::optional<StringRef> noted = foldedFrom(graph, name);
  return noted && llvm::none_of(signature.entries, [&](const Entry &entry) {
           return entry.isParameter &&
                  noted->contains(("'" + entry.target + "'"));
         });
}

/// Returns the parameter that the constant was folded from, if it is only one.
const TorchSignature::Entry *ExportMatcher::soleSource(StringRef name) const {
  const Entry *sole = nullptr;
  for (const Entry &entry : signature.entries)
    if (entry.isParameter && foldedFrom(graph, name)
                                 .value_or("")
                                 .contains("'" + entry.target + "'")) {
      if (sole)
        return nullptr;
      sole = &entry;
    }
  return sole;
}

/// Reports a constant in the graph that was folded from a trained parameter,
/// since it would keep its old value.
void ExportMatcher::reportHidden(StringRef name) {
  std::optional<StringRef> source = foldedFrom(graph, name);
  auto reason = reasons.find(name);
  bool harmless = reason != reasons.end() &&
                  (StringRef(reason->second).starts_with("made by") ||
                   reason->second == "a mask");
  if (!source || harmless)
    return;
  auto isLost = [&](const Entry &entry) {
    return llvm::any_of(result.lost, [&](StringRef text) {
      return text.starts_with("'" + entry.target + "'");
    });
  };
  for (const Entry &entry : signature.entries)
    if (entry.isParameter && recovered.isBound(entry.target) &&
        !isLost(entry) && source->contains("'" + entry.target + "'"))
      lose(entry, "it is also folded into the constant '" + name + "'");
}

void ExportMatcher::finish() {
  int64_t count = 0;
  for (const Entry &entry : signature.entries)
    count += entry.isParameter;
  result.form =
      "PyTorch (torch.export), " + std::to_string(count) + " parameters";
  if (recovered.numSplit)
    result.notes.push_back(
        std::to_string(recovered.numSplit) +
        " operands read the equal initializer of another parameter: each reads "
        "its own again");
  if (recovered.numFormed)
    result.notes.push_back(std::to_string(recovered.numFormed) +
                           " weights are stored transposed, packed or "
                           "repeated: they are made from the parameters again");
  auto stopped = std::move(result.edits.stopped);
  result.edits = recovered.finish();
  result.edits.stopped = std::move(stopped);
  llvm::StringSet<> names;
  for (const Tensor &tensor : graph.initializers)
    if (isFloat(tensor.value.dtype()) &&
        !result.edits.removed.count(tensor.name))
      names.insert(tensor.name);
  for (const Tensor &tensor : result.edits.added)
    if (isFloat(tensor.value.dtype()))
      names.insert(tensor.name);
  for (const auto &item : names) {
    StringRef name = item.first();
    const Entry *entry = signature.target(name);
    auto reason = reasons.find(name);
    if (entry ? entry->isParameter : trained.contains(name)) {
      result.parameters.insert(name);
      continue;
    }
    reportHidden(name);
    result.constants[name.str()] = entry ? "a buffer of the module"
                                   : reason != reasons.end()
                                       ? reason->second
                                       : "a constant, not a parameter";
  }
}
