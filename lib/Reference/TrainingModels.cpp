//===- TrainingModels.cpp - meaning of losses and state updates -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Models.h"
#include <limits>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

/// Returns the class of row `r`, -1 where the row is ignored; an error for a
/// label that names no class.
template <typename Op>
static FailureOr<int64_t> targetOf(Op op, const Tensor &targets, int64_t r,
                                   int64_t classes) {
  int64_t target = targets.integer(r);
  if (target == int64_t(op.getIgnoreIndex()))
    return -1;
  if (target < 0 || target >= classes)
    return op.emitOpError("target ")
           << target << " (element " << r << ") is not one of the " << classes
           << " classes";
  return target;
}

static LogicalResult interpretCrossEntropy(CrossEntropyOp op, Operands in,
                                           Results out, const Environment &) {
  const Tensor &logits = *in[0], &targets = *in[1];
  bool isF32 = getElementTypeOrSelf(op.getLse()).isF32();
  int64_t classes = op.getNumClasses();
  AxisView view(logits.getShape(), int64_t(op.getAxis()));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      int64_t r = o * view.inner + i;
      FailureOr<int64_t> target = targetOf(op, targets, r, classes);
      if (failed(target))
        return failure();
      double max = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t c = 0; c < classes; ++c) {
        double x = logits.real(view(o, c, i));
        max = std::isnan(x) || x > max ? x : max;
      }
      for (int64_t c = 0; c < classes; ++c)
        sum += std::exp(logits.real(view(o, c, i)) - max);
      double log = std::log(sum), lse = max + log;
      if (isF32)
        lse = double(float(lse));
      out[1].real(r) = lse;
      out[2].real(r) = (max - lse) + log;
      if (*target >= 0)
        out[0].real(r) = (max - logits.real(view(o, *target, i))) + log;
    }
  return success();
}

static LogicalResult interpretCrossEntropyGrad(CrossEntropyGradOp op,
                                               Operands in, Results out,
                                               const Environment &) {
  const Tensor &grad = *in[0], &logits = *in[1], &targets = *in[2];
  const Tensor &lse = *in[3], &lost = *in[4];
  int64_t classes = op.getNumClasses();
  AxisView view(logits.getShape(), int64_t(op.getAxis()));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      int64_t r = o * view.inner + i;
      FailureOr<int64_t> target = targetOf(op, targets, r, classes);
      if (failed(target))
        return failure();
      if (*target < 0)
        continue;
      for (int64_t c = 0; c < classes; ++c)
        out[0].real(view(o, c, i)) =
            grad.real(r) *
            (std::exp((logits.real(view(o, c, i)) - lse.real(r)) -
                      lost.real(r)) -
             (c == *target ? 1 : 0));
    }
  return success();
}

/// Calls `visit` with each row's number, its class (-1: ignored), its
/// probabilities and its loss. `op` has input, weight, targets, bias from
/// operand `first` on.
template <typename Op, typename Visit>
static LogicalResult forEachLossRow(Op op, Operands in, unsigned first,
                                    Visit visit) {
  const Tensor &input = *in[first], &weight = *in[first + 1];
  bool transposed = op.getTransposeWeight();
  int64_t depth = input.getShape()[1];
  int64_t classes = weight.getShape()[!transposed];
  std::vector<double> row(classes);
  for (int64_t r = 0; r < input.getShape()[0]; ++r) {
    FailureOr<int64_t> target = targetOf(op, *in[first + 2], r, classes);
    if (failed(target))
      return failure();
    double max = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      double x = op.getBias() ? in[first + 3]->real(c) : 0;
      for (int64_t k = 0; k < depth; ++k)
        x += input.real(r * depth + k) *
             weight.real(transposed ? c * depth + k : k * classes + c);
      row[c] = x;
      max = std::isnan(x) || x > max ? x : max;
    }
    for (double x : row)
      sum += std::exp(x - max);
    double loss = *target < 0 ? 0 : (max - row[*target]) + std::log(sum);
    for (double &x : row)
      x = std::exp(x - max) / sum;
    visit(r, *target, ArrayRef<double>(row), loss);
  }
  return success();
}

static LogicalResult interpretLinearCrossEntropy(LinearCrossEntropyOp op,
                                                 Operands in, Results out,
                                                 const Environment &) {
  return forEachLossRow(op, in, 0,
                        [&](int64_t r, int64_t, ArrayRef<double>, double loss) {
                          out[0].real(r) = loss;
                        });
}

