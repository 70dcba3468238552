//===- DeviceContraction.h - matmuls and convolutions on a GPU --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Describes matmuls and convolutions, which the CPU leaves to a library, as
// implicit GEMMs: the addresses of a(m, k) and b(k, n) follow from the
// primitive's descriptor.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_DEVICE_DEVICECONTRACTION_H
#define CKOPT_LIB_CODEGEN_DEVICE_DEVICECONTRACTION_H

#include "DeviceGemm.h"

namespace ckopt::codegen {

struct ConvIndex;

/// A tensor of the kernel that is accessed by element offsets.
struct Operand {
  unsigned number; ///< number of the kernel's argument
  Type element;

  /// Returns the number of elements in 16 bytes.
  int64_t wide() const {
    return 128 / int64_t(element.getIntOrFloatBitWidth());
  }
  /// Returns how many elements one access may take: as many as 16 or 8 bytes
  /// hold if `lies` is set and all of `numbers` are multiples of it, else 1.
  unsigned lanes(bool lies, ArrayRef<int64_t> numbers) const;

  /// Returns the place in memory of the elements from `offset` on.
  Place place(Emitter &e, Value offset, Value inside) const {
    return {address(e, offset), inside};
  }
  /// Loads `lanes` adjacent elements from `offset` on; zeros unless `inside`
  /// holds (null: it holds). There is no branch, since later loads would wait
  /// for it: instead the address is that of zeros.
  Value load(Emitter &e, Value offset, unsigned lanes, Value inside) const;
  void store(Emitter &e, Value offset, Value v) const;

private:
  Value address(Emitter &e, Value offset) const;
};

/// Returns the form of elements of a and b in shared memory, with `precision`
/// for those of f32.
OperandForm operandForm(Operand a, Operand b, Type sums,
                        runtime::ProductPrecision precision);

/// Returns elements widened or rounded to `as`.
Value formed(Emitter &e, Value elements, OperandForm as);

/// Returns the sum of values[i] * strides[i], of the values' type.
Value linear(Emitter &e, ArrayRef<Value> values, ArrayRef<int64_t> strides);

/// Describes the matmul of a checked descriptor, which may be added to a tensor
/// with the result's strides; operands and result are in the order of
/// runtime::PrimitiveKind.
DeviceGemm describeProduct(const runtime::PrimitiveDesc &desc,
                           ArrayRef<Operand> operands);
/// Describes the convolution of a checked descriptor, or one of its gradients,
/// as matmuls that each make a part of the result; operands are in the order of
/// runtime::PrimitiveKind.
SmallVector<DeviceGemm, 0>
describeConvolution(const runtime::PrimitiveDesc &desc, Operand first,
                    Operand second, Operand result);
/// Splits the input gradient of a strided convolution into several matmuls;
/// `whole` describes it as one.
SmallVector<DeviceGemm, 0> describeStridedGrad(const ConvIndex &conv,
                                               const DeviceGemm &whole,
                                               Operand dy, Operand w,
                                               Operand dx);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_DEVICE_DEVICECONTRACTION_H
