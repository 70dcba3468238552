//===- ElementModel.h - how an op computes one element ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models of ops: how one element of a result is computed. The emitter finds a
// model by the op's type in a table, so a new op needs a new model and no
// change to the emitter. (It is a table rather than an op interface because
// models need the emitter, which only this library has.)
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_MODELS_ELEMENTMODEL_H
#define CKOPT_LIB_CODEGEN_MODELS_ELEMENTMODEL_H

#include "Emit/Emitter.h"
#include <memory>

namespace ckopt::codegen {

class ElementModel {
public:
  virtual ~ElementModel();
  /// Returns the only point of operand `operand` from which the point `index`
  /// of the results is computed; nullopt if there are several, possibly none,
  /// or one known only at run time. By default: numpy broadcasting.
  virtual std::optional<SmallVector<AffineExpr>>
  operandIndex(mlir::Operation *op, unsigned operand, Index index) const;
  /// Returns the expressions that the op uses in addition to loads.
  virtual SmallVector<AffineExpr> indexUses(mlir::Operation *op,
                                            Index index) const {
    return {};
  }
  /// Returns the element, in compute type; calls Emitter::fail on failure.
  virtual Value emit(mlir::Operation *op, unsigned result, Index index,
                     Emitter &e) const = 0;

protected:
  /// Returns the operand's element at operandIndex.
  Value operand(mlir::Operation *op, unsigned number, Index index,
                Emitter &e) const {
    return e.emit(op->getOperand(number), *operandIndex(op, number, index));
  }
};

/// Returns the index of a tensor of shape `operand` that broadcasts to `index`.
SmallVector<AffineExpr> broadcastIndex(mlir::Type operand, Index index,
                                       mlir::MLIRContext *ctx);

class ElementModels {
public:
  /// Returns the models of the dialect's ops; built once.
  static const ElementModels &get();
  const ElementModel *lookup(mlir::Operation *op) const;
  template <typename Op, typename Model> void add() {
    models[mlir::TypeID::get<Op>()] = std::make_unique<Model>();
  }

private:
  llvm::DenseMap<mlir::TypeID, std::unique_ptr<ElementModel>> models;
};

void addElementwiseModels(ElementModels &models);
void addShapeModels(ElementModels &models);
void addPoolModels(ElementModels &models);
void addTrainingModels(ElementModels &models);
void addRandomModels(ElementModels &models);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_MODELS_ELEMENTMODEL_H
