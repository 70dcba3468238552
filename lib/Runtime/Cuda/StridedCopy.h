//===- StridedCopy.h - copies into another order on a device ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: images lie with channels first at who makes them, and with channels
// last in a step. Method: a kernel for elements of one size, which finds the
// place of each by divisions by the extents that are left once dimensions that
// lie together in both orders are one; writes are in order. Cost: an element is
// read and written once.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_STRIDEDCOPY_H
#define CKOPT_LIB_RUNTIME_CUDA_STRIDEDCOPY_H

#include "OwnKernel.h"

#include <array>
#include <string>

namespace ckopt::runtime::cuda {

class StridedCopy {
public:
  struct Dimension {
    int64_t extent, from, to; ///< strides in elements
  };
  static constexpr size_t kMostDimensions = 5;

  explicit StridedCopy(const Driver &cuda)
      : kernels{OwnKernel(cuda), OwnKernel(cuda), OwnKernel(cuda),
                OwnKernel(cuda)} {}

  /// Returns the dimensions that are left, the one with the least stride of
  /// `to` last.
  static std::vector<Dimension> merge(std::vector<Dimension> dimensions);
  /// Puts the copy of elements of `size` bytes into the stream; of merged
  /// dimensions, at most kMostDimensions.
  Result copy(DevicePointer to, DevicePointer from,
              const std::vector<Dimension> &dimensions, int64_t size,
              Stream stream);

private:
  std::array<OwnKernel, 4> kernels; ///< of 1, 2, 4, 8 bytes; loaded when needed
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_STRIDEDCOPY_H
