//===- Models.h - how ops are tied to their meaning -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Reference. An op's meaning is one function from operands to
// results; `attachModel` makes it the op's ReferenceOpInterface. That of an op
// that moves elements is where these come from (`attachMover`).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_REFERENCE_MODELS_H
#define CKOPT_LIB_REFERENCE_MODELS_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Reference/Interpreter.h"

namespace ckopt::reference {

using Operands = llvm::ArrayRef<const Tensor *>;
using Results = llvm::MutableArrayRef<Tensor>;

template <typename Op, auto interpretOp, bool foldable, auto traceOp>
struct Model : ReferenceOpInterface::ExternalModel<
                   Model<Op, interpretOp, foldable, traceOp>, Op> {
  llvm::LogicalResult interpret(mlir::Operation *op, Operands operands,
                                Results results,
                                const Environment &environment) const {
    return interpretOp(llvm::cast<Op>(op), operands, results, environment);
  }
  bool isFoldable(mlir::Operation *) const { return foldable; }
  llvm::LogicalResult traceElements(mlir::Operation *op, Operands operands,
                                    ElementMove move) const {
    if constexpr (std::is_null_pointer_v<decltype(traceOp)>)
      return llvm::failure();
    else
      return traceOp(llvm::cast<Op>(op), operands, move);
  }
};

template <typename Op, auto interpretOp, bool foldable = true,
          auto traceOp = nullptr>
void attachModel(mlir::MLIRContext *context) {
  Op::template attachInterface<Model<Op, interpretOp, foldable, traceOp>>(
      *context);
}

/// Puts elements where the op moves them.
template <typename Op, auto traceOp>
llvm::LogicalResult interpretMoves(Op op, Operands in, Results out,
                                   const Environment &) {
  return traceOp(op, in, [&](int64_t to, unsigned operand, int64_t from) {
    out[0].copy(to, *in[operand], from);
  });
}

template <typename Op, auto traceOp,
          auto interpretOp = interpretMoves<Op, traceOp>>
void attachMover(mlir::MLIRContext *context) {
  attachModel<Op, interpretOp, /*foldable=*/true, traceOp>(context);
}

/// The shape of an operand or result.
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// Moves every element to its own number.
template <typename Op>
llvm::LogicalResult traceAll(Op op, Operands, ElementMove move) {
  int64_t count = llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType())
                      .getNumElements();
  for (int64_t i = 0; i < count; ++i)
    move(i, 0, i);
  return llvm::success();
}

void attachElementwiseModels(mlir::MLIRContext *context);
void attachShapeModels(mlir::MLIRContext *context);
void attachIndexModels(mlir::MLIRContext *context);
void attachReductionModels(mlir::MLIRContext *context);
void attachNNModels(mlir::MLIRContext *context);
void attachAttentionModels(mlir::MLIRContext *context);
void attachPoolModels(mlir::MLIRContext *context);
void attachNormModels(mlir::MLIRContext *context);
void attachCodeModels(mlir::MLIRContext *context);
void attachTrainingModels(mlir::MLIRContext *context);
void attachKernelModels(mlir::MLIRContext *context);

/// Maps an index of the result, which has `rank` dimensions, to the element of
/// an operand of `shape` that broadcasts (as in numpy) to it.
class Broadcast {
public:
  Broadcast(llvm::ArrayRef<int64_t> shape, int64_t rank) : strides(rank, 0) {
    llvm::SmallVector<int64_t> own = rowMajorStrides(shape);
    size_t lead = size_t(rank) - shape.size();
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != 1)
        strides[lead + d] = own[d];
  }
  int64_t operator()(llvm::ArrayRef<int64_t> index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d)
      offset += index[d] * strides[d];
    return offset;
  }

private:
  llvm::SmallVector<int64_t> strides;
};

/// A shape seen as [outer, count, inner] around the dimensions
/// [first, first + dims).
struct AxisView {
  int64_t outer = 1, count = 1, inner = 1;
  AxisView(llvm::ArrayRef<int64_t> shape, int64_t first, int64_t dims = 1) {
    for (int64_t d = 0; d < int64_t(shape.size()); ++d)
      (d < first ? outer : d < first + dims ? count : inner) *= shape[d];
  }
  int64_t operator()(int64_t o, int64_t c, int64_t i) const {
    return (o * count + c) * inner + i;
  }
};

} // namespace ckopt::reference

#endif // CKOPT_LIB_REFERENCE_MODELS_H
