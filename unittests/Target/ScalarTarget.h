//===- ScalarTarget.h - a target for tests ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_TARGET_SCALARTARGET_H
#define CKOPT_UNITTESTS_TARGET_SCALARTARGET_H

#include "ckopt/Target/TargetInfo.h"

namespace ckopt::test {

/// "scalar": one thread, no vectors, activations as the model has them, few
/// tensors a kernel. Nothing in ckopt knows of it.
const TargetInfo &scalarTarget();

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_TARGET_SCALARTARGET_H
