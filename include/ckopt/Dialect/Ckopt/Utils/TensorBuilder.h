//===- TensorBuilder.h - builds ckopt ops like formulas ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With this builder, rewrites that make arithmetic (gradient rules,
// decompositions, losses) read like their formulas. Operands broadcast as in
// numpy; ops fold while they are built; types are inferred, in row-major
// layout.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_TENSORBUILDER_H
#define CKOPT_DIALECT_CKOPT_UTILS_TENSORBUILDER_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

namespace ckopt {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// Builds ckopt ops at one place. Numbers are rank-0 constants.
class TensorBuilder {
public:
  TensorBuilder(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;

  template <typename OpT, typename... Args> mlir::Value make(Args &&...args) {
    return builder.createOrFold<OpT>(loc, std::forward<Args>(args)...);
  }

  /// A constant of `like`'s element type.
  mlir::Value number(mlir::Value like, double value);
  /// A constant of a tensor type with one value in all elements.
  mlir::Value splat(mlir::RankedTensorType type, double value);

  mlir::Value add(mlir::Value a, mlir::Value b) { return make<AddOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return make<SubOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return make<MulOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return make<DivOp>(a, b); }
  mlir::Value neg(mlir::Value a) { return make<NegOp>(a); }
  mlir::Value add(mlir::Value a, double b) { return add(a, number(a, b)); }
  mlir::Value sub(double a, mlir::Value b) { return sub(number(b, a), b); }
  mlir::Value mul(mlir::Value a, double b) { return mul(a, number(a, b)); }
  mlir::Value compare(ComparePredicate predicate, mlir::Value a,
                      mlir::Value b) {
    return make<CompareOp>(predicate, a, b);
  }
  mlir::Value compare(ComparePredicate predicate, mlir::Value a, double b) {
    return compare(predicate, a, number(a, b));
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return make<SelectOp>(condition, a, b);
  }
  /// `value` where the condition holds, else 0.
  mlir::Value where(mlir::Value condition, mlir::Value value) {
    return select(condition, value, number(value, 0));
  }
  mlir::Value cast(mlir::Value value, mlir::Type element);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value expand(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> permutation);
  /// Sum over `axes`, which are removed.
  mlir::Value sum(mlir::Value value, llvm::ArrayRef<int64_t> axes);
  /// Sum over all elements, a scalar.
  mlir::Value sumAll(mlir::Value value);
  /// The adjoint of broadcasting `shape` to the value's shape.
  mlir::Value sumTo(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// `value`, which lacks `axes` (or has size 1 there), broadcast along them to
  /// `shape`.
  mlir::Value broadcastAlong(mlir::Value value, llvm::ArrayRef<int64_t> axes,
                             llvm::ArrayRef<int64_t> shape);
  /// A reshape that puts a size of 1 at each of `axes` of `shape`; a scalar
  /// is returned unchanged.
  mlir::Value keepDims(mlir::Value value, llvm::ArrayRef<int64_t> axes,
                       llvm::ArrayRef<int64_t> shape);
  mlir::DenseI64ArrayAttr ints(llvm::ArrayRef<int64_t> values) {
    return builder.getDenseI64ArrayAttr(values);
  }
};

/// The dimensions over which a batch norm of this input takes its statistics:
/// all but 1.
llvm::SmallVector<int64_t> allButChannels(mlir::RankedTensorType type);
/// Per-channel values as [1, C, 1, ...], which broadcasts to the input's type.
mlir::Value besideChannels(TensorBuilder &b, mlir::Value channels,
                           mlir::RankedTensorType type);

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_TENSORBUILDER_H
