//===- CostModel.cpp - seconds of a kernel --------------------------------===//
//
// Problem: give each kernel a cost in seconds before anything was run.
// Method: a roofline: max(arithmetic, bytes / bandwidth) + start. Rates by
// kind:
//
//   kind                               rate of two AVX-512 cores
//   matmul, 512 to 2048 square         270 to 310 GFLOP/s
//   conv 3x3 and 1x1, channels-last    170 to 340 GFLOP/s
//   depthwise conv                     memory bound, about 40 GFLOP/s
//   vector code, one operation         60 GFLOP/s; memory 14 GB/s
//
// Small contractions reach less: the rate falls with the smallest dimension.
// Guarantee: positive and finite, a function of the kernel's text alone.
// Complexity: O(ops of the kernel), once a symbol.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace ckopt;

/// How much of the peak rate a contraction with this smallest dimension gets.
static double sizeEfficiency(int64_t smallest) {
  if (smallest >= 64)
    return 1;
  return smallest >= 16 ? 0.6 : 0.25;
}

static int64_t groupsOf(Operation *op) {
  auto groups = op->getAttrOfType<IntegerAttr>("groups");
  return groups ? groups.getInt() : 0;
}

/// Seconds of the arithmetic of one op, on all threads.
double CostModel::flopSeconds(Operation *op) {
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op)) {
    double points = 1;
    for (int64_t size : linalg.getStaticLoopRanges())
      points *= ShapedType::isDynamic(size) ? 1 : double(size);
    bool contraction =
        linalg.getNumReductionLoops() > 0 && linalg.getNumDpsInputs() > 1;
    size_t ops = op->getNumRegions()
                     ? op->getRegion(0).front().getOperations().size()
                     : 2;
    return points * double(std::max<size_t>(ops, 2) - 1) /
           (contraction ? rates.matmul : rates.vector);
  }
  auto kernel = dyn_cast<KernelOpInterface>(op);
  if (!kernel)
    return 0;
  double flops = kernel.getFlops();
  if (kernel.getKernelKind() != KernelKind::Library)
    return flops / rates.vector;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  if (auto matmul = dyn_cast<MatMulOp>(op)) {
    for (Value operand : matmul->getOperands())
      for (int64_t size :
           cast<RankedTensorType>(operand.getType()).getShape().take_back(2))
        smallest = std::min(smallest, size);
    return flops / (rates.matmul * sizeEfficiency(smallest));
  }
  int64_t groups = groupsOf(op);
  for (Value operand : op->getOperands())
    smallest = std::min(
        smallest, cast<RankedTensorType>(operand.getType()).getDimSize(1));
  if (groups > 1)
    return flops / rates.depthwiseConv;
  return flops / (rates.conv * sizeEfficiency(smallest));
}

static double bytesOf(ValueRange values) {
  double bytes = 0;
  for (Value value : values)
    bytes += double(getStorageBytes(value.getType()));
  return bytes;
}

double CostModel::kernelSeconds(Operation *callee) {
  auto [entry, isNew] = kernels.try_emplace(callee, 0);
  if (!isNew)
    return entry->second;
  double arithmetic = 0;
  auto function = cast<func::FuncOp>(callee);
  Block &block = function.front();
  for (Operation &op : block.without_terminator())
    arithmetic += flopSeconds(&op);
  double bytes = bytesOf(block.getArguments()) +
                 bytesOf(block.getTerminator()->getOperands());
  return entry->second =
             std::max(arithmetic, bytes / rates.bandwidth) + rates.overhead;
}

double CostModel::seconds(Operation *op) {
  if (auto call = dyn_cast<KernelCallOp>(op)) {
    if (double cost = call.getCost().convertToDouble(); cost > 0)
      return cost;
    auto callee =
        symbols.lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr());
    if (callee && !callee.isDeclaration())
      return kernelSeconds(callee);
  }
  double bytes = bytesOf(op->getOperands()) + bytesOf(op->getResults());
  return std::max(flopSeconds(op), bytes / rates.bandwidth) + rates.overhead;
}

void ckopt::annotateCosts(Operation *function, CostModel &model) {
  function->walk([&](KernelCallOp call) {
    if (call.getCost().isZero())
      call.setCost(APFloat(model.seconds(call)));
  });
}
