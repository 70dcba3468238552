//===- Sampling.h - reading between the points of a grid --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_SAMPLING_H
#define CKOPT_LIB_FRONTEND_ONNX_SAMPLING_H

#include "NodeImporter.h"

namespace ckopt::onnx_frontend {

enum class Interpolation { Nearest, Linear, Cubic };
enum class Outside {
  Zeros,   ///< points outside of the operand count as 0
  Border,  ///< ... as the nearest point inside
  Reflect, ///< ... as the point that a mirror at the border shows
};

struct SampleOptions {
  Interpolation mode = Interpolation::Linear;
  Outside outside = Outside::Zeros;
  /// Mirrors stand on the outermost points rather than half a step beyond.
  bool mirrorOnPoints = false;
  /// The largest of the weighted points instead of their sum (RoiAlign).
  bool largest = false;
};

/// Values of `x` [N, C, d1, ..., dk] at points: `coordinates[i]`, a float of a
/// shape [N, ...] (all alike), is the place along dimension i, the first entry
/// being 0. The result is [N, ..., C]: channels last. Differentiable in x and,
/// but for `Nearest`, in the coordinates. Null after an error. `samples`, i64
/// [M]: entry i of the coordinates, then of shape [M, ...], reads that sample.
mlir::Value sample(NodeImporter &n, mlir::Value x,
                   llvm::ArrayRef<mlir::Value> coordinates,
                   const SampleOptions &options, mlir::Value samples = {});

/// [N, ..., C] as [N, C, ...].
mlir::Value channelsFirst(NodeImporter &n, mlir::Value x);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_SAMPLING_H