static LogicalResult
interpretLinearCrossEntropyGrad(LinearCrossEntropyGradOp op, Operands in,
                                Results out, const Environment &) {
  const Tensor &grad = *in[0], &input = *in[1], &weight = *in[2];
  bool transposed = op.getTransposeWeight();
  int64_t depth = input.getShape()[1];
  return forEachLossRow(
      op, in, 1,
      [&](int64_t r, int64_t target, ArrayRef<double> row, double loss) {
        out[0].real(r) = loss;
        if (target < 0)
          return;
        int64_t classes = int64_t(row.size());
        for (int64_t c = 0; c < classes; ++c) {
          double g = grad.real(r) * (row[c] - (c == target ? 1 : 0));
          for (int64_t k = 0; k < depth; ++k) {
            int64_t w = transposed ? c * depth + k : k * classes + c;
            out[1].real(r * depth + k) += g * weight.real(w);
            out[2].real(w) += g * input.real(r * depth + k);
          }
          if (op.getBias())
            out[3].real(c) += g;
        }
      });
}

//===----------------------------------------------------------------------===//
// State updates
//===----------------------------------------------------------------------===//

static LogicalResult interpretMovingAverage(MovingAverageOp op, Operands in,
                                            Results out, const Environment &) {
  double momentum = op.getMomentum().convertToDouble();
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].real(i) =
        in[0]->real(i) * momentum + in[1]->real(i) * (1 - momentum);
  return success();
}

static LogicalResult interpretAssign(AssignOp, Operands in, Results out,
                                     const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].copy(i, *in[1], i);
  return success();
}

static LogicalResult interpretAccumulate(AccumulateOp, Operands in, Results out,
                                         const Environment &) {
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].real(i) = in[0]->real(i) + in[1]->real(i);
  return success();
}

/// Gives the results the values of the operands of these numbers.
static LogicalResult keepAll(Operands in, Results out,
                             ArrayRef<unsigned> operands) {
  for (auto [r, number] : llvm::enumerate(operands))
    for (int64_t i = 0; r < out.size() && i < out[r].size(); ++i)
      out[r].real(i) = in[number]->real(i);
  return success();
}

static LogicalResult interpretSgd(SgdOp op, Operands in, Results out,
                                  const Environment &) {
  double rate = in[2]->real(0);
  bool first = in[3]->integer(0) == 1;
  double momentum = op.getMomentum().convertToDouble();
  double dampening = op.getDampening().convertToDouble();
  double decay = op.getWeightDecay().convertToDouble();
  if (op.getSkips() && in[3]->integer(0) == 0)
    return keepAll(in, out, {0, 4});
  for (int64_t i = 0; i < out[0].size(); ++i) {
    double param = in[0]->real(i);
    double grad = in[1]->real(i) + decay * param;
    if (op.getVelocity()) {
      double velocity =
          first ? grad : momentum * in[4]->real(i) + (1 - dampening) * grad;
      out[1].real(i) = velocity;
      grad = op.getNesterov() ? grad + momentum * velocity : velocity;
    }
    out[0].real(i) = param - rate * grad;
  }
  return success();
}

static LogicalResult interpretAdam(AdamOp op, Operands in, Results out,
                                   const Environment &) {
  double rate = in[4]->real(0), step = double(in[5]->integer(0));
  double beta1 = op.getBeta1().convertToDouble();
  double beta2 = op.getBeta2().convertToDouble();
  double epsilon = op.getEpsilon().convertToDouble();
  double decay = op.getWeightDecay().convertToDouble();
  if (op.getSkips() && step == 0)
    return keepAll(in, out, {0, 2, 3});
  double correction1 = 1 - std::pow(beta1, step);
  double correction2 = std::sqrt(1 - std::pow(beta2, step));
  for (int64_t i = 0; i < out[0].size(); ++i) {
    double param = in[0]->real(i), grad = in[1]->real(i);
    if (op.getDecoupled())
      param *= 1 - rate * decay;
    else
      grad += decay * param;
    double m = beta1 * in[2]->real(i) + (1 - beta1) * grad;
    double v = beta2 * in[3]->real(i) + (1 - beta2) * grad * grad;
    out[0].real(i) =
        param - rate / correction1 * m / (std::sqrt(v) / correction2 + epsilon);
    out[1].real(i) = m;
    out[2].real(i) = v;
  }
  return success();
}

void reference::attachTrainingModels(MLIRContext *context) {
  attachModel<CrossEntropyOp, interpretCrossEntropy>(context);
  attachModel<CrossEntropyGradOp, interpretCrossEntropyGrad>(context);
  attachModel<LinearCrossEntropyOp, interpretLinearCrossEntropy>(context);
  attachModel<LinearCrossEntropyGradOp, interpretLinearCrossEntropyGrad>(
      context);
  attachModel<MovingAverageOp, interpretMovingAverage, false>(context);
  attachModel<AssignOp, interpretAssign, false>(context);
  attachModel<AccumulateOp, interpretAccumulate, false>(context);
  attachModel<SgdOp, interpretSgd, false>(context);
  attachModel<AdamOp, interpretAdam, false>(context);
}
