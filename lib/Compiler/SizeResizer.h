//===- SizeResizer.h - a module at another size -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_COMPILER_SIZERESIZER_H
#define CKOPT_LIB_COMPILER_SIZERESIZER_H

#include "ckopt/Base/SizePolynomial.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace ckopt {

/// Makes the module at another size of those at several sizes, which have the
/// same ops.
class SizeResizer {
public:
  SizeResizer(llvm::ArrayRef<SizePoint> points, SizePoint wanted)
      : points(points), wanted(wanted) {}

  /// Returns nothing with the op where no polynomial explains a difference.
  mlir::OwningOpRef<mlir::ModuleOp> run(llvm::ArrayRef<mlir::ModuleOp> modules);
  mlir::Operation *failedAt = nullptr;

private:
  std::optional<int64_t> number(llvm::ArrayRef<int64_t> values);
  double estimate(llvm::ArrayRef<llvm::APFloat> values);
  mlir::Type type(llvm::ArrayRef<mlir::Type> types);
  mlir::Attribute attribute(llvm::StringRef name,
                            llvm::ArrayRef<mlir::Attribute> attributes);
  mlir::Attribute dense(llvm::ArrayRef<mlir::Attribute> attributes);
  bool resize(mlir::Operation *into, llvm::ArrayRef<mlir::Operation *> ops);

  llvm::ArrayRef<SizePoint> points;
  SizePoint wanted;
};

} // namespace ckopt

#endif // CKOPT_LIB_COMPILER_SIZERESIZER_H
