//===- Arithmetic.cpp - seconds of an op's arithmetic ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: estimate how much an op of any dialect computes. Method: ckopt's own
// ops state it; linalg ops have loop ranges and a body; loops have trip counts,
// and run once where they are unknown. All other ops are judged by their shapes
// and their name: products (matmul, dot), convolutions, else one operation an
// element, weighted if the name is that of a transcendental function. Small
// contractions reach less than the peak rate, which falls with the smallest
// dimension. Guarantee: finite, not negative. Complexity: O(ops inside).
//
//===----------------------------------------------------------------------===//
#include "Loops.h"
#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Interfaces/KernelInterface.h"
#include "ckopt/Interfaces/StructureInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

/// Scalar operations a second, executed one at a time.
static constexpr double scalarRate = 1e9;

/// Operations on a score of attention between the products.
static constexpr double kScorePasses = 20, kScoreDropout = 16, kScoreCap = 30;

/// Returns the share of the peak rate that a contraction with this smallest
/// dimension reaches. What keeps blocks of a device from it is counted by its
/// code (attrs::kProductTime).
static double sizeEfficiency(int64_t smallest, const MachineRates &rates) {
  if (smallest >= 64 || rates.multiprocessors > 0)
    return 1;
  return smallest >= 16 ? 0.6 : 0.25;
}

static int64_t groupsOf(Operation *op) {
  auto groups = op->getAttrOfType<IntegerAttr>("groups");
  return groups ? groups.getInt() : 0;
}

/// Returns the seconds of an op in which the ranks of a group meet. Of a sum
/// each rank sends every other one a share of its elements and gets its sums
/// back: (N - 1) / N of the bytes pass each link in each of two rounds, whose
/// messages each take their latency. Gathering rows, and summing for rows, is
/// one such round; a broadcast sends all bytes from one link.
static double meetingSeconds(CollectiveOpInterface op, double flops,
                             const MachineRates &rates) {
  RankGroup group = op.getGroup();
  if (group.size < 2 || !op.getRounds())
    return 0;
  double bytes = 0, others = double(group.size - 1);
  for (Value tensor : op.getWholeTensors()) {
    auto type = cast<RankedTensorType>(tensor.getType());
    bytes += double(type.getNumElements()) *
             double(type.getElementTypeBitWidth()) / 8;
  }
  double rounds = double(op.getRounds());
  double share = op.sendsShares() ? double(group.size) : 1;
  return rounds * others *
             (rates.linkLatency + bytes / share / rates.linkBandwidth) +
         flops / rates.vector;
}

/// Returns the seconds of attention or of its gradient, `flops` being those of
/// its products at the rates of f32. What happens to a score between them is
/// about as much as an exp.
static double attentionSeconds(ContractionOpInterface op, double flops,
                               bool half, const MachineRates &rates) {
  auto columns = [&](unsigned operand) {
    return cast<RankedTensorType>(op->getOperand(operand).getType())
        .getShape()
        .back();
  };
  bool isGradient = op.isGradient();
  double products = half ? flops / rates.halves : flops;
  products *= half ? rates.attentionHalves : rates.attention;
  products *= isGradient ? rates.attentionGradient : 1;
  int64_t terms =
      isGradient ? 3 * columns(0) + 2 * columns(2) : columns(0) + columns(2);
  double passes = kScorePasses + (randomSite(op) ? kScoreDropout : 0) +
                  (op->hasAttr("softcap") ? kScoreCap : 0);
  return products /
             (rates.matmul * sizeEfficiency(op.getSmallestDimension(), rates)) +
         passes * flops / (2 * double(terms) * rates.vector);
}

static double contractionSeconds(ContractionOpInterface op, double flops,
                                 bool half, const MachineRates &rates) {
  double efficiency = sizeEfficiency(op.getSmallestDimension(), rates);
  switch (op.getContractionKind()) {
  case ContractionKind::Product:
    return (half ? flops / rates.halves : flops) / (rates.matmul * efficiency);
  case ContractionKind::Attention:
    return attentionSeconds(op, flops, half, rates);
  case ContractionKind::Convolution:
    if (half)
      flops /= rates.convHalves;
    return flops /
           (groupsOf(op) > 1 ? rates.depthwiseConv : rates.conv * efficiency);
  }
  llvm_unreachable("all kinds are handled");
}

/// Returns the seconds of one of ckopt's own ops, on all threads.
static double kernelOpSeconds(KernelOpInterface kernel,
                              const MachineRates &rates) {
  Operation *op = kernel;
  double flops = kernel.getFlops();
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  // What splits a collective knows what its two calls take, and says it there.
  if (collective && !collective.getRounds())
    return 0;
  auto contraction = dyn_cast<ContractionOpInterface>(op);
  if (!collective && !contraction)
    return flops * (rates.approximates ? kernel.getApproximatedShare() : 1) /
           rates.vector;
  Type element = getElementTypeOrSelf(op->getOperand(0));
  bool half = element.isBF16() || element.isF16();
  if (contraction)
    return contractionSeconds(contraction, flops, half, rates);
  return meetingSeconds(collective, half ? flops / rates.halves : flops, rates);
}

