//===- GatherStored.h - lookups in tables as they are stored ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_NORMALIZE_GATHERSTORED_H
#define CKOPT_LIB_TRANSFORMS_NORMALIZE_GATHERSTORED_H

#include "mlir/IR/PatternMatch.h"

namespace ckopt {

/// Adds the pattern that takes rows of a table before it is made wide.
void addGatherStored(mlir::RewritePatternSet &patterns);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_NORMALIZE_GATHERSTORED_H
