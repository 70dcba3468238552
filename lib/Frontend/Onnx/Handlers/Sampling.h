//===- Sampling.h - reading between the points of a grid --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_HANDLERS_SAMPLING_H
#define CKOPT_LIB_FRONTEND_ONNX_HANDLERS_SAMPLING_H

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
  /// Mirrors lie on the outermost points rather than half a step beyond.
  bool mirrorOnPoints = false;
  /// Takes the largest of the weighted points instead of their sum (RoiAlign).
  bool largest = false;
};

/// Samples `x` [N, C, d1, ..., dk] at points: `coordinates[i]`, floats of shape
/// [N, ...] (the same for all i), are positions along dimension i, where the
/// first entry has position 0. The result is [N, ..., C]: channels last. It is
/// differentiable in x and, except for `Nearest`, in the coordinates. Null
/// after an error. With `samples`, i64 [M], the coordinates have shape [M,
/// ...], and entry i reads sample `samples[i]`.
mlir::Value sample(NodeImporter &n, mlir::Value x,
                   llvm::ArrayRef<mlir::Value> coordinates,
                   const SampleOptions &options, mlir::Value samples = {});

/// Transposes [N, ..., C] to [N, C, ...].
mlir::Value channelsFirst(NodeImporter &n, mlir::Value x);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_HANDLERS_SAMPLING_H
