//===- Described.h - ops have what tables say of them -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_REMAT_DESCRIBED_H
#define CKOPT_LIB_TRANSFORMS_REMAT_DESCRIBED_H

#include "ckopt/Remat/Remat.h"

namespace ckopt {

/// Gives ops the attributes of tables while it lives.
class Described {
public:
  /// Takes the attributes `ckopt.ops` around and inside of `root`, then the
  /// tables of options, unless these say that the ops are described. With
  /// `mayReadCallees`, all ops of the outermost module get the attributes.
  /// `options` then says that they have them.
  Described(mlir::Operation *root, RematOptions &options);
  /// The same, with these tables for `root` alone.
  Described(mlir::Operation *root, const OpTables &tables);
  Described(const Described &) = delete;
  ~Described();

  /// Failure: errors were emitted.
  mlir::LogicalResult status() const { return outcome; }

private:
  void describe(mlir::Operation *root, const OpTables &tables);

  mlir::Operation *described = nullptr;
  mlir::LogicalResult outcome = mlir::success();
};

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_REMAT_DESCRIBED_H
