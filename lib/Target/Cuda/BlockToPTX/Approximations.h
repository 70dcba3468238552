//===- Approximations.h - functions that a GPU approximates -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_APPROXIMATIONS_H
#define CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_APPROXIMATIONS_H

#include "BlockForm.h"

namespace ckopt::blockform {

/// Replaces approximate functions of the block dialect: on a device by its
/// instructions, else by their model (Approximations.cpp).
void expandApproximations(const Kernel &kernel, bool onDevice);

/// Returns whether the kernel has such functions.
bool usesApproximations(const Kernel &kernel);

} // namespace ckopt::blockform

#endif // CKOPT_LIB_TARGET_CUDA_BLOCKTOPTX_APPROXIMATIONS_H
