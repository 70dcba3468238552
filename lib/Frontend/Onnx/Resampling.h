//===- Resampling.h - a linear map along one axis ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_RESAMPLING_H
#define CKOPT_LIB_FRONTEND_ONNX_RESAMPLING_H

#include "NodeImporter.h"

namespace ckopt::onnx_frontend {

/// One term of a result's entry: `weight` times the operand's entry `index`.
struct Tap {
  int64_t index;
  double weight;
};

/// The entries of a result along one axis as weighted sums of the operand's.
struct Resampling {
  /// Taps of each entry; an index outside of the operand means its nearest
  /// entry.
  std::vector<llvm::SmallVector<Tap, 4>> rows;
  /// Where positive: row i + period has the weights of row i, its indices
  /// larger by `advance`.
  int64_t period = 0, advance = 0;

  /// `size` entries that each come from the operand's entry `source(i)`.
  static Resampling picks(int64_t size,
                          llvm::function_ref<int64_t(int64_t)> source);
};

/// `x`, of floats, with `map` applied along `axis`; null after an error. Maps
/// that only pick entries take any element type.
mlir::Value resample(NodeImporter &n, mlir::Value x, int64_t axis,
                     const Resampling &map);

/// Entries `indices` of `x` along `axis`, as few slices as there are runs of
/// constant step where these are few, else a gather.
mlir::Value pickEntries(NodeImporter &n, mlir::Value x, int64_t axis,
                        llvm::ArrayRef<int64_t> indices);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_RESAMPLING_H
