//===- TestKernels.h - the pass that checks kernels -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_KERNELS_TESTKERNELS_H
#define CKOPT_TEST_LIB_KERNELS_TESTKERNELS_H

namespace ckopt::test {
/// Registers --test-kernels-against-reference.
void registerTestKernelsPass();
} // namespace ckopt::test

#endif // CKOPT_TEST_LIB_KERNELS_TESTKERNELS_H
