//===- SampleAxes.h - axes along which samples lie --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DISTRIBUTE_SAMPLEAXES_H
#define CKOPT_DISTRIBUTE_SAMPLEAXES_H

#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Distribute/AxisRelation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// How a rank's value relates to the value that one process has.
struct SampleAxis {
  enum class Kind {
    Same, ///< equal to that value: no sample contributes
    Part, ///< a part of that value: it is cut along `axis` into as many equal
          ///< parts as there are ranks, and the rank's part depends only on its
          ///< own samples
    Mixed, ///< not known
  };
  Kind kind = Kind::Same;
  int64_t axis = -1; ///< of Part
  /// Of Part: the axis consists of this number of stretches, and the rank has
  /// its part of each (time steps that each hold all samples).
  int64_t groups = 1;

  static SampleAxis same() { return {}; }
  static SampleAxis part(int64_t axis, int64_t groups = 1) {
    return {Kind::Part, axis, groups};
  }
  static SampleAxis mixed() { return {Kind::Mixed}; }
  bool isSame() const { return kind == Kind::Same; }
  bool isPart() const { return kind == Kind::Part; }
  bool isMixed() const { return kind == Kind::Mixed; }
  bool operator==(const SampleAxis &other) const = default;
};

/// Follows samples from the data of a function, whose ops are a rank's, through
/// ops that keep them apart. Batch norms count as such ops, though each sample
/// contributes to their statistics. Random numbers belong to the samples with
/// which they are combined, if a rank has more than one.
class SampleAxes {
public:
  /// Visits all ops of the function. O(ops), and again for each random op.
  explicit SampleAxes(mlir::func::FuncOp function);

  SampleAxis of(mlir::Value value) const;
  /// Returns whether the value is equal at each place along the axis.
  bool isUniform(mlir::Value value, int64_t axis) const {
    return equal.isUniform(value, axis);
  }
  /// Returns the first op that mixes samples among those that the value depends
  /// on; null: the value is not Mixed.
  mlir::Operation *firstMixing(mlir::Value value) const;
  /// Returns the number of samples of a rank; 0: there is no data.
  int64_t samples() const { return count; }

private:
  void set(mlir::Value value, SampleAxis axis);
  void add(mlir::Operation *op);
  SampleAxis transfer(mlir::Operation *op) const;
  SampleAxis wanted(mlir::Value drawn, int depth) const;
  SampleAxis reshaped(mlir::Value from, mlir::Value to) const;
  bool keeps(mlir::Operation *op, SampleAxis part) const;

  mlir::func::FuncOp function;
  int64_t count = 0;
  llvm::DenseMap<mlir::Value, SampleAxis> known; ///< not Same; never iterated
  mutable Uniformity equal;
};

/// Returns how samples lie in rows that each sample reads or writes by its own
/// indices (OwnRows.cpp).
SampleAxis keptByRows(const SampleAxes &axes, mlir::Operation *op);

} // namespace ckopt

#endif // CKOPT_DISTRIBUTE_SAMPLEAXES_H
