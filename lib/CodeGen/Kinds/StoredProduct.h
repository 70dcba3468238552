//===- StoredProduct.h - products that read stored weights ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_KINDS_STOREDPRODUCT_H
#define CKOPT_LIB_CODEGEN_KINDS_STOREDPRODUCT_H

#include "GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

namespace ckopt::codegen {

/// Returns the bytes of an element of a tensor.
int64_t bytesOfElement(Value value);

/// A product of matrices one of which the kernel makes, block by block.
class StoredProduct : public GeneratedKernel {
public:
  using GeneratedKernel::GeneratedKernel;

protected:
  mlir::InFlightDiagnostic refuse(const llvm::Twine &why) {
    return kernel.emitError("a product by blocks of a factor ") << why;
  }
  /// Finds the product and the factor that the kernel makes, and describes the
  /// whole product in code.primitive.
  mlir::LogicalResult findFactor();
  /// Returns the kernel's function without the product: its result is `made`.
  mlir::OwningOpRef<mlir::func::FuncOp> makeFiller();
  /// Returns the kernel's argument that is an operand of the product.
  int64_t numberOf(unsigned operand) const;
  /// Returns the number of the primitive in code.blockPrimitives.
  unsigned addPrimitive(const runtime::PrimitiveDesc &desc);
  /// Lets the result have the bytes of what it is added to.
  void reuseAddend();

  mlir::Operation *product = nullptr;
  unsigned factor = 0; ///< the operand that is made
  Value made;          ///< it, below reshapes
  mlir::RankedTensorType matrix;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_KINDS_STOREDPRODUCT_H