/// Returns how many simple operations an op of this name takes for one element.
static double weightOf(StringRef name) {
  name = name.rsplit('.').second;
  auto isOf = [&](std::initializer_list<StringRef> names) {
    return llvm::is_contained(names, name);
  };
  if (isOf({"constant", "const", "yield", "return"}))
    return 0;
  if (isOf({"exp", "exp2", "expm1", "exponential", "log", "log2", "log10",
            "log1p", "sin", "cos", "tan", "sine", "cosine"}))
    return 10;
  if (isOf({"tanh", "erf", "sigmoid", "logistic", "powf", "pow", "power",
            "atan", "atan2", "sinh", "cosh"}))
    return 15;
  if (isOf({"divf", "divsi", "divui", "div", "divide", "remf", "remsi", "sqrt",
            "rsqrt", "reciprocal", "cbrt"}))
    return 4;
  return 1;
}

static double elementsOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  double elements = tensor ? 1 : 0;
  if (tensor)
    for (int64_t size : tensor.getShape())
      elements *= ShapedType::isDynamic(size) ? 1 : double(size);
  return elements;
}

static double linalgSeconds(linalg::LinalgOp op, const MachineRates &rates) {
  double points = 1;
  for (int64_t size : op.getStaticLoopRanges())
    points *= ShapedType::isDynamic(size) ? 1 : double(size);
  bool contraction = op.getNumReductionLoops() > 0 && op.getNumDpsInputs() > 1;
  double weight = 0;
  if (op->getNumRegions() && !op->getRegion(0).empty())
    for (Operation &inner : op->getRegion(0).front())
      weight += weightOf(inner.getName().getStringRef());
  return points * std::max(weight, 1.0) /
         (contraction ? rates.matmul : rates.vector);
}

/// Returns the seconds of one run of all regions, times how often they run.
static double regionSeconds(Operation *op, const MachineRates &rates,
                            KnownSeconds known) {
  double body = 0;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : block)
        body += arithmeticSeconds(&inner, rates, known);
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    return body * getTripCount(loop).value_or(1);
  if (isa<RegionBranchOpInterface>(op) || facts::runsOneRegion(op))
    return body;
  // A body without loops of its own (tensor.generate, reductions) runs once an
  // element of the largest tensor, as vector code.
  double elements = 1;
  for (Value value : op->getResults())
    elements = std::max(elements, elementsOf(value));
  for (Value value : op->getOperands())
    elements = std::max(elements, elementsOf(value));
  return elements > 1 ? body * elements * scalarRate / rates.vector : body;
}

/// Returns the seconds of the work that the op states, if it does.
static std::optional<double> statedSeconds(Operation *op,
                                           const MachineRates &rates) {
  auto vector = facts::work(op, "vector"), matmul = facts::work(op, "matmul"),
       conv = facts::work(op, "conv"), seconds = facts::work(op, "seconds");
  if (!vector && !matmul && !conv && !seconds)
    return std::nullopt;
  return vector.value_or(0) / rates.vector + matmul.value_or(0) / rates.matmul +
         conv.value_or(0) / rates.conv + seconds.value_or(0);
}

/// Estimates an op of which only its name and shapes are known.
static double namedSeconds(Operation *op, const MachineRates &rates) {
  StringRef name = op->getName().getStringRef();
  double result = 0, operand = 0;
  for (Value value : op->getResults())
    result = std::max(result, elementsOf(value));
  for (Value value : op->getOperands())
    operand = std::max(operand, elementsOf(value));
  bool two = op->getNumOperands() >= 2 && op->getNumResults() >= 1;
  auto type = two ? dyn_cast<RankedTensorType>(op->getOperand(1).getType())
                  : RankedTensorType();
  if (two && type && (name.contains("matmul") || name.contains(".dot"))) {
    // The sizes |A| |B| |C| multiply to (M N K)^2 B^3 for B batches.
    auto product = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    double batches =
        product && product.getRank() > 2 ? double(product.getDimSize(0)) : 1;
    double volume = elementsOf(op->getOperand(0)) *
                    elementsOf(op->getOperand(1)) * result /
                    std::max(batches, 1.0);
    return 2 * std::sqrt(volume) / rates.matmul;
  }
  if (two && type && name.contains("conv") && type.getRank() > 2) {
    double weights = elementsOf(op->getOperand(1));
    if (name.contains("depthwise"))
      return 2 * result * double(type.getDimSize(0) * type.getDimSize(1)) /
             rates.depthwiseConv;
    return 2 * result * weights /
           double(std::max<int64_t>(type.getDimSize(0), 1)) / rates.conv;
  }
  double weight = weightOf(name);
  if (result == 0 && operand == 0)
    return weight / scalarRate;
  return std::max(result, operand) * weight / rates.vector;
}

double ckopt::arithmeticSeconds(Operation *op, const MachineRates &rates,
                                KnownSeconds known) {
  if (std::optional<double> seconds = known ? known(op) : std::nullopt)
    return *seconds;
  if (std::optional<double> seconds = statedSeconds(op, rates))
    return *seconds;
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return linalgSeconds(linalg, rates);
  if (auto kernel = dyn_cast<KernelOpInterface>(op))
    return kernelOpSeconds(kernel, rates);
  if (op->getNumRegions())
    return regionSeconds(op, rates, known);
  return namedSeconds(op, rates);
}
