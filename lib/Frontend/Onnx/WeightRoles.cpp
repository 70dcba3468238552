//===- WeightRoles.cpp - what the weights of a graph are for --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file says which tensors it holds, not what they are: whether one is
// trained, is state or a mere constant, and how it is initialized where it has
// no value, follows from its readers. One walk in graph order carries, with
// each value, the weights that it only views; each reader adds a use.
// O(nodes + uses).
//
//===----------------------------------------------------------------------===//
#include "WeightRoles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
enum Use : unsigned {
  Contraction = 1,
  Bias = 2,
  Scale = 4,
  Embedding = 8,
  RunningMean = 16,
  RunningVariance = 32,
  Elementwise = 64,
  Known = 128, ///< a number that an op must know, such as Clip's bounds
  OtherUse = 256,
};

/// A weight that a value is a view of; `swapped` if a transpose of two
/// dimensions lies between.
struct View {
  size_t weight;
  bool swapped;
};

struct WeightUses {
  unsigned bits = 0;
  int64_t fanIn = 0, fanOut = 0;
};

class RoleFinder {
public:
  RoleFinder(const Graph &graph, llvm::ArrayRef<WeightSource> weights)
      : graph(graph), weights(weights), uses(weights.size()) {}
  void run();
  const WeightUses &usesOf(size_t weight) const { return uses[weight]; }

private:
  void visit(const Node &node);
  void visitSubgraph(const Node &node, const Graph &body);
  void carry(llvm::StringRef from, llvm::StringRef to);
  unsigned useOf(const Node &node, size_t operand, size_t weight) const;
  void noteFan(const Node &node, size_t operand, const View &view);

  const Graph &graph;
  llvm::ArrayRef<WeightSource> weights;
  std::vector<WeightUses> uses;
  llvm::StringMap<llvm::SmallVector<View, 1>> views;
};
} // namespace

/// Returns whether the op's result only holds elements of the operand.
static bool isView(const Node &node, size_t operand) {
  if (node.op == "Concat" || node.op == "ConcatFromSequence" ||
      node.op == "SequenceConstruct" || node.op == "SequenceInsert")
    return true;
  return operand == 0 &&
         llvm::StringSwitch<bool>(node.op)
             .Cases({"Identity", "Transpose", "Reshape", "Unsqueeze", "Squeeze",
                     "Slice", "Cast", "Flatten", "Split", "Expand",
                     "SplitToSequence", "SequenceAt", "SequenceErase"},
                    true)
             .Default(false);
}

