//===- ExportUnsigned.cpp - exports that list no parameters ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PyTorch's TorchScript exporter writes no signature. Its names tell much:
// initializers keep the names of the state dict, folded constants are called
// "onnx::MatMul_31" after their reader, nodes are called by their modules
// ("/layers.0/fc/MatMul"), and equal initializers that it merged stand behind
// nodes "Identity_3". Files of other exporters are left as they are. Buffers
// and parameters look alike: masks and tables of sines and cosines are
// recognized by their values; other tensors whose names torch.nn does not use
// are listed as unclear.
//
//===----------------------------------------------------------------------===//
#include "ExportAnalysis.h"
#include "RecoveredParameters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cmath>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::StringRef;

namespace {
class TorchScriptFile {
public:
  TorchScriptFile(const Model &model, ExportAnalysis &result)
      : graph(model.graph), result(result), recovered(model) {}
  void run();

private:
  void noteNamed(StringRef name, const HostTensor &value);
  bool isAnonymous(StringRef name) const { return name.starts_with("onnx::"); }
  /// Returns "layers.0.fc" for "/layers.0/fc/MatMul"; "" for other names.
  std::string moduleOf(const Node &node) const;
  void splitMerged();
  void matchOperand(OperandUse use);
  bool bindTied(OperandUse use);
  bool bindByBias(OperandUse use);
  bool bindRecurrent(OperandUse use);

  const Graph &graph;
  ExportAnalysis &result;
  RecoveredParameters recovered;
  llvm::StringMap<int> modules;   ///< products that each module makes
  llvm::StringMap<size_t> biasOf; ///< node that adds a bias to this value
  std::set<size_t> foldedNorms;
};
} // namespace

std::string TorchScriptFile::moduleOf(const Node &node) const {
  StringRef name = node.name;
  if (!name.consume_front("/") || !name.contains('/'))
    return "";
  // A module in a list has the list's name in its path: "/h.0/h.0.fc/MatMul".
  StringRef path = name.rsplit('/').first;
  std::string module;
  llvm::SmallVector<StringRef> parts;
  path.split(parts, '/');
  for (StringRef part : parts) {
    if (!module.empty() && part.starts_with(module + "."))
      module = part.str();
    else
      module += (module.empty() ? "" : ".") + part.str();
  }
  return module;
}

/// Splits equal initializers that the exporter merged in evaluation mode. Tied
/// parameters never look like this: the exporter gives them one name.
void TorchScriptFile::splitMerged() {
  int64_t count = 0;
  for (auto [i, node] : llvm::enumerate(graph.nodes)) {
    StringRef name = node.name;
    if (node.op != "Identity" || !name.consume_front("Identity_") ||
        node.inputs.size() != 1 || !recovered.initializer(node.inputs[0]))
      continue;
    recovered.replaceNode(i);
    ++count;
  }
  if (count)
    result.notes.push_back(std::to_string(count) +
                           " parameters share the initializer of an equal one: "
                           "each has its own again");
}

/// A folded transpose with exactly the elements of a named weight was tied to
/// it.
bool TorchScriptFile::bindTied(OperandUse use) {
  const HostTensor &value = recovered.valueOf(use);
  if (value.rank() != 2 || value.numElements() < 4)
    return false;
  for (const Tensor &tensor : graph.initializers) {
    const HostTensor &other = tensor.value;
    if (isAnonymous(tensor.name) || other.rank() != 2 ||
        other.dtype() != value.dtype() || other.dim(0) != value.dim(1) ||
        other.getDouble(0) == other.getDouble(other.numElements() - 1))
      continue;
    if (recovered.bind(use, tensor.name, Form::Transposed))
      return true;
  }
  return false;
}

