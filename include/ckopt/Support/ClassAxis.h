//===- ClassAxis.h - where logits have their classes ------------*- C++ -*-===//
//
// One rule for compiler and host: targets have the shape of the logits without
// the class axis, which is axis 1 as in PyTorch's losses ([N, C], [N, C, H, W]
// with targets [N, H, W]) or the last as in language models ([B, T, V] with
// targets [B, T]). Where both fit ([N, T, T] with [N, T]) they compute
// different numbers: the user has to say.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_CLASSAXIS_H
#define CKOPT_SUPPORT_CLASSAXIS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace ckopt {

/// What is left of a shape: that of targets, if `axis` holds the classes.
llvm::SmallVector<int64_t> withoutAxis(llvm::ArrayRef<int64_t> shape,
                                       size_t axis);
/// The axis of `logits` that holds the classes (see above), or an error that
/// states both shapes that the targets could have, or asks where both fit.
llvm::Expected<int64_t> resolveClassAxis(llvm::ArrayRef<int64_t> logits,
                                         llvm::ArrayRef<int64_t> targets);
/// Whether targets for classes along axis 1 and along the last have one shape,
/// and these are two axes.
bool isClassAxisAmbiguous(llvm::ArrayRef<int64_t> logits);
/// The error of such a shape.
llvm::Error ambiguousClassAxis(llvm::ArrayRef<int64_t> logits);

} // namespace ckopt

#endif // CKOPT_SUPPORT_CLASSAXIS_H
