//===- BatchScaling.h - another batch for a baked-in one --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_BATCHSCALING_H
#define CKOPT_LIB_FRONTEND_ONNX_BATCHSCALING_H

#include "Reader/OnnxModel.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace ckopt::onnx_frontend {

class NodeImporter;

/// Returns whether integers along `dim` provably are 0, 1, 2, ...: the
/// position.
bool countsAlong(mlir::Value indices, int64_t dim);

class BatchScaling {
public:
  using Shape = llvm::SmallVector<int64_t>;
  using Shapes = llvm::StringMap<Shape>;

  /// `baseShapes` holds every value's shape at the file's own batch.
  BatchScaling(int64_t base, int64_t target, Shapes baseShapes)
      : base(base), target(target), baseShapes(std::move(baseShapes)) {}

  /// Returns the shape that `node` (a reshape) gives operand 0; an error if it
  /// cannot be proven which entry holds the batch. `own` is the shape that the
  /// node computes from the operand's shape alone, or empty if it names a
  /// shape.
  std::optional<Shape> reshape(NodeImporter &node, llvm::ArrayRef<int64_t> own);
  /// Returns whether dimension `d` of operand `i` holds the batch.
  bool isBatch(NodeImporter &node, size_t i, int64_t d) const;
  /// Returns whether a slice of dimension `d` of operand 0 takes all of it at
  /// the file's own batch.
  bool isWhole(NodeImporter &node, int64_t d, int64_t start, int64_t end,
               int64_t step) const;
  /// Resizes operands that broadcast with each other (dimensions aligned at the
  /// right, the last `skip` left out) to one batch: an operand that is provably
  /// the same for every sample gets the batch of the others. Returns false
  /// after an error.
  bool align(NodeImporter &node, llvm::MutableArrayRef<mlir::Value> operands,
             int64_t skip = 0);
  /// Resizes one dimension to `size` entries in the same way.
  mlir::Value resize(NodeImporter &node, mlir::Value value, int64_t dim,
                     int64_t size);
  /// Returns indices of tuples (along their last dimension) with the new batch,
  /// if entry `entry` of each provably is its own sample, at the file's batch,
  /// and the others are the same for every sample; else null.
  mlir::Value ownSamples(NodeImporter &node, mlir::Value indices,
                         int64_t entry);
  /// Records that dimension 0 of a graph input is the batch.
  void recordInput(llvm::StringRef name) { axes[name] = {0, 1}; }
  /// Records where the results of a node hold the batch.
  void record(NodeImporter &node);

  int64_t getBase() const { return base; }
  int64_t getTarget() const { return target; }

private:
  /// The factors of a dimension: `size = outer * batch * inner`.
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
  std::optional<Axis> pending; ///< for the result of the current reshape
};

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_BATCHSCALING_H