/// linear(x, weight, bias) is exported as Add(bias, MatMul(x, transposed
/// weight)), unlike x @ weight + bias, which has the bias second;
/// "a.in_proj_bias" names "a.in_proj_weight".
bool TorchScriptFile::bindByBias(OperandUse use) {
  auto found = biasOf.find(graph.nodes[use.node].outputs[0]);
  if (use.operand != 1 || found == biasOf.end())
    return false;
  StringRef name = graph.nodes[found->second].inputs[0];
  const HostTensor *bias = recovered.initializer(name);
  if (!bias || isAnonymous(name) || !name.consume_back("bias") ||
      bias->rank() != 1 || bias->dim(0) != recovered.valueOf(use).dim(1))
    return false;
  std::string weight = (name + "weight").str();
  return !recovered.initializer(weight) &&
         recovered.bind(use, weight, Form::Transposed);
}

bool TorchScriptFile::bindRecurrent(OperandUse use) {
  const Node &node = graph.nodes[use.node];
  StringRef last = StringRef(node.name).rsplit('/').second;
  std::string module = moduleOf(node);
  int layer = 0;
  last.consume_front(node.op);
  if (module.empty() || use.operand < 1 || use.operand > 3 ||
      (last.consume_front("_") && last.getAsInteger(10, layer)))
    return false;
  size_t directions = 1;
  for (const NodeAttribute &attribute : node.attributes)
    if (attribute.name == "direction" && attribute.s == "bidirectional")
      directions = 2;
  std::vector<std::string> targets;
  for (size_t d = 0; d < directions; ++d) {
    std::string end = "_l" + std::to_string(layer) + (d ? "_reverse" : "");
    if (use.operand < 3)
      targets.push_back(module +
                        (use.operand == 1 ? ".weight_ih" : ".weight_hh") + end);
    else
      targets.insert(targets.end(),
                     {module + ".bias_ih" + end, module + ".bias_hh" + end});
  }
  llvm::SmallVector<int64_t> order =
      node.op == "LSTM"  ? llvm::SmallVector<int64_t>{0, 3, 1, 2}
      : node.op == "GRU" ? llvm::SmallVector<int64_t>{1, 0, 2}
                         : llvm::SmallVector<int64_t>{0};
  return recovered.bindPacked(use, targets, order, directions);
}

/// Returns whether all lanes along the dimension are sin(w t + p) or cos(w t +
/// p) for t = 0, 1, ..., with p a multiple of pi / 2: then v[t+1] + v[t-1] is k
/// v[t], with one k for the lane. Rounding errors grow with t.
static bool isSinusoidalAlong(const HostTensor &value, size_t dim) {
  int64_t size = value.dim(dim), inner = 1;
  for (size_t d = dim + 1; d < size_t(value.rank()); ++d)
    inner *= value.dim(d);
  if (size < 4)
    return false;
  bool varies = false;
  for (int64_t lane = 0; lane < value.numElements() / size; ++lane) {
    auto at = [&](int64_t t) {
      return value.getDouble((lane / inner * size + t) * inner + lane % inner);
    };
    double first = at(0), second = at(1);
    bool isSine = first == 0, isCosine = std::abs(first) == 1;
    double step = isSine     ? std::asin(std::clamp(second, -1.0, 1.0))
                  : isCosine ? std::acos(std::clamp(second / first, -1.0, 1.0))
                             : 0;
    if (!isSine && !isCosine)
      return false;
    // The sine of the first step does not tell on which side of pi / 2 it is.
    double other = isSine ? std::acos(-1) - step : step;
    auto follows = [&](double w) {
      for (int64_t t = 0; t < size; ++t) {
        double wanted = isSine ? std::sin(w * t) : first * std::cos(w * t);
        if (!(std::abs(at(t) - wanted) <= 1e-5 * (t + 1)))
          return false;
      }
      return true;
    };
    if (!follows(step) && !follows(other))
      return false;
    varies |= at(size - 1) != first;
  }
  return varies;
}

/// Returns whether the value is a table of rotary or position encodings.
static bool isSinusoidal(const HostTensor &value) {
  for (size_t dim = 0; value.rank() >= 2 && dim < size_t(value.rank()); ++dim)
    if (isSinusoidalAlong(value, dim))
      return true;
  return false;
}

