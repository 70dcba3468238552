//===- SampleAxes.h - where the samples of a batch lie ----------*- C++ -*-===//
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

/// How a rank's value is part of the value that one process has.
struct SampleAxis {
  enum class Kind {
    Same,  ///< it is that value: no sample enters
    Part,  ///< the r-th of as many equal parts along `axis` as there are ranks,
           ///< made of the rank's samples alone
    Mixed, ///< not known
  };
  Kind kind = Kind::Same;
  int64_t axis = -1; ///< of Part
  /// Of Part: as many stretches of the axis lie one behind the other, of each
  /// of which the rank has its part (time steps that each hold all samples).
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
/// ops that keep them apart. Batch norms count as such, though each sample
/// enters their statistics. Random numbers belong to the samples with which
/// they are combined, where a rank has more than one.
class SampleAxes {
public:
  /// Looks at all ops of the function. O(ops), and again for each random one.
  explicit SampleAxes(mlir::func::FuncOp function);

  SampleAxis of(mlir::Value value) const;
  /// Returns whether the value holds the same for each place along the axis.
  bool isUniform(mlir::Value value, int64_t axis) const {
    return equal.isUniform(value, axis);
  }
  /// Returns the first op that mixes what it reads, of those that the value is
  /// made of; null: the value is not Mixed.
  mlir::Operation *firstMixing(mlir::Value value) const;
  /// Returns the samples of a rank; 0: there is no data.
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
  llvm::DenseMap<mlir::Value, SampleAxis> known; ///< but Same; looked up only
  mutable Uniformity equal;
};

/// Returns where samples lie in rows that each takes of its own, or puts there,
/// by numbers of rows of all samples (OwnRows.cpp).
SampleAxis keptByRows(const SampleAxes &axes, mlir::Operation *op);

} // namespace ckopt

#endif // CKOPT_DISTRIBUTE_SAMPLEAXES_H
