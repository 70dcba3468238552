//===- ElementModels.cpp - the table of element models --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ElementModel.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

ElementModel::~ElementModel() = default;

SmallVector<AffineExpr>
codegen::broadcastIndex(Type operand, codegen::Index index, MLIRContext *ctx) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(operand).getShape();
  SmallVector<AffineExpr> result;
  for (auto [size, e] : llvm::zip_equal(shape, index.take_back(shape.size())))
    result.push_back(size == 1 ? getAffineConstantExpr(0, ctx) : e);
  return result;
}

std::optional<SmallVector<AffineExpr>>
ElementModel::operandIndex(Operation *op, unsigned operand,
                           codegen::Index index) const {
  return broadcastIndex(op->getOperand(operand).getType(), index,
                        op->getContext());
}

const ElementModels &ElementModels::get() {
  static const ElementModels models = [] {
    ElementModels made;
    addElementwiseModels(made);
    addShapeModels(made);
    addPoolModels(made);
    addTrainingModels(made);
    addRandomModels(made);
    return made;
  }();
  return models;
}

const ElementModel *ElementModels::lookup(Operation *op) const {
  auto info = op->getRegisteredInfo();
  if (!info)
    return nullptr;
  auto it = models.find(info->getTypeID());
  return it == models.end() ? nullptr : it->second.get();
}
