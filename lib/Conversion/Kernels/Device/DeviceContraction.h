//===- DeviceContraction.h - products and convolutions on a GPU -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops that the CPU leaves to a library, as implicit GEMMs: which element of
// memory a(m, k) and b(k, n) mean follows from the primitive's descriptor.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICECONTRACTION_H
#define CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICECONTRACTION_H

#include "Device/DeviceGemm.h"

namespace ckopt::codegen {

/// A tensor of the kernel that code reads and writes by element offsets.
struct Operand {
  unsigned number; ///< argument of the kernel
  Type element;

  /// Elements that fill 16 bytes.
  int64_t wide() const {
    return 128 / int64_t(element.getIntOrFloatBitWidth());
  }
  /// As many elements as a number is a multiple of where vectors fit: wide()
  /// if `lies` and all of `numbers` are multiples of it, else 1.
  unsigned lanes(bool lies, ArrayRef<int64_t> numbers) const;

  /// `lanes` neighbours from there on, widened or rounded to `as`.
  Value load(Emitter &e, Value offset, unsigned lanes, OperandForm as) const;
  void store(Emitter &e, Value offset, Value v) const;

private:
  Value address(Emitter &e, Value offset) const;
};

/// How elements of a and b lie in shared memory, with `precision` for those of
/// f32.
OperandForm operandForm(Operand a, Operand b, Type sums,
                        runtime::ProductPrecision precision);

/// sum of values[i] * strides[i].
Value linear(Emitter &e, ArrayRef<Value> values, ArrayRef<int64_t> strides);

/// A sound descriptor's product.
DeviceGemm describeProduct(const runtime::PrimitiveDesc &desc, Operand a,
                           Operand b, Operand c);
/// A sound descriptor's convolution or one of its gradients; operands in the
/// order of runtime::PrimitiveKind.
DeviceGemm describeConvolution(const runtime::PrimitiveDesc &desc,
                               Operand first, Operand second, Operand result);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CONVERSION_KERNELS_DEVICE_DEVICECONTRACTION_H
