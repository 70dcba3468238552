//===- ExitDiagnostic.h - diagnostics with an exit code ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pass can only fail. The exit code of a failure (if no plan fits a budget,
// say) is therefore metadata of the error, which diagnostic handlers can read
// and printers ignore.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_EXITDIAGNOSTIC_H
#define CKOPT_DIALECT_CKOPT_UTILS_EXITDIAGNOSTIC_H

#include "ckopt/Base/ExitCodes.h"
#include "ckopt/Dialect/Ckopt/Utils/DiagnosticMetadata.h"

#include <optional>

namespace ckopt {

/// Marks the code in an error's metadata.
inline constexpr llvm::StringLiteral kExitCodeTag = "ckopt.exit_code";

/// Gives the error an exit code; without one it is ExitInputError.
inline void setExitCode(mlir::InFlightDiagnostic &error, ExitCode code) {
  auto *metadata = metadataOf(*error.getUnderlyingDiagnostic());
  if (!metadata)
    return;
  metadata->push_back(mlir::DiagnosticArgument(llvm::StringRef(kExitCodeTag)));
  metadata->push_back(mlir::DiagnosticArgument(int64_t(code)));
}

inline std::optional<ExitCode> getExitCode(mlir::Diagnostic &error) {
  using Kind = mlir::DiagnosticArgument::DiagnosticArgumentKind;
  auto *metadata = metadataOf(error);
  for (size_t i = 0; metadata && i + 1 < metadata->size(); ++i)
    if ((*metadata)[i].getKind() == Kind::String &&
        (*metadata)[i].getAsString() == kExitCodeTag)
      return ExitCode((*metadata)[i + 1].getAsInteger());
  return std::nullopt;
}

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_EXITDIAGNOSTIC_H
