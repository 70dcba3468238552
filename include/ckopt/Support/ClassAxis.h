//===- ClassAxis.h - which axis of logits holds the classes -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiler and host share one rule: targets have the shape of the logits
// without the class axis, which is axis 1 as in PyTorch's losses ([N, C], [N,
// C, H, W] with targets [N, H, W]) or the last as in language models ([B, T, V]
// with targets [B, T]). If both fit ([N, T, T] with [N, T]) they compute
// different numbers, so the user has to choose.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_CLASSAXIS_H
#define CKOPT_SUPPORT_CLASSAXIS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace ckopt {

/// Removes `axis` from a shape. The result is the shape of targets if `axis`
/// holds the classes.
llvm::SmallVector<int64_t> withoutAxis(llvm::ArrayRef<int64_t> shape,
                                       size_t axis);
/// Finds the axis of `logits` that holds the classes (see above). Else an error
/// states both shapes that the targets could have, or asks the user if both
/// fit.
llvm::Expected<int64_t> resolveClassAxis(llvm::ArrayRef<int64_t> logits,
                                         llvm::ArrayRef<int64_t> targets);
/// Tells whether axis 1 and the last axis are different axes that would give
/// targets the same shape, so that the shapes cannot say which one is meant.
bool isClassAxisAmbiguous(llvm::ArrayRef<int64_t> logits);
/// Makes the error for logits whose class axis is ambiguous.
llvm::Error ambiguousClassAxis(llvm::ArrayRef<int64_t> logits);

} // namespace ckopt

#endif // CKOPT_SUPPORT_CLASSAXIS_H
