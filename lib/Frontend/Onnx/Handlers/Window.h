//===- Window.h - the attributes of convolutions and pooling ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_HANDLERS_WINDOW_H
#define CKOPT_LIB_FRONTEND_ONNX_HANDLERS_WINDOW_H

#include "NodeImporter.h"

namespace ckopt::onnx_frontend {

/// The attributes that all windows have, for each spatial dimension.
struct Window {
  Shape kernel, strides, low, high, dilations;
  Shape padding; ///< `high` before ceil_mode changes it
  std::string autoPad;

  int64_t extent(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

/// Reads a node's attributes; returns false after an error. Pads may be
/// negative.
bool readWindow(NodeImporter &n, size_t spatial, llvm::ArrayRef<int64_t> kernel,
                Window &w);
/// Splits a total between both ends. The extra entry of an odd one goes to the
/// end with SAME_UPPER alone, and else to the beginning.
void splitPad(Window &w, size_t d, int64_t total);
/// Computes the pads that auto_pad asks for with an input of `sizes`.
void resolveSame(Window &w, llvm::ArrayRef<int64_t> sizes);
/// Crops `x` where pads are negative, and sets these to 0.
mlir::Value cropNegativePads(NodeImporter &n, mlir::Value x, Window &w);

/// Convolves `x` and `weight` by the node's attributes, without bias; null
/// after an error.
mlir::Value convolve(NodeImporter &n, mlir::Value x, mlir::Value weight);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_HANDLERS_WINDOW_H
