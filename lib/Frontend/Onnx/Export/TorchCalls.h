//===- TorchCalls.h - what calls of PyTorch mean -------------- -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_EXPORT_TORCHCALLS_H
#define CKOPT_LIB_FRONTEND_ONNX_EXPORT_TORCHCALLS_H

#include "NodeImporter.h"

namespace ckopt::onnx_frontend {

/// Returns whether the exporter records that the node came from a call of
/// `aten.<op>`.
bool isCallOf(const Node &node, llvm::StringRef op);

/// Returns the number that such a call has at `position`, or by the name
/// `keyword`; nothing if the node is not of that call, or the file does not
/// tell.
std::optional<double> callNumber(const Node &node, llvm::StringRef op,
                                 size_t position, llvm::StringRef keyword);

/// Returns the value with its gradient stopped.
mlir::Value stopGradient(NodeImporter &n, mlir::Value value);

/// Returns min(max(x, lo), hi); no gradient passes at the bounds, as in
/// PyTorch.
mlir::Value clipOpenRange(NodeImporter &n, mlir::Value x, double lo, double hi);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_EXPORT_TORCHCALLS_H
