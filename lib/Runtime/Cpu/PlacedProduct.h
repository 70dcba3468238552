//===- PlacedProduct.h - a product with equal cases made one ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CPU_PLACEDPRODUCT_H
#define CKOPT_LIB_RUNTIME_CPU_PLACEDPRODUCT_H

#include "ckopt/Runtime/Primitive.h"

namespace ckopt::runtime {

/// A matrix among the arguments of a primitive (of one in pieces, the first);
/// strides in elements.
struct PlacedOperand {
  int arg;
  int64_t batch[2], row, col;
};

/// A product whose result is row-major: a column-major one is computed as the
/// product of the transposes. Batches that all operands allow it for are one
/// dimension, batch[1]; single rows and columns have the stride of a dense
/// matrix.
struct PlacedProduct {
  explicit PlacedProduct(const PrimitiveDesc &desc);

  int64_t batch[2], m, n, k;
  PlacedOperand a, b, c;
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CPU_PLACEDPRODUCT_H