/// Returns whether modules of torch.nn give a parameter this name.
static bool isUsualName(StringRef name) {
  StringRef leaf = name.contains('.') ? name.rsplit('.').second : name;
  return leaf.starts_with("weight") || leaf.starts_with("bias") ||
         leaf.ends_with("_weight") || leaf.ends_with("_bias") ||
         leaf.starts_with("original");
}

void TorchScriptFile::noteNamed(StringRef name, const HostTensor &value) {
  if (isSinusoidal(value)) {
    result.constants[name.str()] = "a table of sines and cosines; " +
                                   Setting("train", "'.*'") + " trains it";
    result.likelyConstants.insert(name);
  } else if (!isUsualName(name) && !llvm::is_contained(result.unclear, name)) {
    result.unclear.push_back(name.str());
  }
}

void TorchScriptFile::matchOperand(OperandUse use) {
  const Node &node = graph.nodes[use.node];
  const std::string &name = recovered.nameOf(use);
  const HostTensor &value = recovered.valueOf(use);
  if (isMask(value)) {
    result.constants[name] = "a mask";
    return;
  }
  if (!isAnonymous(name)) {
    if (node.op != "BatchNormalization" || use.operand < 3)
      noteNamed(name, value);
    // In these files, numbers that a node needs are Constant nodes.
    bool isBound = (node.op == "Clip" || node.op == "Pad") && use.operand > 0;
    if (value.rank() == 0 && !isBound)
      result.parameters.insert(name);
    return;
  }
  std::string module = moduleOf(node);
  if (node.op == "Conv" || node.op == "ConvTranspose") {
    if (foldedNorms.insert(use.node).second)
      result.lost.push_back(node.describe() +
                            ": its weights hold a batch norm that was folded "
                            "into them");
    return;
  }
  if (node.op == "LSTM" || node.op == "GRU" || node.op == "RNN") {
    if (use.operand <= 3 && bindRecurrent(use))
      return;
    if (use.operand > 3) {
      result.constants[name] = "an initial state";
      return;
    }
  }
  if (node.op == "MatMul" && value.rank() == 2) {
    // Only a module that makes one product can be recognized as a linear layer.
    bool linear = StringRef(node.name).ends_with("/MatMul") &&
                  use.operand == 1 && modules.lookup(module) == 1;
    if (bindTied(use) || bindByBias(use) ||
        (linear && recovered.bind(use, module + ".weight", Form::Transposed)))
      return;
  }
  if (value.rank() > 0)
    result.lost.push_back(node.describe() + ": '" + name +
                          "' was computed when exporting; it may hold "
                          "parameters");
}

void TorchScriptFile::run() {
  result.form = "PyTorch (TorchScript)";
  splitMerged();
  for (auto [i, node] : llvm::enumerate(graph.nodes)) {
    if (node.op == "MatMul")
      ++modules[moduleOf(node)];
    if (node.op == "Add" && node.inputs.size() == 2)
      biasOf[node.inputs[1]] = i;
  }
  for (auto [i, node] : llvm::enumerate(graph.nodes))
    for (size_t operand = 0; operand < node.inputs.size(); ++operand) {
      const HostTensor *value = recovered.initializer(node.inputs[operand]);
      if (value && isFloat(value->dtype()) && node.op != "Identity")
        matchOperand({i, operand});
    }
  if (recovered.numFormed)
    result.notes.push_back(std::to_string(recovered.numFormed) +
                           " weights are stored transposed or packed: they are "
                           "made from the parameters again");
  result.edits = recovered.finish();
}

void onnx_frontend::analyzeUnsigned(const Model &model,
                                    ExportAnalysis &result) {
  bool scoped = llvm::any_of(model.graph.nodes, [](const Node &node) {
    return StringRef(node.name).starts_with("/");
  });
  if (model.producer == "pytorch" && scoped) {
    TorchScriptFile(model, result).run();
    return;
  }
  result.form = model.producer.empty() ? "of an exporter that is not named"
                                       : "of " + model.producer;
  for (const Tensor &tensor : model.graph.initializers)
    if (isMask(tensor.value))
      result.constants[tensor.name] = "a mask";
}
