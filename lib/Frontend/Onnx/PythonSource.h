//===- PythonSource.h - shapes out of a line of Python ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_PYTHONSOURCE_H
#define CKOPT_LIB_FRONTEND_ONNX_PYTHONSOURCE_H

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace ckopt::onnx_frontend {

/// What an expression that only adds dimensions of size 1 made its value of: a
/// vector, or the result without dimension `dim`.
struct Widened {
  std::optional<size_t> dim;
};

/// Reads how `source`, the text behind a name ("[:, None]", ".unsqueeze(0)",
/// ".view(1, -1, 1, 1)"), makes a value of `rank` dimensions of what has that
/// name; nothing where it does more, or leaves open what was there before.
std::optional<Widened> widenedBy(llvm::StringRef source, size_t rank);

/// Whether `source` begins with a new first dimension: "[None]", "[None, :]" or
/// ".unsqueeze(0)".
bool widensFirst(llvm::StringRef source);

/// Whether `source` is ".repeat(batch, 1, 1)", with any first number.
bool repeatsAlongFirst(llvm::StringRef source);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_PYTHONSOURCE_H
