//===- SampleAxes.h - where the samples of a batch lie ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_AUTODIFF_SAMPLEAXES_H
#define CKOPT_LIB_AUTODIFF_SAMPLEAXES_H

#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt::autodiff {

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

  static SampleAxis same() { return {}; }
  static SampleAxis part(int64_t axis) { return {Kind::Part, axis}; }
  static SampleAxis mixed() { return {Kind::Mixed, -1}; }
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
  /// Returns the samples of a rank; 0: there is no data.
  int64_t samples() const { return count; }

private:
  void set(mlir::Value value, SampleAxis axis);
  void add(mlir::Operation *op);
  SampleAxis transfer(mlir::Operation *op) const;
  SampleAxis wanted(mlir::Value drawn, int depth) const;

  mlir::func::FuncOp function;
  int64_t count = 0;
  llvm::DenseMap<mlir::Value, SampleAxis> known; ///< but Same; looked up only
};

} // namespace ckopt::autodiff

#endif // CKOPT_LIB_AUTODIFF_SAMPLEAXES_H
