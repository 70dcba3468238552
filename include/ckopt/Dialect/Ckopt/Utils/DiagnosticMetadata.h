//===- DiagnosticMetadata.h - what printers of errors ignore ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_CKOPT_UTILS_DIAGNOSTICMETADATA_H
#define CKOPT_DIALECT_CKOPT_UTILS_DIAGNOSTICMETADATA_H

#include "mlir/IR/Diagnostics.h"

namespace ckopt {

/// Returns the arguments that handlers read and printers ignore; null: this
/// release of MLIR has none (19).
template <typename Diagnostic>
llvm::SmallVectorImpl<mlir::DiagnosticArgument> *
metadataOf(Diagnostic &diagnostic) {
  if constexpr (requires { diagnostic.getMetadata(); })
    return &diagnostic.getMetadata();
  else
    return nullptr;
}

} // namespace ckopt

#endif // CKOPT_DIALECT_CKOPT_UTILS_DIAGNOSTICMETADATA_H
