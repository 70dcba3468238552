//===- PythonSource.h - shapes out of a line of Python ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_EXPORT_PYTHONSOURCE_H
#define CKOPT_LIB_FRONTEND_ONNX_EXPORT_PYTHONSOURCE_H

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace ckopt::onnx_frontend {

/// The value before an expression that only adds dimensions of size 1: a
/// vector, or the result without dimension `dim`.
struct Widened {
  std::optional<size_t> dim;
};

/// Parses `source`, the text after a name ("[:, None]", ".unsqueeze(0)",
/// ".view(1, -1, 1, 1)"), which gives a value of `rank` dimensions. Returns
/// nothing if it does more than add dimensions, or if the dimensions before are
/// unclear.
std::optional<Widened> widenedBy(llvm::StringRef source, size_t rank);

/// Returns whether `source` begins by adding a first dimension: "[None]",
/// "[None, :]" or ".unsqueeze(0)".
bool widensFirst(llvm::StringRef source);

/// Returns whether `source` is ".repeat(batch, 1, 1)", with any first number.
bool repeatsAlongFirst(llvm::StringRef source);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_EXPORT_PYTHONSOURCE_H
