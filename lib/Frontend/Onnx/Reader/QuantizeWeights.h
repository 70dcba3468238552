//===- QuantizeWeights.h - the numbers of a weight in few bits --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_READER_QUANTIZEWEIGHTS_H
#define CKOPT_LIB_FRONTEND_ONNX_READER_QUANTIZEWEIGHTS_H

#include "ckopt/Frontend/Onnx/Quantize.h"
#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <array>
#include <string>
#include <vector>

namespace ckopt::onnx_frontend {

/// The levels of NormalFloat with four bits, ascending.
extern const std::array<float, 16> kNf4Levels;

/// A matrix that is quantized; groups lie along `axis`, whose extent they
/// divide.
struct QuantizedWeight {
  HostTensor value;
  int64_t axis, group;
  QuantizedType type;
  bool offset; ///< int4 is stored plus 8, rather than in two's complement

  int64_t rows() const { return value.dim(0); }
  int64_t columns() const { return value.dim(1); }
  int64_t numScales() const { return value.numElements() / group; }
  uint64_t bytes() const;
  /// Computes the scales, row by row of [rows / group, columns] or [rows,
  /// columns / group]. An error names a number that is not finite.
  llvm::Expected<std::vector<float>> scales() const;
  /// Passes on the integers as they are stored, piece by piece.
  llvm::Error
  store(const std::vector<float> &scales,
        llvm::function_ref<llvm::Error(llvm::StringRef)> take) const;

private:
  int64_t groupOf(int64_t row, int64_t column) const {
    return axis == 0 ? row / group * columns() + column
                     : (row * columns() + column) / group;
  }
};

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_READER_QUANTIZEWEIGHTS_H