unsigned RoleFinder::useOf(const Node &node, size_t operand,
                           size_t weight) const {
  llvm::StringRef op = node.op;
  if (op == "BatchNormalization") {
    constexpr unsigned roles[] = {Elementwise, Scale, Bias, RunningMean,
                                  RunningVariance};
    return operand < 5 ? roles[operand] : unsigned(OtherUse);
  }
  if (op.ends_with("Normalization"))
    return operand == 1 ? Scale : operand == 2 ? Bias : Elementwise;
  if (op == "Conv" || op == "ConvTranspose" || op == "Gemm")
    return operand == 2 ? Bias : Contraction;
  if (op == "MatMul" || (op == "MatMulNBits" && operand == 0))
    return Contraction;
  if (op == "MatMulNBits" && operand == 5)
    return Bias;
  if (op == "LSTM" || op == "GRU" || op == "RNN")
    return operand == 1 || operand == 2 ? Contraction
           : operand == 3               ? Bias
                                        : OtherUse;
  if (op == "Gather")
    return operand == 0 ? Embedding : OtherUse;
  bool setting =
      llvm::StringSwitch<bool>(op)
          .Cases({"Clip", "Dropout", "OneHot", "Pow", "Resize", "Upsample",
                  "QuantizeLinear", "DequantizeLinear", "RotaryEmbedding"},
                 operand >= 1)
          .Cases(
              {"Pad", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"},
              operand == 2)
          .Case("MatMulNBits", operand >= 2 && operand <= 4)
          .Case("Range", true)
          .Case("NonMaxSuppression", operand >= 2)
          .Default(false);
  if (setting)
    return Known;
  bool vector = weights[weight].shape.size() == 1;
  if (op == "Add" || op == "Sub")
    return vector ? Bias : Elementwise;
  if (op == "Mul" || op == "Div")
    return vector ? Scale : Elementwise;
  return Elementwise;
}

/// Computes how many inputs each output of a contraction sums, as PyTorch
/// counts.
void RoleFinder::noteFan(const Node &node, size_t operand, const View &view) {
  const auto &shape = weights[view.weight].shape;
  WeightUses &use = uses[view.weight];
  if (use.fanIn || shape.size() < 2)
    return;
  int64_t window = 1;
  for (size_t d = 2; d < shape.size(); ++d)
    window *= shape[d];
  bool isMatrix = node.op == "Gemm" || node.op == "MatMul";
  bool outputsFirst = true; // [outputs, inputs, window...]
  if (isMatrix) {
    bool flipped = view.swapped;
    if (node.op == "Gemm" && node.intAttribute(operand ? "transB" : "transA"))
      flipped = !flipped;
    outputsFirst = (operand == 1) == flipped;
    use.fanIn = shape[shape.size() - (outputsFirst ? 1 : 2)];
    use.fanOut = shape[shape.size() - (outputsFirst ? 2 : 1)];
    return;
  }
  if (node.op == "Conv" || node.op == "ConvTranspose") {
    use.fanIn = shape[1] * window;
    use.fanOut = shape[0] * window;
    return;
  }
  use.fanIn = shape.back();
  use.fanOut = shape[shape.size() - 2];
}

/// Makes `to` a view of the weights that `from` is a view of.
void RoleFinder::carry(llvm::StringRef from, llvm::StringRef to) {
  auto found = views.find(from);
  if (to.empty() || found == views.end())
    return;
  llvm::SmallVector<View, 1> carried = found->second;
  llvm::append_range(views[to], carried);
}

/// A subgraph's nodes are visited like the graph's; its inputs and results are
/// bound to the node's operands and results.
void RoleFinder::visitSubgraph(const Node &node, const Graph &body) {
  bool isLoop = node.op == "Loop";
  size_t skippedInputs = node.op == "Scan" && node.opset < 9 ? 1 : 0;
  for (auto [i, input] : llvm::enumerate(body.inputs))
    if (i + skippedInputs < node.inputs.size() && !(isLoop && i < 2))
      carry(node.inputs[i + skippedInputs], input.name);
  for (const Node &inner : body.nodes)
    visit(inner);
  for (auto [i, output] : llvm::enumerate(body.outputs))
    if (i >= isLoop && i - isLoop < node.outputs.size())
      carry(output.name, node.outputs[i - isLoop]);
}

void RoleFinder::visit(const Node &node) {
  bool hasSubgraph = false;
  for (const NodeAttribute &attribute : node.attributes)
    if (attribute.graph) {
      hasSubgraph = true;
      visitSubgraph(node, *attribute.graph);
    }
  if (hasSubgraph)
    return;
  for (auto [i, input] : llvm::enumerate(node.inputs)) {
    auto found = views.find(input);
    if (input.empty() || found == views.end())
      continue;
    llvm::SmallVector<View, 1> carried = found->second;
    if (isView(node, i)) {
      for (View &view : carried)
        if (node.op == "Transpose")
          view.swapped = !view.swapped;
      for (const std::string &output : node.outputs)
        if (!output.empty())
          llvm::append_range(views[output], carried);
      continue;
    }
    for (const View &view : carried) {
      unsigned use = useOf(node, i, view.weight);
      uses[view.weight].bits |= use;
      if (use == Contraction)
        noteFan(node, i, view);
    }
  }
}

void RoleFinder::run() {
  for (auto [i, weight] : llvm::enumerate(weights))
    views[weight.name].push_back({i, false});
  for (const Node &node : graph.nodes)
    visit(node);
}

static llvm::StringRef initFor(unsigned bits, llvm::StringRef name) {
  if (bits & Embedding)
    return "normal";
  if (bits & Contraction)
    return "kaiming";
  if (bits & RunningVariance)
    return "ones";
  if (bits & RunningMean)
    return "zeros";
  if (bits & Scale)
    return "ones";
  if ((bits & Bias) || name.ends_with("bias"))
    return "zeros";
  return "normal";
}

llvm::StringMap<WeightRole> onnx_frontend::findWeightRoles(
    const Graph &graph, llvm::ArrayRef<WeightSource> weights,
    llvm::function_ref<bool(llvm::StringRef)> isFrozen) {
  RoleFinder finder(graph, weights);
  finder.run();
  llvm::StringMap<WeightRole> roles;
  for (auto [i, weight] : llvm::enumerate(weights)) {
    const WeightUses &uses = finder.usesOf(i);
    WeightRole role;
    role.dtype = weight.dtype;
    role.shape = weight.shape;
    role.init = initFor(uses.bits, weight.name);
    role.fanIn = uses.fanIn;
    role.fanOut = uses.fanOut;
    bool isNumber =
        weight.shape.empty() && !(uses.bits & ~(Elementwise | Known));
    if (!isFloat(weight.dtype))
      role.role = "";
    else if (uses.bits & (RunningMean | RunningVariance))
      role.role = "state";
    else if (weight.hasValue && (uses.bits == Known || isNumber)) {
      role.role = "";
      role.isFactor = isNumber && (uses.bits & Elementwise);
    } else if (isFrozen(weight.name))
      role.role = "frozen";
    else
      role.role = "parameter";
    roles[weight.name] = std::move(role);
  }
  return roles;
}

/// Returns the shape that a ConstantOfShape node makes, if the file tells.
static std::optional<std::vector<Dim>> constantShape(const Graph &graph,
                                                     const Node &node) {
  for (const Tensor &tensor : graph.initializers) {
    if (node.inputs.empty() || tensor.name != node.inputs[0] ||
        tensor.value.dtype() != DType::I64)
      continue;
    std::vector<Dim> shape;
    for (int64_t size : tensor.value.data<int64_t>())
      shape.push_back({size, ""});
    return shape;
  }
  return std::nullopt;
}

std::vector<ValueInfo> onnx_frontend::takeConstantWeights(Graph &graph) {
  std::vector<WeightSource> sources;
  std::vector<ValueInfo> infos;
  llvm::StringSet<> outputs;
  for (const ValueInfo &output : graph.outputs)
    outputs.insert(output.name);
  for (const Node &node : graph.nodes) {
    DType type = DType::F32;
    for (const NodeAttribute &attribute : node.attributes)
      if (attribute.name == "value" && attribute.tensor)
        type = attribute.tensor->dtype();
    if (node.op != "ConstantOfShape" || !isFloat(type) ||
        node.outputs.size() != 1 || outputs.contains(node.outputs[0]))
      continue;
    auto shape = constantShape(graph, node);
    if (!shape)
      continue;
    infos.push_back({node.outputs[0], type, dtypeName(type), *shape});
    sources.push_back({node.outputs[0], type, {}, false});
    for (const Dim &dim : *shape)
      sources.back().shape.push_back(dim.size);
  }
  RoleFinder finder(graph, sources);
  finder.run();
  constexpr unsigned weightUses = Contraction | Bias | Scale | Embedding |
                                  RunningMean | RunningVariance | Elementwise;
  std::vector<ValueInfo> result;
  llvm::StringSet<> taken;
  for (auto [i, info] : llvm::enumerate(infos)) {
    unsigned uses = finder.usesOf(i).bits;
    if (!(uses & weightUses) || (uses & ~weightUses))
      continue;
    taken.insert(info.name);
    result.push_back(std::move(info));
  }
  llvm::erase_if(graph.nodes, [&](const Node &node) {
    return node.op == "ConstantOfShape" && taken.contains(node.outputs[0]);
  });
  return result;
}
