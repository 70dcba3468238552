//===- TorchCalls.cpp - what a call of PyTorch means for gradients --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX's operators define values, not derivatives: detach() is an Identity, and
// the padding_idx of an embedding and the smoothing of a cross entropy are
// dropped. PyTorch's exporter records the call that each node came from, which
// still has these arguments.
//
//===----------------------------------------------------------------------===//
#include "TorchCalls.h"
#include "ckopt/Dialect/Ckopt/Utils/StopGradient.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

bool onnx_frontend::isCallOf(const Node &node, StringRef op) {
  std::string name = ("aten." + op + ".").str();
  return StringRef(node.fxTarget).starts_with(name) ||
         StringRef(node.fxNode).contains("target=torch.ops." + name);
}

std::optional<double> onnx_frontend::callNumber(const Node &node, StringRef op,
                                                size_t position,
                                                StringRef keyword) {
  if (!isCallOf(node, op))
    return std::nullopt;
  auto number = [](StringRef text) -> std::optional<double> {
    double value = 0;
    if (text.trim().getAsDouble(value))
      return std::nullopt;
    return value;
  };
  StringRef text = StringRef(node.fxNode).split("](args = (").second;
  auto [positional, named] = text.split("), kwargs = {");
  SmallVector<StringRef> arguments, keywords;
  positional.split(arguments, ',');
  named.split(keywords, ',');
  for (StringRef argument : keywords) {
    auto [key, value] = argument.split(':');
    if (key.trim() == keyword)
      return number(value.take_until([](char c) { return c == '}'; }));
  }
  // A list among the arguments would shift the positions after it.
  if (positional.contains('[') || position >= arguments.size())
    return std::nullopt;
  return number(arguments[position]);
}

Value onnx_frontend::stopGradient(NodeImporter &n, Value value) {
  return n.make<PinOp>({value}, {n.flag(kStopGradientAttr)});
}

Value onnx_frontend::clipOpenRange(NodeImporter &n, Value x, double lo,
                                   double hi) {
  Value result = n.clip(x, lo, hi);
  if (auto clip = result ? result.getDefiningOp<ClipOp>() : ClipOp())
    clip->setAttr("ckopt.open_range", n.b.getUnitAttr());
  return result;
}
