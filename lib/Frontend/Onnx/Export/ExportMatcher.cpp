//===- ExportMatcher.cpp - parameters of a signature in a graph -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: PyTorch's exporter optimizes for inference unless told otherwise: it
// merges initializers of equal value, stores weights transposed, folds batch
// norms into convolutions. Trained in that form, the file is another network.
// Method: each node still names the call of the exported program that it came
// from, and the call names its parameters. For each call, the operands of its
// nodes are matched with the parameters of the call: by position where operator
// and call agree, by name, or where only one of each is left. An operand that
// reads the initializer of a parameter which its call does not have was merged.
// A parameter that a call has and no operand reads is lost. Complexity: O(nodes
// + operands + bytes of weights that change their form).
//
//===----------------------------------------------------------------------===//
#include "ExportMatcher.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;

bool onnx_frontend::isMask(const HostTensor &value) {
  if (!isFloat(value.dtype()) || value.numElements() < 2)
    return false;
  bool hasLow = false, hasZero = false;
  for (int64_t i = 0; i < value.numElements(); ++i) {
    double element = value.getDouble(i);
    hasLow |= element <= -100;
    hasZero |= element == 0;
    if (!(element <= -100) && element != 0)
      return false;
  }
  return hasLow && hasZero;
}

namespace {
/// Maps an operand of an operator to an argument of a call.
struct Place {
  const char *call, *op;
  size_t operand;
  int argument; ///< -1 for a constant that the lowering adds
  Form form;
};
/// Operators whose operands differ from the call's in order or form.
constexpr Place places[] = {
    {"linear", "MatMul", 1, 1, Form::Transposed},
    // not transposed if transB is set
    {"linear", "Gemm", 1, 1, Form::Transposed},
    {"linear", "Gemm", 2, 2, Form::Same},
    {"linear", "Add", 0, 2, Form::Same},
    {"linear", "Add", 1, 2, Form::Same},
    {"addmm", "Gemm", 0, 1, Form::Same},
    {"addmm", "Gemm", 1, 2, Form::Same},
    {"addmm", "Gemm", 2, 0, Form::Same},
    {"prelu", "PRelu", 1, 1, Form::Reshaped},
    {"group_norm", "InstanceNormalization", 1, -1, Form::Same},
    {"group_norm", "InstanceNormalization", 2, -1, Form::Same},
    {"group_norm", "Mul", 1, 2, Form::Reshaped},
    {"group_norm", "Add", 1, 3, Form::Reshaped},
    {"group_norm", "GroupNormalization", 1, 2, Form::Same},
    {"group_norm", "GroupNormalization", 2, 3, Form::Same},
    {"layer_norm", "LayerNormalization", 1, 2, Form::Same},
    {"layer_norm", "LayerNormalization", 2, 3, Form::Same},
    {"rms_norm", "RMSNormalization", 1, 2, Form::Same},
    {"rms_norm", "Mul", 0, 2, Form::Same},
    {"rms_norm", "Mul", 1, 2, Form::Same},
    {"instance_norm", "InstanceNormalization", 1, 1, Form::Same},
    {"instance_norm", "InstanceNormalization", 2, 2, Form::Same},
    {"embedding", "Gather", 0, 0, Form::Same},
};
} // namespace

static std::optional<Place> placeOf(const FxCall &call, const Node &node,
                                    size_t operand) {
  if (node.op == "BatchNormalization" &&
      StringRef(call.op).contains("batch_norm") && operand >= 1)
    return Place{"", "", operand, int(operand), Form::Same};
  if (StringRef(call.op).starts_with("conv") &&
      (node.op == "Conv" || node.op == "ConvTranspose") && operand >= 1)
    return Place{"", "", operand, int(operand), Form::Same};
  for (Place place : places)
    if (call.op == place.call && node.op == place.op &&
        operand == place.operand) {
      if (node.op == "Gemm" && operand == 1 && node.intAttribute("transB"))
        place.form = place.form == Form::Same ? Form::Transposed : Form::Same;
      return place;
    }
  return std::nullopt;
}

ExportMatcher::ExportMatcher(const Model &model, const MergedValues &values,
                             ExportAnalysis &result)
    : graph(model.graph), result(result), signature(readSignature(model.graph)),
      recovered(model), merged(values.suspects) {
  for (const std::string &value : values.gone)
    produced.insert(value);
  calls.reserve(graph.nodes.size());
  for (const ValueInfo &input : graph.inputs)
    produced.insert(input.name);
  for (const std::string &input : signature.inputs)
    produced.insert(input);
  for (const Node &node : graph.nodes) {
    calls.push_back(readFxCall(node, signature));
    produced.insert(calls.back().name);
    for (const std::string &output : node.outputs)
      produced.insert(output);
  }
  for (auto [i, call] : llvm::enumerate(calls))
    groups[call.name].push_back(i);
  findConstantValues();
}

