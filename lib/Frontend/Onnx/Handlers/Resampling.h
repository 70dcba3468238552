//===- Resampling.h - a linear map along one axis ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_HANDLERS_RESAMPLING_H
#define CKOPT_LIB_FRONTEND_ONNX_HANDLERS_RESAMPLING_H

#include "NodeImporter.h"

namespace ckopt::onnx_frontend {

/// A term of a result's entry: `weight` times the operand's entry `index`.
struct Tap {
  int64_t index;
  double weight;
};

/// A map along one axis: each entry of the result is a weighted sum of the
/// operand's.
struct Resampling {
  /// Taps of each entry; an index outside of the operand stands for its nearest
  /// entry.
  std::vector<llvm::SmallVector<Tap, 4>> rows;
  /// If positive: row i + period has the weights of row i, and indices that are
  /// larger by `advance`.
  int64_t period = 0, advance = 0;

  /// Returns the map of `size` entries that copies entry `source(i)` to entry
  /// i.
  static Resampling picks(int64_t size,
                          llvm::function_ref<int64_t(int64_t)> source);
};

/// Applies `map` to `x`, of floats, along `axis`; null after an error. Maps
/// that only pick entries accept any element type.
mlir::Value resample(NodeImporter &n, mlir::Value x, int64_t axis,
                     const Resampling &map);

/// Picks entries `indices` of `x` along `axis`: by a few slices if the indices
/// form a few sequences of constant step, else by a gather.
mlir::Value pickEntries(NodeImporter &n, mlir::Value x, int64_t axis,
                        llvm::ArrayRef<int64_t> indices);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_HANDLERS_RESAMPLING_H
