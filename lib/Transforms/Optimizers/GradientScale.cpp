//===- GradientScale.cpp - updates of gradients that may overflow ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GradientScale.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

void GradientScale::addArguments(func::FuncOp function) {
  auto index = findArgument(function, autodiff::kLossScaleName);
  if (!index || argumentRole(function, *index) != roles::kOptimizerState)
    return;
  scale = function.getArgument(*index);
  auto count =
      RankedTensorType::get({}, Float64Type::get(function.getContext()));
  goodUpdates = addArgument(function, count, autodiff::kGoodUpdatesName,
                            roles::kOptimizerState);
  skippedUpdates = addArgument(function, count, autodiff::kSkippedUpdatesName,
                               roles::kOptimizerState);
}

Value GradientScale::judge(TensorBuilder &b, ArrayRef<Value> gradients,
                           Value step) {
  Type f64 = b.builder.getF64Type();
  Value total;
  for (Value gradient : gradients) {
    Value part = b.cast(b.sumAll(b.mul(gradient, 0)), f64);
    total = total ? b.add(total, part) : part;
  }
  finite = b.compare(ComparePredicate::EQ, total, 0);
  made = b.sub(b.cast(step, f64), skippedUpdates);
  return b.cast(b.where(finite, made), b.builder.getI64Type());
}

SmallVector<std::pair<BlockArgument, Value>>
GradientScale::newStates(TensorBuilder &b, int64_t growth) const {
  Value skipped = b.select(finite, skippedUpdates, b.add(skippedUpdates, 1));
  Value good = b.add(goodUpdates, 1);
  if (!growth)
    return {{skippedUpdates, skipped}, {goodUpdates, b.where(finite, good)}};
  Value grows = b.compare(ComparePredicate::GE, good, double(growth));
  // It stays where f32 has its reciprocal, too.
  double most = std::ldexp(1.0, autodiff::kMaxScaleExponent);
  Value larger = b.make<MinimumOp>(b.mul(scale, 2), b.number(scale, most));
  Value smaller =
      b.make<MaximumOp>(b.mul(scale, 0.5), b.number(scale, 1 / most));
  good = b.where(finite, b.select(grows, b.number(good, 0), good));
  return {{skippedUpdates, skipped},
          {goodUpdates, good},
          {scale, b.select(finite, b.select(grows, larger, scale), smaller)}};
}