bool ExportMatcher::readsInitializer(OperandUse use) const {
  const HostTensor *value = recovered.initializer(recovered.nameOf(use));
  return value &&
         (isFloat(value->dtype()) || signature.target(recovered.nameOf(use)));
}

/// Returns whether operands and the call's values have the same positions.
bool ExportMatcher::isPositional(const Node &node, const FxCall &call) const {
  if (call.guessed || node.inputs.size() != call.args.size())
    return false;
  for (auto [input, argument] : llvm::zip(node.inputs, call.args)) {
    bool isConstant = recovered.initializer(input);
    bool mayBeConstant =
        signature.placeholder(argument) || !produced.contains(argument);
    // Equal names mean the same value; a value of another name may be the
    // argument in another type.
    if (isConstant != mayBeConstant)
      return false;
  }
  return true;
}

void ExportMatcher::noteConstant(OperandUse use, StringRef reason) {
  const std::string &name = recovered.nameOf(use);
  const Entry *entry = signature.target(name);
  // A parameter may have had the value of a constant when it was exported.
  if (entry && entry->isParameter)
    recovered.separate(use);
  else if (!entry)
    reasons.try_emplace(name, reason.str());
}

/// The operand is the parameter itself, unless an anonymous constant holds it:
/// then only its value tells its form.
void ExportMatcher::bindPlain(OperandUse use, const Entry &entry) {
  const std::string &name = recovered.nameOf(use);
  bool named = signature.target(name) || name == entry.placeholder;
  bool known = recovered.initializer(entry.target);
  if ((named || known) && recovered.bind(use, entry.target, Form::Same))
    boundHere.insert(entry.target);
  else if (known && recovered.bind(use, entry.target, Form::Transposed))
    boundHere.insert(entry.target);
  else
    open.push_back(use);
}

bool onnx_frontend::isUniform(const HostTensor &value) {
  for (int64_t i = 1; i < value.numElements(); ++i)
    if (value.getDouble(i) != value.getDouble(0))
      return false;
  return true;
}

/// If the call itself is not known, equal numbers that no initialization
/// repeats show that two modules share one parameter.
bool ExportMatcher::bindOrTie(OperandUse use, const Entry &entry, Form form,
                              bool guessed) {
  const Entry *other = signature.target(recovered.nameOf(use));
  if (!guessed || !other || other == &entry || form != Form::Same ||
      isUniform(recovered.valueOf(use)))
    return recovered.bind(use, entry.target, form);
  recovered.claim(other->target);
  if (settled.insert(entry.target).second)
    result.tied.emplace(entry.target, other->target);
  return true;
}

/// The exporter drops biases that are zero; the weight gives their length.
bool ExportMatcher::restoreBias(size_t number, const Entry &entry) {
  const Node &node = graph.nodes[number];
  const auto &positions = calls[number].positions;
  StringRef rule = node.rewriteRule;
  bool isBias = calls[number].op == "addmm"
                    ? !positions.empty() && positions[0] == entry.placeholder
                    : positions.size() > 2 && positions[2] == entry.placeholder;
  if (!isBias || !rule.contains("RemoveOptionalBiasFrom") ||
      rule.contains("BatchNorm") || node.inputs.size() < 2 ||
      (node.inputs.size() > 2 && !node.inputs[2].empty()))
    return false;
  const HostTensor *weight = recovered.initializer(node.inputs[1]);
  if (!weight || weight->rank() < 2)
    return false;
  int64_t size = weight->dim(0);
  if (node.op == "Gemm" && !node.intAttribute("transB"))
    size = weight->dim(1);
  else if (node.op == "ConvTranspose")
    size = weight->dim(1) * std::max<int64_t>(1, node.intAttribute("group"));
  return recovered.append({number, 2}, entry.target,
                          HostTensor(weight->dtype(), {size}));
}

