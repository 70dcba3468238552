//===- Decompose.cpp - ops as simpler ones, after autodiff ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batch normalization becomes reductions and formulas.
// With n elements a channel, k = scale * rstd, c = x - mean (all but x, y and
// their gradients of shape [C]):
//   forward   y  = c * k + bias
//   backward  s1 = sum(dy), s2 = sum(dy * c)       one fused reduction
//             dbias = s1, dscale = s2 * rstd
//             dx = k * (dy - s1 / n - c * (s2 * rstd^2 / n))
// Everything per channel is computed once on [C]; the big tensors see one
// elementwise kernel each way. rstd is made once for forward and backward.
//
// A product or convolution of a tensor without elements sums nothing for each
// element of its result, so it becomes zeros. This happens after autodiff, so
// that a parameter which is multiplied with such a tensor still gets a
// gradient, of zeros.
//
// A concatenation is one kernel, and a GPU kernel takes a limited number of
// tensors, so wide ones are split.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Normalize/Passes.h"

namespace ckopt {
#define GEN_PASS_DEF_DECOMPOSEPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

namespace {
class Decomposer {
public:
  void run(func::FuncOp function);

private:
  void forward(BatchNormOp op);
  void backward(BatchNormGradOp op);
  void inference(BatchNormInferenceOp op);
  Value reciprocalDeviation(TensorBuilder &b, Value variance, APFloat epsilon);

  /// rstd by variance and epsilon; epsilon by its bits, since it only has to be
  /// told apart. Looked up, never iterated.
  DenseMap<std::pair<Value, uint64_t>, Value> deviations;
};
} // namespace

Value Decomposer::reciprocalDeviation(TensorBuilder &b, Value variance,
                                      APFloat epsilon) {
  Value &rstd = deviations[{variance, epsilon.bitcastToAPInt().getZExtValue()}];
  if (!rstd)
    rstd = b.make<RsqrtOp>(b.add(variance, epsilon.convertToDouble()));
  return rstd;
}

void Decomposer::forward(BatchNormOp op) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  RankedTensorType type = tensorType(op.getInput());
  auto moments = MomentsOp::create(builder, op.getLoc(), op.getInput(),
                                   b.ints(allButChannels(type)));
  Value slope =
      b.mul(op.getScale(),
            reciprocalDeviation(b, moments.getVariance(), op.getEpsilon()));
  Value centered =
      b.sub(op.getInput(), besideChannels(b, moments.getMean(), type));
  Value output = b.add(b.mul(centered, besideChannels(b, slope, type)),
                       besideChannels(b, op.getBias(), type));
  op.getOutput().replaceAllUsesWith(output);
  op.getMean().replaceAllUsesWith(moments.getMean());
  op.getVariance().replaceAllUsesWith(moments.getVariance());
  op.erase();
}

void Decomposer::backward(BatchNormGradOp op) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  RankedTensorType type = tensorType(op.getInput());
  SmallVector<int64_t> axes = allButChannels(type);
  double n = double(type.getNumElements()) / double(type.getDimSize(1));
  Value dy = op.getGrad();
  Value rstd = reciprocalDeviation(b, op.getVariance(), op.getEpsilon());
  Value centered = b.sub(op.getInput(), besideChannels(b, op.getMean(), type));
  Value total = b.sum(dy, axes);
  Value moment = b.sum(b.mul(dy, centered), axes);
  Value scaleGrad = b.mul(moment, rstd);
  op.getBiasGrad().replaceAllUsesWith(total);
  op.getScaleGrad().replaceAllUsesWith(scaleGrad);
  if (!op.getInputGrad().use_empty()) {
    Value slope = b.mul(op.getScale(), rstd);
    Value shift = b.mul(total, 1 / n);
    Value tilt = b.mul(b.mul(scaleGrad, rstd), 1 / n);
    Value flat = b.sub(dy, besideChannels(b, shift, type));
    Value level = b.sub(flat, b.mul(centered, besideChannels(b, tilt, type)));
    op.getInputGrad().replaceAllUsesWith(
        b.mul(level, besideChannels(b, slope, type)));
  }
  op.erase();
}

void Decomposer::inference(BatchNormInferenceOp op) {
  OpBuilder builder(op);
  TensorBuilder b(builder, op.getLoc());
  RankedTensorType type = tensorType(op.getInput());
  Value slope = b.mul(
      op.getScale(), reciprocalDeviation(b, op.getVariance(), op.getEpsilon()));
  Value centered = b.sub(op.getInput(), besideChannels(b, op.getMean(), type));
  op.getOutput().replaceAllUsesWith(
      b.add(b.mul(centered, besideChannels(b, slope, type)),
            besideChannels(b, op.getBias(), type)));
  op.erase();
}

static bool isEmpty(Type type) {
  return llvm::is_contained(cast<RankedTensorType>(type).getShape(), 0);
}

/// Replaces products and convolutions of tensors without elements by zeros.
static void replaceEmptyContractions(func::FuncOp function) {
  SmallVector<Operation *> empty;
  function.walk([&](Operation *op) {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (kernel && kernel.getKernelKind() == KernelKind::Library &&
        (llvm::any_of(op->getOperandTypes(), isEmpty) ||
         isEmpty(op->getResult(0).getType())))
      empty.push_back(op);
  });
  for (Operation *op : empty) {
    OpBuilder builder(op);
    TensorBuilder b(builder, op->getLoc());
    op->getResult(0).replaceAllUsesWith(
        b.splat(tensorType(op->getResult(0)), 0));
    op->erase();
  }
}

/// Splits a concatenation of too many operands: the first operands are joined
/// first, as few of them as leave `most` in all, since they are copied twice.
static void splitConcats(func::FuncOp function, unsigned most) {
  SmallVector<ConcatOp> wide;
  function.walk([&](ConcatOp op) {
    if (op.getInputs().size() > most)
      wide.push_back(op);
  });
  for (ConcatOp op : wide) {
    OpBuilder builder(op);
    SmallVector<Value> inputs(op.getInputs());
    while (inputs.size() > most) {
      size_t first = std::min<size_t>(most, inputs.size() - most + 1);
      Value joined =
          ConcatOp::create(builder, op.getLoc(),
                           ArrayRef(inputs).take_front(first), op.getAxis());
      inputs.erase(inputs.begin(), inputs.begin() + ptrdiff_t(first));
      inputs.insert(inputs.begin(), joined);
    }
    op.getInputsMutable().assign(inputs);
  }
}

void Decomposer::run(func::FuncOp function) {
  replaceEmptyContractions(function);
  function.walk([&](Operation *op) {
    if (auto norm = dyn_cast<BatchNormOp>(op))
      forward(norm);
    else if (auto grad = dyn_cast<BatchNormGradOp>(op))
      backward(grad);
    else if (auto inferred = dyn_cast<BatchNormInferenceOp>(op))
      inference(inferred);
  });
}

void ckopt::decompose(func::FuncOp function, unsigned maxJoined,
                      int64_t classGroup) {
  unrollChunks(function, classGroup);
  Decomposer().run(function);
  if (maxJoined)
    splitConcats(function, std::max(maxJoined, 2u));
}

namespace {
struct Decompose : ckopt::impl::DecomposePassBase<Decompose> {
  using DecomposePassBase::DecomposePassBase;
  void runOnOperation() override {
    decompose(getOperation(), maxJoined, classGroup);
    fitContractions(getOperation(), widenHalves);
  }
};
} // namespace
