//===- BatchScaling.h - another batch for a baked-in one --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_BATCHSCALING_H
#define CKOPT_LIB_FRONTEND_ONNX_BATCHSCALING_H

#include "OnnxModel.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace ckopt::onnx_frontend {

class NodeImporter;

class BatchScaling {
public:
  using Shape = llvm::SmallVector<int64_t>;
  using Shapes = llvm::StringMap<Shape>;

  /// `baseShapes`: every value's shape at the file's own batch.
  BatchScaling(int64_t base, int64_t target, Shapes baseShapes)
      : base(base), target(target), baseShapes(std::move(baseShapes)) {}

  /// The shape that `node` (a reshape) gives operand 0; an error where it is
  /// not proven which entry holds the batch. `own`: the shape as the node
  /// computes it from the operand's alone, empty where it names one.
  std::optional<Shape> reshape(NodeImporter &node, llvm::ArrayRef<int64_t> own);
  /// Whether dimension `d` of operand `i` follows the batch.
  bool isBatch(NodeImporter &node, size_t i, int64_t d) const;
  /// Whether a slice of dimension `d` of operand 0 takes all of it at the
  /// file's own batch.
  bool isWhole(NodeImporter &node, int64_t d, int64_t start, int64_t end,
               int64_t step) const;
  /// Brings operands that broadcast with each other (dimensions aligned at the
  /// right, the last `skip` left out) to one batch: one that is the same for
  /// every sample, provably, is given the batch of the others. False after an
  /// error.
  bool align(NodeImporter &node, llvm::MutableArrayRef<mlir::Value> operands,
             int64_t skip = 0);
  /// The same for one dimension that must have `size` entries.
  mlir::Value resize(NodeImporter &node, mlir::Value value, int64_t dim,
                     int64_t size);
  /// Notes that dimension 0 of a graph input is the batch.
  void recordInput(llvm::StringRef name) { axes[name] = {0, 1}; }
  /// Notes where the results of a node carry the batch.
  void record(NodeImporter &node);

  int64_t getBase() const { return base; }
  int64_t getTarget() const { return target; }

private:
  /// The batch within a dimension of `size = outer * batch * inner`.
  struct Axis {
    int64_t dim;
    int64_t inner;
  };
  std::optional<Axis> findAxis(const NodeImporter &node,
                               llvm::ArrayRef<int64_t> was,
                               llvm::ArrayRef<int64_t> is) const;
  std::optional<Shape> scaled(NodeImporter &node, const Axis &axis,
                              llvm::ArrayRef<int64_t> source,
                              llvm::ArrayRef<int64_t> wanted);

  int64_t base, target;
  Shapes baseShapes;
  llvm::StringMap<Axis> axes;
  std::optional<Axis> pending; ///< of the result of the reshape at hand
};

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_BATCHSCALING_H