/// "table[t]" is a lookup in a copy of the parameter that has the indexed
/// dimensions first; if they are the first ones already, in the parameter.
bool ExportMatcher::bindIndexed(OperandUse use, const FxCall &call) {
  const Entry *entry =
      call.args.empty() ? nullptr : signature.placeholder(call.args[0]);
  StringRef text = graph.nodes[use.node].fxNode;
  if (call.op != "index" || !entry || !entry->isParameter ||
      soleSource(recovered.nameOf(use)) != entry ||
      !text.contains("(%" + entry->placeholder + ", [%") ||
      text.contains("None") || !recovered.bind(use, entry->target, Form::Same))
    return false;
  boundHere.insert(entry->target);
  return true;
}

/// Returns whether the call reads a constant that is gone, in place of which it
/// may read this one, which is equal.
bool ExportMatcher::standsForAnother(StringRef name, const FxCall &call) const {
  return !call.guessed && !llvm::is_contained(call.args, name) &&
         llvm::any_of(call.args, [&](StringRef argument) {
           return !signature.placeholder(argument) &&
                  !produced.contains(argument) &&
                  !constant.contains(argument) &&
                  !recovered.initializer(argument);
         });
}

void ExportMatcher::matchOperand(OperandUse use, const FxCall &call,
                                 size_t groupSize) {
  const Node &node = graph.nodes[use.node];
  const std::string &name = recovered.nameOf(use);
  if (isFromNoParameter(name) && !standsForAnother(name, call))
    return noteConstant(use, "computed from buffers and numbers alone");
  if (bindIndexed(use, call))
    return;
  auto place = placeOf(call, node, use.operand);
  if (place && place->argument < 0)
    return noteConstant(use, "a constant of the operator");
  if (place && size_t(place->argument) < call.positions.size()) {
    Form placedForm = place->form;
    const std::string &argument = call.positions[size_t(place->argument)];
    if (const Entry *entry = signature.placeholder(argument)) {
      if (bindOrTie(use, *entry, place->form, call.guessed))
        boundHere.insert(entry->target);
      else
        open.push_back(use);
      return;
    }
    if (!argument.empty() && !produced.contains(argument))
      return noteFolded(use, call, argument, placedForm);
  }
  // It stands for several calls, so names must decide.
  if (!node.rewriteRule.empty()) {
    if (const Entry *entry = signature.target(name)) {
      recovered.claim(entry->target);
      boundHere.insert(entry->target);
    } else {
      trained.insert(name);
    }
    return;
  }
  if (groupSize == 1 && isPositional(node, call)) {
    const std::string &argument = call.args[use.operand];
    if (const Entry *entry = signature.placeholder(argument))
      return bindPlain(use, *entry);
    return noteFolded(use, call, argument);
  }
  const Entry *entry = signature.target(name);
  bool own = entry && llvm::is_contained(call.args, entry->placeholder);
  // A module may read a parameter of a submodule without calling it.
  if (entry && call.guessed && !node.scopes.empty())
    own |= StringRef(name).starts_with(node.scopes.back() + ".") ||
           node.scopes.back().empty();
  if (own) {
    recovered.claim(entry->target);
    boundHere.insert(entry->target);
    return;
  }
  open.push_back(use);
}

void ExportMatcher::noteMissing(ArrayRef<size_t> nodes,
                                ArrayRef<const Entry *> missing) {
  const Node &node = graph.nodes[nodes.back()];
  bool isQuantized = llvm::any_of(nodes, [&](size_t i) {
    return llvm::any_of(graph.nodes[i].inputs, [&](StringRef input) {
      return result.quantized.contains(input);
    });
  });
  for (const Entry *entry : missing) {
    if (isQuantized) {
      settled.insert(entry->target);
      continue;
    }
    if (!entry->isParameter || !settled.insert(entry->target).second)
      continue;
    bool isNorm = StringRef(node.rewriteRule).contains("BatchNorm") ||
                  StringRef(calls[nodes.back()].op).contains("batch_norm");
    lose(*entry, node.describe() +
                     (isNorm ? " holds its batch norm folded into the weights"
                             : " holds it in a form that cannot be undone"));
  }
}

/// A batch norm without parameters of its own leaves no parameter missing.
void ExportMatcher::noteFoldedNorm(ArrayRef<size_t> nodes, const FxCall &call) {
  bool reported = llvm::any_of(call.args, [&](const std::string &argument) {
    const Entry *entry = signature.placeholder(argument);
    return entry && entry->isParameter && settled.contains(entry->target);
  });
  const Node &node = graph.nodes[nodes.back()];
  if (!reported)
    result.lost.push_back("'" + (call.name.empty() ? node.name : call.name) +
                          "': " + node.describe() +
                          " holds this batch norm folded into the weights");
}

