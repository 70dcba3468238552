//===- GatherStored.h - what is made of stored weights ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_NORMALIZE_GATHERSTORED_H
#define CKOPT_LIB_TRANSFORMS_NORMALIZE_GATHERSTORED_H

#include "mlir/IR/PatternMatch.h"

namespace ckopt {

/// Returns whether the value follows from frozen weights and constants by a few
/// ops, so that no step changes it.
bool followsFromStored(mlir::Value value);

/// Adds the pattern that takes rows of a table before it is made wide, and the
/// one that casts what is made of a stored weight before it is reshaped.
void addGatherStored(mlir::RewritePatternSet &patterns);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_NORMALIZE_GATHERSTORED_H
