//===- RowKernel.h - ops that pass over rows several times ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_KINDS_ROWKERNEL_H
#define CKOPT_LIB_CODEGEN_KINDS_ROWKERNEL_H

#include "Emit/Nest.h"
#include <functional>

namespace ckopt::codegen {

/// Lets a row op's model compute one row (or a vector of columns).
class RowContext {
public:
  RowContext(Emitter &e, PointNest &nest, mlir::func::ReturnOp terminator,
             mlir::Operation *op, SmallVector<AffineExpr> keptIndex,
             int64_t length, int64_t nextRow = 0)
      : e(e), nest(nest), terminator(terminator), op(op), kept(keptIndex),
        length(length), nextRow(nextRow) {}

  Emitter &e;
  PointNest &nest;
  mlir::func::ReturnOp terminator;
  mlir::Operation *op;
  /// Logical index of the row in the domain; reduced dimensions are 0.
  SmallVector<AffineExpr> kept;
  int64_t length;  ///< elements of a row
  int64_t nextRow; ///< elements from a row to the next; 0: do not fetch it

  Value operand(unsigned number, Index index);
  /// Returns a value of the current point that `make` emits, only in the first
  /// pass if rows stay in registers; `number` names it in the op.
  Value keep(unsigned number, llvm::function_ref<Value()> make);
  bool keeps() const { return nest.keeps(); }
  /// Reduces all elements of the row to one value.
  SmallVector<Value> reduce(ArrayRef<Reducer> reducers,
                            llvm::function_ref<SmallVector<Value>(Index)> body);
  Value reduce(ReduceKind kind, Type type,
               llvm::function_ref<Value(Index)> body);
  /// Like reduce() of a sum, in a pass over data that is in the cache already:
  /// meanwhile the next row is prefetched.
  Value sumFetching(Type type, llvm::function_ref<Value(Index)> body);
  void forEach(llvm::function_ref<void(Index)> body);
  /// Stores to each kernel result that returns result `result` of the op.
  void store(unsigned result, Index index, Value element);
  bool isUsed(unsigned result);
  /// Loads the value that store() wrote at `index`.
  Value stored(unsigned result, Index index);
};

/// The model of a row op; see RowModels.cpp.
struct RowModel {
  /// The operand whose shape is the domain.
  unsigned domainOperand;
  /// The reduced dimensions.
  std::function<SmallVector<int64_t>(mlir::Operation *)> axes;
  std::function<void(RowContext &)> emit;
  /// Set if each point is read before it is written and not again.
  bool inPlace = true;
};

const RowModel *lookupRowModel(mlir::Operation *op);

/// Computes top_k for small k; defined in SelectionKernel.cpp.
void emitTopK(RowContext &row);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_KINDS_ROWKERNEL_H