void ExportMatcher::matchCall(ArrayRef<size_t> nodes) {
  const FxCall &call = calls[nodes.front()];
  open.clear();
  boundHere.clear();
  matchStops(nodes, call);
  bool isRecurrent = matchRecurrent(nodes, call);
  for (size_t node : nodes)
    for (size_t operand = 0; operand < graph.nodes[node].inputs.size();
         ++operand) {
      const std::string &op = graph.nodes[node].op;
      OperandUse use{node, operand};
      bool done = isRecurrent && (op == "LSTM" || op == "GRU" || op == "RNN");
      if (!done && readsInitializer(use))
        matchOperand(use, call, nodes.size());
    }
  llvm::SmallVector<const Entry *> missing;
  for (const std::string &argument : call.args) {
    const Entry *entry = signature.placeholder(argument);
    if (entry && !boundHere.contains(entry->target) &&
        !llvm::is_contained(missing, entry))
      missing.push_back(entry);
  }
  llvm::SmallVector<OperandUse> merged;
  for (OperandUse use : open)
    if (signature.target(recovered.nameOf(use)))
      merged.push_back(use);
  llvm::erase_if(missing, [&](const Entry *entry) {
    return llvm::any_of(nodes,
                        [&](size_t node) { return restoreBias(node, *entry); });
  });
  if (missing.size() == 1 && merged.size() == 1 &&
      bindOrTie(merged[0], *missing[0], Form::Same, call.guessed)) {
    llvm::erase_if(open, [&](OperandUse use) {
      return use.node == merged[0].node && use.operand == merged[0].operand;
    });
    missing.clear();
  }
  bool unclear = false;
  for (OperandUse use : open) {
    unclear |= !recovered.valueOf(use).shape().empty();
    if (missing.empty() || call.guessed)
      noteFolded(use, call, "");
    else
      trained.insert(recovered.nameOf(use));
  }
  llvm::erase_if(missing, [&](const Entry *entry) {
    // Perhaps only its shape was read.
    return (recovered.isBound(entry->target) && !unclear) ||
           settled.contains(entry->target);
  });
  bool isNorm = llvm::any_of(nodes, [&](size_t node) {
    return StringRef(graph.nodes[node].rewriteRule).contains("BatchNorm");
  });
  if (call.guessed && !isNorm)
    return; // a call without a node may have read it
  if (!missing.empty())
    noteMissing(nodes, missing);
  if (isNorm)
    noteFoldedNorm(nodes, call);
}

void ExportMatcher::run() {
  result.isSigned = true;
  // Match initializers that have a parameter's own name first, for nodes
  // without a call.
  auto claim = [&](const Node &node) {
    for (const std::string &input : node.inputs)
      if (signature.target(input) && recovered.initializer(input))
        recovered.claim(input);
  };
  for (size_t node : groups.lookup("")) {
    claim(graph.nodes[node]);
    for (size_t operand = 0; operand < graph.nodes[node].inputs.size();
         ++operand)
      noteNameless({node, operand});
  }
  for (const Node &node : graph.nodes)
    for (const NodeAttribute &attribute : node.attributes)
      if (attribute.graph)
        forEachNode(attribute.graph->nodes, claim);
  for (auto &[name, nodes] : groups)
    if (!name.empty())
      matchCall(nodes);
  finishStops();
  findTied();
  explainConstants();
  explainByNotes();
  explainBiasOnly();
  explainTiedViews();
  reportFolded();
  finish();
}

ExportAnalysis onnx_frontend::analyzeExport(const Model &model) {
  ExportAnalysis result;
  for (const Node &node : model.graph.nodes)
    result.hasDropout |=
        node.op == "Dropout" || node.op == "RandomUniformLike" ||
        llvm::any_of(node.classes, [](StringRef name) { // as random numbers
          return name.starts_with("torch.nn.modules.dropout.");
        });
  if (auto noted = model.graph.metadata.find("ckopt.frozen");
      noted != model.graph.metadata.end()) {
    result.frozen.emplace();
    for (StringRef name : llvm::split(noted->second, '\n'))
      result.frozen->insert(name);
  }
  result.quantized = findQuantized(model.graph);
  compareCalls(model.graph, result);
  if (readSignature(model.graph).entries.empty())
    analyzeUnsigned(model, result);
  else {
    MergedValues merged = MergedCalls(model.graph).find();
    llvm::append_range(result.lost, merged.lost);
    ExportMatcher(model, merged, result).run();
  }
  return result;
}
