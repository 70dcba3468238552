//===- StructuredKernel.h - scan-like ops with their own loops --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of single ops that are neither elementwise nor reductions. Each op
// has a maker, found by the op's type in a table: a new op adds itself and
// changes nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_KINDS_STRUCTUREDKERNEL_H
#define CKOPT_LIB_CODEGEN_KINDS_STRUCTUREDKERNEL_H

#include "GeneratedKernel.h"

namespace ckopt::codegen {

class StructuredKernels {
public:
  using Make = std::unique_ptr<GeneratedKernel> (*)(mlir::func::FuncOp,
                                                    const CodegenOptions &,
                                                    mlir::Operation *);
  /// Returns the makers of the dialect's ops; built once.
  static const StructuredKernels &get();
  /// Returns the maker, or null if the op has no kernel of this kind.
  Make lookup(mlir::Operation *op) const;
  template <typename Op> void add(Make make) {
    makers[mlir::TypeID::get<Op>()] = make;
  }

private:
  llvm::DenseMap<mlir::TypeID, Make> makers;
};

void addScatterKernels(StructuredKernels &kernels);
void addScanKernels(StructuredKernels &kernels);
void addSelectionKernels(StructuredKernels &kernels);

/// A kernel of one op that goes through a dimension in order and is parallel
/// over all others: an item is a point of the dimensions before `axis` and a
/// block of columns, which are the last dimension if that is not `axis`.
class AxisKernel : public FormedKernel {
protected:
  /// `shape` is the shape that the items cover; it has the rank of the op's
  /// result.
  AxisKernel(mlir::func::FuncOp kernel, const CodegenOptions &options,
             mlir::Operation *op, llvm::ArrayRef<int64_t> shape, int64_t axis);

  /// Checks the kernel's form. With `inPlace`, the result may take the bytes of
  /// operand 0 if it has the same type and nothing else reads it.
  mlir::LogicalResult planOp(bool inPlace);
  /// Plans one stage, whose items have up to `rangeColumns` columns.
  mlir::LogicalResult planRanges() override;
  /// Plans a launch with a thread for each item, which is one column or row.
  mlir::LogicalResult planBlocks() override;
  mlir::LogicalResult emitRanges(mlir::ModuleOp into) override;
  mlir::LogicalResult emitBlocks(mlir::ModuleOp into) override;

  /// The part of the result that an item computes.
  struct Place {
    SmallVector<AffineExpr> point; ///< 0 along the axis and the columns
    Value low, high;               ///< range of columns
    std::optional<int64_t> count;  ///< high - low if known
  };
  Place placeOf(Emitter &e, Value item);
  /// Calls `body` at all columns of the item, or at its one point.
  void overColumns(Emitter &e, const Place &place,
                   llvm::function_ref<void(ArrayRef<AffineExpr>)> body);
  /// Emits the code of an item of a stage, and by default also of a launch.
  virtual void emitItem(Emitter &e, const Place &place) = 0;
  /// Emits stage `number`, with `body` for each item.
  mlir::LogicalResult
  emitItemStage(mlir::ModuleOp into, unsigned number,
                llvm::function_ref<void(Emitter &, const Place &)> body);
  /// Emits launch `number`, with `body` for each item.
  mlir::LogicalResult
  emitItemLaunch(mlir::ModuleOp into, unsigned number,
                 llvm::function_ref<void(Emitter &, const Place &)> body);

  mlir::Operation *op;
  llvm::ArrayRef<int64_t> shape;
  int64_t axis;
  bool columns; ///< set if the last dimension is not the axis
  // analyze() sets these.
  int64_t rangeColumns = 1; ///< columns of an item of a stage
  int64_t columnWork = 1;   ///< operations of an item for one column

private:
  void divide(int64_t block);

  int64_t items = 1, columnBlock = 1;
  SmallVector<int64_t> dims, trips;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_KINDS_STRUCTUREDKERNEL_H
